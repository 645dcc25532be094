//go:build unix

package source

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tandem-bench/tandem/spec"
)

// A folder that a run made for its report is no part of the next run's tree;
// one that holds anything else is.
func TestReportsAreNoPartOfATree(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"bench.md", "out/deep/bench.json", "both/bench.html", "both/index.js", "bench.yaml"} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(root, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := newSkipper(Options{Spec: &spec.Spec{Dir: root, Path: "bench.yaml", Report: []spec.Output{
		{Path: "bench.md"}, {Path: "out/deep/bench.json"}, {Path: "both/bench.html"}, {Path: "empty/later.md"},
	}}})
	for rel, want := range map[string]bool{
		"bench.md": true, "out": true, "out/deep": true, "out/deep/bench.json": true,
		"both": false, "both/bench.html": true, "both/index.js": false, "empty": false, "bench.yaml": false, ".git/HEAD": true,
	} {
		if got := s.refuses(root, rel); got != want {
			t.Errorf("%s: left out is %v, want %v", rel, got, want)
		}
	}
}
