package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// netConn is one connection of the portable loop, and the goroutine that
// plays on it.
type netConn struct {
	load     *netLoad
	t        *netTarget
	variants []*variant // of its own, since each holds the last head seen
	turns    chan struct{}
	ended    bool
	buf      []byte
	wire     []byte
	parser   parser
	ring     []pending
	next     int // in the target's round
	fails    int
	retry    int64
	done     int64 // when the last request ended
	deadline int64 // what the read deadline was set to
	first    int64 // when the first byte of the response being read came; 0: it has not

	mu       sync.Mutex // guards what follows between the goroutine and the player
	conn     net.Conn
	count    int   // requests in flight
	changed  int64 // when count last changed
	draining bool  // what comes in now counts no more
	m        meter
}

// newNetConn returns the i-th connection of a target.
func newNetConn(n *netLoad, t *netTarget, i int) *netConn {
	c := &netConn{
		load: n, t: t, turns: make(chan struct{}),
		buf: make([]byte, 16<<10), ring: make([]pending, 0, n.driver.http.Pipeline),
		next: i % len(t.round),
	}
	if t.reply != nil {
		c.parser.frames = &frames{reply: t.reply, write: func(b []byte) { _, _ = c.conn.Write(b) }}
	}
	for _, v := range t.variants {
		own := *v
		c.variants = append(c.variants, &own)
	}
	return c
}

// serve plays turns until the load is closed.
func (c *netConn) serve() {
	for range c.turns {
		c.play()
		c.load.busy.Done()
	}
}

// play keeps the connection busy until the target's turn is over, and then
// waits for the answers that are still due.
func (c *netConn) play() {
	c.mu.Lock()
	c.account(c.load.now(), 0)
	c.mu.Unlock()
	sent := false
	for !c.load.stopped.Load() {
		now := c.load.now()
		if len(c.ring) == 0 {
			if sent && now >= c.t.until.Load() {
				return
			}
			if !c.ready(now) {
				return
			}
			sent = true
			c.send(c.load.driver.http.Pipeline)
			continue
		}
		if n := c.read(); n > 0 && len(c.ring) > 0 && c.load.driver.http.PipelineMode != "batch" && c.load.now() < c.t.until.Load() {
			c.send(n)
		}
	}
	if len(c.ring) > 0 {
		c.drop(Other, context.Canceled)
	}
}

// ready waits until the connection may send. It returns false where that
// will not be in this turn.
func (c *netConn) ready(now int64) bool {
	wait := c.retry - now
	if c.done > 0 && c.load.driver.http.Think > 0 && c.fails == 0 {
		wait = max(wait, c.done+int64(c.load.driver.http.Think)-now)
	}
	if c.conn != nil && c.fails == 0 && c.load.driver.http.Think == 0 || wait <= 0 {
		return true
	}
	for wait > 0 && !c.load.stopped.Load() {
		if now+wait >= c.t.until.Load() {
			return false
		}
		time.Sleep(min(time.Duration(wait), 20*time.Millisecond))
		wait -= c.load.now() - now
		now = c.load.now()
	}
	return now < c.t.until.Load()
}

// account brings the account of requests in flight up to now and changes it.
func (c *netConn) account(now int64, change int) {
	c.m.inUse += int64(c.count) * (now - c.changed)
	c.changed = now
	c.count += change
}

