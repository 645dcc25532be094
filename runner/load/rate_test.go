package load

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tandem-bench/tandem/runner/load/internal/stall"
	"github.com/tandem-bench/tandem/spec"
)

// rateTarget is a target for a test server.
func rateTarget(s *httptest.Server) Target {
	return Target{Name: "base#0", Addr: s.Listener.Addr().String(), Vars: spec.Vars{"url": s.URL}}
}

func runRate(t *testing.T, sc spec.Scenario, target Target, window time.Duration) Sample {
	t.Helper()
	l := openRate(t, sc, target)
	got, err := l.Run(t.Context(), Schedule{Window: window, Order: rotate})
	if err != nil {
		t.Fatal(err)
	}
	return got[0]
}

func openRate(t *testing.T, sc spec.Scenario, target Target) Load {
	t.Helper()
	sc.Name = "test"
	sc.HTTP.KeepAlive = true
	d, err := New(sc, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := d.(*rateDriver); !ok {
		t.Fatalf("a scenario with a rate got a %T", d)
	}
	l, err := d.Open(t.Context(), []Target{target})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func TestRateCounts(t *testing.T) {
	var served atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		served.Add(1)
		_, _ = io.WriteString(w, "hello")
	}))
	defer s.Close()
	got := runRate(t, spec.Scenario{HTTP: &spec.HTTP{Path: "/", Rate: 1000}}, rateTarget(s), 500*time.Millisecond)
	if got.Started != 500 || got.OK != 500 || got.Failed != 0 || served.Load() != 500 {
		t.Errorf("started %d, ok %d, failed %d, the server saw %d; expected 500 of each: %+v", got.Started, got.OK, got.Failed, served.Load(), got.Errors)
	}
	v := got.Values()
	want := map[string]float64{"rps": 1000, "target_rps": 1000, "rate_ratio": 1, "dropped": 0, "requests": 500, "error_ratio": 0}
	for name, x := range want {
		if v[name] != x {
			t.Errorf("%s is %v, expected %v", name, v[name], x)
		}
	}
	for _, family := range []string{"latency", "response_time", "send_lag"} {
		if _, ok := v[family+".p99"]; !ok {
			t.Errorf("%s.p99 is missing", family)
		}
	}
	if v["response_time.mean"] < v["latency.mean"] {
		t.Errorf("response time %v below service time %v", v["response_time.mean"], v["latency.mean"])
	}
	if got.BytesIn < 500*int64(len("HTTP/1.1 200 OK\r\n\r\nhello")) || got.BytesOut < 500*int64(len("GET / HTTP/1.1\r\n\r\n")) {
		t.Errorf("%d bytes in and %d out for 500 requests", got.BytesIn, got.BytesOut)
	}
}

// Nothing is sent but what the scenario says.
func TestRateSendsNothingHidden(t *testing.T) {
	var mu sync.Mutex
	var raw []string
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				buf := make([]byte, 4096)
				for {
					n, err := c.Read(buf)
					if err != nil {
						return
					}
					mu.Lock()
					raw = append(raw, string(buf[:n]))
					mu.Unlock()
					_, _ = io.WriteString(c, "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n")
				}
			}()
		}
	}()
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	target := Target{Name: "base#0", Addr: ln.Addr().String()}
	post := spec.HTTP{Method: "POST", Path: "/p?q=1", Headers: []spec.Header{{Name: "X-One", Value: "1"}}, Body: "abc", Rate: 50}
	if got := runRate(t, spec.Scenario{HTTP: &post}, target, 40*time.Millisecond); got.OK != 2 {
		t.Errorf("a redirect was not taken as the answer: %+v", got.Errors)
	}
	get := spec.HTTP{Path: "/", Rate: 50}
	runRate(t, spec.Scenario{HTTP: &get}, target, 20*time.Millisecond)
	host := "Host: " + ln.Addr().String() + "\r\n"
	want := []string{
		"POST /p?q=1 HTTP/1.1\r\n" + host + "Content-Length: 3\r\nX-One: 1\r\n\r\nabc",
		"POST /p?q=1 HTTP/1.1\r\n" + host + "Content-Length: 3\r\nX-One: 1\r\n\r\nabc",
		"GET / HTTP/1.1\r\n" + host + "\r\n",
	}
	if diff := cmp.Diff(want, raw); diff != "" {
		t.Errorf("on the wire (-want +got):\n%s", diff)
	}
}

