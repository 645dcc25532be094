package load

import (
	"runtime"
	"sync/atomic"
	"time"
)

// crew is several loops that load the same targets together, each with its
// share of the connections and a thread of its own. It is the player of the
// fast driver; the first loop works on the caller's thread.
type crew struct {
	loops []*loop
	hands []*hand // of the other loops
}

// hand is the thread of a further loop. It does one job at a time.
type hand struct {
	loop  *loop
	spin  bool
	job   atomic.Pointer[job] // nil once it is done
	wake  chan struct{}
	done  chan struct{}
	ended chan struct{}
}

// job is what all loops do at the same time.
type job struct {
	do  func(l *loop)
	end bool
}

// hire starts the threads of the further loops.
func (c *crew) hire(spin bool, pin func(i int) error) error {
	failed := make(chan error)
	for i, l := range c.loops[1:] {
		h := &hand{loop: l, spin: spin, wake: make(chan struct{}, 1), done: make(chan struct{}, 1), ended: make(chan struct{})}
		go func() {
			defer close(h.ended)
			runtime.LockOSThread() // never unlocked: its affinity must not outlive it
			err := pin(i + 1)
			failed <- err
			if err == nil {
				h.work()
			}
		}()
		if err := <-failed; err != nil {
			return err
		}
		c.hands = append(c.hands, h)
	}
	return nil
}

// dismiss ends the threads.
func (c *crew) dismiss() {
	for _, h := range c.hands {
		h.give(&job{end: true})
		<-h.ended
	}
	c.hands = nil
}

// give hands over the next job.
func (h *hand) give(j *job) {
	h.job.Store(j)
	if !h.spin {
		h.wake <- struct{}{}
	}
}

// work does jobs until it is told to end. Where the generator has CPUs of
// its own it waits for them without sleeping, so that all loops start within
// a microsecond.
func (h *hand) work() {
	for {
		if !h.spin {
			<-h.wake
		}
		for h.job.Load() == nil {
			runtime.Gosched()
		}
		j := h.job.Load()
		if j.end {
			return
		}
		j.do(h.loop)
		h.job.Store(nil)
		if !h.spin {
			h.done <- struct{}{}
		}
	}
}

// all lets every loop do the same and waits until all have done it.
func (c *crew) all(do func(l *loop)) {
	if len(c.hands) == 0 {
		do(c.loops[0])
		return
	}
	j := &job{do: do}
	for _, h := range c.hands {
		h.give(j)
	}
	do(c.loops[0])
	for _, h := range c.hands {
		h.await()
	}
}

// await waits until the job is done.
func (h *hand) await() {
	if !h.spin {
		<-h.done
		return
	}
	for h.job.Load() != nil {
		runtime.Gosched()
	}
}

// span is the time that the last job took, from the first loop's start to
// the last one's end.
func (c *crew) span() int64 {
	start, end := c.loops[0].began, c.loops[0].ended
	for _, l := range c.loops[1:] {
		start, end = min(start, l.began), max(end, l.ended)
	}
	return end - start
}

// turn implements player.
func (c *crew) turn(target int, d time.Duration) time.Duration {
	c.all(func(l *loop) { l.turn(target, d) })
	span := c.span()
	m := &c.loops[0].targets[target].m
	m.elapsed += span
	m.turns++
	return time.Duration(span)
}

// slice implements player.
func (c *crew) slice(d time.Duration) time.Duration {
	c.all(func(l *loop) { l.slice(d) })
	span := c.span()
	for _, t := range c.loops[0].targets {
		t.m.elapsed += span
		t.m.turns++
	}
	return time.Duration(span)
}

// drain implements player.
func (c *crew) drain() {
	c.all((*loop).drain)
	c.gather()
}

// expect implements player.
func (c *crew) expect(guarded bool) {
	for _, t := range c.loops[0].targets {
		t.m.sure = !guarded
	}
}

// settle implements player.
func (c *crew) settle(keep bool) {
	c.gather()
	for _, t := range c.loops[0].targets {
		t.m.settle(keep)
	}
}

// gather brings together at the first loop what the others have counted.
func (c *crew) gather() {
	for _, l := range c.loops[1:] {
		for i, t := range l.targets {
			c.loops[0].targets[i].m.absorb(&t.m)
		}
	}
}

// late implements player.
func (c *crew) late() time.Duration {
	var late time.Duration
	for _, l := range c.loops {
		late = max(late, l.late())
	}
	return late
}
