package spec

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

const (
	validHead = "version: 1\narms: { base: { git: main }, head: { dir: . } }\nserver: { command: './server ${port}' }\n"
	validSpec = validHead + "scenarios: { hello: { http: { path: / } } }\n"
)

// hostile are files that are made to cost, to crash or to confuse. All are
// refused.
func hostile() map[string][]byte {
	rep := strings.Repeat
	deepBlock := func(levels int) string {
		var b strings.Builder
		for i := range levels {
			b.WriteString(rep(" ", i) + "a:\n")
		}
		return b.String()
	}
	laughs := func(levels int, use string) string {
		var b strings.Builder
		b.WriteString("x-0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n")
		for i := 1; i <= levels; i++ {
			fmt.Fprintf(&b, "x-%d: &a%d [%s]\n", i, i, strings.TrimSuffix(rep(fmt.Sprintf("*a%d, ", i-1), 9), ", "))
		}
		return b.String() + fmt.Sprintf(use, levels)
	}
	merges := func(width, levels int) string {
		var b strings.Builder
		b.WriteString("x-0: &m0 {")
		for i := range width {
			fmt.Fprintf(&b, "k%d: 1, ", i)
		}
		b.WriteString("}\n")
		for i := 1; i <= levels; i++ {
			fmt.Fprintf(&b, "x-%d: &m%d { <<: [%s] }\n", i, i, strings.TrimSuffix(rep(fmt.Sprintf("*m%d, ", i-1), 9), ", "))
		}
		return b.String()
	}
	wideAlias := func() string {
		var b strings.Builder
		b.WriteString("x-h: &h {")
		for i := range 5000 {
			fmt.Fprintf(&b, "h%d: v, ", i)
		}
		b.WriteString("}\n" + validHead + "scenarios:\n")
		for i := range 5000 {
			fmt.Fprintf(&b, "  s%d: { http: { headers: *h } }\n", i)
		}
		return b.String()
	}
	files := map[string]string{
		"10,000 levels of [":          validSpec + "x-a: " + rep("[", 10_000) + rep("]", 10_000) + "\n",
		"100,000 levels of [":         rep("[", 100_000),
		"10,000 levels of {a:":        validSpec + "x-a: " + rep("{a: ", 10_000) + "1" + rep("}", 10_000) + "\n",
		"10,000 levels of dashes":     validSpec + "x-a:\n  " + rep("- ", 10_000) + "x\n",
		"1,000 levels of blocks":      deepBlock(1000),
		"5 MB of spaces":              rep(" ", 5<<20),
		"5 MB of a comment":           "# " + rep("x", 5<<20),
		"5 MB of one word":            validSpec + "x-a: " + rep("a", 5<<20) + "\n",
		"5 MB of entries":             validSpec + "x-a: [" + rep("a,", 5<<19) + "]\n",
		"1 MB of entries":             validSpec + "x-a: [" + rep("a,", 500_000) + "]\n",
		"1 MB of keys":                validSpec + rep("a: 1\n", 200_000),
		"1 MB of question marks":      validSpec + rep("? ", 400_000),
		"1 MB of anchors":             validSpec + "x-a: " + rep("&a ", 300_000),
		"1 MB of quotes":              validSpec + "x-a: " + rep("'", 1_000_001) + "\n",
		"1 MB of exclamation marks":   validSpec + "x-a: " + rep("! ", 400_000),
		"1 MB of open brackets":       validSpec + "x-a: " + rep("[ \n", 300_000),
		"1 MB without an end":         validSpec + "name: \"" + rep("x", 1_000_000),
		"1 MB of a plain scalar":      validSpec + "name: x\n" + rep(" x\n", 250_000) + ": y\n",
		"a billion laughs":            validSpec + laughs(30, "build: *a%d\n"),
		"a billion laughs as matrix":  validSpec + laughs(9, "matrix: { c: *a%d }\n"),
		"merge keys of merge keys":    validSpec + merges(100, 30) + "policy: { <<: *m30 }\n",
		"a wide merge":                validSpec + merges(20_000, 2) + "policy: *m2\n",
		"a wide alias, used often":    wideAlias(),
		"an anchor in itself":         validSpec + "x-a: &a { b: *a }\n",
		"a merge of itself":           validSpec + "x-a: &a { <<: *a }\n",
		"a matrix of 10^9 points":     validSpec + "matrix: {" + rep("a%: [0,1,2,3,4,5,6,7,8,9], ", 1) + "b: [0,1,2,3,4,5,6,7,8,9], c: [0,1,2,3,4,5,6,7,8,9], d: [0,1,2,3,4,5,6,7,8,9], e: [0,1,2,3,4,5,6,7,8,9]}\n",
		"20,000 thresholds":           validSpec + "thresholds:\n" + rep("  - { metric: rps, fail: wrose > 1 }\n", 20_000),
		"an expression of 100 kB":     validSpec + "thresholds: [{ metric: rps, fail: " + rep("(", 50_000) + "1" + rep(")", 50_000) + " }]\n",
		"a deep expression":           validSpec + "thresholds: [{ metric: rps, fail: '" + rep("(", 490) + "worse" + rep(")", 490) + " }]\n",
		"a glob of stars":             validSpec + "thresholds: [{ metric: '" + rep("*a", 5000) + "', fail: worse > 1 }]\n",
		"a glob of braces":            validSpec + "thresholds: [{ metric: '" + rep("{a,b}", 5000) + "', fail: worse > 1 }]\n",
		"a regular expression":        validSpec + "server: { ready: { log: '" + rep("(a{1000}){1000}", 20) + "' } }\n",
		"a template of 1 MB":          validHead + "scenarios: { a: { http: { path: \"/" + rep("${", 400_000) + "\" } } }\n",
		"many templates":              validHead + "scenarios: { a: { http: { path: \"/" + rep("${nope}", 100_000) + "\" } } }\n",
		"a NUL":                       validSpec + "name: a\x00b\n",
		"only NULs":                   rep("\x00", 100_000),
		"invalid UTF-8":               validSpec + "name: \xff\xfe\n",
		"a surrogate":                 validSpec + "name: \xed\xa0\x80\n",
		"UTF-16":                      "\xff\xfev\x00e\x00",
		"UTF-32":                      "\xff\xfe\x00\x00v\x00\x00\x00",
		"a byte order mark inside":    validSpec + "name: \ufeffx\n",
		"tabs":                        "version: 1\narms:\n\tbase: { git: main }\n",
		"several documents":           validSpec + "---\n" + validSpec,
		"a second, broken document":   validSpec + "---\n[\n",
		"a directive":                 "%YAML 9.9\n---\n" + validSpec + "%TAG ! x\n",
		"an empty file":               "",
		"only a document start":       "---\n",
		"only a comment":              "# x\n",
		"only null":                   "~\n",
		"a list":                      "- a\n",
		"a lone CR":                   "version: 1\rname: x\r",
		"terminal escapes":            validSpec + "name: \"\x1b]0;pwned\x07\"\n",
		"a name of another direction": validHead + "scenarios: { \"a\u202eb\": { http: {} } }\n",
		"python":                      validSpec + "x-a: !!python/object/apply:os.system [id]\n",
		"binary":                      validSpec + "x-a: !!binary aGVsbG8=\n",
		"10,000 profiles":             validSpec + "profiles:\n" + manyProfiles(10_000),
	}
	out := make(map[string][]byte, len(files))
	for name, text := range files {
		out[name] = []byte(text)
	}
	return out
}

