package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/tandem-bench/tandem/runner/journal"
	"github.com/tandem-bench/tandem/runner/source"
	"github.com/tandem-bench/tandem/spec"
)

// The values of --spec-side.
const (
	sideAuto = "auto"
	sideBase = "base"
	sideHead = "head"
)

// loadSide reads the spec of the side that counts, and says whose it is and
// what the change under test changes of the benchmark.
func (a *app) loadSide(ctx context.Context, side string, c *change) (*spec.Spec, *journal.Origin, error) {
	if !slices.Contains([]string{sideAuto, sideBase, sideHead}, side) {
		return nil, nil, usageErrorf("--spec-side: found %q, expected auto, base or head", side)
	}
	path, err := a.specPath()
	if err != nil {
		return nil, nil, err
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, nil, &exitError{exitUsage, err}
	}
	repo := source.OpenRepo(dir, a.env)
	if c == nil {
		return a.loadLocal(ctx, repo, path, side)
	}
	o, err := originOf(ctx, repo, c)
	if err != nil {
		return nil, nil, notMeasured(fmt.Errorf("the spec of the base: %w", err))
	}
	s, err := a.loadFrom(ctx, repo, path, side, o)
	if err != nil {
		return nil, nil, err
	}
	if label := s.Policy.SpecChangedLabel; slices.Contains(c.labels, label) {
		o.Approved = label
	}
	return s, o, a.findChanged(ctx, repo, s, o)
}

// loadLocal is the choice outside of CI: the file as it is here, unless the
// base's is asked for, which is then that of the baseline's revision.
func (a *app) loadLocal(ctx context.Context, repo source.Repo, path, side string) (*spec.Spec, *journal.Origin, error) {
	s, err := a.load()
	if err != nil {
		return nil, nil, err
	}
	o := baselineOrigin(ctx, s, a.env)
	if side != sideBase {
		return s, o, nil
	}
	if o.MergeBase == "" {
		return nil, nil, usageErrorf("--spec-side base: this is no CI job for a pull request, and the baseline %s is no revision of this repository that a spec could be taken from", s.Baseline)
	}
	if s, err = a.loadFrom(ctx, repo, path, side, o); err != nil {
		return nil, nil, err
	}
	return s, o, a.findChanged(ctx, repo, s, o)
}

// originOf finds the revisions of a change.
func originOf(ctx context.Context, repo source.Repo, c *change) (*journal.Origin, error) {
	o := &journal.Origin{Side: sideHead}
	var err error
	if o.Base, err = repo.Commit(ctx, c.base); err != nil {
		return nil, err
	}
	if o.Head, err = repo.Commit(ctx, c.head); err != nil {
		return nil, err
	}
	o.MergeBase, err = repo.MergeBase(ctx, o.Base, o.Head)
	return o, err
}

// baselineOrigin finds the revisions where only the spec names them. Outside
// of git, or with a folder for a baseline, there are none to record.
func baselineOrigin(ctx context.Context, s *spec.Spec, env spec.Env) *journal.Origin {
	o := &journal.Origin{Side: sideHead}
	i := slices.IndexFunc(s.Arms, func(a spec.Arm) bool { return a.Name == s.Baseline })
	if i < 0 || s.Arms[i].Git == nil || !s.Arms[i].Git.MergeBase {
		return o
	}
	repo := source.OpenRepo(s.Dir, env)
	base, err := repo.Commit(ctx, s.Arms[i].Git.Ref)
	head, err2 := repo.Commit(ctx, "HEAD")
	if err != nil || err2 != nil {
		return o // the run itself says what is missing, with a hint
	}
	if merge, err := repo.MergeBase(ctx, base, head); err == nil {
		o.Base, o.Head, o.MergeBase = base, head, merge
	}
	return o
}

// loadFrom reads the spec of the chosen side, and says on stderr where that
// is not the file that is here.
func (a *app) loadFrom(ctx context.Context, repo source.Repo, path, side string, o *journal.Origin) (*spec.Spec, error) {
	if side == sideHead {
		return a.load()
	}
	text, found, err := repo.File(ctx, o.MergeBase, filepath.Base(path))
	if err != nil {
		return nil, notMeasured(fmt.Errorf("the spec of the base: %w", err))
	}
	if !found {
		if side == sideBase {
			return nil, usageErrorf("--spec-side base: the base, %.12s, has no %s", o.MergeBase, path)
		}
		fmt.Fprintf(a.stderr, "the base, %.12s, has no %s: the one of the change counts\n", o.MergeBase, path)
		return a.load()
	}
	o.Side = sideBase
	if here, err := os.ReadFile(path); err != nil || !bytes.Equal(here, text) {
		fmt.Fprintf(a.stderr, "the change has another %s than the base, %.12s, whose spec counts for both (--spec-side head takes that of the change)\n", path, o.MergeBase)
	}
	s, diags := spec.Parse(path, text, a.specOptions())
	if len(diags) > 0 {
		if err := a.printDiagnostics(diags); err != nil {
			return nil, err
		}
	}
	if s == nil {
		return nil, &exitError{exitUsage, fmt.Errorf("the spec above is that of the base, %.12s: correct it there first, or take the one of the change by --spec-side head", o.MergeBase)}
	}
	return s, nil
}

// findChanged records which files of the benchmark the change changes.
func (a *app) findChanged(ctx context.Context, repo source.Repo, s *spec.Spec, o *journal.Origin) error {
	var err error
	o.Changed, err = repo.Changed(ctx, o.MergeBase, append(s.Harness(), filepath.Base(s.Path)))
	if err != nil {
		return notMeasured(errors.Join(errors.New("what the change changes of the benchmark cannot be found out"), err))
	}
	return nil
}
