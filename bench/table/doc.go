// SPDX-License-Identifier: Apache-2.0

// Package table writes tables in Markdown, and puts text between markers of a
// document.
package table
