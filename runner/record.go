package runner

import (
	"errors"

	"github.com/tandem-bench/tandem/runner/journal"
)

// recorder writes the journal and keeps the same records in memory, for the
// stopping rule and for the report at the end.
type recorder struct {
	w   *journal.Writer
	run *journal.Run
}

func (r *recorder) trial(t journal.Trial) error {
	r.run.Trials = append(r.run.Trials, t)
	return r.w.Trial(t)
}

func (r *recorder) check(c journal.Check) error {
	r.run.Checks = append(r.run.Checks, c)
	return r.w.Check(c)
}

func (r *recorder) endBlock(b journal.BlockEnd) error {
	r.run.Ends = append(r.run.Ends, b)
	return r.w.EndBlock(b)
}

func (r *recorder) end(e journal.End) error {
	r.run.End = &e
	err := r.w.End(e)
	return errors.Join(err)
}
