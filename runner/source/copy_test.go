//go:build unix

package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// sameTree says where two trees differ in anything that a copy preserves.
func sameTree(t *testing.T, a, b string) {
	t.Helper()
	sa, sb := state(t, a), state(t, b)
	for path, was := range sa {
		if sb[path] != was && path != "." {
			t.Errorf("%s was %s, is %s", path, was, sb[path])
		}
	}
	if len(sa) != len(sb) {
		t.Errorf("%d paths became %d", len(sa), len(sb))
	}
	ma, err := scan(t.Context(), a, nil)
	if err != nil {
		t.Fatal(err)
	}
	mb, err := scan(t.Context(), b, nil)
	if err != nil {
		t.Fatal(err)
	}
	if ma.digest(nil) != mb.digest(nil) {
		t.Error("contents differ")
	}
}

func TestCopyPreserves(t *testing.T) {
	w := newWorld(t)
	src := filepath.Join(w.root, "src")
	w.write(src, map[string]string{
		"a.txt": "a", "run.sh": "#!/bin/sh\n", "empty": "", "d/e/f/deep.txt": "x", "d/locked": "y", "secret": "z",
	})
	old := time.Unix(1e9, 123456789)
	for path, mode := range map[string]os.FileMode{"secret": 0o600, "run.sh": 0o755 | os.ModeSetuid, "d/locked": 0o444, "d/e": 0o555, "d": 0o755 | os.ModeSetgid} {
		if err := os.Chmod(filepath.Join(src, path), mode); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"l": "a.txt", "dangling": "nothing", "up": "../../etc/passwd", "abs": "/etc/hostname", "dir": "d"} {
		if err := os.Symlink(target, filepath.Join(src, name)); err != nil {
			t.Fatal(err)
		}
		if err := setLinkTime(filepath.Join(src, name), old); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(filepath.Join(src, "a.txt"), filepath.Join(src, "hard")); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"a.txt", "d/e/f", "d/e", "d", "."} {
		if err := os.Chtimes(filepath.Join(src, p), old, old); err != nil {
			t.Fatal(err)
		}
	}
	dst := filepath.Join(w.root, "dst")
	if _, err := copyTree(t.Context(), src, dst, copyOptions{}); err != nil {
		t.Fatal(err)
	}
	sameTree(t, src, dst)
	// No file is shared: neither with the original nor between two names.
	w.write(dst, map[string]string{"hard": "changed"})
	if text(t, src, "a.txt") != "a" || text(t, src, "hard") != "a" || text(t, dst, "a.txt") != "a" {
		t.Error("a write to one copy showed in another")
	}
	if err := errors.Join(removeTree(src), removeTree(dst)); err != nil {
		t.Error(err)
	}
}

// Whatever tree there is, its copy is the same and its digest tells any
// change of it.
func TestCopyAndDigestOfAnyTree(t *testing.T) {
	ctx := context.Background()
	root := t.TempDir()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		src, dst := filepath.Join(root, fmt.Sprint(n)), filepath.Join(root, fmt.Sprint(n, "copy"))
		name := rapid.StringMatching(`[a-c ]\PC?[x-z]`).Filter(func(s string) bool { return filepath.IsLocal(s) && !strings.ContainsRune(s, '/') })
		tree := rapid.MapOf(rapid.Custom(func(rt *rapid.T) string {
			return filepath.Join(rapid.SliceOfN(name, 1, 3).Draw(rt, "path")...)
		}), rapid.SampledFrom([]string{"", "x", "yy", "->x", "->../y"})).Draw(rt, "tree")
		os.Mkdir(src, 0o755)
		for path, content := range tree {
			full := filepath.Join(src, path)
			if os.MkdirAll(filepath.Dir(full), 0o755) != nil {
				continue // its folder is a file
			}
			if target, ok := strings.CutPrefix(content, "->"); ok {
				os.Symlink(target, full)
			} else {
				os.WriteFile(full, []byte(content), 0o644)
			}
		}
		if _, err := copyTree(ctx, src, dst, copyOptions{}); err != nil {
			rt.Fatal(err)
		}
		a, err := scan(ctx, src, nil)
		if err != nil {
			rt.Fatal(err)
		}
		b, err := scan(ctx, dst, nil)
		if err != nil {
			rt.Fatal(err)
		}
		if a.digest(nil) != b.digest(nil) || b.changedSince(a) != "" {
			rt.Fatal("the copy differs")
		}
		for i := range b.entries {
			was := b.entries[i]
			switch was.kind {
			case file:
				b.entries[i].exec = !was.exec
			case link:
				b.entries[i].target += "x"
			case folder:
				b.entries[i].path += "x"
			}
			if a.digest(nil) == b.digest(nil) {
				rt.Fatalf("a change of %s is not seen", was.path)
			}
			b.entries[i] = was
		}
	})
}

