//go:build unix

package source

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tandem-bench/tandem/spec"
)

// kept are the names in the cache's folder of builds.
func (w *world) kept() []string {
	w.t.Helper()
	found, err := os.ReadDir(filepath.Join(w.root, "cache", "builds"))
	if err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, d := range found {
		out = append(out, d.Name())
	}
	return out
}

func TestDamagedBuildIsMadeAgain(t *testing.T) {
	for name, damage := range map[string]func(dir string) error{
		"no entry":      func(dir string) error { return os.Remove(filepath.Join(dir, "entry.json")) },
		"torn entry":    func(dir string) error { return os.WriteFile(filepath.Join(dir, "entry.json"), []byte(`{"dig`), 0o644) },
		"no tree":       func(dir string) error { return os.RemoveAll(filepath.Join(dir, "tree")) },
		"file missing":  func(dir string) error { return os.Remove(filepath.Join(dir, "tree", "out.txt")) },
		"file emptied":  func(dir string) error { return os.Truncate(filepath.Join(dir, "tree", "out.txt"), 0) },
		"file too many": func(dir string) error { return os.WriteFile(filepath.Join(dir, "tree", "x"), nil, 0o644) },
		"mode changed":  func(dir string) error { return os.Chmod(filepath.Join(dir, "tree", "out.txt"), 0o755) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			arm := gitArm("base", "main", "cp server.txt out.txt")
			w.prepare(w.options(arm))
			if err := damage(filepath.Join(w.root, "cache", "builds", w.kept()[0])); err != nil {
				t.Fatal(err)
			}
			tr := w.prepare(w.options(arm))[0]
			if got := listing(t, tr.Dir); tr.Cached || got != "bin/run.sh out.txt server.txt" {
				t.Errorf("cached %v, tree %q", tr.Cached, got)
			}
			if tr := w.prepare(w.options(arm))[0]; !tr.Cached {
				t.Error("the build made again was not kept")
			}
		})
	}
}

func TestCacheThatCannotBeUsed(t *testing.T) {
	w := newWorld(t)
	o := w.options(gitArm("base", "main", "cp server.txt out.txt"))
	w.write(w.root, map[string]string{"file": ""})
	o.CacheDir = filepath.Join(w.root, "file", "cache")
	for range 2 {
		tr := w.prepare(o)[0]
		if all := strings.Join(tr.Warnings, "\n"); tr.Cached || !strings.Contains(all, "not kept for the next run") {
			t.Errorf("cached %v, warnings %q", tr.Cached, all)
		}
	}
}

func TestFailedBuildIsNotKept(t *testing.T) {
	w := newWorld(t)
	w.fails(w.options(gitArm("base", "main", "touch half; false")), "exit status 1")
	if kept := w.kept(); len(kept) != 0 {
		t.Errorf("kept %q", kept)
	}
}