func TestRateRotation(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]int{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		mu.Lock()
		seen[r.Method+r.URL.Path+string(b)]++
		mu.Unlock()
		if r.URL.Path == "/b" {
			w.WriteHeader(http.StatusTeapot)
		}
	}))
	defer s.Close()
	h := &spec.HTTP{Rate: 400, Requests: []spec.WeightedRequest{
		{Method: "GET", Path: "/a", Weight: 3}, {Method: "POST", Path: "/b", Body: "x", Weight: 1},
	}}
	got := runRate(t, spec.Scenario{HTTP: h}, rateTarget(s), 100*time.Millisecond)
	if diff := cmp.Diff(map[string]int{"GET/a": 30, "POST/bx": 10}, seen); diff != "" {
		t.Errorf("what the server saw (-want +got):\n%s", diff)
	}
	if got.OK != 30 || got.Failed != 10 || len(got.Errors) != 1 || got.Errors[0].Class != Status {
		t.Errorf("ok %d, failed %d, %+v; expected the answers to /b to fail by their status", got.OK, got.Failed, got.Errors)
	}
}

func TestRateHoldsToCheck(t *testing.T) {
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1)%10 == 0 {
			_, _ = io.WriteString(w, "other")
			return
		}
		_, _ = io.WriteString(w, "right")
	}))
	defer s.Close()
	h := &spec.HTTP{Path: "/", Rate: 1000, KeepAlive: true}
	d, err := New(spec.Scenario{Name: "test", HTTP: h}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	target := rateTarget(s)
	target.Expected, err = d.Check(t.Context(), target)
	if err != nil || string(target.Expected.Body) != "right" || target.Expected.Status != 200 {
		t.Fatalf("check: %+v, %v", target.Expected, err)
	}
	n.Store(0)
	got := runRate(t, spec.Scenario{HTTP: h}, target, 100*time.Millisecond)
	if got.OK != 90 || got.Failed != 10 || got.Errors[0].Class != Body {
		t.Errorf("ok %d, failed %d, %+v; expected one wrong body in ten", got.OK, got.Failed, got.Errors)
	}
}

func TestRateVersions(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if agent := r.UserAgent(); agent != "" {
			w.WriteHeader(http.StatusBadRequest)
		}
		_, _ = io.WriteString(w, r.Proto)
	})
	plain := httptest.NewUnstartedServer(handler)
	plain.Config.Protocols = new(http.Protocols)
	plain.Config.Protocols.SetHTTP1(true)
	plain.Config.Protocols.SetUnencryptedHTTP2(true)
	plain.Start()
	defer plain.Close()
	secure := httptest.NewUnstartedServer(handler)
	secure.EnableHTTP2 = true
	secure.StartTLS()
	defer secure.Close()
	tests := []struct {
		name    string
		server  *httptest.Server
		version string
		tls     *spec.TLS
		want    string
	}{
		{"http/1.1", plain, "", nil, "HTTP/1.1"},
		{"h2c", plain, "2", nil, "HTTP/2.0"},
		{"https", secure, "1.1", &spec.TLS{Insecure: true}, "HTTP/1.1"},
		{"h2", secure, "2", &spec.TLS{Insecure: true}, "HTTP/2.0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := &spec.HTTP{Path: "/", Rate: 500, Version: tt.version, TLS: tt.tls}
			target := rateTarget(tt.server)
			target.Expected = &Response{Status: 200, Body: []byte(tt.want)}
			// A machine that is busy with other things may not send all in time.
			got := runRate(t, spec.Scenario{HTTP: h}, target, 100*time.Millisecond)
			if dropped := got.Metrics["dropped"]; got.OK == 0 || got.Failed > 0 || got.OK+int64(dropped) != 50 {
				t.Errorf("ok %d, failed %d, dropped %v of 50: %+v", got.OK, got.Failed, dropped, got.Errors)
			}
		})
	}
}

func TestRateRefusesUnknownAuthority(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = nil
	s.TLS = &tls.Config{}
	s.StartTLS()
	defer s.Close()
	got := runRate(t, spec.Scenario{HTTP: &spec.HTTP{Path: "/", Rate: 100, TLS: &spec.TLS{}}}, rateTarget(s), 20*time.Millisecond)
	if got.Failed != 2 || got.Errors[0].Class != TLSError {
		t.Errorf("%+v", got)
	}
}

func TestRateFailures(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := ln.Addr().String()
	ln.Close()
	closing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
			c.Close()
		}
	}))
	defer closing.Close()
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer hanging.Close()
	tests := []struct {
		name, addr string
		class      Class
	}{
		{"refused", refused, ConnectRefused},
		{"closed", closing.Listener.Addr().String(), EOF},
		{"timeout", hanging.Listener.Addr().String(), Timeout},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := &spec.HTTP{Path: "/", Rate: 100, Timeout: 100 * time.Millisecond}
			got := runRate(t, spec.Scenario{HTTP: h}, Target{Name: "base#0", Addr: tt.addr}, 50*time.Millisecond)
			if got.OK != 0 || got.Failed != 5 || got.Started != 5 {
				t.Errorf("started %d, ok %d, failed %d; expected 5 failures", got.Started, got.OK, got.Failed)
			}
			if len(got.Errors) != 1 || got.Errors[0].Class != tt.class || len(got.Errors[0].First) != 3 {
				t.Errorf("%+v, expected %s with three texts", got.Errors, tt.class)
			}
		})
	}
}

