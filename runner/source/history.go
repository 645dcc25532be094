package source

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// showHistory lets the builds of an origin ask git for their revision
// (`git describe`, Go's build stamp), as they could in the user's own folder.
// They get a repository of their own with the HEAD and the tags of the
// user's, which borrows the user's objects: whatever a build does to it (set
// core.hooksPath, tag, commit) stays there, and is gone when the build ends.
// What it shows is part of what decides whether a build is made again.
func (p *preparer) showHistory(ctx context.Context, g git, o *origin) error {
	o.addGit = func(context.Context, string) error { return nil }
	if o.revision == "" {
		return nil
	}
	tags, err := g.out(ctx, "for-each-ref", "--format=%(objectname) %(refname)", "refs/tags")
	if err != nil {
		return err
	}
	common, err := g.out(ctx, "rev-parse", "--path-format=absolute", "--git-common-dir")
	if err != nil {
		return err
	}
	format, err := g.out(ctx, "rev-parse", "--show-object-format")
	if err != nil {
		return err
	}
	o.place.repo = common
	o.history = o.revision + "\n" + tags
	if o.dirty {
		o.history += "\ndirty"
	}
	o.addGit = func(ctx context.Context, dir string) error {
		err := p.writeGit(ctx, filepath.Join(dir, ".git"), common, format, o.revision, tags)
		if err != nil {
			return fmt.Errorf("give the build a repository: %w", err)
		}
		return nil
	}
	return nil
}

// writeGit makes the repository at gitDir.
func (p *preparer) writeGit(ctx context.Context, gitDir, common, format, head, tags string) error {
	for _, d := range []string{"objects/info", "objects/pack", "refs/heads", "refs/tags"} {
		if err := os.MkdirAll(filepath.Join(gitDir, d), 0o755); err != nil {
			return err
		}
	}
	config := "[core]\n\trepositoryformatversion = 0\n\tbare = false\n"
	if format != "sha1" {
		config = "[core]\n\trepositoryformatversion = 1\n\tbare = false\n[extensions]\n\tobjectformat = " + format + "\n"
	}
	files := map[string]string{
		"config":                  config,
		"HEAD":                    head + "\n",
		"objects/info/alternates": quoteAlternate(filepath.Join(common, "objects")) + "\n",
	}
	if tags != "" {
		files["packed-refs"] = "# pack-refs with: sorted\n" + tags + "\n"
	}
	if shallow, err := os.ReadFile(filepath.Join(common, "shallow")); err == nil {
		files["shallow"] = string(shallow)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(gitDir, filepath.FromSlash(name)), []byte(text), 0o644); err != nil {
			return err
		}
	}
	// An index, so that `git describe --dirty` compares with something. The
	// refresh exits with 1 where a file differs, which is no failure here.
	own := git{dir: filepath.Dir(gitDir), env: p.Env}
	if _, err := own.out(ctx, "read-tree", "HEAD"); err != nil {
		return err
	}
	_, _ = own.out(ctx, "update-index", "-q", "--refresh")
	return ctx.Err()
}

// quoteAlternate is a path as objects/info/alternates holds it: a line that
// begins with a quote or a hash sign is not taken literally.
func quoteAlternate(path string) string {
	if !strings.ContainsAny(path, "\n\"") && !strings.HasPrefix(path, "#") {
		return path
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(path) + `"`
}
