//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tandem-bench/tandem/runner/load"
	"github.com/tandem-bench/tandem/spec"
)

// wsSize is the length of a message.
const wsSize = 20

// wsPeer runs the websocket driver and other clients in turns on one server.
func wsPeer(ctx context.Context, c config) error {
	if c.server == "c" {
		c.server = "echo"
	}
	k, err := findKind(c.server)
	if err != nil {
		return err
	}
	s, err := k.start(ctx, c.dir, c.serverCPU, "0")
	if err != nil {
		return err
	}
	defer s.stop()
	all := []contestant{}
	for _, wait := range []string{"poll", "sleep"} {
		o := c
		o.wait = wait
		l, err := o.openWS(ctx, s)
		if err != nil {
			return err
		}
		defer func() { _ = l.Close() }()
		all = append(all, contestant{wait, func(ctx context.Context) (outcome, error) { return o.ours(ctx, l, s) }})
	}
	for _, name := range strings.Split(c.peers, ",") {
		all = append(all, contestant{name, func(ctx context.Context) (outcome, error) { return c.client(ctx, name, s) }})
	}
	fmt.Printf("websocket echo of %d bytes, server %s, %d connections, %d rounds of %v; poll and sleep are the driver\n", wsSize, c.server, c.connections, c.rounds, c.window)
	return contest(ctx, c.rounds, all)
}

// openWS connects the driver to a server.
func (c config) openWS(ctx context.Context, s *server) (load.Load, error) {
	d, err := load.New(spec.Scenario{Name: "bench", WS: &spec.WS{
		Path: "/", Size: wsSize, Connections: c.connections, Pipeline: c.pipeline,
	}}, c.options())
	if err != nil {
		return nil, err
	}
	t := load.Target{Name: c.server, Addr: s.addr}
	if t.Expected, err = d.Check(ctx, t); err != nil {
		return nil, err
	}
	return d.Open(ctx, []load.Target{t})
}

// client runs another client once.
func (c config) client(ctx context.Context, name string, s *server) (outcome, error) {
	cmd := exec.CommandContext(ctx, "taskset", "-c", strconv.Itoa(c.loadCPU), filepath.Join(c.dir, "peers"),
		name, s.addr, strconv.Itoa(c.connections), c.window.String(), strconv.Itoa(wsSize))
	cmd.Env = append(cmd.Environ(), "GOMAXPROCS=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	before := s.cpu()
	out, err := cmd.Output()
	if err != nil {
		return outcome{}, fmt.Errorf("%w: %s", err, stderr.Bytes())
	}
	var r struct{ Messages, Elapsed, CPU, Mean, P50, P90, P99 time.Duration }
	if err := json.Unmarshal(out, &r); err != nil {
		return outcome{}, fmt.Errorf("%w: %s", err, out)
	}
	return outcome{
		rps: float64(r.Messages) / r.Elapsed.Seconds(), client: r.CPU / r.Messages, work: r.CPU / r.Messages,
		server: (s.cpu() - before) / r.Messages, mean: r.Mean, p50: r.P50, p90: r.P90, p99: r.P99,
	}, nil
}
