package proc

import (
	"errors"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// usageTries bounds the readings of one account. A tree that starts and ends
// processes all the time, on a busy machine, needs a few dozen.
const usageTries = 100

// usage reads what the tree has cost.
func (t *tree) usage() (Usage, error) {
	if u, finished := t.final(); finished {
		return u, nil
	}
	if t.cg != nil {
		return t.groupUsage()
	}
	// A child that ends while the readings are made would be counted twice,
	// by its own clock and by its parent's, or not at all: read again until
	// nothing has changed meanwhile.
	before, err := t.scan()
	for range usageTries {
		if err != nil {
			return Usage{}, err
		}
		u, err := t.sum(before)
		after, err2 := t.scan()
		if err == nil && err2 == nil && sameTree(before, after) {
			return u, nil
		}
		before, err = after, err2
	}
	return Usage{}, errors.New("processes start and end faster than they can be read")
}

// final is the usage of a tree of which nothing is left.
func (t *tree) final() (u Usage, finished bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	u = Usage{CPU: t.ended, Resolution: time.Microsecond, MaxRSS: t.maxRSS(), MaxRSSFloor: t.floor}
	if t.cg != nil {
		u.CPU = t.cpu
	}
	return u, t.finished
}

// sameTree reports whether two scans saw the same processes with the same ended children.
func sameTree(a, b []stat) bool {
	return slices.EqualFunc(a, b, func(x, y stat) bool {
		return x.pid == y.pid && x.start == y.start && x.childTime == y.childTime && x.cminflt == y.cminflt
	})
}

// sum adds up the clocks of the processes of a scan and of those that ended.
func (t *tree) sum(all []stat) (Usage, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	u := Usage{CPU: t.ended, Resolution: time.Nanosecond, MaxRSSFloor: t.floor}
	if t.reaped || t.ended > 0 {
		u.Resolution = time.Microsecond
	}
	var peaks int64
	for _, s := range all {
		cpu, err := processClock(s.pid)
		if err != nil {
			return u, err
		}
		u.CPU += cpu + s.childTime
		if s.cminflt > 0 {
			u.Resolution = max(u.Resolution, 2*tick) // user and system time are each cut to a tick
		}
		if s.ended() {
			continue
		}
		peak, err := peakRSS(s.pid)
		if err != nil {
			return u, err
		}
		peaks += peak
		u.Processes++
	}
	t.peak = max(t.peak, peaks)
	u.MaxRSS = t.maxRSS()
	return u, nil
}

// maxRSS is the peak of memory as far as it is known. What the kernel tells
// of an ended process is our own peak where that was higher, so up to there
// the readings made while it lived are the better source.
func (t *tree) maxRSS() int64 {
	if t.peak > 0 && t.largest <= t.floor {
		return t.peak
	}
	return max(t.peak, t.largest)
}

// groupUsage reads the control group's CPU time, and the memory of its members.
func (t *tree) groupUsage() (Usage, error) {
	pids, err := t.cg.pids()
	if err != nil {
		return Usage{}, err
	}
	var peaks int64
	alive := 0
	for _, pid := range pids {
		peak, err := peakRSS(pid)
		if gone(err) {
			continue
		}
		if err != nil {
			return Usage{}, err
		}
		peaks += peak
		alive++
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	cpu, err := t.cg.cpu()
	switch {
	case err == nil:
		t.cpu = cpu
	case !gone(err) && !errors.Is(err, unix.ENODEV):
		return Usage{}, err
	}
	t.peak = max(t.peak, peaks)
	return Usage{CPU: t.cpu, Resolution: time.Microsecond, MaxRSS: t.maxRSS(),
		MaxRSSFloor: t.floor, Processes: alive}, nil
}
