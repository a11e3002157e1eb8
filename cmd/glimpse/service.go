// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"time"

	"github.com/urfave/cli/v3"

	"glimpse/node"
)

// serviceFlags are those of a command that answers requests. The names that
// geth has for the same thing are geth's.
func serviceFlags() []cli.Flag {
	return slices.Concat(
		endpointFlags("http", "JSON-RPC over HTTP", 8545),
		endpointFlags("ws", "JSON-RPC over WebSocket", 8546),
		endpointFlags("ops", "health and metrics", 6060),
		limitFlags(),
		[]cli.Flag{
			&cli.StringSliceFlag{Name: "http.vhosts", Usage: "`NAMES` under which HTTP and WebSocket may be asked, beside IP addresses; * for all", Value: []string{"localhost"}},
			&cli.StringSliceFlag{Name: "http.corsdomain", Usage: "`ORIGINS` whose web pages may read answers; * for all"},
			&cli.StringSliceFlag{Name: "ws.origins", Usage: "`ORIGINS` whose web pages may open a WebSocket; * for all"},
			&cli.StringFlag{Name: "rpc.keys", Usage: "`FILE` of API keys; with it nobody is answered without one"},
			&cli.DurationFlag{Name: "rpc.slow", Usage: "log calls that take this `TIME` or longer; 0 for none", Value: time.Second, Validator: notNegative},
			&cli.BoolFlag{Name: "ops.pprof", Usage: "serve profiles on the operations port"},
			&cli.DurationFlag{Name: "ops.max-block-age", Usage: "unready after this `TIME` without a block; 0 for what suits the chain", Validator: notNegative},
			&cli.DurationFlag{Name: "drain-time", Usage: "`TIME` between being unready and closing connections, at the end", Value: time.Second, Validator: notNegative},
			&cli.DurationFlag{Name: "shutdown-timeout", Usage: "`TIME` for the whole of stopping", Value: 10 * time.Second, Validator: positive},
		},
	)
}

func endpointFlags(prefix, what string, port int) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: prefix + ".addr", Usage: "address of " + what + "; empty for none", Value: "127.0.0.1"},
		&cli.IntFlag{Name: prefix + ".port", Usage: "port of " + what + "; 0 takes a free one", Value: port, Validator: isPort},
	}
}

// limitFlags are what one client, or all of them, may ask for.
func limitFlags() []cli.Flag {
	return []cli.Flag{
		&cli.IntFlag{Name: "rpc.batch-request-limit", Usage: "`CALLS` in a batch", Value: 1000, Validator: atLeast(1)},
		&cli.IntFlag{Name: "rpc.batch-response-max-size", Usage: "`BYTES` of an answer", Value: 25_000_000, Validator: atLeast(1)},
		&cli.IntFlag{Name: "rpc.max-body", Usage: "`BYTES` of a request", Value: 5 << 20, Validator: atLeast(1)},
		&cli.IntFlag{Name: "rpc.max-header", Usage: "`BYTES` of the header of a request", Value: 32 << 10, Validator: atLeast(1 << 10)},
		&cli.IntFlag{Name: "rpc.max-connections", Usage: "`CONNECTIONS` open at once", Value: 4096, Validator: atLeast(1)},
		&cli.IntFlag{Name: "rpc.max-in-flight", Usage: "`REQUESTS` being answered at once", Value: 2048, Validator: atLeast(1)},
		&cli.IntFlag{Name: "rpc.max-calls", Usage: "`CALLS` that execute or search at once; 0 for all cores but one", Validator: atLeast(0)},
		&cli.DurationFlag{Name: "rpc.max-wait", Usage: "longest `TIME` that Glimpse-Wait can ask for", Value: 5 * time.Second, Validator: notNegative},
		&cli.DurationFlag{Name: "rpc.timeout", Usage: "`TIME` for all calls of a request", Value: 30 * time.Second, Validator: positive},
		&cli.DurationFlag{Name: "rpc.header-timeout", Usage: "`TIME` to send the header of a request", Value: 10 * time.Second, Validator: positive},
		&cli.DurationFlag{Name: "rpc.body-timeout", Usage: "`TIME` to send the body of a request", Value: 30 * time.Second, Validator: positive},
		&cli.DurationFlag{Name: "rpc.write-timeout", Usage: "`TIME` to take an answer", Value: 30 * time.Second, Validator: positive},
		&cli.DurationFlag{Name: "rpc.idle-timeout", Usage: "`TIME` between two requests of an HTTP connection", Value: 2 * time.Minute, Validator: positive},
	}
}

// pendingAgeFlag is that of a command with pre-confirmations.
func pendingAgeFlag() cli.Flag {
	return &cli.DurationFlag{Name: "pending.max-age", Usage: "`TIME` without a flashblock after which pending is latest; 0 for two blocks", Validator: notNegative}
}

func service(c *cli.Command) node.Service {
	return node.Service{
		HTTP: endpoint(c, "http"), WebSocket: endpoint(c, "ws"), Ops: endpoint(c, "ops"),
		AllowedHosts: nonEmpty(c.StringSlice("http.vhosts")), CORSOrigins: nonEmpty(c.StringSlice("http.corsdomain")), WebSocketOrigins: nonEmpty(c.StringSlice("ws.origins")),

		BatchLimit: c.Int("rpc.batch-request-limit"), MaxResponse: c.Int("rpc.batch-response-max-size"),
		MaxBody: c.Int("rpc.max-body"), MaxHeader: c.Int("rpc.max-header"),
		MaxConnections: c.Int("rpc.max-connections"), MaxInFlight: c.Int("rpc.max-in-flight"), MaxCalls: c.Int("rpc.max-calls"),
		MaxWait: c.Duration("rpc.max-wait"), Timeout: c.Duration("rpc.timeout"),
		HeaderTimeout: c.Duration("rpc.header-timeout"), BodyTimeout: c.Duration("rpc.body-timeout"),
		WriteTimeout: c.Duration("rpc.write-timeout"), IdleTimeout: c.Duration("rpc.idle-timeout"),

		Keys: c.String("rpc.keys"), Slow: c.Duration("rpc.slow"),
		Pprof: c.Bool("ops.pprof"), MaxBlockAge: c.Duration("ops.max-block-age"),
		DrainTime: c.Duration("drain-time"), ShutdownTimeout: c.Duration("shutdown-timeout"),
	}
}

func endpoint(c *cli.Command, prefix string) node.Endpoint {
	return node.Endpoint{Addr: c.String(prefix + ".addr"), Port: c.Int(prefix + ".port")}
}
