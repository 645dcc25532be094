package spec

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// FuzzParse reads any bytes as a spec. Whatever they are, diagnostics are
// sorted and point into the file; what is accepted survives JSON, prints,
// and is accepted by the JSON Schema, too.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/ok/*.yaml", "testdata/err/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			f.Fatalf("no seeds: %v", err)
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	schema := compileSchema(f)
	f.Fuzz(func(t *testing.T, src []byte) {
		s, diags := Parse("bench.yaml", src, Options{Env: testEnv, Stat: testStat, CPUs: []int{0, 1}, Power: testPower()})
		checkDiagnostics(t, src, diags)
		if (s == nil) != HasErrors(diags) {
			t.Fatalf("spec %v, diagnostics %v", s, diags)
		}
		if s == nil {
			return
		}
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var back Spec
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatalf("%v in %s", err, b)
		}
		if diff := cmp.Diff(*s, back, cmpSpec()); diff != "" {
			t.Fatalf("JSON loses something:\n%s", diff)
		}
		var out bytes.Buffer
		if err := Print(&out, s); err != nil {
			t.Fatal(err)
		}
		if n := document(src); n != nil {
			if err := schema.Validate(instance(n)); err != nil {
				t.Fatalf("the schema refuses what the parser accepts: %v", err)
			}
		}
	})
}

// checkDiagnostics demands of diagnostics what every reader relies on.
func checkDiagnostics(t *testing.T, src []byte, diags []Diagnostic) {
	t.Helper()
	sorted := slices.Clone(diags)
	SortDiagnostics(sorted)
	if diff := cmp.Diff(sorted, diags); diff != "" {
		t.Fatalf("not sorted:\n%s", diff)
	}
	lines := bytes.Count(src, []byte("\n")) + bytes.Count(src, []byte("\r")) + 1
	for i, d := range diags {
		switch {
		case d.Message == "" || d.Kind == "" || kindDocs[d.Kind] == "" || d.File != "bench.yaml":
			t.Fatalf("incomplete: %+v", d)
		case strings.ContainsAny(d.Message, "\n\r") || strings.ContainsAny(d.Hint, "\n\r"):
			t.Fatalf("more than one line: %+v", d)
		case d.Line < 0 || d.Line > lines, d.Line > 0 && d.Column < 1, d.Line > 0 && d.EndColumn <= d.Column:
			t.Fatalf("no place of the file: %+v", d)
		case d.Line > 0 && d.Column > utf8.RuneCountInString(d.Text)+2:
			t.Fatalf("beyond its line: %+v", d)
		case i > 0 && d == diags[i-1]:
			t.Fatalf("twice: %+v", d)
		}
	}
	var out bytes.Buffer
	for _, format := range DiagnosticFormats() {
		if err := WriteDiagnostics(&out, format, "test", diags); err != nil {
			t.Fatal(err)
		}
	}
}

// FuzzTemplate expands any text: what is parsed expands, given all that it
// refers to, and escaping undoes parsing.
func FuzzTemplate(f *testing.F) {
	for _, s := range []string{"", "${port}", "$${", "${env.X:-a}", "${env.X:?b}", "${", "$${${a}}", "${a-b.c_d}", "é${x}日", "${ x }", "${x:-y}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		names := Template(s).Refs()
		vars := Vars{}
		for _, n := range names {
			vars[n] = "<" + n + ">"
		}
		got, err := Template(s).Expand(vars, func(string) (string, bool) { return "set", true })
		_, parseErr := parseTemplate(s)
		if (err != nil) != (parseErr != nil) {
			t.Fatalf("%q: parsing says %v, expanding %v", s, parseErr, err)
		}
		if len(names) == 0 && err == nil && escapeTemplate(got) != s && strings.Contains(s, "${") {
			again, err := Template(escapeTemplate(got)).Expand(nil, nil)
			if err != nil || again != got {
				t.Fatalf("%q expands to %q, which escapes to something else: %q, %v", s, got, again, err)
			}
		}
	})
}

// FuzzGate compiles any text as a threshold, and decides it for rows that
// are whole, missing values and full of nonsense.
func FuzzGate(f *testing.F) {
	for _, s := range []string{
		"worse > noise", "worse > max(noise, 0.03)", "0.1 < worse < 0.2", `verdict in ["same"]`, "head.latency.p99 / base.rps > 1", `matrix.c == 16 || matrix["c"] != "x"`,
		"not (ci.low > 1) ? true : p < 0.1", "worse > 5%", "a.b.c", "((((", `"\u00e9" == metric`, "1e400 > worse", "-+-worse > 0", "if true { worse > 1 } else { false }", "true and false or true",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		c := checkExpr(src, gateLanguage)
		for _, p := range c.problems {
			if p.at < 0 || p.size < 0 || p.at > len(src) {
				t.Fatalf("%q: a problem outside: %+v", src, p)
			}
		}
		g, err := CompileGate(src)
		if err != nil {
			return
		}
		rows := []RowEnv{testRow(), {}, {Ratio: math.NaN(), Change: math.Inf(1), Worse: math.NaN(), Noise: math.Inf(1), CILow: math.NaN(), CIHigh: math.Inf(-1), P: math.NaN()}}
		for _, row := range rows {
			ok, err := g.Eval(row)
			if ok && err != nil {
				t.Fatalf("%q: true with an error: %v", src, err)
			}
			if nonsense := math.IsNaN(row.Ratio); nonsense && err == nil && len(g.uses.names) > 0 && !slices.Equal(slices.Compact(slices.Sorted(slices.Values(g.uses.names))), []string{"blocks"}) {
				t.Fatalf("%q decides a row of nonsense", src)
			}
		}
	})
}

// FuzzExpect compiles any text as a response check, and evaluates it.
func FuzzExpect(f *testing.F) {
	for _, s := range []string{
		"status == 200", `body contains "ok"`, `headers["A"] == headers.b`, "json.a[0].b == 1", "len(json) > len(body)", `lower(trim(upper(body))) endsWith "x"`, "status in [1, 2]", "json", "json.a ? true : false", "json[0][1][2]",
	} {
		f.Add(s, []byte(`{"a":[{"b":1}]}`))
	}
	f.Fuzz(func(t *testing.T, src string, body []byte) {
		e, err := CompileExpect(src)
		if err != nil {
			return
		}
		if ok, err := e.Eval(200, body, map[string][]string{"A": {"x"}}); ok && err != nil {
			t.Fatalf("%q: true with an error: %v", src, err)
		}
	})
}
