package load

import (
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// upgrade completes a connection of the fast loop that has just been started
// and opens its websocket. It waits for both: in a run that happens only
// after a connection was lost, which has made the window invalid already.
func (c *conn) upgrade(deadline time.Time) error {
	if err := c.await(deadline); err != nil {
		return err
	}
	return c.t.endpoint.upgrade.do(&pollConn{c.fd, deadline})
}

// pollConn reads and writes a non-blocking socket as if it blocked.
type pollConn struct {
	fd       int
	deadline time.Time
}

// Read reads what is there, or waits for it.
func (p *pollConn) Read(b []byte) (int, error) {
	for {
		n, err := unix.Read(p.fd, b)
		switch {
		case err == unix.EAGAIN || err == unix.EINTR:
			if err := p.wait(unix.POLLIN); err != nil {
				return 0, err
			}
		case err != nil:
			return 0, os.NewSyscallError("read", err)
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

// Write writes all of b.
func (p *pollConn) Write(b []byte) (int, error) {
	written := 0
	for written < len(b) {
		n, err := unix.Write(p.fd, b[written:])
		switch {
		case err == unix.EAGAIN || err == unix.EINTR:
			if err := p.wait(unix.POLLOUT); err != nil {
				return written, err
			}
		case err != nil:
			return written, os.NewSyscallError("write", err)
		default:
			written += n
		}
	}
	return written, nil
}

func (p *pollConn) wait(events int16) error {
	left := time.Until(p.deadline)
	if left <= 0 {
		return os.ErrDeadlineExceeded
	}
	fds := []unix.PollFd{{Fd: int32(p.fd), Events: events}}
	_, err := unix.Poll(fds, int(min(left, time.Second)/time.Millisecond)+1)
	if err != nil && !errors.Is(err, unix.EINTR) {
		return os.NewSyscallError("poll", err)
	}
	return nil
}
