//go:build linux

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tandem-bench/tandem/runner/load"
	"github.com/tandem-bench/tandem/spec"
)

// outcome is one run of one generator.
type outcome struct {
	rps                 float64
	client              time.Duration // CPU time of the generator, each request
	work                time.Duration // the same, without idle polling
	server              time.Duration // CPU time of the server, each request
	mean, p50, p90, p99 time.Duration
}

// contestant is a generator that takes its turns with others.
type contestant struct {
	name string
	run  func(context.Context) (outcome, error)
}

// contest lets some generators run in turns, in an order that rotates, and
// prints the medians, and the median ratio of the first to each other one in
// the same round. The first round warms up.
func contest(ctx context.Context, rounds int, all []contestant) error {
	runs := make([][]outcome, len(all))
	for round := range rounds + 1 {
		for i := range all {
			k := (round + i) % len(all)
			o, err := all[k].run(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", all[k].name, err)
			}
			if round > 0 {
				runs[k] = append(runs[k], o)
			}
		}
	}
	for k := range all {
		show(all[k].name, runs[k])
	}
	for k := 1; k < len(all); k++ {
		var ratios []float64
		for i := range runs[k] {
			ratios = append(ratios, runs[0][i].rps/runs[k][i].rps)
		}
		fmt.Printf("%s / %s: %.2f (%.2f to %.2f)\n", all[0].name, all[k].name, median(ratios), slices.Min(ratios), slices.Max(ratios))
	}
	return nil
}

// peer runs the driver and other tools in turns on one server.
func peer(ctx context.Context, c config) error {
	k, err := findKind(c.server)
	if err != nil {
		return err
	}
	s, err := k.start(ctx, c.dir, c.serverCPU, "0")
	if err != nil {
		return err
	}
	defer s.stop()
	l, err := c.open(ctx, s)
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }()
	all := []contestant{{"driver", func(ctx context.Context) (outcome, error) { return c.ours(ctx, l, s) }}}
	for _, name := range strings.Split(c.peers, ",") {
		t, err := findTool(name)
		if err != nil {
			return err
		}
		all = append(all, contestant{name, func(ctx context.Context) (outcome, error) { return t.run(ctx, c, s, 0) }})
	}
	fmt.Printf("server %s, %d connections, pipeline %d, wait %s, portable %v, %d rounds of %v\n", c.server, c.connections, c.pipeline, c.wait, c.portable, c.rounds, c.window)
	if err := contest(ctx, c.rounds, all); err != nil {
		return err
	}
	fmt.Printf("driver: largest resident set of the whole process %.0f MB\n", float64(maxRSS())/1e6)
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
	o := outcomeOf(r)
	o.client = (ownCPU() - client) / time.Duration(r.OK)
	o.server = (s.cpu() - server) / time.Duration(r.OK)
	return o, nil
}

// show prints the medians of some runs.
func show(name string, runs []outcome) {
	of := func(f func(outcome) float64) float64 {
		var v []float64
		for _, o := range runs {
			v = append(v, f(o))
		}
		return median(v)
	}
	us := func(f func(outcome) time.Duration) float64 {
		return of(func(o outcome) float64 { return float64(f(o)) / 1e3 })
	}
	fmt.Printf("%-10s %8.0f /s, client CPU %.2f us (%.2f at work), server CPU %.2f us, latency mean %.0f, p50 %.0f, p99 %.0f us\n",
		name, of(func(o outcome) float64 { return o.rps }),
		us(func(o outcome) time.Duration { return o.client }), us(func(o outcome) time.Duration { return o.work }), us(func(o outcome) time.Duration { return o.server }),
		us(func(o outcome) time.Duration { return o.mean }), us(func(o outcome) time.Duration { return o.p50 }), us(func(o outcome) time.Duration { return o.p99 }))
}

// median is the middle of some values.
func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
