package source

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tandem-bench/tandem/spec"
)

// Repo reads the repository around a folder: what is to be known of a change
// before its spec is chosen and anything is built. It only reads.
type Repo struct{ git git }

// OpenRepo is the repository around dir, an absolute folder. That there is
// one shows at the first question.
func OpenRepo(dir string, env spec.Env) Repo { return Repo{git{dir: dir, env: env}} }

// Commit finds the commit of a revision, as a git arm would.
func (r Repo) Commit(ctx context.Context, ref string) (string, error) {
	hash, _, err := r.git.commit(ctx, ref)
	return hash, err
}

// MergeBase is the best common ancestor of two commits.
func (r Repo) MergeBase(ctx context.Context, a, b string) (string, error) {
	base, err := r.git.out(ctx, "merge-base", a, b)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 1 {
		hint := "they have no common ancestor"
		if shallow, _ := r.git.out(ctx, "rev-parse", "--is-shallow-repository"); shallow == "true" {
			hint = deepen
		}
		return "", fmt.Errorf("no merge base of %.12s and %.12s in %s: %s", a, b, r.git.dir, hint)
	}
	return base, err
}

// File returns a file as a commit has it, its name relative to the folder of
// the repository that was opened; found is false where the commit has no
// regular file there.
func (r Repo) File(ctx context.Context, commit, name string) (text []byte, found bool, err error) {
	entry, err := r.git.out(ctx, "ls-tree", "-z", commit, "--", name)
	if err != nil {
		return nil, false, err
	}
	// MODE TYPE OBJECT, a tab and the path
	fields := strings.Fields(entry)
	if len(fields) < 4 || fields[1] != "blob" || !strings.HasPrefix(fields[0], "100") {
		return nil, false, nil
	}
	out, err := r.git.raw(ctx, nil, "cat-file", "blob", fields[2])
	return []byte(out), err == nil, err
}

// Changed lists which of the paths, relative to the opened folder or to the
// repository's top, differ between a commit and the files as they are here:
// by their paths from the top, sorted.
func (r Repo) Changed(ctx context.Context, commit string, paths []string) ([]string, error) {
	prefix, err := r.git.out(ctx, "rev-parse", "--show-prefix")
	if err != nil {
		return nil, err
	}
	args := []string{"diff", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv", "-z", commit, "--"}
	fixed := len(args)
	for _, p := range paths {
		for _, fromTop := range []string{path.Join(prefix, p), path.Clean(p)} {
			if filepath.IsLocal(fromTop) { // git refuses a path that leads out
				args = append(args, ":(top,literal)"+fromTop)
			}
		}
	}
	if len(args) == fixed {
		return nil, nil
	}
	out, err := r.git.out(ctx, args...)
	if err != nil {
		return nil, err
	}
	var changed []string
	for _, name := range strings.Split(out, "\x00") {
		if name != "" && !slices.Contains(changed, name) {
			changed = append(changed, name)
		}
	}
	slices.Sort(changed)
	return changed, nil
}
