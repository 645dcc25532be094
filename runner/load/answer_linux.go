package load

import (
	"fmt"
	"io"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// settled deals with an attempt to connect that has ended.
func (l *loop) settled(c *conn) {
	if err := c.connected(); err != nil {
		l.drop(c, classifyConnect(err), err)
	}
}

// readable reads all that has arrived. With hup, the end of the connection
// may stand behind it.
func (l *loop) readable(c *conn, hup bool) {
	for {
		n, _, errno := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(c.fd), uintptr(unsafe.Pointer(&l.buf[0])), uintptr(len(l.buf)), 0, 0, 0)
		switch {
		case errno == syscall.EAGAIN:
			return
		case errno == syscall.EINTR:
			continue
		case errno != 0:
			l.drop(c, classify(errno), os.NewSyscallError("recvfrom", errno))
			return
		case n == 0:
			l.hungUp(c)
			return
		}
		fd := c.fd
		l.consume(c, l.buf[:n], l.tick())
		if c.state != open || c.fd != fd || int(n) < len(l.buf) && !hup {
			return
		}
	}
}

// consume reads responses from b and sends the next requests.
func (l *loop) consume(c *conn, b []byte, now int64) {
	t := c.t
	t.m.bytesIn += int64(len(b))
	answered := 0
	for len(b) > 0 {
		if c.count == 0 {
			if !c.parser.frames.control(b) {
				l.surplus(c, len(b))
			}
			return
		}
		if c.first == 0 {
			c.first = now
		}
		v := t.variants[c.oldest().variant]
		used, done, err := c.parser.feed(b, &v.asked)
		if err != nil {
			l.drop(c, parseClass(err), err)
			return
		}
		b = b[used:]
		if !done {
			break
		}
		if len(b) > 0 && c.count == 1 && c.parser.frames == nil {
			l.drop(c, Protocol, fmt.Errorf("%d bytes after the end of the response", len(b)))
			return
		}
		l.answer(c, v, now)
		answered++
		if c.parser.head.close {
			l.parted(c, now)
			return
		}
	}
	if answered > 0 {
		l.refill(c, now, answered)
	}
}

// answer counts a complete response to the oldest request.
func (l *loop) answer(c *conn, v *variant, now int64) {
	t := c.t
	at := c.oldest().at
	if !l.draining {
		if f := v.verify(&c.parser); f != nil {
			t.m.fail(f.class, 1, f)
		} else {
			t.m.valid(now-at, c.first-at)
		}
	}
	c.pop()
	c.first, c.fails = 0, 0
	t.count(now, -1)
	l.flight--
	t.done = now
}

// refill sends the requests that follow answered ones.
func (l *loop) refill(c *conn, now int64, n int) {
	if now >= l.until {
		return
	}
	if l.batch {
		if c.count > 0 {
			return
		}
		n = c.t.pipeline
	}
	if l.think > 0 {
		l.thinking = append(l.thinking, thought{c, now + l.think})
		return
	}
	l.send(c, now, n)
}

// parted deals with a connection whose last response said that it closes.
func (l *loop) parted(c *conn, now int64) {
	c.part()
	if c.count > 0 {
		l.drop(c, EOF, fmt.Errorf("the server closed the connection before it answered all of a pipeline: %w", io.EOF))
		return
	}
	l.refill(c, now, c.t.pipeline)
}

// hungUp deals with a connection that the server closed.
func (l *loop) hungUp(c *conn) {
	if c.count == 0 {
		c.shut()
		return
	}
	v := c.t.variants[c.oldest().variant]
	done, err := c.parser.end(&v.asked)
	if !done {
		l.drop(c, classify(err), err)
		return
	}
	now := l.tick()
	l.answer(c, v, now)
	l.parted(c, now)
}

// surplus deals with bytes that no request asked for. They count as a
// request of their own, which failed.
func (l *loop) surplus(c *conn, n int) {
	c.shut()
	if l.draining {
		return
	}
	c.t.m.started++
	c.t.m.fail(Protocol, 1, fmt.Errorf("%d bytes that no request asked for", n))
}

// drop gives up a connection: the requests on it failed.
func (l *loop) drop(c *conn, class Class, err error) {
	c.shut()
	t := c.t
	now := l.last
	if n := int64(c.count); n > 0 {
		t.count(now, -n)
		l.flight -= n
		if !l.draining {
			t.m.fail(class, n, fmt.Errorf("%s: %w", t.name, err))
		}
	}
	c.head, c.count = 0, 0
	c.parser.reset()
	t.done = now
	c.retry = now + min(firstBackoff<<min(c.fails, 20), lastBackoff)
	c.fails++
	if !l.draining && now < l.until {
		l.retries = append(l.retries, c)
	}
}
