package load

import (
	"errors"
	"fmt"
	"math"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Times of the loop.
const (
	longestSleep = int64(20 * time.Millisecond) // so that the end of the context is seen
	burst        = 16                           // sends at the start of a turn between two looks at the answers
)

// loop is the fast closed loop: one thread, one epoll instance, raw system
// calls on non-blocking sockets. A crew of them plays schedules.
//
// RawSyscall is right here because none of these calls can block: it spares
// the hand-over to Go's scheduler, which costs as much as the call. The
// functions on the path of a request are long and allocate nothing.
type loop struct {
	ep       int
	spin     bool // poll without sleeping
	timeout  int64
	think    int64
	batch    bool // pipelines are refilled when they are empty, not one by one
	targets  []*loopTarget
	conns    []*conn
	events   []unix.EpollEvent
	buf      []byte
	scratch  []byte
	epoch    time.Time
	last     int64 // last reading of the clock
	gap      int64 // longest time between two readings while awake
	busy     int64 // time in polls that found something to do, and in sending
	marked   int64 // up to when time has been sorted into busy and idle
	worked   bool  // the last poll found something to do
	used     GeneratorUse
	until    int64 // no request is sent after this
	scanned  int64 // last search for requests that took too long
	sliceEnd int64 // end of the last slice; 0: none is running
	began    int64 // the first send of the last turn or slice
	ended    int64 // the last response of the last turn or slice
	flight   int64 // requests in flight
	draining bool  // what comes in now counts no more
	retries  []*conn
	thinking []thought
	stopped  *atomic.Bool // the context ended
}

// thought is a connection that waits before its next request.
type thought struct {
	c   *conn
	due int64
}

// loopTarget is one target as the loop sees it.
type loopTarget struct {
	*destination
	addr     unix.Sockaddr
	family   int
	conns    []*conn
	pipeline int
	whole    []byte // a pipeline of requests, where all are the same
	next     int    // in round
	inFlight int64
	changed  int64 // when inFlight last changed
	done     int64 // when the last request ended
	m        meter
}

// count brings the account of requests in flight up to now and changes it.
func (t *loopTarget) count(now, change int64) {
	t.m.inUse += t.inFlight * (now - t.changed)
	t.changed = now
	t.inFlight += change
}

// now reads the clock without judging how long that took.
func (l *loop) now() int64 {
	l.last = int64(time.Since(l.epoch))
	return l.last
}

// tick reads the clock and notes how long the loop was away.
func (l *loop) tick() int64 {
	now := int64(time.Since(l.epoch))
	if d := now - l.last; d > l.gap {
		l.gap = d
	}
	l.last = now
	return now
}

// turn loads one target for d and drains it; see player.
func (l *loop) turn(target int, d time.Duration) {
	t := l.targets[target]
	l.marked, l.worked = l.now(), false
	l.until = 0
	// Sees connections that were closed meanwhile, and gives the target of
	// the turn before time to end what it put off until after its answers.
	for ends := l.last + int64(rest); ; {
		l.poll(ends)
		if l.last >= ends {
			break
		}
	}
	l.began = l.now()
	l.until = l.began + int64(d)
	l.marked, l.worked = l.began, true
	t.changed, t.done = l.began, l.began
	for i, c := range t.conns {
		l.start(c, l.tick())
		if i%burst == burst-1 {
			l.poll(0)
		}
	}
	for (t.inFlight > 0 || l.last < l.until) && !l.stopped.Load() {
		l.poll(l.until)
	}
	l.ended = max(t.done, l.until)
	if l.stopped.Load() {
		l.ended = l.last
	}
	l.retries, l.thinking = l.retries[:0], l.thinking[:0]
}

// slice loads all targets for d; see player. A slice begins where the last
// one ended, so that what happens between two slices is part of the second
// one's time.
func (l *loop) slice(d time.Duration) {
	l.began = l.sliceEnd
	l.until = math.MaxInt64
	if l.began == 0 {
		l.began = l.now()
		for _, t := range l.targets {
			t.changed = l.began
		}
		l.startAll()
	}
	l.marked, l.worked = l.now(), false
	for l.last < l.began+int64(d) && !l.stopped.Load() {
		l.poll(l.began + int64(d))
	}
	for _, t := range l.targets {
		t.count(l.last, 0)
	}
	l.sliceEnd, l.ended = l.last, l.last
}

// startAll sends the first requests of all targets, connection by connection
// in turns, so that none is ahead.
func (l *loop) startAll() {
	for i := range l.targets[0].conns {
		for _, t := range l.targets {
			l.start(t.conns[i], l.tick())
		}
		l.poll(0)
	}
}

// drain ends what slice left in flight; see player.
func (l *loop) drain() {
	l.until, l.sliceEnd = 0, 0
	l.retries, l.thinking = l.retries[:0], l.thinking[:0]
	for _, t := range l.targets {
		t.m.inFlight = t.inFlight
	}
	l.draining = true
	limit := l.now() + min(drainLimit, l.timeout)
	for l.flight > 0 && l.last < limit {
		l.poll(limit)
	}
	for _, c := range l.conns {
		if c.count > 0 {
			l.drop(c, Timeout, os.ErrDeadlineExceeded)
		}
	}
	l.draining = false
}

// late is the longest time that the loop was away since the last call.
func (l *loop) late() time.Duration {
	d := l.gap
	l.gap = 0
	return time.Duration(d)
}

// poll looks once for what has happened and deals with it. Where nothing has
// and the loop may sleep, it sleeps until something does, at most until then
// (0: not at all).
func (l *loop) poll(until int64) {
	n := l.wait(until)
	now := l.last
	for i := range n {
		e := &l.events[i]
		c := l.conns[e.Fd]
		if c.state == connecting {
			l.settled(c)
		}
		if c.state != open {
			continue
		}
		if len(c.out) > 0 && e.Events&unix.EPOLLOUT != 0 {
			l.flush(c)
		}
		if e.Events&(unix.EPOLLIN|unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
			l.readable(c, e.Events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0)
		}
	}
	if len(l.retries) > 0 || len(l.thinking) > 0 {
		l.due(now)
	}
	if now-l.scanned > max(int64(10*time.Millisecond), l.timeout/20) {
		l.expire(now)
	}
	// The time after the last reading of the clock, in which answers were
	// written, is part of the next poll.
	if n > 0 || l.worked {
		l.busy += l.last - l.marked
	}
	l.marked, l.worked = l.last, n > 0
}

// wait asks the kernel for events, first without sleeping.
func (l *loop) wait(until int64) int {
	n, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(l.ep), uintptr(unsafe.Pointer(&l.events[0])), uintptr(len(l.events)), 0, 0, 0)
	now := l.tick()
	if errno == 0 && n > 0 {
		return int(n)
	}
	if l.spin || until <= now {
		return 0
	}
	sleep := min(until-now, longestSleep)
	for _, r := range l.retries {
		sleep = min(sleep, r.retry-now)
	}
	if len(l.thinking) > 0 {
		sleep = min(sleep, l.thinking[0].due-now)
	}
	if sleep <= 0 {
		return 0
	}
	n = l.sleep(sleep)
	l.now()
	return int(n)
}

