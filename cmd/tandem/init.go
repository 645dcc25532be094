package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-bench/tandem/spec"
	"github.com/tandem-bench/tandem/spec/scaffold"
)

// initFlags are the flags of init.
type initFlags struct {
	github bool
	shards int
	tandem string
}

func (a *app) initCmd() *cobra.Command {
	var f initFlags
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Write a first bench.yaml for this repository",
		Long: `Looks at package.json, go.mod, Cargo.toml, Procfile, Dockerfile, Makefile and
start scripts of this folder, and writes a bench.yaml that validates, with
comments that say what to look at. It runs nothing of the repository's and
never overwrites a file.

With --github it also writes two workflows for GitHub: bench.yml measures every
pull request, also one from a fork, without any right to write; bench-comment.yml
comments, and runs nothing of the pull request. A bench.yaml that is here is kept.`,
		Example: `  tandem init
  tandem validate && tandem run
  tandem init --github --shards 4`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.initAll(cmd.Context(), f, cmd.Flags().Changed) },
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.github, "github", false, "also write .github/workflows/bench.yml and bench-comment.yml")
	fl.IntVar(&f.shards, "shards", 1, "with --github: as many jobs share the scenarios")
	fl.StringVar(&f.tandem, "tandem", "", "with --github: the commit of tandem that the workflows build (default: this one's)")
	return cmd
}

func (a *app) initAll(ctx context.Context, f initFlags, given func(flag string) bool) error {
	if !f.github {
		for _, name := range []string{"shards", "tandem"} {
			if given(name) {
				return usageErrorf("--%s is about the workflows that --github writes: name both", name)
			}
		}
		return a.initSpec(ctx)
	}
	dir, err := os.Getwd()
	if err != nil {
		return &exitError{exitUsage, err}
	}
	root, files, err := workflows(ctx, dir, f)
	if err != nil {
		return err
	}
	for _, w := range files {
		if path := filepath.Join(root, filepath.FromSlash(w.Path)); exists(path) {
			return usageErrorf("%s is here already; init never overwrites, so move it away first", path)
		}
	}
	if !exists(filepath.Join(dir, spec.FileName)) {
		if err := a.initSpec(ctx); err != nil {
			return err
		}
	}
	for _, w := range files {
		path := filepath.Join(root, filepath.FromSlash(w.Path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return &exitError{exitUsage, err}
		}
		if err := createFile(path, w.Text); err != nil {
			return err
		}
		fmt.Fprintf(a.stdout, "wrote %s\n", w.Path)
	}
	_, err = fmt.Fprintln(a.stdout, "commit them with bench.yaml; bench-comment.yml works once it is on the default branch")
	return err
}

// workflows makes the files of --github, for the repository around dir.
func workflows(ctx context.Context, dir string, f initFlags) (root string, files []scaffold.File, err error) {
	root = git(ctx, dir, "rev-parse", "--show-toplevel")
	if root == "" {
		return "", nil, usageErrorf("--github: %s is in no git repository, and workflows belong to one", dir)
	}
	if f.shards < 1 || f.shards > scaffold.MaxShards {
		return "", nil, usageErrorf("--shards: found %d, expected 1 to %d", f.shards, scaffold.MaxShards)
	}
	o := scaffold.WorkflowOptions{Tandem: f.tandem, Label: "tandem " + version(), Shards: f.shards}
	if f.tandem == "" {
		if o.Tandem = builtFrom(); o.Tandem == "" {
			return "", nil, usageErrorf("--github: the workflows pin the commit of tandem that they build, and this binary does not know its own: name it with --tandem COMMIT")
		}
	} else if o.Label = ""; len(f.tandem) != 40 {
		return "", nil, usageErrorf("--tandem: found %q, expected a whole commit of 40 hexadecimal digits: a branch or a tag can be moved", f.tandem)
	}
	o.File = path.Join(git(ctx, dir, "rev-parse", "--show-prefix"), spec.FileName)
	files, err = scaffold.Workflows(o)
	if err != nil {
		return "", nil, &exitError{exitUsage, fmt.Errorf("--github: %w", err)}
	}
	return root, files, nil
}

func (a *app) initSpec(ctx context.Context) error {
	dir, err := os.Getwd()
	if err != nil {
		return &exitError{exitUsage, err}
	}
	o := scaffold.Options{Name: filepath.Base(dir)}
	if root := git(ctx, dir, "rev-parse", "--show-toplevel"); root != "" {
		o.Branch = defaultBranch(ctx, dir)
		o.Subtree = strings.TrimSuffix(git(ctx, dir, "rev-parse", "--show-prefix"), "/")
	}
	made := scaffold.Make(os.DirFS(dir), o)
	if err := createFile(filepath.Join(dir, spec.FileName), made.Text); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.stdout, "wrote %s from %s\nlook at it, then: tandem validate && tandem run\n", spec.FileName, strings.Join(made.Found, "; "))
	return err
}

// createFile writes a file that must not be there yet.
func createFile(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return usageErrorf("%s is here already; init never overwrites, so move it away first", path)
	} else if err != nil {
		return &exitError{exitUsage, err}
	}
	if _, err := f.WriteString(text); err != nil {
		f.Close()
		return &exitError{exitUsage, err}
	}
	if err := f.Close(); err != nil {
		return &exitError{exitUsage, err}
	}
	return nil
}

// defaultBranch is the branch that pull requests go to, as far as the
// repository tells.
func defaultBranch(ctx context.Context, dir string) string {
	if ref := git(ctx, dir, "symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD"); ref != "" {
		return ref // origin/main: a fresh clone has no local main of its own
	}
	for _, name := range []string{"main", "master", "trunk", "develop"} {
		if git(ctx, dir, "rev-parse", "--verify", "--quiet", "refs/heads/"+name) != "" {
			return name
		}
	}
	if name := git(ctx, dir, "symbolic-ref", "--quiet", "--short", "HEAD"); name != "" {
		return name
	}
	return "HEAD"
}

// git is the first line of what git answers, "" where it fails.
func git(ctx context.Context, dir string, args ...string) string {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...).Output()
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimSpace(line)
}
