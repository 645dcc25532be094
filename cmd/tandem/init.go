package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-bench/tandem/spec"
	"github.com/tandem-bench/tandem/spec/scaffold"
)

func (a *app) initCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "init",
		Short: "Write a first bench.yaml for this repository",
		Long: `Looks at package.json, go.mod, Cargo.toml, Procfile, Dockerfile, Makefile and
start scripts of this folder, and writes a bench.yaml that validates, with
comments that say what to look at. It runs nothing of the repository's and
never overwrites a file.`,
		Example: `  tandem init
  tandem validate && tandem run`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.initSpec(cmd.Context()) },
	}
}

func (a *app) initSpec(ctx context.Context) error {
	dir, err := os.Getwd()
	if err != nil {
		return &exitError{exitUsage, err}
	}
	path := filepath.Join(dir, spec.FileName)
	o := scaffold.Options{Name: filepath.Base(dir)}
	if root := git(ctx, dir, "rev-parse", "--show-toplevel"); root != "" {
		o.Branch = defaultBranch(ctx, dir)
		o.Subtree = strings.TrimSuffix(git(ctx, dir, "rev-parse", "--show-prefix"), "/")
	}
	made := scaffold.Make(os.DirFS(dir), o)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return usageErrorf("%s is here already; init never overwrites, so move it away first", path)
	} else if err != nil {
		return &exitError{exitUsage, err}
	}
	if _, err := f.WriteString(made.Text); err != nil {
		f.Close()
		return &exitError{exitUsage, err}
	}
	if err := f.Close(); err != nil {
		return &exitError{exitUsage, err}
	}
	_, err = fmt.Fprintf(a.stdout, "wrote %s from %s\nlook at it, then: tandem validate && tandem run\n", spec.FileName, strings.Join(made.Found, "; "))
	return err
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
