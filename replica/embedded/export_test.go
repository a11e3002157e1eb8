// SPDX-License-Identifier: Apache-2.0

package embedded

// SyncsAlways reports whether an acknowledged message is on disk.
func (s *Server) SyncsAlways() bool { return s.server.JetStreamConfig().SyncAlways }
