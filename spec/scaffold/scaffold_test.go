package scaffold

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/tandem-bench/tandem/spec"
)

var update = flag.Bool("update", false, "write the golden files")

// TestMake compares the spec that is written for each repository of
// testdata: an archive of its files, with options in its comment and the
// spec that is expected as the file "want".
func TestMake(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d repositories in testdata: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := Make(fsOf(ar), optionsOf(t, ar))
			text := "# found " + strings.Join(got.Found, "; ") + "\n" + got.Text
			checkSpec(t, ar, got.Text)
			if *update {
				ar.Files = append(ar.Files[:len(ar.Files)-1], txtar.File{Name: "want", Data: []byte(text)})
				if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want := ar.Files[len(ar.Files)-1]
			if want.Name != "want" {
				t.Fatalf("the last file is %s, expected want", want.Name)
			}
			if diff := cmp.Diff(string(want.Data), text); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func fsOf(ar *txtar.Archive) fstest.MapFS {
	files := fstest.MapFS{}
	for _, f := range ar.Files {
		if f.Name != "want" {
			files[f.Name] = &fstest.MapFile{Data: f.Data}
		}
	}
	return files
}

func optionsOf(t *testing.T, ar *txtar.Archive) Options {
	o := Options{Name: "repo", Branch: "main"}
	for line := range strings.SplitSeq(strings.TrimSpace(string(ar.Comment)), "\n") {
		switch key, val, _ := strings.Cut(line, ": "); key {
		case "name":
			o.Name = val
		case "branch":
			o.Branch = strings.TrimSuffix(val, "none")
		case "subtree":
			o.Subtree = val
		case "":
		default:
			t.Fatalf("unknown option %q", line)
		}
	}
	return o
}

// checkSpec demands that a spec validates without an error in a folder that
// has the files.
func checkSpec(t *testing.T, ar *txtar.Archive, text string) {
	t.Helper()
	root := t.TempDir()
	dir := filepath.Join(root, filepath.FromSlash(optionsOf(t, ar).Subtree))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(root, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, diags := spec.Parse(filepath.Join(dir, spec.FileName), []byte(text), spec.Options{Env: func(string) (string, bool) { return "", false }})
	if len(diags) > 0 {
		var b bytes.Buffer
		_ = spec.WriteText(&b, diags)
		t.Errorf("the spec does not validate:\n%s\n%s", b.String(), text)
	}
}

// FuzzMake looks for a repository whose spec does not validate.
func FuzzMake(f *testing.F) {
	f.Add("package.json", `{"scripts":{"start":"node x.js --port 3"},"main":"x.js"}`, "x.js", "http.createServer().listen(3000)", "main")
	f.Add("package.json", `{"bin":{"a":"b: c"}}`, "Makefile", "all:\n", "on")
	f.Add("go.mod", "module x", "main.go", "package main\nimport \"net/http\"\nvar p = flag.String(\"addr\", \"\", \"\")\nmux.HandleFunc(\"GET /x/{$}\", f)", "v1.0")
	f.Add("Procfile", "web: gunicorn ${X} #c", "requirements.txt", "x", "feature/'q'")
	f.Add("Dockerfile", "CMD [\"a\", \"b: c\\\"\"]\nEXPOSE 80", "Makefile", "run:", "1")
	f.Add("Cargo.toml", "name = \"x\"\naxum = 1", "src/main.rs", "route(\"/a-b/c\")", "main")
	f.Add("app.py", "@app.route('/x')", "start.sh", "", "-")
	f.Fuzz(func(t *testing.T, name1, text1, name2, text2, branch string) {
		files := fstest.MapFS{name1: {Data: []byte(text1)}, name2: {Data: []byte(text2)}}
		got := Make(files, Options{Name: "x", Branch: branch})
		_, diags := spec.Parse("bench.yaml", []byte(got.Text), spec.Options{})
		for _, d := range diags {
			// A branch that is no revision and a command that names a shell
			// variable are the user's; the form must be right.
			if d.Severity == spec.Error && (d.Kind == "syntax" || d.Kind == "unknown-key" || d.Kind == "name" || d.Kind == "wrong-type") {
				t.Fatalf("%s: %s\n%s", d.Kind, d.Message, got.Text)
			}
		}
	})
}
