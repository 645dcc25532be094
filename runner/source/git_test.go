//go:build unix

package source

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// state is everything about a folder that a write would change.
func state(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		out[slashRel(dir, path)] = fmt.Sprint(info.Mode(), info.Size(), info.ModTime().UnixNano())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// clone clones a repository by the file protocol, so that depth counts.
func (w *world) clone(from, to string, args ...string) string {
	w.t.Helper()
	to = filepath.Join(w.root, to)
	w.git(w.root, append(append([]string{"clone", "-q"}, args...), "file://"+from, to)...)
	return to
}

// at makes a folder the one that the spec stands in.
func at(o Options, dir string) Options {
	o.Spec.Dir = dir
	for i := range o.Spec.Arms {
		if g := o.Spec.Arms[i].Git; g != nil && g.Repo == "" {
			g.Repo = dir
		}
	}
	return o
}

func TestNothingIsWrittenIntoTheRepository(t *testing.T) {
	w := newWorld(t)
	w.submodule("lib", "lib")
	w.git(w.repo, "checkout", "-q", "-b", "topic")
	w.commit(w.repo, "second", map[string]string{"server.txt": "two\n"})
	w.git(w.repo, "config", "core.splitIndex", "true")
	w.git(w.repo, "config", "core.sparseCheckout", "true")
	w.git(w.repo, "config", "core.hooksPath", filepath.Join(w.root, "hooks"))
	hook := "#!/bin/sh\ntouch " + filepath.Join(w.root, "hooked") + "\n"
	for _, name := range []string{"post-checkout", "post-index-change"} {
		w.write(w.root, map[string]string{"hooks/x.sh": hook})
		if err := os.Rename(filepath.Join(w.root, "hooks/x.sh"), filepath.Join(w.root, "hooks", name)); err != nil {
			t.Fatal(err)
		}
	}
	epoch := time.Unix(1e9, 0)
	os.Chtimes(filepath.Join(w.repo, "server.txt"), epoch, epoch) // git status would like to note that
	before := state(t, w.repo)
	trees := w.prepare(w.options(gitArm("base", "main", "touch made"), dirArm("head", w.repo, "touch made")))
	if d := cmp.Diff(before, state(t, w.repo)); d != "" {
		t.Errorf("the user's folder changed: %s", d)
	}
	if _, err := os.Stat(filepath.Join(w.root, "hooked")); err == nil {
		t.Error("a hook of the user's ran")
	}
	for _, tr := range trees {
		if got, want := listing(t, tr.Dir), ".gitmodules bin/run.sh lib/lib.txt made server.txt"; got != want {
			t.Errorf("%s holds %q, want %q", tr.Arm.Name, got, want)
		}
	}
}

func TestVariablesOfAGitHookAreNotFollowed(t *testing.T) {
	w := newWorld(t)
	other := filepath.Join(w.root, "other")
	w.init(other)
	w.commit(other, "x", map[string]string{"wrong.txt": "x"})
	w.vars["GIT_DIR"] = filepath.Join(other, ".git")
	w.vars["GIT_INDEX_FILE"] = filepath.Join(other, ".git", "index")
	w.vars["GIT_WORK_TREE"] = other
	if got := listing(t, w.prepare(w.options(gitArm("base", "main")))[0].Dir); got != "bin/run.sh server.txt" {
		t.Errorf("the tree holds %q", got)
	}
}

func TestMissingRevision(t *testing.T) {
	w := newWorld(t)
	w.git(w.repo, "branch", "maint")
	w.git(w.repo, "tag", "v1.0.0")
	w.git(w.repo, "tag", "v1.0.1")
	w.fails(w.options(gitArm("base", "main2")), "arm base", `no revision "main2"`, "near it: main, maint")
	w.fails(w.options(gitArm("base", "v1.0.3")), "v1.0.0, v1.0.1")
	w.fails(w.options(gitArm("base", "--all")), `no revision "--all"`)
	w.fails(w.options(gitArm("base", "HEAD:server.txt")), "no revision")
	arm := gitArm("base", "main")
	arm.Git.Repo = w.root
	w.fails(w.options(arm), "not a git repository")
	arm.Git.Repo = filepath.Join(w.root, "nowhere")
	w.fails(w.options(arm), "nowhere")
}

func TestGitIsNotInstalled(t *testing.T) {
	w := newWorld(t)
	w.vars["PATH"] = w.root
	w.fails(w.options(gitArm("base", "main")), "git was not found on PATH")
	if tr := w.prepare(w.options(dirArm("head", w.repo)))[0]; tr.Revision != "" {
		t.Errorf("revision %q without git", tr.Revision)
	}
}

func TestShallowClone(t *testing.T) {
	w := newWorld(t)
	w.git(w.repo, "checkout", "-q", "-b", "topic")
	w.commit(w.repo, "second", map[string]string{"server.txt": "two\n"})
	w.git(w.repo, "checkout", "-q", "main")
	w.commit(w.repo, "third", map[string]string{"server.txt": "three\n"})

	shallow := w.clone(w.repo, "shallow", "--depth=1", "--no-single-branch", "--branch=topic")
	w.fails(at(w.options(gitArm("base", "main")), shallow), "no merge base of HEAD and main", "fetch-depth: 0", "merge_base: false")
	tip := gitArm("base", "main", "git describe --always > v")
	tip.Git.MergeBase = false
	if got := text(t, w.prepare(at(w.options(tip), shallow))[0].Dir, "server.txt"); got != "three\n" {
		t.Errorf("the tip holds %q", got)
	}
	single := w.clone(w.repo, "single", "--depth=1", "--branch=topic")
	w.fails(at(w.options(gitArm("base", "main")), single), "no revision", "fetch-depth: 0")
}

func TestUnrelatedHistories(t *testing.T) {
	w := newWorld(t)
	w.git(w.repo, "checkout", "-q", "--orphan", "pages")
	w.commit(w.repo, "other root", nil)
	w.fails(w.options(gitArm("base", "main")), "no common ancestor", "merge_base: false")
	w.git(w.repo, "checkout", "-q", "--orphan", "unborn")
	w.fails(w.options(gitArm("base", "main")), "has no commit", "merge_base: false")
	if tr := w.prepare(w.options(dirArm("head", w.repo)))[0]; tr.Revision != "" {
		t.Errorf("an unborn HEAD has revision %q", tr.Revision)
	}
}

// A CI job's checkout has a detached HEAD and knows other branches as the
// remote's only.
func TestDetachedHeadAndRemoteBranch(t *testing.T) {
	w := newWorld(t)
	first := w.git(w.repo, "rev-parse", "HEAD")
	w.git(w.repo, "checkout", "-q", "-b", "topic")
	head := w.commit(w.repo, "second", map[string]string{"server.txt": "two\n"})
	ci := w.clone(w.repo, "ci")
	w.git(ci, "checkout", "-q", "--detach", head)
	w.git(ci, "branch", "-q", "-D", "topic")
	trees := w.prepare(at(w.options(gitArm("base", "main"), dirArm("head", ci)), ci))
	if trees[0].Revision != first || trees[1].Revision != head || trees[1].Dirty {
		t.Errorf("revisions %s and %s, dirty %v", trees[0].Revision, trees[1].Revision, trees[1].Dirty)
	}
	if all := strings.Join(trees[0].Warnings, "\n"); !strings.Contains(all, `no local branch "main"; origin/main was used`) {
		t.Errorf("warnings %q", all)
	}
}

func TestOddNames(t *testing.T) {
	w := newWorld(t)
	odd := filepath.Join(w.root, "ordner mit \"ümläut\" # 'и' 日本")
	if err := os.Rename(w.repo, odd); err != nil {
		t.Fatal(err)
	}
	w.repo = odd
	w.commit(odd, "odd", map[string]string{"sub dir/ä\tb\nc.txt": "x", "-n": "y"})
	w.write(odd, map[string]string{"sub dir/neu é.txt": "z"})
	trees := w.prepare(w.options(gitArm("base", "main", "git rev-parse HEAD > rev"), dirArm("head", odd, "git rev-parse HEAD > rev")))
	if got, want := listing(t, trees[1].Dir), "-n bin/run.sh rev server.txt sub dir/neu é.txt sub dir/ä\tb\nc.txt"; got != want {
		t.Errorf("head holds %q, want %q", got, want)
	}
	for _, tr := range trees {
		if got := strings.TrimSpace(text(t, tr.Dir, "rev")); got != tr.Revision {
			t.Errorf("%s: a build saw revision %q, not %s", tr.Arm.Name, got, tr.Revision)
		}
	}
	if !trees[1].Dirty {
		t.Error("an untracked file did not make the tree dirty")
	}
}

func TestKindsOfRepositories(t *testing.T) {
	w := newWorld(t)
	w.git(w.repo, "branch", "topic")
	bare := w.clone(w.repo, "bare.git", "--bare")
	linked := filepath.Join(w.root, "linked")
	w.git(w.repo, "worktree", "add", "-q", linked, "topic")
	sub := filepath.Join(w.repo, "bin")
	partial := w.clone(w.repo, "partial", "--filter=blob:none", "--no-checkout", "-c", "uploadpack.allowfilter=true")
	sha256 := filepath.Join(w.root, "sha256")
	w.git(w.root, "init", "-q", "--object-format=sha256", sha256)
	w.commit(sha256, "first", map[string]string{"server.txt": "one\n", "bin/run.sh": "#!/bin/sh\n"})
	for _, dir := range []string{bare, linked, sub, partial, sha256} {
		arm := gitArm("base", "main", "git rev-parse HEAD > rev")
		arm.Git.Repo = dir
		tr := w.prepare(w.options(arm))[0]
		if got := listing(t, tr.Dir); got != "bin/run.sh rev server.txt" {
			t.Errorf("%s: the tree holds %q", dir, got)
		}
		if got := strings.TrimSpace(text(t, tr.Dir, "rev")); got != tr.Revision {
			t.Errorf("%s: the build saw revision %q", dir, got)
		}
		if dir != w.repo && !strings.HasPrefix(tr.Source, "git main of ") {
			t.Errorf("%s: source %q", dir, tr.Source)
		}
	}
}

func TestFolderThatIsAPartOfItsRepository(t *testing.T) {
	w := newWorld(t)
	w.commit(w.repo, "more", map[string]string{"server/main.txt": "x", "other/y.txt": "y"})
	w.write(w.repo, map[string]string{"other/dirty.txt": "z"})
	sub := filepath.Join(w.repo, "server")
	trees := w.prepare(w.options(gitArm("base", "main"), dirArm("head", sub)))
	head := trees[1]
	if head.Dirty {
		t.Error("a change elsewhere in the repository made the folder dirty")
	}
	if all := strings.Join(head.Warnings, "\n"); !strings.Contains(all, "folder server of its repository") {
		t.Errorf("warnings %q", all)
	}
	both := w.prepare(w.options(dirArm("base", sub), dirArm("head", sub)))
	if n := len(both[0].Warnings) + len(both[1].Warnings); n != 0 {
		t.Errorf("two folders are warned of: %q %q", both[0].Warnings, both[1].Warnings)
	}
}

// submodule makes a repository of that name and adds it to the world's own.
func (w *world) submodule(name, path string) (repo string) {
	w.t.Helper()
	repo = filepath.Join(w.root, name)
	w.init(repo)
	w.commit(repo, "first", map[string]string{name + ".txt": "1\n"})
	w.git(w.repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../"+name, path)
	w.commit(w.repo, "add "+name, nil)
	return repo
}

func TestSubmodules(t *testing.T) {
	w := newWorld(t)
	lib := filepath.Join(w.root, "lib")
	w.init(lib)
	w.init(filepath.Join(w.root, "deep"))
	w.commit(filepath.Join(w.root, "deep"), "first", map[string]string{"deep.txt": "d1\n"})
	w.git(lib, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../deep", "vendor/deep")
	w.commit(lib, "first", map[string]string{"lib.txt": "l1\n"})
	w.git(w.repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "--name", "a.b/lib", "../lib", "third party/lib")
	old := w.commit(w.repo, "add lib", nil)
	w.commit(lib, "second", map[string]string{"lib.txt": "l2\n"})
	w.git(filepath.Join(w.repo, "third party/lib"), "-c", "protocol.file.allow=always", "pull", "-q")
	w.commit(w.repo, "newer lib", nil)

	want := ".gitmodules bin/run.sh server.txt third party/lib/.gitmodules third party/lib/lib.txt third party/lib/vendor/deep/deep.txt"
	check := func(tr *Tree, content string) {
		t.Helper()
		if got := listing(t, tr.Dir); got != want {
			t.Errorf("the tree holds %q, want %q", got, want)
		}
		if got := text(t, tr.Dir, "third party/lib/lib.txt"); got != content {
			t.Errorf("the submodule holds %q, want %q", got, content)
		}
	}
	// The user's clone has lib (but not deep, which git's default does not
	// let a submodule fetch from a file).
	w.fails(w.options(gitArm("base", old)), "submodule third party/lib: submodule vendor/deep", "transport 'file' not allowed")
	w.vars["GIT_CONFIG_COUNT"], w.vars["GIT_CONFIG_KEY_0"], w.vars["GIT_CONFIG_VALUE_0"] = "1", "protocol.file.allow", "always"
	trees := w.prepare(w.options(gitArm("base", old), gitArm("head", "main")))
	check(trees[0], "l1\n")
	check(trees[1], "l2\n")

	// A clone without submodules, as CI makes one: everything is fetched, once.
	plain := w.clone(w.repo, "plain")
	check(w.prepare(at(w.options(gitArm("base", "main")), plain))[0], "l2\n")
	for _, name := range []string{"lib", "deep"} {
		if err := os.Rename(filepath.Join(w.root, name), filepath.Join(w.root, name+"-gone")); err != nil {
			t.Fatal(err)
		}
	}
	w.said = nil
	check(w.prepare(at(w.options(gitArm("base", "main")), plain))[0], "l2\n")
	if all := strings.Join(w.said, "\n"); strings.Contains(all, "fetching") {
		t.Errorf("fetched again: %s", all)
	}
}

func TestSubmoduleTrouble(t *testing.T) {
	w := newWorld(t)
	w.vars["GIT_CONFIG_COUNT"], w.vars["GIT_CONFIG_KEY_0"], w.vars["GIT_CONFIG_VALUE_0"] = "1", "protocol.file.allow", "always"
	lib := w.submodule("lib", "lib")
	link := "160000," + w.git(lib, "rev-parse", "HEAD") + ","
	start := w.git(w.repo, "rev-parse", "HEAD")
	try := func(modules string, path string) Options {
		w.git(w.repo, "checkout", "-q", "-f", start)
		w.write(w.repo, map[string]string{".gitmodules": modules})
		w.git(w.repo, "update-index", "--add", "--cacheinfo", link+path)
		w.git(w.repo, "add", ".gitmodules")
		w.git(w.repo, "commit", "-q", "-m", "x")
		return w.options(gitArm("base", w.git(w.repo, "rev-parse", "HEAD")))
	}
	own := "[submodule \"lib\"]\n\tpath = lib\n\turl = ../lib\n"
	tr := w.prepare(try(own, "stray"))[0]
	if all := strings.Join(tr.Warnings, "\n"); !strings.Contains(all, "submodule stray: .gitmodules does not say") {
		t.Errorf("warnings %q", all)
	}
	w.fails(try(own+"[submodule \"../../x\"]\n\tpath = evil\n\turl = ../lib\n", "evil"), "leads out of the repository")
	w.fails(try(own+"[submodule \"opt\"]\n\tpath = opt\n\turl = --upload-pack=touch${IFS}x\n", "opt"), "submodule opt")
	w.fails(try(own+"[submodule \"ext\"]\n\tpath = ext\n\turl = ext::sh -c touch% x\n", "ext"), "transport 'ext' not allowed")
	w.fails(try(own+"[submodule \"gone\"]\n\tpath = gone\n\turl = ../gone\n", "gone"), "submodule gone")
	w.prepare(try(own+"[submodule \"none\"]\n\tpath = none\n\turl = ../gone\n\tupdate = none\n", "none"))
}

func TestRelativeURL(t *testing.T) {
	for _, c := range []struct{ base, rel, want string }{
		{"https://example.com/a/b.git", "../c.git", "https://example.com/a/c.git"},
		{"https://example.com/a/b", "../../x/c", "https://example.com/x/c"},
		{"https://example.com/a/b/", "./c", "https://example.com/a/b/c"},
		{"git@example.com:a/b.git", "../c.git", "git@example.com:a/c.git"},
		{"git@example.com:b.git", "../c.git", "git@example.com:c.git"},
		{"/srv/git/b", ".././c", "/srv/git/c"},
	} {
		if got := relativeURL(c.base, c.rel); got != c.want {
			t.Errorf("relativeURL(%q, %q) = %q, want %q", c.base, c.rel, got, c.want)
		}
	}
}

func TestStatusPaths(t *testing.T) {
	got := statusPaths(" M a b\x00R  new\x00old\x00?? dir/é\x00")
	if d := cmp.Diff([]string{"a b", "new", "dir/é"}, got); d != "" {
		t.Error(d)
	}
}

// What git prints holds whatever names a repository holds: nothing of it may
// panic, and what is found has to have been there.
func FuzzGitOutput(f *testing.F) {
	f.Add(" M a\x00R  b\x00c\x00", "160000 commit abc\tlib\x00", "submodule.a.b.path\nlib\x00submodule.a.b.url\n../x\x00")
	f.Add("", "160000 commit abc\t\x00", "submodule.path\x00submodule..path\n\x00")
	f.Fuzz(func(t *testing.T, status, tree, config string) {
		for _, p := range statusPaths(status) {
			if !strings.Contains(status, p) {
				t.Errorf("status path %q", p)
			}
		}
		links := parseGitlinks(tree)
		applyModules(links, config)
		for _, l := range links {
			if !strings.Contains(tree, l.path) || !strings.Contains(config, l.name) || !strings.Contains(config, l.url) {
				t.Errorf("link %+v", l)
			}
		}
	})
}

// A git that never ends is ended, and said.
func TestGitThatHangs(t *testing.T) {
	w := newWorld(t)
	w.write(w.root, map[string]string{"bin/git.sh": "#!/bin/sh\nexec sleep 600\n"})
	if err := os.Rename(filepath.Join(w.root, "bin", "git.sh"), filepath.Join(w.root, "bin", "git")); err != nil {
		t.Fatal(err)
	}
	env := func(name string) (string, bool) {
		if name == "PATH" {
			return filepath.Join(w.root, "bin") + string(os.PathListSeparator) + os.Getenv("PATH"), true
		}
		return w.env(name)
	}
	_, err := git{dir: w.repo, env: env, limit: 50 * time.Millisecond}.out(t.Context(), "-c", "a=b", "status")
	want := "git status in " + w.repo + ": it was ended after 50ms; a filter"
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("found error %v, expected %s", err, want)
	}
}
