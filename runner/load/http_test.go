package load

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tandem-bench/tandem/spec"
)

// engines are the two closed loops; every test of behaviour runs on both.
var engines = []struct {
	name    string
	options Options
}{
	{"fast", Options{}},
	{"fast, spinning", Options{Wait: WaitPoll}},
	{"two loops", Options{Loops: 2}},
	{"two loops, spinning", Options{Loops: 2, Wait: WaitPoll}},
	{"net", Options{Portable: true}},
}

// counter is a server that counts what it answered.
type counter struct {
	*httptest.Server
	served atomic.Int64
}

// serve starts a server that counts its requests.
func serve(t testing.TB, h http.HandlerFunc) *counter {
	c := &counter{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.served.Add(1)
		h(w, r)
	}))
	t.Cleanup(c.Close)
	return c
}

// target is the server as a driver sees it.
func (c *counter) target(name string) Target {
	return Target{Name: name, Addr: strings.TrimPrefix(c.URL, "http://")}
}

// scenario is a plain scenario with some connections.
func scenario(connections int) spec.Scenario {
	return spec.Scenario{Name: "test", HTTP: &spec.HTTP{Method: "GET", Path: "/", Connections: connections, Pipeline: 1, KeepAlive: true, Timeout: 5 * time.Second}}
}

// forward is the order of targets as they are.
func forward(_ int, order []int) {
	for i := range order {
		order[i] = i
	}
}

// play opens a load, runs one schedule, and closes it.
func play(t testing.TB, s spec.Scenario, o Options, sched Schedule, targets ...Target) []Sample {
	t.Helper()
	d, err := New(s, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	for i := range targets {
		if targets[i].Expected, err = d.Check(ctx, targets[i]); err != nil {
			t.Fatal(err)
		}
	}
	l, err := d.Open(ctx, targets)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	samples, err := l.Run(ctx, sched)
	if err != nil {
		t.Fatal(err)
	}
	for i := range samples {
		balanced(t, &samples[i])
	}
	return samples
}

// balanced checks the books of a sample.
func balanced(t testing.TB, s *Sample) {
	t.Helper()
	if s.Started != s.OK+s.Failed+s.InFlight+s.Discarded {
		t.Errorf("started %d is not ok %d + failed %d + in flight %d + discarded %d", s.Started, s.OK, s.Failed, s.InFlight, s.Discarded)
	}
	var errs int64
	for _, e := range s.Errors {
		errs += e.Count
	}
	if errs != s.Failed {
		t.Errorf("errors %v do not add up to %d failed", s.Errors, s.Failed)
	}
	if n := s.Latency.TotalCount(); n != s.OK {
		t.Errorf("%d latencies for %d valid responses", n, s.OK)
	}
	if n := s.Hists["ttfb"].TotalCount(); n != s.OK {
		t.Errorf("%d times to the first byte for %d valid responses", n, s.OK)
	}
}

func TestModes(t *testing.T) {
	for _, e := range engines {
		for _, mode := range []spec.Interleave{spec.Turns, spec.Together, spec.Windows} {
			t.Run(e.name+"/"+string(mode), func(t *testing.T) {
				a := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })
				b := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })
				sched := Schedule{Mode: mode, Window: 100 * time.Millisecond, Turn: 2 * time.Millisecond, Order: forward}
				samples := play(t, scenario(8), e.options, sched, a.target("a"), b.target("b"))
				for i, s := range samples {
					served := []*counter{a, b}[i].served.Load() - 1 // less the check
					if s.Started != served {
						t.Errorf("target %d: %d requests started, %d served", i, s.Started, served)
					}
					if s.Failed != 0 || s.Discarded != 0 || s.OK == 0 {
						t.Errorf("target %d: ok %d, failed %d, discarded %d: %v", i, s.OK, s.Failed, s.Discarded, s.Errors)
					}
					if mode != spec.Together && s.InFlight != 0 {
						t.Errorf("target %d: %d in flight after a drained turn", i, s.InFlight)
					}
					if s.Elapsed < sched.Window || s.Elapsed != s.TotalElapsed {
						t.Errorf("target %d: elapsed %v of %v, window %v", i, s.Elapsed, s.TotalElapsed, sched.Window)
					}
					if s.Cycles != samples[0].Cycles || s.Turns != s.Cycles {
						t.Errorf("target %d: %d turns in %d cycles", i, s.Turns, s.Cycles)
					}
					if s.InUse <= 0 || s.InUse > 8 {
						t.Errorf("target %d: %v requests in flight on average, on 8 connections", i, s.InUse)
					}
				}
			})
		}
	}
}
