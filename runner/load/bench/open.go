//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tandem-bench/tandem/runner/load"
	"github.com/tandem-bench/tandem/runner/load/internal/stall"
	"github.com/tandem-bench/tandem/spec"
)

// open loads a server that blocks for 100 ms in every 1.1 s at a rate, by the
// driver and by other tools, and prints what each says of it beside what the
// server's own schedule says of the same window.
func open(ctx context.Context, c config) error {
	k := kind{"stall", func(dir, port, service string) []string { return []string{dir + "/stall", port, service} }, nil}
	fmt.Printf("a server that blocks for 100 ms in every 1.1 s, %v for each request, %.0f requests per second, %d connections or workers, %d windows of %v\n", c.service, c.rate, c.connections, c.rounds, c.window)
	if err := pinProcess(c.loadCPU); err != nil {
		return err
	}
	all := append([]string{"driver"}, strings.Split(c.peers, ",")...)
	for round := range c.rounds {
		for i := range all {
			name := all[(round+i)%len(all)]
			// A fresh server for each, since some tools leave requests behind.
			s, err := k.start(ctx, c.dir, c.serverCPU, c.service.String())
			if err != nil {
				return err
			}
			err = c.openOnce(ctx, name, s)
			s.stop()
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

// openOnce runs one generator and prints its line.
func (c config) openOnce(ctx context.Context, name string, s *server) error {
	var o outcome
	if name == "driver" {
		r, err := c.atRate(ctx, s)
		if err != nil {
			return err
		}
		o = outcomeOf(r)
		v := r.Values()
		seconds := func(name string) time.Duration { return time.Duration(v["response_time."+name] * 1e9) }
		o.mean, o.p50, o.p90, o.p99 = seconds("mean"), seconds("p50"), seconds("p90"), seconds("p99")
		fmt.Printf("%-10s send lag: mean %.2f ms, p99 %.2f ms; %d of %d sent; %s\n", "", v["send_lag.mean"]*1e3, v["send_lag.p99"]*1e3, r.Started, int64(v["target_rps"]*c.window.Seconds()+0.5), r.Invalid)
	} else {
		t, err := findTool(name)
		if err != nil {
			return err
		}
		if t.open == "" {
			return fmt.Errorf("it knows no rate")
		}
		if o, err = t.run(ctx, c, s, c.rate); err != nil {
			return err
		}
	}
	own, err := truth(ctx, s, c.rate)
	if err != nil {
		return err
	}
	fmt.Printf("%-10s %6.0f /s, client CPU %.1f us, mean %.1f ms, p50 %.2f, p90 %.1f, p99 %.1f\n", name, o.rps, float64(o.work)/1e3, ms(o.mean), ms(o.p50), ms(o.p90), ms(o.p99))
	fmt.Printf("%-10s %6d requests by the schedule:   mean %.1f ms, p50 %.2f, p90 %.1f, p99 %.1f\n", "  server", len(own), ms(stall.Mean(own)), ms(stall.Quantile(own, 0.5)), ms(stall.Quantile(own, 0.9)), ms(stall.Quantile(own, 0.99)))
	return nil
}

func ms(d time.Duration) float64 { return d.Seconds() * 1e3 }

// atRate runs the driver at the rate.
func (c config) atRate(ctx context.Context, s *server) (load.Sample, error) {
	d, err := load.New(spec.Scenario{Name: "bench", HTTP: &spec.HTTP{
		Method: "GET", Path: "/", Rate: c.rate, Connections: c.connections, Pipeline: 1, KeepAlive: true, Timeout: 10 * time.Second,
	}}, load.Options{CPUs: []int{c.loadCPU}})
	if err != nil {
		return load.Sample{}, err
	}
	l, err := d.Open(ctx, []load.Target{{Name: "stall", Addr: s.addr}})
	if err != nil {
		return load.Sample{}, err
	}
	defer func() { _ = l.Close() }()
	samples, err := l.Run(ctx, load.Schedule{Mode: spec.Windows, Window: c.window, Order: identity})
	if err != nil {
		return load.Sample{}, err
	}
	return samples[0], nil
}

// truth asks the server what its schedule did to its users.
func truth(ctx context.Context, s *server, rate float64) ([]time.Duration, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s/truth?rate=%v", s.addr, rate), nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	var own []time.Duration
	err = json.NewDecoder(res.Body).Decode(&own)
	return own, err
}

// pinProcess binds all threads of this process to a CPU: the open loop runs
// on those of the Go scheduler.
func pinProcess(cpu int) error {
	var set unix.CPUSet
	set.Set(cpu)
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, t := range threads {
		id, err := strconv.Atoi(t.Name())
		if err != nil {
			return err
		}
		if err := unix.SchedSetaffinity(id, &set); err != nil {
			return os.NewSyscallError("sched_setaffinity", err)
		}
	}
	return nil
}
