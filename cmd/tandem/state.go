package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/gofrs/flock"

	"github.com/tandem-bench/tandem/runner/journal"
)

// stateName is the folder that holds runs and the build cache.
const stateName = ".tandem"

// stateDir is .tandem in the repository that holds dir, or in dir itself
// where that is in none.
func stateDir(dir string) string {
	for d := dir; ; d = filepath.Dir(d) {
		if exists(filepath.Join(d, ".git")) {
			return filepath.Join(d, stateName)
		}
		if d == filepath.Dir(d) {
			return filepath.Join(dir, stateName)
		}
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// lockState makes sure that only one run measures in a repository at a time:
// two would take each other's CPUs and be right about neither.
func lockState(state string) (unlock func(), err error) {
	if err := os.MkdirAll(state, 0o755); err != nil {
		return nil, notMeasured(fmt.Errorf("making %s for the run's files: %w (use a folder that can be written: copy the repository, or put bench.yaml elsewhere)", state, err))
	}
	// Everything in here is derived, so none of it belongs in a commit.
	ignore := filepath.Join(state, ".gitignore")
	if !exists(ignore) {
		if err := os.WriteFile(ignore, []byte("*\n"), 0o644); err != nil {
			return nil, notMeasured(err)
		}
	}
	lock := flock.New(filepath.Join(state, "lock"))
	ok, err := lock.TryLock()
	if err != nil {
		return nil, notMeasured(fmt.Errorf("locking %s: %w", state, err))
	}
	if !ok {
		return nil, notMeasured(fmt.Errorf("another run is measuring in this repository (%s is locked): two at once would disturb each other; wait for it to end", lock.Path()))
	}
	return func() { lock.Unlock() }, nil
}

// openResumed finds the run to go on with and its folder.
func openResumed(state, id string) (*journal.Run, string, error) {
	dir := id
	if !exists(filepath.Join(dir, "journal.jsonl")) {
		dir = filepath.Join(state, "runs", id)
	}
	run, err := journal.Open(filepath.Join(dir, "journal.jsonl"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, "", usageErrorf("--resume: no run %q in %s", id, filepath.Join(state, "runs"))
	}
	if err != nil {
		return nil, "", &exitError{exitUsage, fmt.Errorf("--resume: %w", err)}
	}
	if len(run.Header.Parts) > 0 {
		return nil, "", usageErrorf("--resume: run %s was merged from %d shards: resume the shard that was cut off, and merge again", id, len(run.Header.Parts))
	}
	return run, dir, nil
}

// findRun returns the journal that a RUN argument names: an ID, a folder, a
// journal file, or, where it is empty, the latest run of the repository that
// holds dir.
func findRun(dir, arg string) (string, error) {
	runs := filepath.Join(nearestState(dir), "runs")
	if arg == "" {
		return latestRun(runs)
	}
	for _, path := range []string{arg, filepath.Join(runs, arg)} {
		info, err := os.Stat(path)
		switch {
		case err != nil:
			continue
		case !info.IsDir():
			return path, nil
		case exists(filepath.Join(path, "journal.jsonl")):
			return filepath.Join(path, "journal.jsonl"), nil
		}
	}
	return "", usageErrorf("no run %q: expected an ID in %s, a run's folder, or a journal file", arg, runs)
}

// nearestState is the first .tandem at or above dir, or where it would be.
func nearestState(dir string) string {
	for d := dir; ; d = filepath.Dir(d) {
		if exists(filepath.Join(d, stateName, "runs")) {
			return filepath.Join(d, stateName)
		}
		if d == filepath.Dir(d) {
			return stateDir(dir)
		}
	}
}

func latestRun(runs string) (string, error) {
	entries, err := os.ReadDir(runs)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", &exitError{exitUsage, err}
	}
	for _, e := range slices.Backward(entries) {
		if path := filepath.Join(runs, e.Name(), "journal.jsonl"); exists(path) {
			return path, nil
		}
	}
	return "", usageErrorf("no run in %s yet: make one with 'tandem run', or name a run's folder or journal", runs)
}

// shortPath is path relative to the current folder, where that is shorter.
func shortPath(path string) string {
	wd, err := os.Getwd()
	if err != nil {
		return path
	}
	if rel, err := filepath.Rel(wd, path); err == nil && len(rel) < len(path) {
		return rel
	}
	return path
}
