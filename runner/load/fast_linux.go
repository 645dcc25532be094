package load

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/tandem-bench/tandem/spec"
	"golang.org/x/sys/unix"
)

// Open connects to the targets: over the fast loop, or over the net package
// where TLS is spoken.
func (d *httpDriver) Open(ctx context.Context, targets []Target) (Load, error) {
	f := &fastLoad{driver: d, epoch: time.Now()}
	loops := min(max(1, d.options.Loops), d.http.Connections)
	for i := range loops {
		dests, plain, err := d.prepareAll(targets)
		if err != nil {
			return nil, err
		}
		if !plain || d.options.Portable {
			return openNet(ctx, d, dests)
		}
		if i == 0 {
			if err := raiseFiles(len(targets)*d.http.Connections + loops); err != nil {
				return nil, err
			}
		}
		l := f.newLoop()
		f.crew.loops = append(f.crew.loops, l)
		share := (d.http.Connections*(i+1))/loops - d.http.Connections*i/loops
		if err := l.open(ctx, dests, &d.http, share); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return f, nil
}

// fastLoad is a Load on fast loops.
type fastLoad struct {
	driver  *httpDriver
	crew    crew
	epoch   time.Time
	stopped atomic.Bool
}

// newLoop returns a loop without connections.
func (f *fastLoad) newLoop() *loop {
	h := &f.driver.http
	return &loop{
		ep:      -1,
		spin:    f.driver.options.polls(),
		timeout: int64(h.Timeout),
		think:   int64(h.Think),
		batch:   h.PipelineMode == "batch",
		events:  make([]unix.EpollEvent, 256),
		buf:     make([]byte, 64<<10),
		epoch:   f.epoch,
		stopped: &f.stopped,
	}
}

// open opens a loop's share of the connections to every target.
func (l *loop) open(ctx context.Context, dests []*destination, h *spec.HTTP, share int) error {
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
		l.add(t, share)
		if h.KeepAlive {
			if err := l.connect(ctx, t, h.Timeout); err != nil {
				return err
			}
		}
	}
	return nil
}

// add adds a target with its connections, not opened yet.
func (l *loop) add(t *loopTarget, connections int) {
	conns := make([]conn, connections)
	ring := make([]pending, connections*t.pipeline)
	for i := range conns {
		c := &conns[i]
		c.t, c.fd, c.index = t, -1, int32(len(l.conns))
		c.ring, ring = ring[:t.pipeline:t.pipeline], ring[t.pipeline:]
		if t.reply != nil {
			c.parser.frames = &frames{reply: t.reply, write: func(b []byte) { l.emit(c, b) }}
		}
		l.conns = append(l.conns, c)
		t.conns = append(t.conns, c)
	}
	l.targets = append(l.targets, t)
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
		if err == nil && t.endpoint.upgrade != nil {
			err = c.upgrade(time.Now().Add(timeout))
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

// run plays the schedule, with the first loop on this thread.
func (f *fastLoad) run(ctx context.Context, s Schedule) ([]Sample, error) {
	o := &f.driver.options
	first := f.crew.loops[0]
	if len(first.targets) == 0 {
		return nil, ctx.Err()
	}
	pin := func(i int) error { return pinThread(o.CPUs, i, len(f.crew.loops)) }
	if err := pin(0); err != nil {
		return nil, err
	}
	defer f.crew.dismiss()
	if err := f.crew.hire(o.polls(), pin); err != nil {
		return nil, err
	}
	f.stopped.Store(false)
	defer context.AfterFunc(ctx, func() { f.stopped.Store(true) })()
	for i, l := range f.crew.loops {
		for _, t := range l.targets {
			t.m.reset(i == 0)
		}
	}
	found, close := newEvidence(s.Guard.CPUs)
	defer close()
	r := rotation{Schedule: s, p: &f.crew, targets: len(first.targets), evidence: found}
	f.crew.all((*loop).clockIn)
	started := time.Now()
	err := r.run(ctx)
	wall := time.Since(started)
	f.crew.all((*loop).clockOut)
	use := GeneratorUse{Wall: wall, Threads: len(f.crew.loops)}
	for _, l := range f.crew.loops {
		use.CPU += l.used.CPU
		use.Involuntary += l.used.Involuntary
	}
	samples := make([]Sample, len(first.targets))
	for i, t := range first.targets {
		samples[i] = t.m.result()
		r.stamp(&samples[i], use)
	}
	return samples, err
}

// clockIn notes what the loop's thread has used before a run.
func (l *loop) clockIn() {
	l.busy = 0
	l.used = threadUse()
}

// clockOut notes what the loop's thread used in a run. Where it never sleeps,
// its CPU time says nothing; what counts then is the time in which a look at
// the sockets found something to do.
func (l *loop) clockOut() {
	now := threadUse()
	l.used = GeneratorUse{CPU: now.CPU - l.used.CPU, Involuntary: now.Involuntary - l.used.Involuntary}
	if l.spin {
		l.used.CPU = time.Duration(l.busy)
	}
}

// Close implements Load.
func (f *fastLoad) Close() error {
	var errs []error
	for _, l := range f.crew.loops {
		for _, c := range l.conns {
			c.shut()
		}
		if l.ep >= 0 {
			errs = append(errs, os.NewSyscallError("close", unix.Close(l.ep)))
			l.ep = -1
		}
	}
	return errors.Join(errs...)
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

// pinThread binds this thread, that of the i-th of some loops, to one of
// the CPUs, or to all of them where there are fewer CPUs than loops.
func pinThread(cpus []int, i, loops int) error {
	if len(cpus) == 0 {
		return nil
	}
	var set unix.CPUSet
	for j, c := range cpus {
		if len(cpus) < loops || i == j {
			set.Set(c)
		}
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("bind the generator to CPUs %v: %w", cpus, err)
	}
	return nil
}

// CanOpen says why that many connections cannot be open at a time, or nil. It
// raises the limit of open files where it must and may.
func CanOpen(connections int) error { return raiseFiles(connections) }

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
