package runner

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/tandem-bench/tandem/runner/journal"
	"github.com/tandem-bench/tandem/runner/source"
)

// unbuilt keeps a run of which an arm does not build as a journal without
// trials: its report then says of each row that it failed, and why, where no
// report at all would leave a reader of the pull request to guess.
func (e *execution) unbuilt(broken *source.BuildError) (*journal.Run, error) {
	failure := &SetupError{broken}
	h, err := e.plainHeader()
	if err != nil {
		return nil, errors.Join(failure, err)
	}
	for _, name := range e.Plan.Arms {
		arm := journal.Arm{Name: name}
		for _, a := range e.Spec.Arms {
			switch {
			case a.Name != name:
			case a.Git != nil:
				arm.Label, arm.Source = a.Label, "git "+a.Git.Ref
			default:
				arm.Label, arm.Source = a.Label, "dir "+a.Path
			}
		}
		if name == broken.Arm {
			arm.Revision = broken.Revision
		}
		h.Arms = append(h.Arms, arm)
	}
	path := filepath.Join(e.Out, "journal.jsonl")
	w, err := journal.Create(path, h)
	if err != nil {
		return nil, errors.Join(failure, fmt.Errorf("starting the journal: %w", err))
	}
	e.rec = &recorder{w: w, run: &journal.Run{Header: &h}}
	why := fmt.Sprintf("arm %s does not build: step %q: %v", broken.Arm, broken.Step, firstLine(broken.Err))
	for _, id := range h.Rows {
		if err := e.rec.check(journal.Check{Scenario: id, Outcome: journal.CheckFailed, Arm: broken.Arm, Reason: why}); err != nil {
			return nil, errors.Join(failure, err)
		}
	}
	err = e.rec.end(journal.End{Ended: e.Now(), Reason: journal.EndFailed, Detail: why})
	return e.rec.run, errors.Join(failure, err)
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