func TestCopyRefuses(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	for _, c := range []struct{ src, dst, want string }{
		{w.repo, filepath.Join(w.repo, "inside"), "into itself"},
		{w.repo, w.repo, "into itself"},
		{filepath.Join(w.root, "none"), filepath.Join(w.root, "x"), "no such file"},
		{filepath.Join(w.repo, "server.txt"), filepath.Join(w.root, "x"), "is not a folder"},
		{filepath.Join(w.repo, "bin"), filepath.Join(w.root, "home"), "exists"},
	} {
		if _, err := copyTree(ctx, c.src, c.dst, copyOptions{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("copy of %s to %s: %v, want %q", c.src, c.dst, err, c.want)
		}
	}
	if got := listing(t, filepath.Join(w.root, "home")); got != "gitconfig" {
		t.Errorf("a refused copy changed what was there: %q", got)
	}
}

func TestCopyOfAClosedTree(t *testing.T) {
	w := newWorld(t)
	tr := w.prepare(w.options(dirArm("head", w.repo)))[0]
	if err := errors.Join(tr.Close(), tr.Close()); err != nil {
		t.Error(err)
	}
	if err := tr.Copy(t.Context(), CopyDir(w.root, 1)); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("copy of a closed tree: %v", err)
	}
}

func TestCancelledCopyLeavesNothing(t *testing.T) {
	w := newWorld(t)
	for i := range 300 {
		w.write(w.repo, map[string]string{fmt.Sprintf("many/%d", i): "x"})
	}
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	dst := filepath.Join(w.root, "dst")
	_, err := copyTree(ctx, w.repo, dst, copyOptions{skip: func(string) bool {
		if n++; n == 200 {
			cancel()
		}
		return false
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(dst); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the cancelled copy is still there: %v", err)
	}
}

func TestSparseFile(t *testing.T) {
	w := newWorld(t)
	src := filepath.Join(w.root, "src")
	w.write(src, map[string]string{"small": "x"})
	f, err := os.Create(filepath.Join(src, "sparse"))
	if err != nil {
		t.Fatal(err)
	}
	const size = 1 << 33 // a full copy of this would be noticed
	for _, at := range []int64{0, 1 << 20, size - 5} {
		if _, err := f.WriteAt([]byte("hello"), at); err != nil {
			t.Fatal(err)
		}
	}
	f.Close()
	dst := filepath.Join(w.root, "dst")
	if _, err := copyTree(t.Context(), src, dst, copyOptions{}); err != nil {
		t.Fatal(err)
	}
	out, err := os.Open(filepath.Join(dst, "sparse"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	info, err := out.Stat()
	if err != nil || info.Size() != size {
		t.Fatalf("size %d (%v), want %d", info.Size(), err, int64(size))
	}
	if used := info.Sys().(*syscall.Stat_t).Blocks * 512; used > 1<<20 {
		t.Errorf("the copy takes %d bytes on disk", used)
	}
	for _, at := range []int64{0, 1 << 20, size - 5} {
		got := make([]byte, 5)
		if _, err := out.ReadAt(got, at); err != nil && err != io.EOF || string(got) != "hello" {
			t.Errorf("at %d there is %q (%v)", at, got, err)
		}
	}
}

func TestCopyDirsHaveOneLength(t *testing.T) {
	for _, n := range []int{0, 9, 10, 99, 1000, 9999} {
		if got, want := len(CopyDir("/w", n)), len(treeDir("/w", 0)); got != want {
			t.Errorf("%s has length %d, want %d", CopyDir("/w", n), got, want)
		}
	}
}
