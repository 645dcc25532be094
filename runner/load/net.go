package load

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// netLoad is the portable closed loop: a goroutine for each connection, over
// the net package. It serves TLS and systems other than Linux. It is a
// player of schedules, as the fast loop is, and counts in the same way; it
// cannot tell when it was off its CPU, so lateness discards nothing here.
type netLoad struct {
	driver  *httpDriver
	targets []*netTarget
	epoch   time.Time
	busy    sync.WaitGroup // connections that are playing
	stopped atomic.Bool
	running bool  // between the first slice and drain
	end     int64 // of the last slice
}

// netTarget is one target as the portable loop sees it.
type netTarget struct {
	*destination
	conns []*netConn
	until atomic.Int64 // no request is sent after this
	m     meter
}

// openNet opens every connection of every target.
func openNet(ctx context.Context, d *httpDriver, dests []*destination) (Load, error) {
	n := &netLoad{driver: d, epoch: time.Now()}
	for _, dest := range dests {
		t := &netTarget{destination: dest}
		n.targets = append(n.targets, t)
		for i := range d.http.Connections {
			c := newNetConn(n, t, i)
			t.conns = append(t.conns, c)
			go c.serve()
			if !d.http.KeepAlive {
				continue
			}
			if err := c.dial(ctx); err != nil {
				err = &failure{classifyConnect(err), fmt.Errorf("%s: connection %d of %d to %s: %w", t.name, i+1, d.http.Connections, t.endpoint.addr, err)}
				return nil, errors.Join(err, n.Close())
			}
		}
	}
	return n, nil
}

// now reads the clock.
func (n *netLoad) now() int64 { return int64(time.Since(n.epoch)) }

// turn implements player.
func (n *netLoad) turn(target int, d time.Duration) time.Duration {
	t := n.targets[target]
	time.Sleep(rest)
	start := n.now()
	until := start + int64(d)
	t.until.Store(until)
	n.busy.Add(len(t.conns))
	for _, c := range t.conns {
		c.turns <- struct{}{}
	}
	n.busy.Wait()
	end := until
	for _, c := range t.conns {
		end = max(end, c.done)
		t.m.absorb(&c.m)
	}
	if n.stopped.Load() {
		end = n.now()
	} else if left := until - n.now(); left > 0 { // the target is down, or rests
		time.Sleep(time.Duration(left))
	}
	t.m.elapsed += end - start
	t.m.turns++
	return time.Duration(end - start)
}

// slice implements player.
func (n *netLoad) slice(d time.Duration) time.Duration {
	start := n.end
	if !n.running {
		n.running = true
		start = n.now()
		for _, t := range n.targets {
			t.until.Store(math.MaxInt64)
			n.busy.Add(len(t.conns))
			for _, c := range t.conns {
				c.turns <- struct{}{}
			}
		}
	}
	for left := int64(1); left > 0 && !n.stopped.Load(); left = start + int64(d) - n.now() {
		time.Sleep(min(time.Duration(max(left, 0)), 20*time.Millisecond))
	}
	n.end = n.now()
	for _, t := range n.targets {
		for _, c := range t.conns {
			c.mu.Lock()
			c.account(n.end, 0)
			t.m.absorb(&c.m)
			c.mu.Unlock()
		}
		t.m.elapsed += n.end - start
		t.m.turns++
	}
	return time.Duration(n.end - start)
}

// drain implements player.
func (n *netLoad) drain() {
	n.running = false
	limit := time.Now().Add(min(time.Duration(drainLimit), n.driver.http.Timeout))
	for _, t := range n.targets {
		t.until.Store(0)
		for _, c := range t.conns {
			c.mu.Lock()
			t.m.absorb(&c.m)
			// What was answered since the last slice came after the end.
			t.m.inFlight += int64(c.count) + t.m.ok
			t.m.ok = 0
			c.draining = true
			if c.count > 0 && c.conn != nil {
				_ = c.conn.SetReadDeadline(limit)
			}
			c.mu.Unlock()
		}
	}
	n.busy.Wait()
	for _, t := range n.targets {
		for _, c := range t.conns {
			// A connection may have been about to send when the drain began.
			t.m.started += c.m.started
			t.m.inFlight += c.m.started
			c.m = meter{}
			c.draining = false
			c.deadline = 0
		}
	}
}

// expect implements player.
func (n *netLoad) expect(guarded bool) {
	for _, t := range n.targets {
		t.m.sure = !guarded
	}
}

// settle implements player.
func (n *netLoad) settle(keep bool) {
	for _, t := range n.targets {
		t.m.settle(keep)
	}
}

// late implements player.
func (n *netLoad) late() time.Duration { return 0 }

// Run implements Load.
func (n *netLoad) Run(ctx context.Context, s Schedule) ([]Sample, error) {
	n.stopped.Store(false)
	defer context.AfterFunc(ctx, n.interrupt)()
	for _, t := range n.targets {
		t.m.reset(true)
	}
	found, close := newEvidence(s.Guard.CPUs)
	defer close()
	r := rotation{Schedule: s, p: n, targets: len(n.targets), evidence: found}
	before, started := processUse(), time.Now()
	err := r.run(ctx)
	use := processUse()
	use.CPU -= before.CPU
	use.Involuntary -= before.Involuntary
	use.Wall = time.Since(started)
	samples := make([]Sample, len(n.targets))
	for i, t := range n.targets {
		samples[i] = t.m.result()
		r.stamp(&samples[i], use)
	}
	return samples, err
}

// interrupt ends what the connections wait for.
func (n *netLoad) interrupt() {
	n.stopped.Store(true)
	for _, t := range n.targets {
		for _, c := range t.conns {
			c.mu.Lock()
			if c.conn != nil {
				_ = c.conn.SetDeadline(time.Unix(1, 0))
			}
			c.mu.Unlock()
		}
	}
}

// Close implements Load.
func (n *netLoad) Close() error {
	for _, t := range n.targets {
		for _, c := range t.conns {
			if !c.ended {
				c.ended = true
				close(c.turns)
			}
			c.hangUp()
		}
		t.conns = nil
	}
	return nil
}

// hangUp closes the connection, if it is open.
func (c *netConn) hangUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil {
		_ = c.conn.Close()
	}
	c.conn = nil
}

// quit ends a connection after its last response; see conn.part.
func (c *netConn) quit() {
	if tcp, ok := c.conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	c.hangUp()
}
