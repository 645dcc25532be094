// Package source turns the arms of a spec into built trees on disk: it finds
// the revision or the folder that an arm names, makes a tree of the arm's own,
// runs its setup and build steps there, and hands out copies of the result.
//
// runner calls [Prepare] once, before anything is measured, and [Tree.Copy]
// for every instance that it starts. Nothing is ever written into the user's
// own folder or repository: revisions are written out from the object store
// with an index of their own, folders are copied. What a build made is kept
// in a cache by content, so that a second run with nothing changed builds
// nothing.
//
// # Paths
//
// The length of a path changes how fast a program runs (it moves the stack
// and whatever stands behind the path in memory), by more than many changes
// that people look for, and copies of one arm cannot show it because all of
// them suffer alike (Mytkowicz et al., "Producing wrong data without doing
// anything obviously wrong", ASPLOS 2009). So no path here holds the name of
// an arm: every arm is built at the same path, one after the other, and trees
// and copies differ in digits only, never in length ([CopyDir]).
package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/tandem-bench/tandem/spec"
)

// Options is what [Prepare] works on. All folders are absolute; they are made
// where they are missing.
type Options struct {
	Spec *spec.Spec
	Env  spec.Env // the environment: for templates, git, and tools on PATH

	CacheDir string // built trees, kept between runs
	WorkDir  string // trees of this run; best outside of any repository, see [OpenWork]
	LogDir   string // output of build steps

	Exec     Exec
	Progress func(line string) // told what is being done; may be nil
	Same     bool              // the baseline's tree in place of every candidate's
}

// Tree is the built tree of one arm.
type Tree struct {
	// Arm is the arm as it has to be started. Under Options.Same it is the
	// baseline's definition under the candidate's name.
	Arm spec.Arm

	Source   string // as the spec names it: "git main", "dir ."
	Label    string // the arm's own, if it has one
	Revision string // commit hash; empty for a folder outside of git
	Dirty    bool   // uncommitted changes are part of the tree

	Dir      string   // the built tree, absolute; belongs to this run alone
	Digest   string   // SHA-256 of the built tree in hex: names, contents, executable bits, links
	Products string   // the same over what the build made or changed; empty where it made nothing
	Cached   bool     // the build came from the cache
	Warnings []string // what qualifies the tree, each beginning with the arm

	place  place
	closed bool
}

// Prepare makes the tree of every arm, in the order of the spec, each one
// built. It returns a [*BuildError] where a step failed, the context's error
// where it was cancelled, and any other error where a source could not be
// had. On an error nothing is left in WorkDir.
func Prepare(ctx context.Context, o Options) ([]*Tree, error) {
	p, err := newPreparer(o)
	if err != nil {
		return nil, err
	}
	var trees []*Tree
	for i, arm := range p.arms() {
		t, err := p.tree(ctx, i, arm)
		if err != nil {
			if broken := (*BuildError)(nil); !errors.As(err, &broken) {
				err = fmt.Errorf("arm %s: %w", arm.Name, err)
			}
			for _, made := range trees {
				err = errors.Join(err, made.Close())
			}
			return nil, errors.Join(err, removeTree(p.buildDir()))
		}
		trees = append(trees, t)
	}
	warnPlaces(trees)
	for _, t := range trees {
		for i := range t.Warnings {
			t.Warnings[i] = fmt.Sprintf("arm %s: %s", t.Arm.Name, t.Warnings[i])
		}
	}
	p.cache.prune(keepBuilds, keepBytes)
	return trees, nil
}

// Copy copies the built tree to dst, which must not exist: contents, modes,
// times and symbolic links, sharing no file with the tree. Where the
// filesystem can clone, the blocks are shared until they are written.
func (t *Tree) Copy(ctx context.Context, dst string) error {
	if t.closed {
		return fmt.Errorf("copy of arm %s: its tree is closed", t.Arm.Name)
	}
	if _, err := copyTree(ctx, t.Dir, dst, copyOptions{}); err != nil {
		return fmt.Errorf("copy of arm %s: %w", t.Arm.Name, err)
	}
	return nil
}

// Close removes the tree. Copies stay: they belong to whoever asked for them,
// and [Remove] removes them.
func (t *Tree) Close() error {
	if t.closed {
		return nil
	}
	t.closed = true
	return removeTree(t.Dir)
}

// CopyTree copies any tree as [Tree.Copy] copies an arm's.
func CopyTree(ctx context.Context, src, dst string) error {
	_, err := copyTree(ctx, src, dst, copyOptions{})
	return err
}

// Remove removes a copy, with folders that its program made unwritable.
func Remove(dir string) error { return removeTree(dir) }

// CopyDir is where the n-th copy of a run belongs. All copies of a run, of
// whichever arm, have paths of one length.
func CopyDir(workDir string, n int) string {
	return filepath.Join(workDir, fmt.Sprintf("copy%04d", n))
}

// treeDir is where the tree of the n-th arm stands.
func treeDir(workDir string, n int) string {
	return filepath.Join(workDir, fmt.Sprintf("tree%04d", n))
}

// preparer is one call of Prepare.
type preparer struct {
	Options
	cache *cache
	skip  *skipper
	tools map[string]string // path of a tool to what is known of it
}

