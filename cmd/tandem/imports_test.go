package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestImports holds the direction of imports, so that an old journal can be
// reported anywhere and no library leaks beyond its place.
func TestImports(t *testing.T) {
	const module = "github.com/tandem-bench/tandem"
	leaf := []string{"spec"}
	allowed := map[string][]string{
		"spec":           {},
		"runner/journal": leaf, "runner/load": leaf, "runner/proc": leaf, "runner/source": leaf,
		// A host is a machine with all that proc and source do on this one.
		"runner/remote": {"spec", "runner/proc", "runner/source"},
		"runner":        {"spec", "runner/journal", "runner/load", "runner/proc", "runner/source", "runner/remote"},
		"report/stats":  {},
		"report":        {"spec", "runner/journal", "report/stats"},
		// What reads a stranger's result and what holds the token know
		// nothing of each other.
		"report/comment":             {"report"},
		"cmd/tandem/internal/github": {},
	}
	// Where a library may be imported: package, and how many files of it.
	libraries := map[string]struct {
		packages []string
		files    int
	}{
		"gopkg.in/yaml.v3":              {[]string{"spec"}, 1},
		"github.com/expr-lang/expr":     {[]string{"spec"}, 0},
		"github.com/tsenart/vegeta/v12": {[]string{"runner/load"}, 1},
		"github.com/fatih/color":        {[]string{"report", "cmd/tandem"}, 0},
		"github.com/google/go-github":   {[]string{"cmd/tandem/internal/github"}, 0},
	}
	files := map[string]map[string]bool{}
	for file, imports := range sources(t, "../..") {
		pkg := filepath.ToSlash(filepath.Dir(file))
		for _, path := range imports {
			if rest, ours := strings.CutPrefix(path, module+"/"); ours {
				if ok, known := allowed[pkg]; known && !slices.Contains(ok, rest) {
					t.Errorf("%s imports %s, which package %s may not", file, rest, pkg)
				}
			}
			for lib, rule := range libraries {
				if path != lib && !strings.HasPrefix(path, lib+"/") {
					continue
				}
				if !slices.Contains(rule.packages, pkg) {
					t.Errorf("%s imports %s, which belongs in %v", file, path, rule.packages)
				}
				if files[lib] == nil {
					files[lib] = map[string]bool{}
				}
				files[lib][file] = true
			}
		}
	}
	for lib, rule := range libraries {
		if len(files[lib]) == 0 {
			t.Errorf("nothing imports %s: is the rule out of date?", lib)
		}
		if rule.files > 0 && len(files[lib]) > rule.files {
			t.Errorf("%d files import %s, at most %d may", len(files[lib]), lib, rule.files)
		}
	}
}

// sources maps each Go file of the module, tests apart, to its imports.
func sources(t *testing.T, root string) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "examples" || name == "node_modules") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		for _, i := range f.Imports {
			found[rel] = append(found[rel], strings.Trim(i.Path.Value, `"`))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
