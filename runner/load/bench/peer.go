//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/tandem-bench/tandem/runner/load"
	"github.com/tandem-bench/tandem/spec"
)

// outcome is one run of one generator.
type outcome struct {
	rps    float64
	client time.Duration // CPU time of the generator, each request
	work   time.Duration // the same, without idle polling
	server time.Duration // CPU time of the server, each request
	p50    time.Duration
	p99    time.Duration
}

// peer runs the driver and wrk in turns on one server, and prints the
// medians and the median ratio of the pairs.
func peer(ctx context.Context, c config) error {
	k, err := findKind(c.server)
	if err != nil {
		return err
	}
	s, err := k.start(ctx, c.dir, c.serverCPU, 0)
	if err != nil {
		return err
	}
	defer s.stop()
	l, err := c.open(ctx, s)
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }()
	var ours, theirs []outcome
	for i := range c.rounds + 1 {
		var pair [2]outcome
		for j := range 2 {
			who := (i + j) % 2
			if who == 0 {
				pair[0], err = c.ours(ctx, l, s)
			} else {
				pair[1], err = c.wrk(ctx, s)
			}
			if err != nil {
				return err
			}
		}
		if i > 0 { // the first pair warms up
			ours, theirs = append(ours, pair[0]), append(theirs, pair[1])
		}
	}
	var ratios []float64
	for i := range ours {
		ratios = append(ratios, ours[i].rps/theirs[i].rps)
	}
	fmt.Printf("server %s, %d connections, pipeline %d, wait %s, portable %v, %d pairs of %v\n", c.server, c.connections, c.pipeline, c.wait, c.portable, c.rounds, c.window)
	show("driver", ours)
	show("wrk", theirs)
	fmt.Printf("driver: largest resident set of the whole process %.0f MB\n", float64(maxRSS())/1e6)
	fmt.Printf("driver / wrk: %.2f (%.2f to %.2f)\n", median(ratios), slices.Min(ratios), slices.Max(ratios))
	return nil
}

// ours runs the driver once.
func (c config) ours(ctx context.Context, l load.Load, s *server) (outcome, error) {
	server, client := s.cpu(), ownCPU()
	samples, err := l.Run(ctx, load.Schedule{Mode: spec.Windows, Window: c.window, Order: identity})
	if err != nil {
		return outcome{}, err
	}
	r := samples[0]
	if r.Failed > 0 || r.OK == 0 {
		return outcome{}, fmt.Errorf("%d of %d requests failed: %v", r.Failed, r.Started, r.Errors)
	}
	n := time.Duration(r.OK)
	v := r.Values()
	return outcome{
		rps:    v["rps"],
		client: (ownCPU() - client) / n,
		work:   r.Generator.CPU / n,
		server: (s.cpu() - server) / n,
		p50:    time.Duration(v["latency.p50"] * 1e9),
		p99:    time.Duration(v["latency.p99"] * 1e9),
	}, nil
}

var (
	wrkRate  = regexp.MustCompile(`Requests/sec:\s+([0-9.]+)`)
	wrkTotal = regexp.MustCompile(`(\d+) requests in`)
	wrkLevel = regexp.MustCompile(`(50|99)%\s+([0-9.]+[a-z]+)`)
)

// wrk runs wrk once.
func (c config) wrk(ctx context.Context, s *server) (outcome, error) {
	server := s.cpu()
	argv := []string{"taskset", "-c", strconv.Itoa(c.loadCPU), "wrk", "-t1", "-c" + strconv.Itoa(c.connections),
		fmt.Sprintf("-d%ds", max(1, int(c.window.Seconds()))), "--latency"}
	if c.pipeline > 1 {
		script := filepath.Join(c.dir, "pipeline.lua")
		text := fmt.Sprintf("init = function(args)\n local r = {}\n for i=1,%d do r[i] = wrk.format(nil, '/') end\n req = table.concat(r)\nend\nrequest = function() return req end\n", c.pipeline)
		if err := os.WriteFile(script, []byte(text), 0o644); err != nil {
			return outcome{}, err
		}
		argv = append(argv, "-s", script)
	}
	cmd := exec.CommandContext(ctx, argv[0], append(argv[1:], "http://"+s.addr+"/")...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return outcome{}, fmt.Errorf("wrk: %w: %s", err, out)
	}
	rate, total := wrkRate.FindSubmatch(out), wrkTotal.FindSubmatch(out)
	if rate == nil || total == nil {
		return outcome{}, fmt.Errorf("wrk says nothing of its rate: %s", out)
	}
	rps, err := strconv.ParseFloat(string(rate[1]), 64)
	if err != nil {
		return outcome{}, err
	}
	n, err := strconv.ParseInt(string(total[1]), 10, 64)
	if err != nil {
		return outcome{}, err
	}
	use := (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()) / time.Duration(n)
	o := outcome{rps: rps, client: use, work: use, server: (s.cpu() - server) / time.Duration(n)}
	for _, m := range wrkLevel.FindAllSubmatch(out, -1) {
		d, err := time.ParseDuration(string(m[2]))
		if err != nil {
			return outcome{}, err
		}
		if string(m[1]) == "50" {
			o.p50 = d
		} else {
			o.p99 = d
		}
	}
	return o, nil
}

// show prints the medians of some runs.
func show(name string, runs []outcome) {
	var rps, client, work, server, p50, p99 []float64
	for _, o := range runs {
		rps = append(rps, o.rps)
		client = append(client, float64(o.client))
		work = append(work, float64(o.work))
		server = append(server, float64(o.server))
		p50 = append(p50, float64(o.p50))
		p99 = append(p99, float64(o.p99))
	}
	us := func(v []float64) float64 { return median(v) / 1e3 }
	fmt.Printf("%-7s %8.0f req/s, client CPU %.2f us (%.2f at work), server CPU %.2f us, latency p50 %.0f us, p99 %.0f us\n",
		name, median(rps), us(client), us(work), us(server), us(p50), us(p99))
}

// median is the middle of some values.
func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