// sleep waits for events in the scheduler's way.
func (l *loop) sleep(ns int64) uintptr {
	ts := unix.NsecToTimespec(ns)
	n, _, errno := syscall.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(l.ep), uintptr(unsafe.Pointer(&l.events[0])), uintptr(len(l.events)), uintptr(unsafe.Pointer(&ts)), 0, 0)
	if errno == syscall.ENOSYS { // Linux before 5.11
		n, _, errno = syscall.Syscall6(unix.SYS_EPOLL_PWAIT, uintptr(l.ep), uintptr(unsafe.Pointer(&l.events[0])), uintptr(len(l.events)), uintptr(ns/1e6)+1, 0, 0)
	}
	if errno != 0 {
		return 0
	}
	return n
}

// start sends a connection's first requests of a turn, or arranges for a new
// attempt where it is down.
func (l *loop) start(c *conn, now int64) {
	if c.state == closed && now < c.retry {
		l.retries = append(l.retries, c)
		return
	}
	l.send(c, now, c.t.pipeline)
}

// send sends n requests on a connection, opening it first where it is
// closed.
func (l *loop) send(c *conn, now int64, n int) {
	t := c.t
	var wire []byte
	if t.whole != nil {
		wire = t.whole[:len(t.whole)/t.pipeline*n]
		for range n {
			c.push(pending{at: now})
		}
	} else {
		l.scratch = l.scratch[:0]
		for range n {
			v := t.round[t.next]
			if t.next++; t.next == len(t.round) {
				t.next = 0
			}
			l.scratch = append(l.scratch, t.variants[v].wire...)
			c.push(pending{at: now, variant: v})
		}
		wire = l.scratch
	}
	t.count(now, int64(n))
	l.flight += int64(n)
	t.m.started += int64(n)
	t.m.bytesOut += int64(len(wire))
	if c.state == closed {
		err := l.socket(c)
		if err == nil && t.endpoint.upgrade != nil {
			err = c.upgrade(time.Now().Add(time.Duration(l.timeout)))
		}
		if err != nil {
			l.drop(c, classifyConnect(err), err)
			return
		}
	}
	l.emit(c, wire)
}

