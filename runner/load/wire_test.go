package load

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tandem-bench/tandem/spec"
)

// scripted is a server whose bytes a test decides: it reads a request and
// answers with what the script writes. The connection ends where the script
// says so by returning false.
type scripted struct {
	addr string
	seen atomic.Int64 // requests read
	open atomic.Int64 // connections accepted
}

// script starts a scripted server. n counts its requests from 0.
func script(t testing.TB, answer func(c *net.TCPConn, n int64) bool) *scripted {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &scripted{addr: l.Addr().String()}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.open.Add(1)
			t.Cleanup(func() { _ = c.Close() })
			go s.serve(c.(*net.TCPConn), answer)
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		conns.Wait()
	})
	return s
}

func (s *scripted) serve(c *net.TCPConn, answer func(c *net.TCPConn, n int64) bool) {
	defer func() { _ = c.Close() }()
	r := bufio.NewReader(c)
	for {
		if _, err := http.ReadRequest(r); err != nil {
			return
		}
		if !answer(c, s.seen.Add(1)-1) {
			return
		}
	}
}

func (s *scripted) target() Target { return Target{Name: "scripted", Addr: s.addr} }

// write writes pieces, each in a packet of its own as far as the system lets
// that be decided.
func write(c *net.TCPConn, pieces ...string) {
	for i, p := range pieces {
		if i > 0 {
			time.Sleep(200 * time.Microsecond)
		}
		if _, err := c.Write([]byte(p)); err != nil {
			return
		}
	}
}

// brief is a schedule of a few milliseconds.
var brief = Schedule{Mode: spec.Turns, Window: 5 * time.Millisecond, Turn: time.Millisecond, Order: forward}

func TestConformance(t *testing.T) {
	for _, portable := range []bool{false, true} {
		o := Options{Portable: portable}
		for _, shape := range shapes {
			if shape.rest != "" || len(shape.wire) == 0 {
				continue
			}
			t.Run(fmt.Sprintf("portable %v/%s", portable, shape.name), func(t *testing.T) {
				server := script(t, func(c *net.TCPConn, n int64) bool {
					at := int(n*7) % min(len(shape.wire), 4000)
					write(c, shape.wire[:at], shape.wire[at:])
					return shape.status != 0 && !shape.close
				})
				s := scenario(3)
				if shape.method != "" {
					s.HTTP.Method = shape.method
				}
				if shape.status == 0 {
					fails(t, s, o, server.target(), Protocol, EOF)
					return
				}
				sample := play(t, s, o, brief, server.target())[0]
				if sample.Failed != 0 || sample.OK < 3 {
					t.Errorf("%d valid responses, %d failed: %v", sample.OK, sample.Failed, sample.Errors)
				}
			})
		}
	}
}

