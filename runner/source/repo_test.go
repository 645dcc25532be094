//go:build unix

package source

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRepoReadsFilesOfACommit(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	r := OpenRepo(filepath.Join(w.repo, "bench"), w.env)
	w.commit(w.repo, "bench", map[string]string{"bench/bench.yaml": "one\n\n", "bench/empty": ""})
	if err := os.Symlink("bench.yaml", filepath.Join(w.repo, "bench", "link")); err != nil {
		t.Fatal(err)
	}
	base := w.commit(w.repo, "a link", nil)
	w.commit(w.repo, "change", map[string]string{"bench/bench.yaml": "two"})
	for name, want := range map[string]string{"bench.yaml": "one\n\n", "empty": ""} {
		text, found, err := r.File(ctx, base, name)
		if err != nil || !found || string(text) != want {
			t.Errorf("%s: %q, %v, %v", name, text, found, err)
		}
	}
	for _, name := range []string{"missing", "link", "../bench"} {
		if text, found, err := r.File(ctx, base, name); found || err != nil {
			t.Errorf("%s: %q, %v, %v", name, text, found, err)
		}
	}
	if _, _, err := r.File(ctx, "no-such-commit", "bench.yaml"); err == nil {
		t.Error("an unknown commit has files")
	}
}

func TestRepoFindsMergeBaseAndChanges(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	base := w.commit(w.repo, "bench", map[string]string{"bench/bench.yaml": "1", "order.lua": "1", "bench/data.csv": "1", "app.js": "1"})
	w.git(w.repo, "checkout", "-q", "-b", "pr")
	w.commit(w.repo, "change", map[string]string{"bench/bench.yaml": "2", "order.lua": "2", "app.js": "2"})
	w.git(w.repo, "checkout", "-q", "main")
	tip := w.commit(w.repo, "main goes on", map[string]string{"app.js": "3"})
	w.git(w.repo, "checkout", "-q", "pr")
	if err := os.WriteFile(filepath.Join(w.repo, "bench", "data.csv"), []byte("2"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := OpenRepo(filepath.Join(w.repo, "bench"), w.env)
	head, err := r.Commit(ctx, "pr")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := r.MergeBase(ctx, tip, head); got != base || err != nil {
		t.Errorf("merge base %s, %v; want %s", got, err, base)
	}
	changed, err := r.Changed(ctx, base, []string{"bench.yaml", "order.lua", "data.csv", "../../outside", "none.txt", "a*"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"bench/bench.yaml", "bench/data.csv", "order.lua"}, changed); diff != "" {
		t.Error(diff)
	}
	if changed, err := r.Changed(ctx, base, []string{"../../outside"}); len(changed) > 0 || err != nil {
		t.Errorf("%v, %v", changed, err)
	}
	w.git(w.repo, "checkout", "-q", "--orphan", "alone")
	alone := w.commit(w.repo, "alone", nil)
	if _, err := r.MergeBase(ctx, base, alone); err == nil || !strings.Contains(err.Error(), "no common ancestor") {
		t.Errorf("%v", err)
	}
}
