// SPDX-License-Identifier: Apache-2.0

// Package archivetest helps to test what is built on archive: a Model that is
// obviously right to compare with, random blocks to fill both, and a Disk that
// fails and crashes on request.
package archivetest
