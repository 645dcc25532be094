package spec

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files of the corpus")

// testEnv is the environment of every test.
func testEnv(name string) (string, bool) {
	v, ok := map[string]string{"USER": "ada", "EMPTY": "", "CONNECTIONS": "32", "WINDOW": "2s"}[name]
	return v, ok
}

// testPower stands in for package stats: exact for one look, and a rule of
// thumb for what can be resolved.
func testPower() Power {
	return Power{
		MinBlocks: func(p Plan, alpha float64) int {
			ways := 1.0
			for i := range p.Copies {
				ways = ways * float64(2*p.Copies-i) / float64(i+1)
			}
			return int(math.Ceil(math.Log(2/alpha) / math.Log(ways)))
		},
		Resolvable: func(p Plan, sd, _ float64, _ int) float64 { return 4 * sd / math.Sqrt(float64(p.Blocks.Max)) },
	}
}

// testStat takes the folder of the corpus for the root of a repository, as
// if it were checked out alone.
func testStat(path string) (fs.FileInfo, error) {
	if filepath.Base(path) == ".git" {
		path = filepath.Dir(path)
	}
	return os.Stat(path)
}

// caseOptions reads the options of a case from comments in its first lines:
// "# profile: NAME" chooses a profile, "# resolve" asks for revisions.
func caseOptions(src []byte) Options {
	o := Options{Env: testEnv, CPUs: []int{0, 1, 2, 3}, Power: testPower(), Stat: testStat}
	for _, line := range strings.SplitN(string(src), "\n", 4) {
		if p, ok := strings.CutPrefix(line, "# profile: "); ok {
			o.Profile = p
		}
		if line == "# resolve" {
			o.Resolve = func(g Git) error {
				if g.Ref == "main" {
					return nil
				}
				return fmt.Errorf("the repository has no revision %q; near it: main", g.Ref)
			}
		}
	}
	return o
}

// corpus returns the specs in a folder of testdata, and goes there, so that
// diagnostics name files without a folder.
func corpus(t testing.TB, dir string) []string {
	t.Helper()
	t.Chdir(filepath.Join("testdata", dir))
	files, err := filepath.Glob("*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no specs in testdata/%s: %v", dir, err)
	}
	return files
}

func read(t testing.TB, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// golden compares with a file, or writes it under -update.
func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want := read(t, file)
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got, go test ./spec -update writes it):\n%s", file, diff)
	}
}

// TestErrors compares everything that is said of each refused spec.
func TestErrors(t *testing.T) {
	files := corpus(t, "err")
	if len(files) < 150 {
		t.Errorf("%d cases, want at least 150", len(files))
	}
	for _, file := range files {
		src := read(t, file)
		s, diags := Parse(file, src, caseOptions(src))
		if s != nil || !HasErrors(diags) {
			t.Errorf("%s is accepted", file)
		}
		var out bytes.Buffer
		if err := WriteText(&out, diags); err != nil {
			t.Fatal(err)
		}
		golden(t, strings.TrimSuffix(file, ".yaml")+".out", out.Bytes())
	}
}

// TestAccepted compares the resolved form of each accepted spec, and what
// is said of it.
func TestAccepted(t *testing.T) {
	files := corpus(t, "ok")
	dir, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Dir(filepath.Dir(filepath.Dir(dir)))
	for _, file := range files {
		src := read(t, file)
		s, diags := Parse(file, src, caseOptions(src))
		var out bytes.Buffer
		if err := WriteText(&out, diags); err != nil {
			t.Fatal(err)
		}
		if s == nil {
			t.Errorf("%s is refused:\n%s", file, out.String())
			continue
		}
		if err := Print(&out, s); err != nil {
			t.Fatal(err)
		}
		text := strings.NewReplacer(dir, "DIR", root, "ROOT").Replace(out.String())
		golden(t, strings.TrimSuffix(file, ".yaml")+".out", []byte(text))
	}
}
