package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tandem-bench/tandem/runner/journal"
	"github.com/tandem-bench/tandem/spec"
)

// ResumeError says why a run cannot be gone on with.
type ResumeError struct{ Err error }

func (e *ResumeError) Error() string { return e.Err.Error() }
func (e *ResumeError) Unwrap() error { return e.Err }

// openJournal starts the journal, or goes on with that of a run that was cut
// off.
func (e *execution) openJournal() error {
	if err := e.pinSelf(); err != nil {
		return err
	}
	path := filepath.Join(e.Out, "journal.jsonl")
	if e.Resume != nil {
		return e.continueJournal(path)
	}
	e.header.Warnings = slices.Clone(e.warnings)
	w, err := journal.Create(path, e.header)
	if err != nil {
		return fmt.Errorf("starting the journal: %w", err)
	}
	e.rec = &recorder{w: w, run: &journal.Run{Header: &e.header}}
	return nil
}

// checkResume finds the block to go on with, and refuses where the run would
// no longer be the same one.
func (e *execution) checkResume() error {
	if e.Resume == nil {
		return nil
	}
	changed, err := differences(e.Resume.Header, &e.header)
	switch {
	case err != nil:
		return &ResumeError{err}
	case len(changed) > 0:
		return &ResumeError{fmt.Errorf("this run cannot be resumed, since it would no longer be the same one: %s; start a new run", strings.Join(changed, "; "))}
	}
	for _, end := range e.Resume.Ends {
		e.first = max(e.first, end.Block+1)
	}
	if e.first >= e.Plan.Blocks.Max {
		return &ResumeError{errors.New("this run is complete: all its blocks were measured")}
	}
	if e.Resume.Torn {
		e.warnOnce("the last line of the journal was cut off when the run was, and was dropped before it went on")
	}
	return nil
}

// continueJournal goes on with the journal of the run that is resumed.
func (e *execution) continueJournal(path string) error {
	w, err := journal.Continue(path, e.first)
	if err != nil {
		return fmt.Errorf("continuing the journal: %w", err)
	}
	run, err := journal.Open(path)
	if err != nil {
		return err
	}
	e.rec = &recorder{w: w, run: run}
	return nil
}

// differences says in words what differs between a run and its continuation.
func differences(then, now *journal.Header) ([]string, error) {
	var old, new spec.Spec
	if err := json.Unmarshal(then.Spec, &old); err != nil {
		return nil, fmt.Errorf("the spec kept in the journal cannot be read: %w", err)
	}
	if err := json.Unmarshal(now.Spec, &new); err != nil {
		return nil, err
	}
	var changed []string
	differ := func(what, before, after string) {
		if before != after {
			changed = append(changed, fmt.Sprintf("%s was %s and is %s", what, orNone(before), orNone(after)))
		}
	}
	differ("the profile", old.Profile, new.Profile)
	if old.Profile == new.Profile {
		differ("the digest of the spec", short(old.Digest), short(new.Digest))
	}
	differ("the CPU", then.Host.CPU, now.Host.CPU)
	differ("the kernel", then.Host.Kernel, now.Host.Kernel)
	differ("the number of CPUs", fmt.Sprint(then.Host.Cores), fmt.Sprint(now.Host.Cores))
	differ("the server's CPUs", then.Pins.Server, now.Pins.Server)
	differ("the generator's CPUs", then.Pins.Load, now.Pins.Load)
	differ("the list of scenarios", strings.Join(then.Rows, " "), strings.Join(now.Rows, " "))
	for i := range min(len(then.Hosts), len(now.Hosts)) {
		was, is := then.Hosts[i], now.Hosts[i]
		differ("the CPU of host "+was.Name, was.Host.CPU, is.Host.CPU)
		differ("the kernel of host "+was.Name, was.Host.Kernel, is.Host.Kernel)
		differ("the number of CPUs of host "+was.Name, fmt.Sprint(was.Host.Cores), fmt.Sprint(is.Host.Cores))
	}
	for i := range min(len(then.Arms), len(now.Arms)) {
		was, is := then.Arms[i], now.Arms[i]
		differ("the revision of "+was.Name, short(was.Revision), short(is.Revision))
		differ("the digest of the built tree of "+was.Name, short(was.Digest), short(is.Digest))
	}
	return changed, nil
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// short is as much of a digest as tells it from others.
func short(digest string) string { return digest[:min(len(digest), 12)] }
