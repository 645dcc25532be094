package load

import (
	"context"
	"net"
	"runtime"
	"testing"
	"time"
)

// canned answers every request of up to 64 bytes with the same bytes. It
// allocates nothing, so that a benchmark shows the driver's allocations only.
func canned(b *testing.B) Target {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				buf := make([]byte, 4096)
				answer := []byte("HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nHello, World!")
				for {
					if _, err := c.Read(buf); err != nil {
						return
					}
					if _, err := c.Write(answer); err != nil {
						return
					}
				}
			}()
		}
	}()
	return Target{Name: "canned", Addr: l.Addr().String()}
}

// BenchmarkRequest is the whole way of a request: send, read, parse, hold to
// the expected body, time, count. -benchmem shows that it allocates nothing.
func BenchmarkRequest(b *testing.B) {
	target := canned(b)
	d, err := New(scenario(16), Options{})
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	if target.Expected, err = d.Check(ctx, target); err != nil {
		b.Fatal(err)
	}
	l, err := d.Open(ctx, []Target{target})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	crew := &l.(*fastLoad).crew
	m := &crew.loops[0].targets[0].m
	m.reset(true)
	b.ReportAllocs()
	b.ResetTimer()
	for done := int64(0); done < int64(b.N); {
		crew.turn(0, 10*time.Millisecond)
		done += m.ok
		crew.settle(true)
	}
}

// BenchmarkReply is the parser alone, on a head that it has seen before and
// on one that it has not.
func BenchmarkReply(b *testing.B) {
	wire := []byte("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nDate: Mon, 30 Nov 2026 12:00:00 GMT\r\nContent-Length: 13\r\n\r\nHello, World!")
	for name, memoised := range map[string]bool{"memoised": true, "parsed": false} {
		b.Run(name, func(b *testing.B) {
			a := &asked{compare: true, want: []byte("Hello, World!")}
			var p parser
			b.ReportAllocs()
			for range b.N {
				if !memoised {
					a.memo.raw = a.memo.raw[:0]
				}
				if _, done, err := p.feed(wire, a); !done || err != nil || p.differs {
					b.Fatal(done, err)
				}
			}
		})
	}
}

// TestNoAllocations holds the path of a request to no allocation, by the
// parser's part of it, which is where bytes are handled.
func TestNoAllocations(t *testing.T) {
	for _, s := range shapes {
		if s.status == 0 || s.name == "length folded" || s.name == "folded header" {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			wire := []byte(s.wire)
			a := &asked{toHead: s.method == "HEAD", compare: true, want: []byte(s.body)}
			var p parser
			n := testing.AllocsPerRun(100, func() {
				a.memo.raw = a.memo.raw[:0]
				if _, done, err := p.feed(wire, a); err != nil {
					t.Fatal(err)
				} else if !done {
					p.reset() // it ends with the connection
				}
				if _, _, err := p.feed(wire, a); err != nil {
					t.Fatal(err)
				}
				p.reset()
			})
			if n != 0 {
				t.Errorf("%v allocations", n)
			}
		})
	}
}

// TestNoAllocationsPerRequest counts all that the process allocates while a
// turn goes on.
func TestNoAllocationsPerRequest(t *testing.T) {
	target, _ := counting(t)
	s := scenario(16)
	s.HTTP.Pipeline = 4
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
	crew := &l.(*fastLoad).crew
	m := &crew.loops[0].targets[0].m
	m.reset(true)
	crew.expect(false)
	crew.turn(0, 20*time.Millisecond) // the first one fills buffers
	m.settle(true)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	crew.turn(0, 200*time.Millisecond)
	runtime.ReadMemStats(&after)
	if n := after.Mallocs - before.Mallocs; float64(n) > float64(m.ok)/100 {
		t.Errorf("%d allocations in %d requests", n, m.ok)
	}
}