// fails runs a scenario whose every request must fail in one of some ways,
// without a check before.
func fails(t *testing.T, s spec.Scenario, o Options, target Target, classes ...Class) {
	t.Helper()
	d, err := New(s, o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := d.Open(context.Background(), []Target{target})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	samples, err := l.Run(context.Background(), brief)
	if err != nil {
		t.Fatal(err)
	}
	balanced(t, &samples[0])
	if samples[0].OK != 0 || samples[0].Failed == 0 {
		t.Errorf("ok %d, failed %d", samples[0].OK, samples[0].Failed)
	}
	for _, e := range samples[0].Errors {
		known := false
		for _, c := range classes {
			known = known || e.Class == c
		}
		if !known {
			t.Errorf("class %s, expected one of %v: %v", e.Class, classes, e.First)
		}
		if len(e.First) == 0 || len(e.First) > keptFailures {
			t.Errorf("%d failures of class %s kept: %q", len(e.First), e.Class, e.First)
		}
	}
}

const hello = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

func TestFailures(t *testing.T) {
	tests := []struct {
		name   string
		class  Class
		answer func(c *net.TCPConn, n int64) bool
	}{
		{"closes before the answer", EOF, func(*net.TCPConn, int64) bool { return false }},
		{"closes in the head", EOF, func(c *net.TCPConn, _ int64) bool { write(c, hello[:20]); return false }},
		{"closes in the body", EOF, func(c *net.TCPConn, _ int64) bool { write(c, hello[:len(hello)-1]); return false }},
		{"resets", ReadReset, func(c *net.TCPConn, _ int64) bool { _ = c.SetLinger(0); return false }},
		{"never answers", Timeout, func(c *net.TCPConn, _ int64) bool { time.Sleep(300 * time.Millisecond); return false }},
		{"slow body", Timeout, func(c *net.TCPConn, _ int64) bool {
			write(c, hello[:len(hello)-2])
			time.Sleep(300 * time.Millisecond)
			return false
		}},
		{"wrong status", Status, func(c *net.TCPConn, _ int64) bool {
			write(c, "HTTP/1.1 500 Oh No\r\nContent-Length: 0\r\n\r\n")
			return true
		}},
		{"surplus bytes", Protocol, func(c *net.TCPConn, _ int64) bool { write(c, hello+"!"); return true }},
		{"not HTTP", Protocol, func(c *net.TCPConn, _ int64) bool { write(c, "220 mail ready\r\n\r\n"); return true }},
	}
	for _, e := range engines {
		for _, test := range tests {
			t.Run(e.name+"/"+test.name, func(t *testing.T) {
				server := script(t, test.answer)
				s := scenario(2)
				if test.class == Timeout {
					s.HTTP.Timeout = 50 * time.Millisecond
				}
				fails(t, s, e.options, server.target(), test.class)
			})
		}
	}
}

// TestChanging serves what the check saw first and something else after it.
func TestChanging(t *testing.T) {
	tests := []struct {
		name, other string
		class       Class
	}{
		{"body", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\njello", Body},
		{"length", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhell", Body},
		{"status", "HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\nhello", Status},
		{"framing alone", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", ""},
	}
	for _, e := range engines {
		for _, test := range tests {
			t.Run(e.name+"/"+test.name, func(t *testing.T) {
				server := script(t, func(c *net.TCPConn, n int64) bool {
					if n == 0 || n%10 != 0 {
						write(c, hello)
					} else {
						write(c, test.other)
					}
					return true
				})
				sample := play(t, scenario(2), e.options, brief, server.target())[0]
				want := int64(0)
				if test.class != "" {
					want = (sample.Started) / 10
				}
				if sample.Failed != want {
					t.Errorf("%d of %d failed, expected %d: %v", sample.Failed, sample.Started, want, sample.Errors)
				}
				for _, f := range sample.Errors {
					if f.Class != test.class {
						t.Errorf("class %s, expected %s", f.Class, test.class)
					}
				}
			})
		}
	}
}

// TestDead runs against a server that goes away in the middle, beside one
// that lives: the run ends, the dead one's failures are few, and the living
// one is not hurt.
func TestDead(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			alive := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			dying := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })}
			go func() { _ = dying.Serve(l) }()
			d, err := New(scenario(4), e.options)
			if err != nil {
				t.Fatal(err)
			}
			load, err := d.Open(context.Background(), []Target{alive.target("alive"), {Name: "dying", Addr: l.Addr().String()}})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = load.Close() }()
			if err := dying.Close(); err != nil {
				t.Fatal(err)
			}
			sched := brief
			sched.Window = 100 * time.Millisecond
			samples, err := load.Run(context.Background(), sched)
			if err != nil {
				t.Fatal(err)
			}
			balanced(t, &samples[0])
			balanced(t, &samples[1])
			if s := samples[0]; s.Failed != 0 || s.OK == 0 {
				t.Errorf("alive: ok %d, failed %d: %v", s.OK, s.Failed, s.Errors)
			}
			// Back-off doubles from 1 ms: about 8 attempts fit into the 200 ms
			// of wall clock on each of four connections.
			if s := samples[1]; s.OK != 0 || s.Failed == 0 || s.Failed > 64 {
				t.Errorf("dying: ok %d, failed %d: %v", s.OK, s.Failed, s.Errors)
			}
			for _, f := range samples[1].Errors {
				if f.Class != ConnectRefused && f.Class != ReadReset && f.Class != EOF {
					t.Errorf("class %s: %v", f.Class, f.First)
				}
			}
		})
	}
}

// TestReopens runs against a server that closes each connection after a few
// answers, with and without saying so.
func TestReopens(t *testing.T) {
	for _, e := range engines {
		for _, announced := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/announced %v", e.name, announced), func(t *testing.T) {
				server := script(t, func(c *net.TCPConn, n int64) bool {
					last := n%5 == 4
					if last && announced {
						write(c, strings.Replace(hello, "\r\n", "\r\nConnection: close\r\n", 1))
					} else {
						write(c, hello)
					}
					return !last
				})
				sched := brief
				sched.Window = 30 * time.Millisecond
				sample := play(t, scenario(2), e.options, sched, server.target())[0]
				for _, f := range sample.Errors {
					if announced || f.Class != EOF && f.Class != ReadReset {
						t.Errorf("class %s: %v", f.Class, f.First)
					}
				}
				if sample.OK == 0 || server.open.Load() < 1+sample.OK/5 {
					t.Errorf("%d valid responses over %d connections", sample.OK, server.open.Load())
				}
			})
		}
	}
}

// TestOpenFails opens connections to nothing.
func TestOpenFails(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, e := range engines {
		d, err := New(scenario(2), e.options)
		if err != nil {
			t.Fatal(err)
		}
		_, err = d.Open(context.Background(), []Target{{Name: "base#0", Addr: addr}})
		if err == nil || classify(err) != ConnectRefused || !strings.Contains(err.Error(), "base#0") {
			t.Errorf("%s: open: %v", e.name, err)
		}
		_, err = d.Check(context.Background(), Target{Name: "base#0", Addr: addr})
		if err == nil || classify(err) != ConnectRefused {
			t.Errorf("%s: check: %v", e.name, err)
		}
	}
}

// TestCancel ends a run whose server never answers.
func TestCancel(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			block := make(chan struct{})
			server := script(t, func(c *net.TCPConn, _ int64) bool { <-block; return false })
			defer close(block)
			s := scenario(2)
			s.HTTP.Timeout = 100 * time.Millisecond
			d, err := New(s, e.options)
			if err != nil {
				t.Fatal(err)
			}
			l, err := d.Open(context.Background(), []Target{server.target()})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = l.Close() }()
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(20*time.Millisecond, cancel)
			samples, err := l.Run(ctx, brief)
			if err == nil {
				t.Error("no error after the context ended")
			}
			balanced(t, &samples[0])
		})
	}
}
