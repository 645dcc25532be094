package source

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tandem-bench/tandem/spec"
)

// origin is where the tree of an arm comes from, before any build.
type origin struct {
	name     string // as the spec names it
	revision string
	dirty    bool
	warnings []string
	place    place

	content string // digest of what write writes
	history string // digest of what else addGit shows to a build; empty where there is no repository

	write   func(ctx context.Context, dir string) (warnings []string, err error) // makes dir and fills it
	matches func(*manifest) bool                                                 // what write wrote is what content says; nil: always
	addGit  func(ctx context.Context, dir string) error                          // gives a build a .git of its own
}

// open finds the origin of an arm.
func (p *preparer) open(ctx context.Context, arm spec.Arm) (*origin, error) {
	if arm.Git != nil {
		return p.openGit(ctx, arm.Git)
	}
	return p.openDir(ctx, arm.Path)
}

// openGit is an arm that names a revision.
func (p *preparer) openGit(ctx context.Context, a *spec.Git) (*origin, error) {
	repo := a.Repo
	if repo == "" {
		repo = p.Spec.Dir
	}
	g := git{dir: repo, env: p.Env}
	rev, err := g.resolve(ctx, a)
	if err != nil {
		return nil, err
	}
	o := &origin{name: "git " + a.Ref, revision: rev.commit, content: "git " + rev.tree, warnings: rev.warnings}
	if repo != p.Spec.Dir {
		o.name += " of " + p.shown(repo)
	}
	mods := submodules{cacheDir: filepath.Join(p.CacheDir, "git"), index: filepath.Join(p.WorkDir, "index000"), progress: p.Progress}
	o.write = func(ctx context.Context, dir string) ([]string, error) {
		p.Progress(fmt.Sprintf("%s: writing out %.12s", o.name, rev.commit))
		return mods.export(ctx, g, rev.commit, dir)
	}
	return o, p.showHistory(ctx, g, o)
}

// openDir is an arm that names a folder.
func (p *preparer) openDir(ctx context.Context, path string) (*origin, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, fmt.Errorf("folder of the arm: %w", err)
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("%s is not a folder", path)
	}
	o := &origin{name: "dir " + p.shown(path)}
	skip := func(rel string) bool { return p.skip.refuses(path, rel) }
	m, err := scan(ctx, path, skip)
	if err != nil {
		return nil, err
	}
	digest := func(m *manifest) string {
		return m.digest(func(rel string) bool { return p.skip.isSpec(path, rel) })
	}
	o.content = digest(m)
	o.matches = func(m *manifest) bool { return digest(m) == o.content }
	o.write = func(ctx context.Context, dir string) ([]string, error) {
		p.Progress(fmt.Sprintf("%s: copying", o.name))
		return p.importDir(ctx, path, dir, skip)
	}
	g := git{dir: path, env: p.Env}
	if err := p.describe(ctx, g, o, path); err != nil {
		return nil, err
	}
	return o, p.showHistory(ctx, g, o)
}

// importDir copies a user's folder to where it can be built.
func (p *preparer) importDir(ctx context.Context, path, dir string, skip func(string) bool) (warnings []string, err error) {
	stats, err := copyTree(ctx, path, dir, copyOptions{skip: skip, writable: true})
	if err != nil {
		return nil, err
	}
	if len(stats.special) > 0 {
		warnings = append(warnings, fmt.Sprintf("%s: neither file, folder nor link; left out", andMore(stats.special)))
	}
	_, err = relink(dir, path) // its warnings come again, of the built tree
	return warnings, err
}

// describe finds the revision that a folder stands at, and whether it differs
// from it. A folder outside of any repository has neither.
func (p *preparer) describe(ctx context.Context, g git, o *origin, path string) error {
	head, err := g.out(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if err != nil {
		return ctx.Err()
	}
	prefix, err := g.out(ctx, "rev-parse", "--show-prefix")
	if err != nil {
		return ctx.Err() // inside of a .git folder, or a bare repository
	}
	status, err := g.out(ctx, "status", "--porcelain", "-z", "--untracked-files=all", "--", ".")
	if err != nil {
		return err
	}
	o.revision, o.place.prefix = head, strings.TrimSuffix(prefix, "/")
	for _, changed := range statusPaths(status) {
		rel := strings.TrimPrefix(strings.TrimSuffix(changed, "/"), prefix)
		if !p.skip.refuses(path, rel) {
			o.dirty = true
		}
	}
	return nil
}

// statusPaths are the paths of `git status --porcelain -z`: two letters, a
// space, a path; a rename is followed by the path that it had before.
func statusPaths(status string) []string {
	var out []string
	fields := strings.Split(status, "\x00")
	for i := 0; i < len(fields); i++ {
		f := fields[i]
		if len(f) < 4 {
			continue
		}
		out = append(out, f[3:])
		if strings.ContainsAny(f[:2], "RC") {
			i++
		}
	}
	return out
}

// shown is a path as messages name it: relative where it is near the spec.
func (p *preparer) shown(path string) string {
	rel, err := filepath.Rel(p.Spec.Dir, path)
	if err != nil || strings.Count(rel, "..") > 2 {
		return path
	}
	return rel
}

// place says which part of which repository a tree is.
type place struct {
	repo   string // its git folder; empty outside of git
	prefix string // the folder in it, empty for the whole
}

// warnPlaces says where an arm is a part of the repository that another arm
// is the whole of: the same step or server then starts in different places.
func warnPlaces(trees []*Tree) {
	for _, part := range trees {
		for _, whole := range trees {
			if part.place.prefix == "" || whole.place.prefix != "" || part.place.repo != whole.place.repo {
				continue
			}
			part.Warnings = append(part.Warnings, fmt.Sprintf(
				"it is the folder %s of its repository, and arm %s is the whole of it; name the repository's top in dir:, and the folder in the dir of steps and server",
				part.place.prefix, whole.Arm.Name))
			break
		}
	}
}
