// SPDX-License-Identifier: Apache-2.0

// Package plot draws figures as SVG that can be read on a light page and on a
// dark one.
package plot
