// SPDX-License-Identifier: Apache-2.0

// Package load asks an HTTP server the same kind of thing over and over, on a
// number of connections that each wait for an answer before they ask again, and
// measures what that takes.
//
// It is one thread that costs as little as can be: requests are bytes made
// beforehand, sockets are polled without the runtime's help, and answers are
// read no further than needed to know where they end and whether they are
// errors. So what is measured is the server, and not this.
package load