// What an interruption cuts off is in flight: neither success nor failure.
func TestRateInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if n.Add(1) <= 10 {
			return
		}
		cancel()
		<-r.Context().Done()
	}))
	defer s.Close()
	l := openRate(t, spec.Scenario{HTTP: &spec.HTTP{Path: "/", Rate: 500, Timeout: time.Minute}}, rateTarget(s))
	got, err := l.Run(ctx, Schedule{Window: time.Minute, Order: rotate})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("found %v, expected the context's error", err)
	}
	if g := got[0]; g.Failed != 0 || g.InFlight < 1 || g.Started != g.OK+g.InFlight {
		t.Errorf("started %d, ok %d, failed %d, in flight %d", g.Started, g.OK, g.Failed, g.InFlight)
	}
}

// The open loop tells what a server that stalls does to its users: compared
// with the server's own schedule, not with a clock. A generator that waits
// for a free connection and forgets that it waited would show a tenth of it.
//
// The server blocks for 100 ms in every 1.1 s. Where it catches up at once, 9
// in a hundred users meet the stall, and a p90 shows none of it; where it
// takes its time, it is 11, and the p90 is about 10 ms (package stall proves
// that). The driver must tell the two apart.
func TestRateStall(t *testing.T) {
	for name, service := range map[string]time.Duration{"catches up at once": 0, "takes its time": 900 * time.Microsecond} {
		t.Run(name, func(t *testing.T) {
			// A machine that is busy with other things may hold up the way to
			// the server and back: one window of several must agree. A driver
			// that lies agrees in none.
			var lies []string
			for range 8 {
				if lies = stalled(t, service); len(lies) == 0 {
					return
				}
			}
			t.Errorf("none of 8 windows agreed; the last: %q", lies)
		})
	}
}

// stalled measures one window of two stalls, and says where the response
// times are not those of the server's schedule.
func stalled(t *testing.T, service time.Duration) (lies []string) {
	t.Helper()
	// Few enough that a machine slowed down by the race detector keeps up
	// with those that a stall lets go all at once, and more than there are
	// connections at first.
	const rate, connections, every = 200, 5, 1100 * time.Millisecond
	schedule := stall.New(every, 100*time.Millisecond, service)
	server := httptest.NewServer(schedule)
	defer server.Close()
	got := runRate(t, spec.Scenario{HTTP: &spec.HTTP{Path: "/", Rate: rate, Connections: connections}}, rateTarget(server), 2*every)
	if got.OK != int64(schedule.Calls()) || got.Failed != 0 {
		t.Fatalf("%d valid responses and %d failures, the server answered %d: %+v", got.OK, got.Failed, schedule.Calls(), got.Errors)
	}
	if got.OK != 440 {
		return []string{got.Invalid}
	}
	own := schedule.Truth(rate)
	v := got.Values()
	// Whoever answers whom, the sum of all waiting is at least the schedule's;
	// no machine is excused.
	if mean := stall.Mean(own).Seconds(); v["response_time.mean"] < mean*0.999 {
		t.Errorf("mean response time %v s, by the server's schedule %v s", v["response_time.mean"], mean)
	}
	for name, q := range map[string]float64{"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99} {
		truth := stall.Quantile(own, q)
		// Too little is the lie to look for. Too much is also what a machine
		// adds that lets the generator wait before it reads an answer.
		least, most := truth-truth/20-3*time.Millisecond, truth+truth/2+10*time.Millisecond
		if d := time.Duration(v["response_time."+name] * 1e9); d < least || d > most {
			lies = append(lies, fmt.Sprintf("response_time.%s is %v, by the server's schedule %v", name, d, truth))
		}
	}
	return lies
}

// A rate that cannot be reached makes the sample invalid, and the requests
// that were not sent are counted.
func TestRateNotReached(t *testing.T) {
	tally := newRateTally()
	p := &pacer{pace: constantPace(1000), window: time.Second, due: 1000}
	tally.Started, tally.OK = 900, 900
	s := tally.finish(p)
	if s.Metrics["rate_ratio"] != 0.9 || s.Metrics["dropped"] != 100 {
		t.Errorf("%v", s.Metrics)
	}
	if want := "the rate was not reached: 900 of 1000 requests were sent in time"; s.Invalid != want {
		t.Errorf("found %q, expected %q", s.Invalid, want)
	}
}

