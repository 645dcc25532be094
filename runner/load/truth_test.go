package load

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/tandem-bench/tandem/spec"
)

// TestLatencyTruth loads a server that answers 97.8% of its requests after
// 2 ms, 2% after 20 ms and 0.2% after 80 ms, and compares the percentiles
// with those that the server itself took. A tool that corrects for
// coordinated omission in a closed loop invents 65 ms at p99 here.
//
// The way to the server and back takes as long as the machine pleases, so a
// window in which it was busy with something else proves nothing: one window
// of several must agree. A driver that lies agrees in none.
func TestLatencyTruth(t *testing.T) {
	const windows = 10
	for _, o := range []Options{{}, {Portable: true}} {
		t.Run(fmt.Sprintf("portable %v", o.Portable), func(t *testing.T) {
			var lies []string
			for range windows {
				if lies = truthOnce(t, o); len(lies) == 0 {
					return
				}
			}
			t.Errorf("none of %d windows agreed; the last: %q", windows, lies)
		})
	}
}

// truthOnce runs one window and says what does not agree.
func truthOnce(t *testing.T, o Options) (lies []string) {
	var mu sync.Mutex
	took := hdrhistogram.New(1, int64(longest), 3)
	server := script(t, func(c *net.TCPConn, n int64) bool {
		delay := 2 * time.Millisecond
		switch {
		case n%500 == 250:
			delay = 80 * time.Millisecond
		case n%50 == 10:
			delay = 20 * time.Millisecond
		}
		began := time.Now()
		time.Sleep(delay)
		d := time.Since(began)
		if n > 0 { // the first request is the check
			mu.Lock()
			record(took, int64(d))
			mu.Unlock()
		}
		write(c, hello)
		return true
	})
	sched := Schedule{Mode: spec.Windows, Window: time.Second, Order: forward}
	s := play(t, scenario(16), o, sched, server.target())[0]
	mu.Lock()
	defer mu.Unlock()
	if s.OK != took.TotalCount() {
		t.Fatalf("%d responses, %d answers", s.OK, took.TotalCount())
	}
	v := s.Values()
	const way = 3 * time.Millisecond
	for name, q := range map[string]float64{"p50": 50, "p90": 90, "p99": 99, "p99_9": 99.9} {
		own := time.Duration(took.ValueAtQuantile(q))
		got := time.Duration(v["latency."+name] * 1e9)
		if got < own*999/1000 {
			t.Errorf("%s is %v, the server alone took %v", name, got, own)
		}
		if got > own+way {
			lies = append(lies, fmt.Sprintf("%s is %v, the server took %v", name, got, own))
		}
	}
	// Little's law, by books that are kept apart; no machine is excused.
	if little := v["rps"] * v["latency.mean"]; math.Abs(little/s.InUse-1) > 0.01 {
		t.Errorf("rate times mean latency is %.3f, in flight were %.3f", little, s.InUse)
	}
	if s.InUse > 16 {
		t.Errorf("%v in flight on average, on 16 connections", s.InUse)
	}
	return lies
}

// TestCountsMatch compares the driver's counts with the server's own over a
// million requests, and over a million messages. The other drivers are
// counted by the bench command, since they would take minutes here.
func TestCountsMatch(t *testing.T) {
	http := scenario(16)
	http.HTTP.Pipeline = 32
	ws := spec.Scenario{Name: "test", WS: &spec.WS{Path: "/", Size: 20, Connections: 16, Pipeline: 32}}
	for name, tt := range map[string]struct {
		scenario spec.Scenario
		serve    func(net.Conn, *atomic.Int64)
		books    func(testing.TB, *Sample)
	}{"http": {http, answerAll, balanced}, "ws": {ws, echoAll, wsBalanced}} {
		t.Run(name, func(t *testing.T) {
			target, served := countingBy(t, tt.serve)
			countMillion(t, tt.scenario, target, served, tt.books)
		})
	}
}

func countMillion(t *testing.T, s spec.Scenario, target Target, served *atomic.Int64, books func(testing.TB, *Sample)) {
	const million = 1_000_000
	d, err := New(s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if target.Expected, err = d.Check(ctx, target); err != nil {
		t.Fatal(err)
	}
	l, err := d.Open(ctx, []Target{target})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	modes := []spec.Interleave{spec.Turns, spec.Windows, spec.Together}
	started, ended, checks := int64(0), int64(0), int64(1)
	for i := 0; ended < million; i++ {
		samples, err := l.Run(ctx, Schedule{Mode: modes[i%3], Window: 100 * time.Millisecond, Turn: 2 * time.Millisecond, Order: forward})
		if err != nil {
			t.Fatal(err)
		}
		books(t, &samples[0])
		started += samples[0].Started
		ended += samples[0].OK
		if samples[0].Failed > 0 {
			t.Fatal(samples[0].Errors)
		}
	}
	if n := served.Load() - checks; n != started {
		t.Errorf("%d requests started, %d served", started, n)
	}
}

// counting is a server that answers as fast as Go can and counts.
func counting(t testing.TB) (Target, *atomic.Int64) { return countingBy(t, answerAll) }

// countingBy is a server of which serve serves one connection.
func countingBy(t testing.TB, serve func(net.Conn, *atomic.Int64)) (Target, *atomic.Int64) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	served := &atomic.Int64{}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serve(c, served)
		}
	}()
	return Target{Name: "counting", Addr: l.Addr().String()}, served
}

// answerAll answers each blank line with a canned response.
func answerAll(c net.Conn, served *atomic.Int64) {
	defer func() { _ = c.Close() }()
	end := []byte("\r\n\r\n")
	answers := bytes.Repeat([]byte(hello), 4096)
	buf := make([]byte, 32<<10)
	kept := 0
	for {
		n, err := c.Read(buf[kept:])
		if err != nil {
			return
		}
		b := buf[:kept+n]
		requests := bytes.Count(b, end)
		served.Add(int64(requests))
		if i := bytes.LastIndex(b, end); i >= 0 {
			b = b[i+len(end):]
		}
		kept = copy(buf, b)
		if _, err := c.Write(answers[:requests*len(hello)]); err != nil {
			return
		}
	}
}

// echoAll answers a handshake and sends back each text of 20 bytes.
func echoAll(c net.Conn, served *atomic.Int64) {
	defer func() { _ = c.Close() }()
	r := bufio.NewReaderSize(c, 64<<10)
	req, err := http.ReadRequest(r)
	if err != nil {
		return
	}
	write(c.(*net.TCPConn), accepted(req.Header.Get("Sec-Websocket-Key")))
	const size, head = 20, 6 // the head and the mask of a frame that a client sends
	frame := make([]byte, head+size)
	var out []byte
	for {
		if _, err := io.ReadFull(r, frame); err != nil {
			return
		}
		served.Add(1)
		out = append(out, frame[0], size)
		for i, b := range frame[head:] {
			out = append(out, b^frame[2+i%4])
		}
		if r.Buffered() < len(frame) {
			if _, err := c.Write(out); err != nil {
				return
			}
			out = out[:0]
		}
	}
}
