//go:build linux

package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/tandem-bench/tandem/runner/load"
	"github.com/tandem-bench/tandem/spec"
)

// copies of each of the two arms.
const copies = 2

// spread measures how far the ratio of two arms moves from block to block:
// in each block, fresh starts of two copies of each arm share the measuring
// time in the way that the flags say. It prints the mean of the log ratio
// (the slowdown) and its standard deviation, for requests per second and for
// CPU time per request.
func spread(ctx context.Context, c config) error {
	var rps, cpu, wall []float64
	var dropped, cycles int
	for b := range c.blocks {
		began := time.Now()
		r, u, samples, err := c.block(ctx, uint64(b))
		if err != nil {
			return err
		}
		rps, cpu = append(rps, r), append(cpu, u)
		wall = append(wall, time.Since(began).Seconds())
		dropped, cycles = dropped+samples[0].Dropped, cycles+samples[0].Cycles
	}
	m1, s1 := moments(rps)
	m2, s2 := moments(cpu)
	fmt.Printf("%-8s c=%d p=%d %-8s turn %-6v wait %-5s window %v x4: rps %+.1f%% sd %.2f%%, cpu/req %+.1f%% sd %.2f%%, %d of %d cycles dropped, %.1f s a block\n",
		c.server, c.connections, c.pipeline, c.mode, c.turn, c.wait, c.window, 100*m1, 100*s1, 100*m2, 100*s2, dropped, cycles, median(wall))
	return nil
}

// block runs one block and returns the log ratios of candidate to baseline.
func (c config) block(ctx context.Context, seed uint64) (rps, cpu float64, samples []load.Sample, err error) {
	k, err := findKind(c.server)
	if err != nil {
		return 0, 0, nil, err
	}
	random := rand.New(rand.NewPCG(seed, 1))
	servers := make([]*server, 2*copies)
	for _, i := range random.Perm(len(servers)) { // random order of starts; odd ones are candidates
		s, err := k.start(ctx, c.dir, c.serverCPU, strconv.Itoa(c.slow*(i%2)))
		if err != nil {
			return 0, 0, nil, err
		}
		defer s.stop()
		servers[i] = s
	}
	l, err := c.open(ctx, servers...)
	if err != nil {
		return 0, 0, nil, err
	}
	defer func() { _ = l.Close() }()
	sched := load.Schedule{
		Mode: spec.Interleave(c.mode), Window: c.warmup, Turn: c.turn,
		Order: func(n int, order []int) {
			r := rand.New(rand.NewPCG(seed, uint64(n)))
			copy(order, r.Perm(len(order)))
		},
		Guard: load.Guard{Steal: true, Lateness: 2 * time.Millisecond},
	}
	if _, err := l.Run(ctx, sched); err != nil {
		return 0, 0, nil, err
	}
	before := make([]time.Duration, len(servers))
	for i, s := range servers {
		before[i] = s.cpu()
	}
	sched.Window = c.window
	if samples, err = l.Run(ctx, sched); err != nil {
		return 0, 0, nil, err
	}
	for i, s := range samples {
		if s.Failed > 0 {
			return 0, 0, nil, fmt.Errorf("%d of %d requests failed: %v", s.Failed, s.Started, s.Errors)
		}
		sign := float64(2*(i%2)-1) / copies
		rps += sign * math.Log(s.Values()["rps"])
		cpu += sign * math.Log(float64(servers[i].cpu()-before[i])/float64(s.Started))
	}
	return rps, cpu, samples, nil
}

// moments are the mean and the standard deviation of some values.
func moments(v []float64) (mean, sd float64) {
	for _, x := range v {
		mean += x / float64(len(v))
	}
	for _, x := range v {
		sd += (x - mean) * (x - mean)
	}
	return mean, math.Sqrt(sd / float64(len(v)-1))
}