func TestRateLate(t *testing.T) {
	tally := newRateTally()
	for range 1000 {
		record(tally.Hists["send_lag"], (20 * time.Millisecond).Nanoseconds())
	}
	tally.Started, tally.OK = 1000, 1000
	s := tally.finish(&pacer{pace: constantPace(1000), window: time.Second, due: 1000})
	if !strings.HasPrefix(s.Invalid, "the generator was late: one request in a hundred was sent 20") {
		t.Errorf("found %q", s.Invalid)
	}
}

// The pacer stops when all is sent, and drops what is due too late.
func TestPacerStops(t *testing.T) {
	p := &pacer{pace: constantPace(100), window: time.Second, due: 100}
	if wait, stop := p.Pace(2*time.Millisecond, 0); wait != 0 || stop {
		t.Errorf("at the start: wait %v, stop %v", wait, stop)
	}
	if _, stop := p.Pace(time.Second, 100); !stop {
		t.Error("it goes on after the last request")
	}
	if _, stop := p.Pace(time.Second+lateGrace/2, 99); stop {
		t.Error("it drops a request that is a little late")
	}
	if _, stop := p.Pace(time.Second+2*lateGrace, 99); !stop {
		t.Error("it sends long after the window's end")
	}
}

func TestRateRefuses(t *testing.T) {
	tests := []struct {
		h    spec.HTTP
		want string
	}{
		{spec.HTTP{Rate: math.Inf(1)}, "rate +Inf: expected a number"},
		{spec.HTTP{Pacer: &spec.Pacer{Kind: "saw"}}, `pacer "saw": expected ramp or sine`},
		{spec.HTTP{Pacer: &spec.Pacer{Kind: "ramp"}}, "ramp from 0 to 0"},
		{spec.HTTP{Pacer: &spec.Pacer{Kind: "sine", Mean: 5, Swing: 5, Period: time.Second}}, "expected a swing below the mean"},
		{spec.HTTP{Rate: 5, Version: "3"}, `HTTP version "3": expected 1.1 or 2`},
	}
	for _, tt := range tests {
		_, err := New(spec.Scenario{Name: "test", HTTP: &tt.h}, Options{})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("found %v, expected %s", err, tt.want)
		}
	}
}

// The two directions of a plan agree, time never runs backwards, and the rate
// between two requests is that of the plan.
func TestPaceInverts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		window := time.Duration(rapid.IntRange(10, 60_000).Draw(t, "window")) * time.Millisecond
		h := spec.HTTP{Rate: rapid.Float64Range(1, 1e6).Draw(t, "rate")}
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 1:
			h.Pacer = &spec.Pacer{Kind: "ramp", From: rapid.Float64Range(0, 1e5).Draw(t, "from"), To: rapid.Float64Range(1, 1e5).Draw(t, "to")}
		case 2:
			h.Pacer = &spec.Pacer{
				Kind: "sine", Mean: h.Rate, Swing: h.Rate * rapid.Float64Range(0, 0.99).Draw(t, "swing"),
				Period: time.Duration(rapid.IntRange(1, 10_000).Draw(t, "period")) * time.Millisecond,
			}
		}
		p, err := newPace(&h, window)
		if err != nil {
			t.Fatal(err)
		}
		total := due(p, window)
		last := -1.0
		for i := range int64(20) {
			n := float64(i * max(1, total) / 20)
			at := p.at(n)
			if at < last || at > window.Seconds()+1e-6 {
				t.Fatalf("request %v of %v is due at %v s of %v, the one before at %v", n, total, at, window, last)
			}
			if back := p.hits(at); math.Abs(back-n) > 1e-6*(1+n) {
				t.Fatalf("request %v is due at %v s, when %v are", n, at, back)
			}
			last = at
		}
	})
}

func TestPaceTotals(t *testing.T) {
	tests := []struct {
		h    spec.HTTP
		want int64
	}{
		{spec.HTTP{Rate: 1000}, 2000},
		{spec.HTTP{Rate: 0.1}, 1},
		{spec.HTTP{Pacer: &spec.Pacer{Kind: "ramp", From: 100, To: 300}}, 400},
		{spec.HTTP{Pacer: &spec.Pacer{Kind: "ramp", From: 300, To: 0}}, 300},
		{spec.HTTP{Pacer: &spec.Pacer{Kind: "sine", Mean: 100, Swing: 50, Period: time.Second}}, 200},
		{spec.HTTP{Pacer: &spec.Pacer{Kind: "sine", Mean: 100, Swing: 50, Period: 4 * time.Second}}, 264}, // 200 + 2 * 50 * 4 / (2 pi)
	}
	for _, tt := range tests {
		p, err := newPace(&tt.h, 2*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if got := due(p, 2*time.Second); got != tt.want {
			t.Errorf("%+v: %d requests in 2 s, expected %d", tt.h, got, tt.want)
		}
	}
}
