// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"bytes"
	"html/template"
	"net/http"
	"runtime"
	"time"
)

var page = template.Must(template.New("status").Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="refresh" content="5">
<title>glimpse: {{.Ready.Status}}</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 50rem; padding: 0 1rem; color-scheme: light dark }
td, th { text-align: left; padding: .1rem 1.5rem .1rem 0; vertical-align: top; font-variant-numeric: tabular-nums }
code { overflow-wrap: anywhere }
</style>
</head>
<body>
<h1>glimpse is {{.Ready.Status}}</h1>
{{with .Ready.Reasons}}<ul>
{{range .}}<li><b>{{.Reason}}</b>: {{.Detail}}</li>
{{end}}</ul>{{end}}
<table>
<tr><th>version</th><td>{{.Version}}, {{.Go}}</td></tr>
<tr><th>running for</th><td>{{.Uptime}}</td></tr>
{{with .Heads}}<tr><th>latest</th><td>{{.Latest.Number}} <code>{{.Latest.Hash}}</code></td></tr>
<tr><th>sealed</th><td>{{$.Lag}} ago</td></tr>
<tr><th>pending</th><td>{{with .Pending}}{{.Number}}, flashblock {{.Index}}{{else}}nothing is pre-confirmed{{end}}</td></tr>
<tr><th>safe</th><td>{{with .Safe}}{{.Number}}{{else}}not known{{end}}</td></tr>
<tr><th>finalized</th><td>{{with .Finalized}}{{.Number}}{{else}}not known{{end}}</td></tr>
<tr><th>oldest state</th><td>{{.Oldest}}</td></tr>
{{end}}</table>
<p><a href="/readyz">readyz</a> <a href="/livez">livez</a> <a href="/metrics">metrics</a>{{if .Pprof}} <a href="/debug/pprof/">pprof</a>{{end}}</p>
</body>
</html>
`))

// statusData is what the page shows.
type statusData struct {
	Ready       readyJSON
	Heads       *Heads
	Version, Go string
	Uptime, Lag time.Duration
	Pprof       bool
}

func statusPage(o Options) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		f, now := o.Health.Facts(), time.Now()
		d := statusData{
			Ready: render(f, Judge(f, Query{}, now), now), Heads: f.Heads,
			Version: o.Version, Go: runtime.Version(),
			Uptime: now.Sub(f.Started).Round(time.Second), Pprof: o.Pprof,
		}
		if f.Heads != nil {
			d.Lag = now.Sub(f.Heads.Sealed).Round(time.Second)
		}
		// Into memory first: half a page with status 200 would be a lie.
		var body bytes.Buffer
		if err := page.Execute(&body, d); err != nil {
			refuse(w, http.StatusInternalServerError, err.Error())
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
		_, _ = w.Write(body.Bytes()) // whoever asked is gone
	})
}
