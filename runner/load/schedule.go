package load

import (
	"context"
	"errors"
	"time"

	"github.com/tandem-bench/tandem/spec"
)

// player is what carries out a schedule: a set of connections to a set of
// targets. rotate calls it from one goroutine.
type player interface {
	// turn loads one target for at least d and at least one request on each
	// of its connections, drains it, and returns the time from the first
	// send to the last response. A target that cannot be reached idles for d.
	turn(target int, d time.Duration) time.Duration
	// slice loads all targets at once for d, leaves their requests in
	// flight, and returns its length.
	slice(d time.Duration) time.Duration
	// drain ends what slice left in flight, as neither success nor failure.
	// What is counted meanwhile belongs to no group and is lost.
	drain()
	// expect tells before a group of cycles whether it may be discarded.
	expect(guarded bool)
	// settle ends a group of cycles, counted or discarded.
	settle(keep bool)
	// late returns the longest time that the generator was off its CPU
	// since the last call.
	late() time.Duration
}

// Bounds of a run, fixed beforehand.
const (
	// groupLength is how much measuring time of all targets together is
	// judged by the guard at once: about the resolution of steal time.
	groupLength = 15 * time.Millisecond
	// guardLimit is the longest turn that the guard applies to. A cycle of
	// longer ones takes so long that something happens in each.
	guardLimit = 50 * time.Millisecond
	// rest is how long all is quiet before each turn. What a server puts off
	// until it has answered (garbage, timers, threads that look for work
	// before they sleep) would otherwise be paid for by the target whose turn
	// is next. It belongs to no turn.
	rest = 100 * time.Microsecond
	// maxDiscard is how much measuring time, in windows, may be discarded.
	// What is measured after that counts, whatever happens.
	maxDiscard = 1.0
	// maxStretch is how much longer than planned a run may take, discarded
	// cycles included: where targets differ so much in their turns that the
	// quickest would need more to fill its window, it gets less.
	maxStretch = 3.0
)

// rotation carries out one Schedule.
type rotation struct {
	Schedule
	p        player
	targets  int
	evidence evidence

	order   []int
	counted []time.Duration // measuring time of each target that counts
	pending []time.Duration // the same, of the current group
	total   time.Duration   // measuring time of all targets, discarded or not
	wasted  time.Duration   // measuring time of all targets that was discarded
	cycles  int
	dropped int
	late    time.Duration // the longest of the run
}

// run plays the schedule to its end. It returns the context's error where
// that ended first; what was measured until then has been settled.
func (r *rotation) run(ctx context.Context) error {
	if r.Window <= 0 {
		return errors.New("the window of a schedule is empty: expected a measuring time above zero")
	}
	r.order = make([]int, r.targets)
	r.counted = make([]time.Duration, r.targets)
	r.pending = make([]time.Duration, r.targets)
	r.p.late()
	for ctx.Err() == nil && !r.over() {
		r.group(ctx)
	}
	r.p.drain()
	return ctx.Err()
}

// over reports whether every target has had its window, or the run has used
// up its bound.
func (r *rotation) over() bool {
	if r.total >= time.Duration(maxStretch*float64(r.targets)*float64(r.Window)) {
		return true
	}
	for _, d := range r.counted {
		if d < r.Window {
			return false
		}
	}
	return true
}

// group runs cycles until there is enough to judge by the guard, and keeps
// or discards them for all targets alike.
func (r *rotation) group(ctx context.Context) {
	guarded := r.guarded()
	r.p.expect(guarded)
	if guarded {
		r.evidence.begin()
	}
	clear(r.pending)
	cycles := 0
	var length time.Duration
	for length < groupLength && ctx.Err() == nil {
		length += r.cycle(r.cycles + cycles)
		cycles++
	}
	late := r.p.late()
	r.late = max(r.late, late)
	keep := true
	if guarded {
		stolen := r.evidence.stolen()
		disturbed := r.Guard.Steal && stolen || r.Guard.Lateness > 0 && late >= r.Guard.Lateness
		// A slow server makes turns longer than they were set; in so long a
		// cycle something always happens.
		keep = !disturbed || length > guardLimit*time.Duration(r.targets)
	}
	r.p.settle(keep)
	r.cycles += cycles
	for i, d := range r.pending {
		r.total += d
		if keep {
			r.counted[i] += d
		} else {
			r.wasted += d
		}
	}
	if !keep {
		r.dropped += cycles
	}
}

// guarded reports whether the guard may discard the next group.
func (r *rotation) guarded() bool {
	budget := time.Duration(maxDiscard * float64(r.targets) * float64(r.Window))
	return (r.Guard.Steal || r.Guard.Lateness > 0) && r.wasted < budget &&
		(r.Mode == spec.Together || r.length() <= guardLimit)
}

// length is the length of one turn.
func (r *rotation) length() time.Duration {
	if r.Mode == spec.Windows && (r.Turn <= 0 || r.Turn > r.Window) {
		return r.Window
	}
	return r.Turn
}

// cycle runs each target's turn of cycle n, or a slice of all, and returns
// how long that took.
func (r *rotation) cycle(n int) time.Duration {
	if r.Mode == spec.Together {
		d := r.p.slice(min(groupLength, r.left()))
		for i := range r.pending {
			r.pending[i] += d
		}
		return d
	}
	r.Order(n, r.order)
	var sum time.Duration
	for _, t := range r.order {
		d := r.p.turn(t, r.length())
		r.pending[t] += d
		sum += d
	}
	return sum
}

// left is the measuring time that the window still needs.
func (r *rotation) left() time.Duration {
	return max(time.Millisecond, r.Window-r.counted[0])
}

// stamp enters into a sample what all targets have in common.
func (r *rotation) stamp(s *Sample, use GeneratorUse) {
	s.Cycles, s.Dropped = r.cycles, r.dropped
	use.Late = r.late
	s.Generator = use
}
