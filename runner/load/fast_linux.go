package load

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Open connects to the targets: over the fast loop, or over the net package
// where TLS is spoken.
func (d *httpDriver) Open(ctx context.Context, targets []Target) (Load, error) {
	dests := make([]*destination, len(targets))
	plain := !d.options.Portable
	for i, t := range targets {
		dest, err := d.prepare(t)
		if err != nil {
			return nil, err
		}
		dests[i] = dest
		plain = plain && dest.endpoint.tls == nil
	}
	if !plain {
		return openNet(ctx, d, dests)
	}
	l := &fastLoad{driver: d, loop: d.newLoop()}
	if err := l.open(ctx, dests); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// fastLoad is a Load on the fast loop.
type fastLoad struct {
	driver *httpDriver
	loop   *loop
}

// newLoop returns a loop without connections.
func (d *httpDriver) newLoop() *loop {
	return &loop{
		ep:      -1,
		spin:    d.options.polls(),
		timeout: int64(d.http.Timeout),
		think:   int64(d.http.Think),
		batch:   d.http.PipelineMode == "batch",
		events:  make([]unix.EpollEvent, 256),
		buf:     make([]byte, 64<<10),
		epoch:   time.Now(),
	}
}

// open opens every connection of every target.
func (f *fastLoad) open(ctx context.Context, dests []*destination) error {
	l, h := f.loop, &f.driver.http
	if err := raiseFiles(len(dests)*h.Connections + 64); err != nil {
		return err
	}
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("epoll_create1", err)
	}
	l.ep = ep
	for _, dest := range dests {
		addr, family, err := sockaddr(ctx, &dest.endpoint)
		if err != nil {
			return fmt.Errorf("%s: %w", dest.name, err)
		}
		t := &loopTarget{destination: dest, addr: addr, family: family, pipeline: h.Pipeline}
		if len(dest.variants) == 1 {
			for range h.Pipeline {
				t.whole = append(t.whole, dest.variants[0].wire...)
			}
		}
		conns := make([]conn, h.Connections)
		ring := make([]pending, h.Connections*h.Pipeline)
		for i := range conns {
			c := &conns[i]
			c.t, c.fd, c.index = t, -1, int32(len(l.conns))
			c.ring, ring = ring[:h.Pipeline:h.Pipeline], ring[h.Pipeline:]
			l.conns = append(l.conns, c)
			t.conns = append(t.conns, c)
		}
		l.targets = append(l.targets, t)
		if h.KeepAlive {
			if err := l.connect(ctx, t, h.Timeout); err != nil {
				return err
			}
		}
	}
	return nil
}

// connect opens the connections of a target. It pauses now and then, so that
// the server's queue of connections to accept does not overflow.
func (l *loop) connect(ctx context.Context, t *loopTarget, timeout time.Duration) error {
	const queue = 128
	for i, c := range t.conns {
		err := l.socket(c)
		for tries := 0; err != nil && isFull(err) && tries < 1000; tries++ {
			time.Sleep(time.Millisecond) // a unix socket's queue is full
			err = l.socket(c)
		}
		if err == nil {
			err = c.await(time.Now().Add(timeout))
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return &failure{classifyConnect(err), fmt.Errorf("%s: connection %d of %d to %s: %w", t.name, i+1, len(t.conns), t.endpoint.addr, err)}
		}
		if i%queue == queue-1 {
			time.Sleep(time.Millisecond)
		}
	}
	return nil
}

// Run implements Load. The loop runs on a thread of its own, which ends with
// the run.
func (f *fastLoad) Run(ctx context.Context, s Schedule) ([]Sample, error) {
	type outcome struct {
		samples []Sample
		err     error
	}
	ended := make(chan outcome)
	go func() {
		runtime.LockOSThread() // never unlocked: its affinity must not outlive it
		samples, err := f.run(ctx, s)
		ended <- outcome{samples, err}
	}()
	o := <-ended
	return o.samples, o.err
}

// run plays the schedule on this thread.
func (f *fastLoad) run(ctx context.Context, s Schedule) ([]Sample, error) {
	l := f.loop
	if len(l.targets) == 0 {
		return nil, ctx.Err()
	}
	if err := pinThread(f.driver.options.CPUs); err != nil {
		return nil, err
	}
	l.stopped.Store(false)
	defer context.AfterFunc(ctx, func() { l.stopped.Store(true) })()
	for _, t := range l.targets {
		t.m.reset()
	}
	found, close := newEvidence(s.Guard.CPUs)
	defer close()
	r := rotation{Schedule: s, p: l, targets: len(l.targets), evidence: found}
	l.idle = 0
	before, started := threadUse(), time.Now()
	err := r.run(ctx)
	use := threadUse().since(before)
	use.Wall = time.Since(started)
	if l.spin {
		use.CPU = max(0, use.CPU-time.Duration(l.idle))
	}
	samples := make([]Sample, len(l.targets))
	for i, t := range l.targets {
		samples[i] = t.m.result()
		r.stamp(&samples[i], use)
	}
	return samples, err
}

// Close implements Load.
func (f *fastLoad) Close() error {
	l := f.loop
	for _, c := range l.conns {
		c.shut()
	}
	if l.ep < 0 {
		return nil
	}
	ep := l.ep
	l.ep = -1
	return os.NewSyscallError("close", unix.Close(ep))
}

// threadUse reads what this thread has used so far.
func threadUse() GeneratorUse {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &r); err != nil {
		return GeneratorUse{}
	}
	return GeneratorUse{
		CPU:         time.Duration(r.Utime.Nano() + r.Stime.Nano()),
		Involuntary: r.Nivcsw,
	}
}

// since is the use after before.
func (u GeneratorUse) since(before GeneratorUse) GeneratorUse {
	u.CPU -= before.CPU
	u.Involuntary -= before.Involuntary
	return u
}

// pinThread binds this thread to some CPUs.
func pinThread(cpus []int) error {
	if len(cpus) == 0 {
		return nil
	}
	var set unix.CPUSet
	for _, c := range cpus {
		set.Set(c)
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("bind the generator to CPUs %v: %w", cpus, err)
	}
	return nil
}

// raiseFiles raises the limit of open files to what is needed, if it must
// and may.
func raiseFiles(need int) error {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil {
		return nil // then opening will tell
	}
	used := uint64(need)
	if fds, err := os.ReadDir("/proc/self/fd"); err == nil {
		used += uint64(len(fds))
	}
	if r.Cur >= used {
		return nil
	}
	if r.Max >= used {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: r.Max, Max: r.Max}); err == nil {
			return nil
		}
	}
	return &failure{FDLimit, fmt.Errorf("%d open files are needed and at most %d are allowed: raise the limit (ulimit -n) or use fewer connections", used, r.Max)}
}

// isFull reports whether a unix socket's queue of connections is full.
func isFull(err error) bool { return errors.Is(err, unix.EAGAIN) }
