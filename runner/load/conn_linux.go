package load

import (
	"context"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// connState is what a connection of the fast loop is doing.
type connState uint8

const (
	closed connState = iota
	connecting
	open
)

// conn is one connection of the fast loop. Its requests are answered in the
// order in which they were sent.
type conn struct {
	t      *loopTarget
	fd     int
	index  int32 // in loop.conns
	state  connState
	parser parser
	ring   []pending // as long as the pipeline
	head   int       // the oldest request in ring
	count  int       // requests in ring
	out    []byte    // what the socket has not taken yet
	first  int64     // when the first byte of the response being read came; 0: it has not
	fails  int       // failures in a row
	retry  int64     // no attempt to connect before this
}

// oldest is the request that the next response answers.
func (c *conn) oldest() *pending { return &c.ring[c.head] }

// push notes a request as sent.
func (c *conn) push(p pending) {
	at := c.head + c.count
	if at >= len(c.ring) {
		at -= len(c.ring)
	}
	c.ring[at] = p
	c.count++
}

// pop forgets the oldest request.
func (c *conn) pop() {
	c.head++
	if c.head == len(c.ring) {
		c.head = 0
	}
	c.count--
}

// sockaddr resolves an endpoint for the system calls.
func sockaddr(ctx context.Context, e *endpoint) (unix.Sockaddr, int, error) {
	if e.network == "unix" {
		return &unix.SockaddrUnix{Name: e.addr}, unix.AF_UNIX, nil
	}
	host, port, err := net.SplitHostPort(e.addr)
	if err != nil {
		return nil, 0, fmt.Errorf("address %q: expected host:port: %w", e.addr, err)
	}
	number, err := net.DefaultResolver.LookupPort(ctx, "tcp", port)
	if err != nil {
		return nil, 0, fmt.Errorf("address %q: %w", e.addr, err)
	}
	ips, err := net.DefaultResolver.LookupIP(ctx, "ip", host)
	if err != nil {
		return nil, 0, fmt.Errorf("address %q: %w", e.addr, err)
	}
	// A name such as localhost may stand for several addresses of which the
	// server listens on one.
	for _, ip := range ips {
		if len(ips) > 1 {
			var d net.Dialer
			c, dialErr := d.DialContext(ctx, "tcp", net.JoinHostPort(ip.String(), port))
			if dialErr != nil {
				err = dialErr
				continue
			}
			_ = c.Close()
		}
		if v4 := ip.To4(); v4 != nil {
			return &unix.SockaddrInet4{Port: number, Addr: [4]byte(v4)}, unix.AF_INET, nil
		}
		return &unix.SockaddrInet6{Port: number, Addr: [16]byte(ip.To16())}, unix.AF_INET6, nil
	}
	return nil, 0, &failure{classifyConnect(err), fmt.Errorf("connect to %s: %w", e.addr, err)}
}

// socket starts a connection and puts it under the loop's watch. The
// connection is connecting afterwards, or open where the system is that fast.
func (l *loop) socket(c *conn) error {
	fd, err := unix.Socket(c.t.family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	if c.t.family != unix.AF_UNIX {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	}
	err = unix.Connect(fd, c.t.addr)
	if err != nil && err != unix.EINPROGRESS {
		_ = unix.Close(fd)
		return os.NewSyscallError("connect", err)
	}
	state := open
	if err != nil {
		state = connecting
	}
	// Edge-triggered: an event is reported once, and no rearming is needed
	// for writing. What an edge promises is kept by reading to the end.
	event := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET&0xffffffff, Fd: c.index}
	if err := unix.EpollCtl(l.ep, unix.EPOLL_CTL_ADD, fd, &event); err != nil {
		_ = unix.Close(fd)
		return os.NewSyscallError("epoll_ctl", err)
	}
	c.fd, c.state = fd, state
	c.first = 0
	c.parser.reset()
	return nil
}

// connected asks how an attempt to connect ended.
func (c *conn) connected() error {
	code, err := unix.GetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_ERROR)
	switch {
	case err != nil:
		return os.NewSyscallError("getsockopt", err)
	case code != 0:
		return os.NewSyscallError("connect", syscall.Errno(code))
	}
	c.state = open
	return nil
}

// shut closes the socket, if there is one, and leaves the requests alone.
func (c *conn) shut() {
	if c.state != closed {
		_ = unix.Close(c.fd)
	}
	c.state, c.fd, c.out = closed, -1, nil
}

// part closes the socket after a complete response that was the last of its
// connection. A side that closes first keeps the port for a minute
// (TIME_WAIT), which would exhaust the ports; so where the server has not
// closed yet, the connection is reset instead.
func (c *conn) part() {
	var b [1]byte
	if n, err := unix.Read(c.fd, b[:]); n != 0 || err != nil {
		_ = unix.SetsockoptLinger(c.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	}
	c.shut()
}

// await waits until an attempt to connect has ended.
func (c *conn) await(deadline time.Time) error {
	for c.state == connecting {
		left := time.Until(deadline)
		if left <= 0 {
			return &failure{ConnectTimeout, os.ErrDeadlineExceeded}
		}
		fds := []unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLOUT}}
		n, err := unix.Poll(fds, int(min(left, time.Second)/time.Millisecond)+1)
		switch {
		case err == unix.EINTR || err == nil && n == 0:
			continue
		case err != nil:
			return os.NewSyscallError("poll", err)
		}
		if err := c.connected(); err != nil {
			return err
		}
	}
	return nil
}
