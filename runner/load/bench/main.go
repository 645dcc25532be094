//go:build linux

// Command bench measures the drivers: against other tools, against a server's
// own record, and by how much their results spread.
//
//	go run ./runner/load/bench peer   [-server c] [-connections 100] [-pipeline 1] [-peers wrk]
//	go run ./runner/load/bench ws     [-server c] [-peers gws,gorilla,plain]
//	go run ./runner/load/bench open   [-rate 2000] [-service 90us] [-peers vegeta]
//	go run ./runner/load/bench count  [-requests 1000000]
//	go run ./runner/load/bench spread [-server node] [-mode turns] [-turn 1ms]
//
// Servers run on CPU 0 and generators on CPU 1 unless flags say otherwise.
// It needs gcc, node and the tools that -peers names. BENCH.md beside the
// driver keeps its results.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/tandem-bench/tandem/runner/load"
	"github.com/tandem-bench/tandem/spec"
)

// config is what the flags say.
type config struct {
	server      string
	connections int
	pipeline    int
	wait        string
	portable    bool
	rounds      int
	window      time.Duration
	serverCPU   string
	loadCPU     int
	mode        string
	turn        time.Duration
	blocks      int
	slow        int
	warmup      time.Duration
	peers       string
	rate        float64
	service     time.Duration
	requests    int64
	drivers     string
	dir         string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run parses the command line and runs one measurement.
func run(ctx context.Context, args []string) error {
	var c config
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.StringVar(&c.server, "server", "c", "`kind` of server: c, node, nethttp (one thread) or nethttp2")
	fs.IntVar(&c.connections, "connections", 100, "connections to each server")
	fs.IntVar(&c.pipeline, "pipeline", 1, "requests in flight on each connection")
	fs.StringVar(&c.wait, "wait", "poll", "how the driver waits: poll or sleep")
	fs.BoolVar(&c.portable, "portable", false, "use the portable driver")
	fs.IntVar(&c.rounds, "rounds", 9, "pairs of runs (peer)")
	fs.DurationVar(&c.window, "window", time.Second, "measuring time of each run (peer) or server (spread)")
	fs.StringVar(&c.serverCPU, "server-cpus", "0", "CPUs of the servers")
	fs.IntVar(&c.loadCPU, "load-cpu", 1, "CPU of the generator")
	fs.StringVar(&c.mode, "mode", "turns", "turns, together or windows (spread)")
	fs.DurationVar(&c.turn, "turn", time.Millisecond, "length of a turn (spread)")
	fs.IntVar(&c.blocks, "blocks", 12, "fresh starts (spread)")
	fs.IntVar(&c.slow, "slow", 0, "loop rounds that slow down the candidate (spread)")
	fs.DurationVar(&c.warmup, "warmup", 500*time.Millisecond, "warm-up of each server (spread)")
	fs.StringVar(&c.peers, "peers", "", "other tools to compare with, separated by commas (peer, ws, open)")
	fs.Float64Var(&c.rate, "rate", 0, "requests per second (open: 2000, count: 20000)")
	fs.DurationVar(&c.service, "service", 90*time.Microsecond, "time that the server takes for each request (open)")
	fs.Int64Var(&c.requests, "requests", 1_000_000, "requests of each driver (count)")
	fs.StringVar(&c.drivers, "drivers", "http,ws,rate,exec", "drivers to count with (count)")
	if len(args) == 0 {
		return fmt.Errorf("expected one of peer, ws, open, count and spread")
	}
	if err := fs.Parse(args[1:]); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	c.dir = dir
	verb, ok := verbs[args[0]]
	if !ok {
		return fmt.Errorf("%q: expected one of peer, ws, open, count and spread", args[0])
	}
	if err := build(dir, verb.needs...); err != nil {
		return err
	}
	c.peers, c.rate = cmp.Or(c.peers, verb.peers), cmp.Or(c.rate, verb.rate)
	return verb.run(ctx, c)
}

// verbs are the measurements: what each needs, and its own defaults.
var verbs = map[string]struct {
	run   func(context.Context, config) error
	needs []string // of builds
	peers string
	rate  float64
}{
	"peer":   {peer, []string{"server", "server.js", "nethttp"}, "wrk", 0},
	"ws":     {wsPeer, []string{"echo", "peers"}, "gws,gorilla,plain", 0},
	"open":   {open, []string{"stall"}, "vegeta", 2000},
	"count":  {count, nil, "", 20_000},
	"spread": {spread, []string{"server", "server.js", "nethttp"}, "", 0},
}

// driver makes the driver that the flags ask for.
func (c config) driver() (load.Driver, error) {
	return load.New(spec.Scenario{Name: "bench", HTTP: &spec.HTTP{
		Method: "GET", Path: "/", Connections: c.connections, Pipeline: c.pipeline, KeepAlive: true,
	}}, c.options())
}

// options are the driver's.
func (c config) options() load.Options {
	o := load.Options{CPUs: []int{c.loadCPU}, Portable: c.portable, Wait: load.WaitPoll}
	if c.wait == "sleep" {
		o.Wait = load.WaitSleep
	}
	return o
}

// open checks the servers and connects to them.
func (c config) open(ctx context.Context, servers ...*server) (load.Load, error) {
	d, err := c.driver()
	if err != nil {
		return nil, err
	}
	var targets []load.Target
	for i, s := range servers {
		t := load.Target{Name: fmt.Sprintf("%s#%d", c.server, i), Addr: s.addr}
		if t.Expected, err = d.Check(ctx, t); err != nil {
			return nil, err
		}
		targets = append(targets, t)
	}
	return d.Open(ctx, targets)
}

// identity is the order in which targets stand.
func identity(_ int, order []int) {
	for i := range order {
		order[i] = i
	}
}
