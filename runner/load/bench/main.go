//go:build linux

// Command bench measures the closed-loop driver: against wrk, and by how
// much its results spread.
//
//	go run ./runner/load/bench peer   [-server c] [-connections 100] [-pipeline 1] [-wait poll]
//	go run ./runner/load/bench spread [-server node] [-mode turns] [-turn 1ms]
//
// Servers run on CPU 0 and generators on CPU 1 unless flags say otherwise.
// It needs gcc, node and wrk. BENCH.md beside the driver keeps its results.
package main

import (
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
	if len(args) == 0 {
		return fmt.Errorf("expected peer or spread")
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
	if err := build("runner/load/bench/servers", dir); err != nil {
		return err
	}
	switch args[0] {
	case "peer":
		return peer(ctx, c)
	case "spread":
		return spread(ctx, c)
	default:
		return fmt.Errorf("%q: expected peer or spread", args[0])
	}
}

// driver makes the driver that the flags ask for.
func (c config) driver() (load.Driver, error) {
	o := load.Options{CPUs: []int{c.loadCPU}, Portable: c.portable, Wait: load.WaitPoll}
	if c.wait == "sleep" {
		o.Wait = load.WaitSleep
	}
	return load.New(spec.Scenario{Name: "bench", HTTP: &spec.HTTP{
		Method: "GET", Path: "/", Connections: c.connections, Pipeline: c.pipeline, KeepAlive: true,
	}}, o)
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
