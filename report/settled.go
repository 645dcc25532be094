package report

import (
	"fmt"
	"slices"

	"github.com/tandem-bench/tandem/runner/journal"
	"github.com/tandem-bench/tandem/spec"
)

// Settled is the stopping rule: it reports whether a run may end after the
// blocks that it has finished, and why. It answers yes only at the looks that
// the header fixed before the run, since a table that is looked at more often
// than its error rate was divided for is marked too often; and only when every
// judged row is marked, the same, or can have no verdict any more.
//
// cmd hands it to the runner, which calls it between blocks.
func Settled(j *journal.Run, s *spec.Spec) (bool, string) {
	if j == nil || j.Header == nil || !slices.Contains(j.Header.Looks, len(j.Ends)) {
		return false, ""
	}
	a, err := Analyze(j, s)
	if err != nil {
		return false, ""
	}
	settled := 0
	for _, r := range a.Rows {
		if !r.Judged {
			continue
		}
		if r.Verdict == Unsure {
			return false, ""
		}
		settled++
	}
	if settled == 0 {
		return false, ""
	}
	return true, fmt.Sprintf("all %d judged rows are settled after %d blocks", settled, len(j.Ends))
}
