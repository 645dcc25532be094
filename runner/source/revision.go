package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/agext/levenshtein"

	"github.com/tandem-bench/tandem/spec"
)

// revision is a commit that a git arm stands for.
type revision struct {
	commit   string
	tree     string // the object name of its tree: its content
	warnings []string
}

// Resolve checks that an arm's revision can be found, and its merge base where
// the arm asks for it. It only reads the repository; errors say what is near,
// and what helps a shallow clone.
func Resolve(ctx context.Context, a spec.Git, env spec.Env) error {
	_, err := git{dir: a.Repo, env: env}.resolve(ctx, &a)
	return err
}

// resolve finds the commit that an arm names: the merge base of HEAD and its
// ref, or the ref's tip.
func (g git) resolve(ctx context.Context, a *spec.Git) (*revision, error) {
	tip, note, err := g.commit(ctx, a.Ref)
	if err != nil {
		return nil, err
	}
	r := &revision{commit: tip}
	if note != "" {
		r.warnings = append(r.warnings, note)
	}
	if a.MergeBase {
		if r.commit, err = g.mergeBase(ctx, a.Ref, tip); err != nil {
			return nil, err
		}
	}
	r.tree, err = g.out(ctx, "rev-parse", "--verify", "--end-of-options", r.commit+"^{tree}")
	return r, err
}

// commit resolves a ref to a commit. A branch that is only known as a
// remote's, as in a CI checkout of another branch, is taken from there.
func (g git) commit(ctx context.Context, ref string) (hash, note string, err error) {
	if _, err := g.out(ctx, "rev-parse", "--git-dir"); err != nil {
		return "", "", err
	}
	verify := func(ref string) (string, error) {
		return g.out(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", ref+"^{commit}")
	}
	if hash, err = verify(ref); err == nil || ctx.Err() != nil {
		return hash, "", err
	}
	remotes, err := g.out(ctx, "for-each-ref", "--format=%(refname)", "refs/remotes")
	if err != nil {
		return "", "", err
	}
	for _, r := range strings.Fields(remotes) {
		// refs/remotes/NAME/BRANCH; a remote's name may hold slashes, a match of the end is what counts
		if !strings.HasSuffix(r, "/"+ref) {
			continue
		}
		if hash, err = verify(r); err == nil {
			short := strings.TrimPrefix(r, "refs/remotes/")
			return hash, fmt.Sprintf("there is no local branch %q; %s was used", ref, short), nil
		}
	}
	return "", "", g.missing(ctx, ref)
}

// missing says that a ref is not there, and what is near it.
func (g git) missing(ctx context.Context, ref string) error {
	all, err := g.out(ctx, "for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/tags", "refs/remotes")
	if err != nil {
		return err
	}
	msg := fmt.Sprintf("%s has no revision %q", g.dir, ref)
	if near := nearest(ref, strings.Fields(all)); len(near) > 0 {
		msg += "; near it: " + strings.Join(near, ", ")
	}
	if shallow, _ := g.out(ctx, "rev-parse", "--is-shallow-repository"); shallow == "true" {
		msg += "; " + deepen
	}
	return errors.New(msg)
}

// deepen is what helps where history was cut off.
const deepen = "this is a shallow clone: fetch the whole history (git fetch --unshallow; in actions/checkout, fetch-depth: 0)"

// mergeBase is the best common ancestor of HEAD and a commit.
func (g git) mergeBase(ctx context.Context, ref, tip string) (string, error) {
	if _, err := g.out(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}"); err != nil {
		return "", fmt.Errorf("HEAD of %s has no commit, so there is no merge base with %s; write merge_base: false for its tip", g.dir, ref)
	}
	base, err := g.out(ctx, "merge-base", "HEAD", tip)
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		return base, err
	}
	const tipHint = "or write merge_base: false to compare with its tip"
	if shallow, _ := g.out(ctx, "rev-parse", "--is-shallow-repository"); shallow == "true" {
		return "", fmt.Errorf("no merge base of HEAD and %s in %s; %s, %s", ref, g.dir, deepen, tipHint)
	}
	return "", fmt.Errorf("HEAD and %s in %s have no common ancestor; name another ref, %s", ref, g.dir, tipHint)
}

// nearest are the names, at most three, that are most like a word: those that
// hold it, and those a few slips of the keyboard away.
func nearest(word string, names []string) []string {
	type candidate struct {
		name string
		far  int
	}
	var found []candidate
	for _, n := range names {
		far := levenshtein.Distance(strings.ToLower(word), strings.ToLower(n), nil)
		base := n[strings.LastIndex(n, "/")+1:]
		far = min(far, levenshtein.Distance(strings.ToLower(word), strings.ToLower(base), nil)+1)
		if far <= max(2, len(word)/3) || len(word) > 2 && strings.Contains(strings.ToLower(n), strings.ToLower(word)) {
			found = append(found, candidate{n, far})
		}
	}
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.far, b.far), strings.Compare(a.name, b.name))
	})
	var out []string
	for _, c := range found[:min(len(found), 3)] {
		out = append(out, c.name)
	}
	return out
}
