package runner

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// limit ends the run some time before the deadline, wherever it is by then:
// whoever set it will kill this process, and a report is worth more than the
// rest of a block.
func (e *execution) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if e.Deadline.IsZero() {
		return context.WithCancel(ctx)
	}
	e.cut = e.Deadline.Add(-min(reportTime, e.Deadline.Sub(e.started)/10))
	return context.WithDeadlineCause(ctx, e.cut, errDeadline)
}

// errDeadline is the cause of the end of a run's time.
var errDeadline = errors.New("the deadline came before anything was measured: give it more time, or measure less")

// limitWindow bounds the time of a window, so that a generator that hangs
// ends the run and not the job. Other programs have timeouts of their own.
func (w *window) limitWindow(ctx context.Context, copies int) (context.Context, context.CancelFunc) {
	if w.sc.Exec != nil || w.sc.Command != nil {
		return context.WithCancel(ctx)
	}
	expected := time.Duration(copies) * (w.sc.Window + w.sc.Warmup)
	if w.sc.Prime != nil {
		expected += time.Duration(copies) * w.sc.Prime.Time
	}
	limit := windowPatience*expected + windowGrace
	return context.WithTimeoutCause(ctx, limit, &stuckError{limit})
}

// stuckError is the cause of the end of a window that did not end by itself.
type stuckError struct{ limit time.Duration }

func (e *stuckError) Error() string { return fmt.Sprintf("its window was not over after %v", e.limit) }

func (w *window) generatorFailure(ctx context.Context, err error) error {
	if stuck := new(stuckError); errors.As(context.Cause(ctx), &stuck) {
		err = stuck
	} else if ctx.Err() != nil || err == nil {
		return nil
	}
	return fmt.Errorf("scenario %s: the load generator failed: %w", w.sc.ID(), err)
}