// Runs at once, each with a work folder of its own, build the same thing once.
func TestRunsAtOnce(t *testing.T) {
	w := newWorld(t)
	arm := gitArm("base", "main", "sleep 0.3; cp server.txt out.txt")
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		wg.Go(func() {
			dir, release, err := OpenWork(filepath.Join(w.root, "work"))
			if err != nil {
				errs[i] = err
				return
			}
			o := w.options(arm)
			o.WorkDir, o.LogDir = dir, filepath.Join(w.root, "logs", fmt.Sprint(i))
			trees, err := Prepare(t.Context(), o)
			if err == nil && trees[0].Products == "" {
				err = errors.New("nothing was built")
			}
			errs[i] = errors.Join(err, release())
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if len(w.ran) != 1 {
		t.Errorf("built %d times, want once", len(w.ran))
	}
	if got := listing(t, filepath.Join(w.root, "work")); strings.Contains(got, "/") {
		t.Errorf("left in the work folder: %s", got)
	}
}

func TestPrune(t *testing.T) {
	w := newWorld(t)
	var arms []spec.Arm
	for i := range 5 {
		arms = append(arms, gitArm(fmt.Sprint("arm", i), "main", fmt.Sprintf("head -c %d /dev/zero > out", (i+1)*1000)))
	}
	for i, arm := range arms {
		w.prepare(w.options(arm))
		for _, name := range w.kept() {
			path := filepath.Join(w.root, "cache", "builds", name)
			if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) < 30*time.Minute {
				when := time.Now().Add(time.Duration(i-10) * time.Hour)
				os.Chtimes(path, when, when)
			}
		}
	}
	if n := len(w.kept()); n != 5 {
		t.Fatalf("%d builds are kept, want 5", n)
	}
	c := newCache(filepath.Join(w.root, "cache"))
	torn := filepath.Join(c.dir, "builds", "tmp-"+strings.Repeat("ab", 32))
	w.write(torn, map[string]string{"tree/half": "x"})

	hits := func() (out string) {
		for _, arm := range arms {
			entry := "-"
			if o := w.options(arm); w.isKept(o) {
				entry = arm.Name[3:]
			}
			out += entry
		}
		return out
	}
	if got := hits(); got != "01234" {
		t.Fatalf("kept %s", got)
	}
	c.prune(3, 1<<40)
	if _, err := os.Stat(torn); !errors.Is(err, os.ErrNotExist) {
		t.Error("what a killed run left is still there")
	}
	if got := hits(); got != "--234" {
		t.Errorf("after pruning to 3 builds: %s", got)
	}
	c.prune(3, 5500) // the newest alone holds 5,000 bytes and more
	if got := hits(); got != "----4" {
		t.Errorf("after pruning to 5,500 bytes: %s", got)
	}
	held, err := tryLockFile(c.lockPath(w.kept()[0]))
	if err != nil {
		t.Fatal(err)
	}
	c.prune(0, 0)
	if got := hits(); got != "----4" {
		t.Errorf("a build that another run holds was removed: %s", got)
	}
	held()
	c.prune(1, 0)
	if got := hits(); got != "----4" {
		t.Errorf("the newest build was removed for its size: %s", got)
	}
}

// isKept reports whether the only arm's build is in the cache, without
// touching it.
func (w *world) isKept(o Options) bool {
	w.t.Helper()
	p, err := newPreparer(o)
	if err != nil {
		w.t.Fatal(err)
	}
	src, err := p.open(w.t.Context(), o.Spec.Arms[0])
	if err != nil {
		w.t.Fatal(err)
	}
	steps, err := resolveSteps(o.Spec.Arms[0], o.Env)
	if err != nil {
		w.t.Fatal(err)
	}
	key, err := p.key(w.t.Context(), src, steps)
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = os.Stat(filepath.Join(w.root, "cache", "builds", key))
	return err == nil
}

// A folder that is edited while it is copied must not be kept under the
// digest that it had before.
func TestFolderThatChangesWhileItIsCopied(t *testing.T) {
	w := newWorld(t)
	arm := dirArm("head", w.repo, "cp server.txt out.txt")
	o := w.options(arm)
	said := o.Progress
	o.Progress = func(s string) {
		if strings.Contains(s, "copying") {
			w.write(w.repo, map[string]string{"server.txt": "edited\n"})
		}
		said(s)
	}
	tr := w.prepare(o)[0]
	if all := strings.Join(tr.Warnings, "\n"); !strings.Contains(all, "changed while it was copied") {
		t.Errorf("warnings %q", all)
	}
	if kept := w.kept(); len(kept) != 0 {
		t.Errorf("kept %q", kept)
	}
}

func TestToolsOf(t *testing.T) {
	for _, c := range []struct {
		argv []string
		want string
	}{
		{[]string{"npm", "ci"}, "npm"},
		{[]string{"sh", "-c", "npm ci && CC=clang make -j2; (cd x && go build) | tee log"}, "npm make cd go tee"},
		{[]string{"sh", "-c", "exec env A=1 \"cargo\" build\nif true; then cmake .; fi"}, "cargo true cmake fi"},
		{[]string{"sh", "-c", "  "}, ""},
		{nil, ""},
	} {
		if got := strings.Join(toolsOf(c.argv), " "); got != c.want {
			t.Errorf("toolsOf(%q) = %q, want %q", c.argv, got, c.want)
		}
	}
}

func TestOpenWork(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "work")
	a, releaseA, err := OpenWork(parent)
	if err != nil {
		t.Fatal(err)
	}
	b, releaseB, err := OpenWork(parent)
	if err != nil {
		t.Fatal(err)
	}
	if a == b || len(a) != len(b) {
		t.Errorf("work folders %s and %s", a, b)
	}
	// What a killed run left: files, and no lock.
	for _, dir := range []string{a, b, filepath.Join(parent, "w02")} {
		if err := os.MkdirAll(filepath.Join(dir, "tree0000", "x"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(parent, "w02.lock"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := releaseB(); err != nil {
		t.Error(err)
	}
	c, releaseC, err := OpenWork(parent)
	if err != nil {
		t.Fatal(err)
	}
	if c != b || listing(t, c) != "" {
		t.Errorf("got %s, want %s empty", c, b)
	}
	if _, err := os.Stat(filepath.Join(parent, "w02")); !errors.Is(err, os.ErrNotExist) {
		t.Error("what a killed run left is still there")
	}
	if _, err := os.Stat(filepath.Join(a, "tree0000", "x")); err != nil {
		t.Errorf("a folder in use was cleaned: %v", err)
	}
	if err := errors.Join(releaseA(), releaseC()); err != nil {
		t.Error(err)
	}
}

func TestWorkParent(t *testing.T) {
	for _, c := range []struct {
		vars map[string]string
		want string
	}{
		{map[string]string{"XDG_CACHE_HOME": "/x/cache", "HOME": "/home/u"}, "/x/cache/tandem/work"},
		{map[string]string{"XDG_CACHE_HOME": "relative", "HOME": "/home/u"}, "/home/u/.cache/tandem/work"},
		{nil, filepath.Join(os.TempDir(), fmt.Sprintf("tandem-%d", os.Getuid()), "work")},
	} {
		env := func(n string) (string, bool) { v, ok := c.vars[n]; return v, ok }
		if got := WorkParent(env); got != c.want {
			t.Errorf("WorkParent with %v is %s, want %s", c.vars, got, c.want)
		}
	}
}
