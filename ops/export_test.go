// SPDX-License-Identifier: Apache-2.0

package ops

import "github.com/prometheus/client_golang/prometheus"

// Gatherer returns what a scrape would show.
func (m *Metrics) Gatherer() prometheus.Gatherer { return m.registry }