func newPreparer(o Options) (*preparer, error) {
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	for _, dir := range []string{o.WorkDir, o.LogDir, o.CacheDir} {
		if !filepath.IsAbs(dir) {
			return nil, fmt.Errorf("prepare: folder %q is not absolute", dir)
		}
	}
	for _, dir := range []string{o.WorkDir, o.LogDir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("prepare: %w", err)
		}
	}
	p := &preparer{Options: o, cache: newCache(o.CacheDir), skip: newSkipper(o), tools: map[string]string{}}
	return p, removeTree(p.buildDir())
}

// buildDir is where every arm is built, so that products that hold the path
// they were built at hold the same one.
func (p *preparer) buildDir() string { return filepath.Join(p.WorkDir, "build000") }

// arms are the arms to prepare: under Same, the baseline under every name.
func (p *preparer) arms() []spec.Arm {
	arms := slices.Clone(p.Spec.Arms)
	i := slices.IndexFunc(arms, func(a spec.Arm) bool { return a.Name == p.Spec.Baseline })
	if !p.Same || i < 0 {
		return arms
	}
	base := arms[i]
	for j := range arms {
		if j != i {
			name := arms[j].Name
			arms[j] = base
			arms[j].Name, arms[j].Label = name, ""
		}
	}
	return arms
}

// tree makes the built tree of the n-th arm.
func (p *preparer) tree(ctx context.Context, n int, arm spec.Arm) (*Tree, error) {
	src, err := p.open(ctx, arm)
	if err != nil {
		return nil, err
	}
	t := &Tree{
		Arm: arm, Label: arm.Label, Dir: treeDir(p.WorkDir, n),
		Source: src.name, Revision: src.revision, Dirty: src.dirty, Warnings: src.warnings, place: src.place,
	}
	if err := removeTree(t.Dir); err != nil {
		return nil, err
	}
	if err := p.fill(ctx, t, src); err != nil {
		if broken := (*BuildError)(nil); errors.As(err, &broken) {
			broken.Revision = src.revision
		}
		return nil, errors.Join(err, removeTree(t.Dir))
	}
	return t, nil
}

// fill makes t.Dir: from the cache, or else by building it.
func (p *preparer) fill(ctx context.Context, t *Tree, src *origin) error {
	steps, err := resolveSteps(t.Arm, p.Env)
	if err != nil {
		return err
	}
	if len(steps) == 0 {
		_, _, err := p.make(ctx, t, src, nil)
		return err
	}
	key, err := p.key(ctx, src, steps)
	if err != nil {
		return err
	}
	slot, err := p.cache.lock(ctx, key, p.Progress)
	if err != nil {
		return err
	}
	defer slot.unlock()
	hit, err := slot.restore(ctx, t)
	if err != nil {
		return err
	}
	if hit {
		p.Progress(fmt.Sprintf("arm %s: nothing changed, its build is taken from the cache", t.Arm.Name))
		return nil
	}
	built, warnings, err := p.make(ctx, t, src, steps)
	if err != nil {
		return err
	}
	if built == nil {
		t.Warnings = append(t.Warnings, "the folder changed while it was copied; the build was not kept for the next run")
		return nil
	}
	if err := slot.keep(ctx, t, built.size(), warnings); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		t.Warnings = append(t.Warnings, fmt.Sprintf("the build was not kept for the next run: %v", err))
	}
	return nil
}

// make writes the arm's origin out, builds it, and moves it to t.Dir. It
// returns what is in it and the warnings that belong to it whenever it is
// used (which are in t.Warnings already); no manifest where what was written
// out is not what the origin's digest says.
func (p *preparer) make(ctx context.Context, t *Tree, src *origin, steps []step) (*manifest, []string, error) {
	dir := p.buildDir()
	warnings, err := src.write(ctx, dir)
	if err != nil {
		return nil, nil, err
	}
	before, err := scan(ctx, dir, nil)
	if err != nil {
		return nil, nil, err
	}
	after := before
	if len(steps) > 0 {
		if after, err = p.buildIn(ctx, dir, t.Arm, src, steps); err != nil {
			return nil, nil, err
		}
	}
	links, err := relink(dir, dir)
	if err != nil {
		return nil, nil, err
	}
	warnings = slices.Concat(warnings, links, after.warnings(dir))
	t.Digest, t.Products = after.digest(nil), after.changedSince(before)
	t.Warnings = append(t.Warnings, warnings...)
	if src.matches != nil && !src.matches(before) {
		after = nil
	}
	return after, warnings, os.Rename(dir, t.Dir)
}

// buildIn runs the steps in dir and returns what is there afterwards.
func (p *preparer) buildIn(ctx context.Context, dir string, arm spec.Arm, src *origin, steps []step) (*manifest, error) {
	if err := src.addGit(ctx, dir); err != nil {
		return nil, err
	}
	if err := p.build(ctx, arm, dir, steps); err != nil {
		return nil, err
	}
	if err := removeTree(filepath.Join(dir, ".git")); err != nil {
		return nil, err
	}
	return scan(ctx, dir, nil)
}
