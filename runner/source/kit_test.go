//go:build unix

package source

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tandem-bench/tandem/spec"
)

// world is a test's own home, repository and folders.
type world struct {
	t    *testing.T
	root string
	repo string // a git repository with one commit on main, where the spec stands
	vars map[string]string

	mu   sync.Mutex
	ran  []string // command lines of the steps run, versions of tools apart
	said []string // progress
}

// newWorld makes one. Tests that have a world of their own run at once.
func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Fatal("these tests need git on PATH")
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, root: root, repo: filepath.Join(root, "repo"), vars: map[string]string{
		"PATH": os.Getenv("PATH"), "HOME": filepath.Join(root, "home"),
		"GIT_CONFIG_GLOBAL": filepath.Join(root, "home", "gitconfig"), "GIT_CONFIG_NOSYSTEM": "1",
	}}
	w.write(filepath.Join(root, "home"), map[string]string{
		"gitconfig": "[user]\n\tname = T\n\temail = t@example.com\n[init]\n\tdefaultBranch = main\n[commit]\n\tgpgsign = false\n",
	})
	w.init(w.repo)
	w.commit(w.repo, "first", map[string]string{"server.txt": "one\n", "bin/run.sh": "#!/bin/sh\necho hi\n"})
	return w
}

func (w *world) env(name string) (string, bool) {
	v, ok := w.vars[name]
	return v, ok
}

func (w *world) init(dir string) {
	w.t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		w.t.Fatal(err)
	}
	w.git(dir, "init", "-q")
}

// git runs git as the test's user and returns its output.
func (w *world) git(dir string, args ...string) string {
	w.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(gitEnviron(w.env), "GIT_AUTHOR_DATE=2024-01-02T03:04:05Z", "GIT_COMMITTER_DATE=2024-01-02T03:04:05Z")
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// write makes files below dir; a name that ends in .sh becomes executable.
func (w *world) write(dir string, files map[string]string) {
	w.t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		mode := os.FileMode(0o644)
		if strings.HasSuffix(name, ".sh") {
			mode = 0o755
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			w.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			w.t.Fatal(err)
		}
	}
}

// commit writes files, commits everything and returns the hash.
func (w *world) commit(dir, msg string, files map[string]string) string {
	w.t.Helper()
	w.write(dir, files)
	w.git(dir, "add", "-A")
	w.git(dir, "commit", "-q", "--allow-empty", "-m", msg)
	return w.git(dir, "rev-parse", "HEAD")
}

// options are those of a run of these arms, with a work folder of its own
// and the world's cache.
func (w *world) options(arms ...spec.Arm) Options {
	return Options{
		Spec: &spec.Spec{Path: "bench.yaml", Dir: w.repo, Baseline: arms[0].Name, Arms: arms},
		Env:  w.env, CacheDir: filepath.Join(w.root, "cache"), WorkDir: filepath.Join(w.root, "work"),
		LogDir: filepath.Join(w.root, "logs"), Exec: w.exec,
		Progress: func(s string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.said = append(w.said, s)
		},
	}
}

// exec runs a step for real.
func (w *world) exec(ctx context.Context, c Command) error {
	if !strings.HasPrefix(c.Name, "version of") {
		w.mu.Lock()
		w.ran = append(w.ran, strings.Join(c.Argv, " "))
		w.mu.Unlock()
	}
	log, err := os.OpenFile(c.Log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.Dir, log, log
	cmd.Env = gitEnviron(w.env)
	for k, v := range c.Env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	return cmd.Run()
}

// prepare is a Prepare that has to succeed.
func (w *world) prepare(o Options) []*Tree {
	w.t.Helper()
	trees, err := Prepare(w.t.Context(), o)
	if err != nil {
		w.t.Fatalf("prepare: %v", err)
	}
	return trees
}

// fails is a Prepare that has to fail, with all of these in its message, and
// to leave nothing behind.
func (w *world) fails(o Options, want ...string) error {
	w.t.Helper()
	o.WorkDir = filepath.Join(w.root, "fail")
	_, err := Prepare(w.t.Context(), o)
	if err == nil {
		w.t.Fatalf("prepare succeeded, want an error with %q", want)
	}
	for _, s := range want {
		if !strings.Contains(err.Error(), s) {
			w.t.Errorf("error %q lacks %q", err, s)
		}
	}
	left, rerr := os.ReadDir(o.WorkDir)
	if rerr != nil && !errors.Is(rerr, os.ErrNotExist) {
		w.t.Fatal(rerr)
	}
	for _, l := range left {
		w.t.Errorf("%s was left in the work folder", l.Name())
	}
	return err
}

func gitArm(name, ref string, steps ...string) spec.Arm {
	return spec.Arm{Name: name, Git: &spec.Git{Ref: ref, MergeBase: true}, Build: shell(steps...)}
}

func dirArm(name, path string, steps ...string) spec.Arm {
	return spec.Arm{Name: name, Path: path, Build: shell(steps...)}
}

func shell(lines ...string) []spec.Step {
	var out []spec.Step
	for _, l := range lines {
		out = append(out, spec.Step{Run: spec.Command{Shell: spec.Template(l)}})
	}
	return out
}

// text is the content of a file of a tree.
func text(t *testing.T, elem ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(elem...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// listing are the paths of a tree, but for .git.
func listing(t *testing.T, dir string) string {
	t.Helper()
	m, err := scan(t.Context(), dir, func(rel string) bool { return rel == ".git" })
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range m.entries {
		if e.kind != folder {
			out = append(out, e.path)
		}
	}
	return strings.Join(out, " ")
}