// emit sends bytes, behind those that wait to be sent.
func (l *loop) emit(c *conn, wire []byte) {
	if c.state == connecting || len(c.out) > 0 {
		c.out = append(c.out, wire...)
		return
	}
	if rest := l.write(c, wire); rest < len(wire) {
		c.out = append(c.out[:0], wire[rest:]...)
	}
}

// write writes what the socket takes. An error is not dealt with here: the
// event that comes with it tells more, and may come with a response. sendto
// is a few per cent cheaper than write, which takes the way of files.
func (l *loop) write(c *conn, b []byte) int {
	n, _, errno := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(c.fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_NOSIGNAL, 0, 0)
	if errno != 0 {
		return 0
	}
	return int(n)
}

// flush writes what the socket did not take before.
func (l *loop) flush(c *conn) {
	for len(c.out) > 0 {
		n := l.write(c, c.out)
		if n == 0 {
			return
		}
		c.out = c.out[n:]
	}
	c.out = nil
}

// due sends what waited for its time.
func (l *loop) due(now int64) {
	if now >= l.until {
		l.retries, l.thinking = l.retries[:0], l.thinking[:0]
		return
	}
	waiting := l.retries
	l.retries = l.retries[:0]
	for _, c := range waiting {
		if now < c.retry {
			l.retries = append(l.retries, c)
		} else if c.count == 0 {
			l.send(c, now, c.t.pipeline)
		}
	}
	n := 0
	for n < len(l.thinking) && l.thinking[n].due <= now {
		if c := l.thinking[n].c; c.count == 0 {
			l.send(c, now, c.t.pipeline)
		}
		n++
	}
	if n > 0 {
		l.thinking = l.thinking[:copy(l.thinking, l.thinking[n:])]
	}
}

// expire gives up requests that took too long.
func (l *loop) expire(now int64) {
	l.scanned = now
	for _, c := range l.conns {
		if c.count == 0 || now-c.oldest().at < l.timeout {
			continue
		}
		if c.state == connecting {
			l.drop(c, ConnectTimeout, errors.New("the connection was not accepted in time"))
		} else {
			l.drop(c, Timeout, fmt.Errorf("no response within %v", time.Duration(l.timeout)))
		}
	}
}