// send sends n requests, on a new connection where there is none.
func (c *netConn) send(n int) {
	now := c.load.now()
	c.wire = c.wire[:0]
	for range n {
		v := c.t.round[c.next]
		c.next = (c.next + 1) % len(c.t.round)
		c.wire = append(c.wire, c.variants[v].wire...)
		c.ring = append(c.ring, pending{at: now, variant: v})
	}
	c.mu.Lock()
	c.account(now, n)
	c.m.started += int64(n)
	c.m.bytesOut += int64(len(c.wire))
	c.mu.Unlock()
	if c.conn == nil {
		ctx, cancel := context.WithTimeout(context.Background(), c.load.driver.http.Timeout)
		err := c.dial(ctx)
		cancel()
		if err != nil {
			c.drop(classifyConnect(err), err)
			return
		}
	}
	// The deadline is moved rarely and set with room to spare: setting it
	// costs as much as reading.
	timeout := int64(c.load.driver.http.Timeout)
	if c.deadline < now+timeout {
		c.deadline = now + timeout + timeout/8
		_ = c.conn.SetDeadline(c.load.epoch.Add(time.Duration(c.deadline)))
	}
	if _, err := c.conn.Write(c.wire); err != nil {
		c.drop(classify(err), fmt.Errorf("send the request: %w", err))
	}
}

// dial opens the connection.
func (c *netConn) dial(ctx context.Context) error {
	conn, err := c.t.endpoint.dial(ctx)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.conn = conn
	c.mu.Unlock()
	c.parser.reset()
	c.deadline, c.first = 0, 0
	return nil
}

// read reads once and returns how many responses that completed.
func (c *netConn) read() (answered int) {
	n, err := c.conn.Read(c.buf)
	now := c.load.now()
	c.mu.Lock()
	c.m.bytesIn += int64(n)
	c.mu.Unlock()
	b := c.buf[:n]
	for len(b) > 0 && len(c.ring) > 0 {
		if c.first == 0 {
			c.first = now
		}
		v := c.variants[c.ring[0].variant]
		used, done, bad := c.parser.feed(b, &v.asked)
		b = b[used:]
		switch {
		case bad != nil:
			c.drop(parseClass(bad), bad)
			return answered
		case done && len(b) > 0 && len(c.ring) == 1 && !c.parser.frames.control(b):
			c.drop(Protocol, fmt.Errorf("%d bytes after the end of the response", len(b)))
			return answered
		case done:
			c.answer(v, now)
			answered++
			if c.parser.head.close {
				c.last()
				return 0
			}
		}
	}
	if err != nil {
		c.broken(err, now)
		return 0
	}
	return answered
}

// answer counts a complete response to the oldest request.
func (c *netConn) answer(v *variant, now int64) {
	at := c.ring[0].at
	c.ring = c.ring[:copy(c.ring, c.ring[1:])]
	c.mu.Lock()
	defer c.mu.Unlock()
	c.account(now, -1)
	if !c.draining {
		if f := v.verify(&c.parser); f != nil {
			c.m.fail(f.class, 1, f)
		} else {
			c.m.valid(now-at, c.first-at)
		}
	}
	c.first, c.fails, c.retry, c.done = 0, 0, 0, now
}

// last ends a connection whose last response said so.
func (c *netConn) last() {
	if len(c.ring) > 0 {
		c.drop(EOF, fmt.Errorf("the server closed the connection before it answered all of a pipeline: %w", io.EOF))
		return
	}
	c.quit()
}

// broken deals with the end of the connection, or an error of it.
func (c *netConn) broken(err error, now int64) {
	if !errors.Is(err, io.EOF) {
		if classify(err) == Timeout {
			err = fmt.Errorf("no response within %v: %w", c.load.driver.http.Timeout, err)
		}
		c.drop(classify(err), err)
		return
	}
	v := c.variants[c.ring[0].variant]
	if done, err := c.parser.end(&v.asked); !done {
		c.drop(classify(err), err)
		return
	}
	c.answer(v, now)
	c.last()
}

// drop gives up the connection: the requests on it failed.
func (c *netConn) drop(class Class, err error) {
	c.hangUp()
	now := c.load.now()
	n := len(c.ring)
	c.ring = c.ring[:0]
	c.parser.reset()
	c.mu.Lock()
	c.account(now, -n)
	if !c.draining && n > 0 {
		c.m.fail(class, int64(n), fmt.Errorf("%s: %w", c.t.name, err))
	}
	c.mu.Unlock()
	c.done = now
	c.retry = now + min(firstBackoff<<min(c.fails, 20), lastBackoff)
	c.fails++
}