func manyProfiles(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "  p%d: { plan: { window: 1 } }\n", i)
	}
	return b.String()
}

// maxHostileAlloc bounds what refusing any of these files may allocate in
// all, collected garbage included.
const maxHostileAlloc = 256 << 20

func TestHostile(t *testing.T) {
	for name, src := range hostile() {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			s, diags := Parse("bench.yaml", src, Options{Env: testEnv, Stat: testStat})
			runtime.ReadMemStats(&after)
			if s != nil || !HasErrors(diags) {
				t.Fatalf("it is accepted: %v", diags)
			}
			if all := after.TotalAlloc - before.TotalAlloc; all > maxHostileAlloc {
				t.Errorf("refusing it allocates %d MB", all>>20)
			}
			var out bytes.Buffer
			if err := WriteText(&out, diags); err != nil {
				t.Fatal(err)
			}
			for _, r := range out.String() {
				if r < ' ' && r != '\n' || r == 0x7f || r == 0x202e {
					t.Fatalf("what is said of it has the control character %U:\n%q", r, out.String())
				}
			}
			if d := diags[0]; d.Message == "" || d.Kind == "" {
				t.Errorf("the diagnostic is empty: %+v", d)
			}
		})
	}
}

func BenchmarkHostile(b *testing.B) {
	for name, src := range hostile() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Parse("bench.yaml", src, Options{Env: testEnv, Stat: testStat})
			}
		})
	}
}

// TestLoadRefuses is about files that are none.
func TestLoadRefuses(t *testing.T) {
	dir := t.TempDir()
	unreadable := filepath.Join(dir, "missing.yaml")
	for path, want := range map[string]string{
		dir:                            "expected a file at",
		unreadable:                     "run tandem init",
		filepath.Join(dir, "x", "y"):   "run tandem init",
		fifo(t, dir):                   "a named pipe",
		os.DevNull:                     "a device",
		filepath.Join(dir, "bad\x00x"): "cannot read the spec",
	} {
		s, diags, err := Load(path, Options{})
		if s != nil || diags != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, %v, %v, want an error with %q", path, s, diags, err, want)
		}
	}
}
