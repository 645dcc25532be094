//go:build unix

package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tandem-bench/tandem/spec"
)

func TestMergeBaseAgainstFolder(t *testing.T) {
	w := newWorld(t)
	first := w.git(w.repo, "rev-parse", "HEAD")
	w.git(w.repo, "checkout", "-q", "-b", "topic")
	head := w.commit(w.repo, "mine", map[string]string{"server.txt": "two\n"})
	w.git(w.repo, "checkout", "-q", "main")
	tip := w.commit(w.repo, "theirs", map[string]string{"server.txt": "three\n"})
	w.git(w.repo, "checkout", "-q", "topic")
	w.write(w.repo, map[string]string{"node_modules/x/index.js": "x\n", ".tandem/runs/1/journal.jsonl": "{}\n"})
	tipArm := gitArm("tip", "main")
	tipArm.Git.MergeBase = false
	tipArm.Label = "main's tip"

	trees := w.prepare(w.options(gitArm("base", "main"), dirArm("head", w.repo), tipArm))
	type facts struct {
		Source, Label, Revision string
		Dirty                   bool
		Text, Files             string
	}
	var got []facts
	for _, tr := range trees {
		got = append(got, facts{tr.Source, tr.Label, tr.Revision, tr.Dirty, text(t, tr.Dir, "server.txt"), listing(t, tr.Dir)})
	}
	want := []facts{
		{"git main", "", first, false, "one\n", "bin/run.sh server.txt"},
		{"dir .", "", head, true, "two\n", "bin/run.sh node_modules/x/index.js server.txt"},
		{"git main", "main's tip", tip, false, "three\n", "bin/run.sh server.txt"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, tr := range trees {
		if len(tr.Dir) != len(trees[0].Dir) {
			t.Errorf("tree folders %s and %s differ in length", tr.Dir, trees[0].Dir)
		}
		if info, err := os.Stat(filepath.Join(tr.Dir, "bin/run.sh")); err != nil || info.Mode()&0o111 == 0 {
			t.Errorf("%s: run.sh is not executable (%v)", tr.Arm.Name, err)
		}
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	}
	if left := listing(t, filepath.Join(w.root, "work")); left != "" {
		t.Errorf("left after Close: %s", left)
	}
	if out := w.git(w.repo, "worktree", "list", "--porcelain"); strings.Count(out, "worktree ") != 1 {
		t.Errorf("worktrees of the user's repository: %s", out)
	}
}

func TestCleanFolderIsNotDirty(t *testing.T) {
	w := newWorld(t)
	o := w.options(dirArm("head", w.repo))
	o.CacheDir = filepath.Join(w.repo, ".tandem", "cache")
	o.LogDir = filepath.Join(w.repo, "results", "logs")
	o.Spec.Report = []spec.Output{{Format: "markdown", Path: "bench.md"}}
	w.write(w.repo, map[string]string{".tandem/x": "x", "bench.md": "| |", "results/logs/y": "y"})
	tr := w.prepare(o)[0]
	if tr.Dirty {
		t.Error("our own files made the tree dirty")
	}
	if got, want := listing(t, tr.Dir), "bin/run.sh server.txt"; got != want {
		t.Errorf("copied %q, want %q", got, want)
	}
}

func TestSecondRunBuildsNothing(t *testing.T) {
	w := newWorld(t)
	head := dirArm("head", w.repo, "cat server.txt bin/run.sh > out.txt")
	arms := []spec.Arm{gitArm("base", "HEAD", "cat server.txt > out.txt", "echo done >> out.txt"), head}

	first := w.prepare(w.options(arms...))
	if n := len(w.ran); n != 3 {
		t.Fatalf("ran %d steps, want 3: %q", n, w.ran)
	}
	want := text(t, first[0].Dir, "out.txt")
	second := w.prepare(w.options(arms...))
	if n := len(w.ran); n != 3 {
		t.Errorf("the second run ran steps again: %q", w.ran[3:])
	}
	for i, tr := range second {
		if !tr.Cached || first[i].Cached {
			t.Errorf("%s: cached %v, then %v", tr.Arm.Name, first[i].Cached, tr.Cached)
		}
		if tr.Digest != first[i].Digest || tr.Products != first[i].Products || tr.Products == "" {
			t.Errorf("%s: digests %s %s, then %s %s", tr.Arm.Name, first[i].Digest, first[i].Products, tr.Digest, tr.Products)
		}
	}
	if got := text(t, second[0].Dir, "out.txt"); got != want || got != "one\ndone\n" {
		t.Errorf("cached tree holds %q, want %q", got, want)
	}
}

// Whatever decides what a build makes has to make it anew.
func TestWhatMakesABuildAnew(t *testing.T) {
	for name, change := range map[string]func(w *world, o *Options){
		"content": func(w *world, o *Options) { w.write(w.repo, map[string]string{"server.txt": "changed\n"}) },
		"mode":    func(w *world, o *Options) { os.Chmod(filepath.Join(w.repo, "server.txt"), 0o755) },
		"link":    func(w *world, o *Options) { os.Symlink("server.txt", filepath.Join(w.repo, "l")) },
		"step":    func(w *world, o *Options) { o.Spec.Arms[0].Build = shell("cp server.txt other.txt") },
		"step's env": func(w *world, o *Options) {
			o.Spec.Arms[0].Build[0].Env = map[string]spec.Template{"MODE": "fast"}
		},
		"arm's env": func(w *world, o *Options) { o.Spec.Arms[0].Env = map[string]spec.Template{"MODE": "fast"} },
		"value from outside": func(w *world, o *Options) {
			w.vars["MODE"] = "slow"
		},
		"ambient":  func(w *world, o *Options) { w.vars["CFLAGS"] = "-O0" },
		"revision": func(w *world, o *Options) { w.commit(w.repo, "empty", nil) },
		"tag":      func(w *world, o *Options) { w.git(w.repo, "tag", "v9") },
		"tool": func(w *world, o *Options) {
			w.write(w.root, map[string]string{"tools/cp.sh": "#!/bin/sh\nexec /bin/cp \"$@\"\n"})
			os.Rename(filepath.Join(w.root, "tools/cp.sh"), filepath.Join(w.root, "tools/cp"))
			w.vars["PATH"] = filepath.Join(w.root, "tools") + ":" + w.vars["PATH"]
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			arm := dirArm("head", w.repo, "cp server.txt out.txt")
			arm.Env = map[string]spec.Template{"FROM": "${env.MODE:-none}"}
			w.prepare(w.options(arm))
			o := w.options(arm)
			change(w, &o)
			if tr := w.prepare(o)[0]; tr.Cached || len(w.ran) != 2 {
				t.Errorf("not built again (cached %v, ran %q)", tr.Cached, w.ran)
			}
			if tr := w.prepare(o)[0]; !tr.Cached {
				t.Error("built a third time")
			}
		})
	}
}

func TestSpecFileDoesNotMakeABuildAnew(t *testing.T) {
	w := newWorld(t)
	w.write(w.repo, map[string]string{"bench.yaml": "version: 1\n"})
	arm := dirArm("head", w.repo, "cp server.txt out.txt")
	w.prepare(w.options(arm))
	w.write(w.repo, map[string]string{"bench.yaml": "version: 1\nplan: {window: 2s}\n"})
	if tr := w.prepare(w.options(arm))[0]; !tr.Cached {
		t.Error("a change of the spec made everything be built again")
	}
}

func TestSame(t *testing.T) {
	w := newWorld(t)
	base := gitArm("base", "main", "cp server.txt out.txt")
	base.Env = map[string]spec.Template{"SLOW": "0"}
	base.Label = "before"
	head := dirArm("head", w.repo)
	head.Env = map[string]spec.Template{"SLOW": "1"}
	w.write(w.repo, map[string]string{"server.txt": "dirty\n"})
	o := w.options(base, head)
	o.Same = true
	trees := w.prepare(o)
	if trees[0].Digest != trees[1].Digest || trees[0].Dir == trees[1].Dir {
		t.Errorf("trees %+v and %+v", trees[0], trees[1])
	}
	if a := trees[1].Arm; a.Name != "head" || a.Env["SLOW"] != "0" || a.Label != "" || trees[1].Label != "" {
		t.Errorf("the candidate is %+v, want the baseline under its name", a)
	}
	if len(w.ran) != 1 {
		t.Errorf("built %d times, want once", len(w.ran))
	}
}

func TestFailedStep(t *testing.T) {
	w := newWorld(t)
	steps := append(shell("echo fine"), spec.Step{Run: spec.Command{Argv: []spec.Template{"sh", "-c", "echo compiling; echo 'bad: line 3' >&2; exit 7"}}})
	arm := spec.Arm{Name: "he/ad", Path: w.repo, Build: steps}
	err := w.fails(w.options(gitArm("base", "main", "true"), arm), "arm he/ad", "exit status 7", "bad: line 3")
	var b *BuildError
	if !errors.As(err, &b) {
		t.Fatalf("%T is no BuildError", err)
	}
	if b.Step != `sh -c 'echo compiling; echo '\''bad: line 3'\'' >&2; exit 7'` || b.Tail != "compiling\nbad: line 3" {
		t.Errorf("step %s, tail %q", b.Step, b.Tail)
	}
	if got := text(t, b.Log); got != "compiling\nbad: line 3\n" {
		t.Errorf("log %s holds %q", b.Log, got)
	}
}

func TestStepTimeout(t *testing.T) {
	w := newWorld(t)
	arm := dirArm("head", w.repo, "echo begun; sleep 100")
	arm.Build[0].Timeout = 200 * time.Millisecond
	err := w.fails(w.options(arm), "timeout of 200ms", "begun")
	if b := (*BuildError)(nil); !errors.As(err, &b) {
		t.Errorf("%T is no BuildError", err)
	}
}

func TestCancelledBuild(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	o := w.options(dirArm("head", w.repo, "sleep 100"))
	run := o.Exec
	o.Exec = func(ctx context.Context, c Command) error {
		if strings.HasPrefix(c.Name, "build") {
			cancel()
		}
		return run(ctx, c)
	}
	_, err := Prepare(ctx, o)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	if b := (*BuildError)(nil); errors.As(err, &b) {
		t.Error("a cancelled build is told as a failed one")
	}
}

func TestBuildSeesItsRevisionAndNotOurs(t *testing.T) {
	w := newWorld(t)
	w.git(w.repo, "tag", "-a", "-m", "x", "v1.2")
	w.commit(w.repo, "second", map[string]string{"server.txt": "two\n"})
	const ask = "git describe --dirty > version.txt; git config core.hooksPath evil; git tag mine; git commit -q --allow-empty -m x || true"
	old := gitArm("base", "v1.2", ask)
	w.write(w.repo, map[string]string{"server.txt": "three\n"})
	trees := w.prepare(w.options(old, dirArm("head", w.repo, ask)))
	if got := text(t, trees[0].Dir, "version.txt"); got != "v1.2\n" {
		t.Errorf("base is described as %q", got)
	}
	if got := text(t, trees[1].Dir, "version.txt"); !strings.HasPrefix(got, "v1.2-1-g") || !strings.HasSuffix(got, "-dirty\n") {
		t.Errorf("head is described as %q", got)
	}
	if got := w.git(w.repo, "tag"); got != "v1.2" {
		t.Errorf("the build made tags in the user's repository: %q", got)
	}
	if got := w.git(w.repo, "config", "--list", "--local"); strings.Contains(got, "hookspath") {
		t.Error("the build changed the user's configuration")
	}
	if _, err := os.Stat(filepath.Join(trees[0].Dir, ".git")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the built tree has a .git: %v", err)
	}
}

func TestBuildOutsideOfGitFindsNoRepository(t *testing.T) {
	w := newWorld(t)
	plain := filepath.Join(w.root, "plain folder ü")
	w.write(plain, map[string]string{"a.txt": "a"})
	o := w.options(dirArm("head", plain, "git rev-parse HEAD > rev.txt 2>&1 || echo none >> rev.txt"))
	o.WorkDir = filepath.Join(w.repo, ".tandem", "work") // below a repository, the worst place
	tr := w.prepare(o)[0]
	if got := text(t, tr.Dir, "rev.txt"); !strings.Contains(got, "none") {
		t.Errorf("the build found revision %s", got)
	}
	if tr.Revision != "" || tr.Dirty || tr.Source != "dir ../plain folder ü" {
		t.Errorf("revision %q, dirty %v, source %q", tr.Revision, tr.Dirty, tr.Source)
	}
}

// Case 20 of the false alarms that were seen in public: the second build left
// the first one's products in place.
func TestIdenticalTrees(t *testing.T) {
	w := newWorld(t)
	w.git(w.repo, "checkout", "-q", "-b", "topic")
	w.commit(w.repo, "docs only", map[string]string{"README": "x"})
	same := w.prepare(w.options(gitArm("base", "main"), gitArm("head", "main"), dirArm("other", w.repo)))
	if same[0].Digest != same[1].Digest {
		t.Error("two trees of one revision have different digests")
	}
	if same[0].Digest == same[2].Digest {
		t.Error("trees of two revisions have the same digest")
	}
	built := w.prepare(w.options(gitArm("base", "main", "cp server.txt out"), dirArm("other", w.repo, "cp server.txt out")))
	if built[0].Digest == built[1].Digest || built[0].Products != built[1].Products {
		t.Errorf("digests %s and %s, products %s and %s", built[0].Digest, built[1].Digest, built[0].Products, built[1].Products)
	}
}

func TestStepMayNotLeaveTheTree(t *testing.T) {
	w := newWorld(t)
	arm := dirArm("head", w.repo, "true")
	arm.Build[0].Dir = "../elsewhere"
	w.fails(w.options(arm), "leads out of the arm's tree")
	arm.Build[0].Dir = "bin"
	arm.Build[0].Run.Shell = "pwd > where; ls"
	tr := w.prepare(w.options(arm))[0]
	if got := text(t, tr.Dir, "bin/where"); filepath.Base(strings.TrimSpace(got)) != "bin" {
		t.Errorf("the step ran in %s", got)
	}
}

func TestLinksThatNameTheBuildFolder(t *testing.T) {
	w := newWorld(t)
	os.Symlink(filepath.Join(w.repo, "server.txt"), filepath.Join(w.repo, "abs"))
	os.Symlink("../outside", filepath.Join(w.repo, "escape"))
	tr := w.prepare(w.options(dirArm("head", w.repo,
		`ln -s "$PWD/server.txt" built; printf '#!%s/python\n' "$PWD" > tool`)))[0]
	for _, name := range []string{"abs", "built"} {
		if got, err := os.Readlink(filepath.Join(tr.Dir, name)); err != nil || got != "server.txt" {
			t.Errorf("link %s leads to %q (%v), want server.txt", name, got, err)
		}
	}
	all := strings.Join(tr.Warnings, "\n")
	for _, want := range []string{"escape: a link that leads out", "tool: a script whose #! line"} {
		if !strings.Contains(all, want) {
			t.Errorf("warnings %q lack %q", all, want)
		}
	}
}

func TestLFSPointersAreSaid(t *testing.T) {
	w := newWorld(t)
	pointer := "version https://git-lfs.github.com/spec/v1\noid sha256:%064d\nsize 12345\n"
	w.commit(w.repo, "lfs", map[string]string{"a.bin": fmt.Sprintf(pointer, 1), "b.bin": fmt.Sprintf(pointer, 2)})
	for _, tr := range w.prepare(w.options(gitArm("base", "main"), dirArm("head", w.repo, "true"))) {
		if all := strings.Join(tr.Warnings, "\n"); !strings.Contains(all, "a.bin and 1 more: a git LFS pointer") {
			t.Errorf("%s: warnings %q", tr.Arm.Name, all)
		}
	}
}

func TestReadOnlyTree(t *testing.T) {
	w := newWorld(t)
	for _, p := range []string{"bin/run.sh", "bin", "server.txt", "."} {
		mode := os.FileMode(0o444)
		if p != "server.txt" {
			mode = 0o555
		}
		if err := os.Chmod(filepath.Join(w.repo, p), mode); err != nil {
			t.Fatal(err)
		}
	}
	defer os.Chmod(w.repo, 0o755)
	defer os.Chmod(filepath.Join(w.repo, "bin"), 0o755)
	tr := w.prepare(w.options(dirArm("head", w.repo, "echo x >> server.txt; touch bin/new; chmod 555 bin")))[0]
	dst := CopyDir(filepath.Join(w.root, "work"), 0)
	if err := tr.Copy(t.Context(), dst); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(tr.Dir, "server.txt")); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("server.txt has mode %v (%v), want its owner able to write", info.Mode(), err)
	}
	if err := errors.Join(Remove(dst), tr.Close(), removeTree(filepath.Join(w.root, "cache"))); err != nil {
		t.Error(err)
	}
}
