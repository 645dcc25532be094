package spec

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// cmpSpec compares specs: expressions by their source, warnings not at all.
func cmpSpec() cmp.Options {
	return cmp.Options{
		cmp.Comparer(func(a, b Gate) bool { return a.Source == b.Source }),
		cmp.Comparer(func(a, b Expect) bool { return a.Source == b.Source }),
		cmpopts.IgnoreFields(Spec{}, "Warnings"),
	}
}

func TestRoundTrip(t *testing.T) {
	src, err := os.ReadFile("testdata/ok/design.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s, diags := Parse("testdata/ok/design.yaml", src, Options{})
	for _, d := range diags {
		fmt.Printf("%s:%d:%d: %s (%s) [%s]\n", d.File, d.Line, d.Column, d.Message, d.Hint, d.Kind)
	}
	if s == nil {
		t.Fatal("not accepted")
	}
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	var back Spec
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(*s, back, cmpSpec()); diff != "" {
		t.Fatalf("JSON loses something (-want +got):\n%s", diff)
	}
}

func TestGateEval(t *testing.T) {
	row := RowEnv{Metric: "rps", Scenario: "db[c=16]", Matrix: map[string]string{"c": "16"}, Ratio: 0.9, Change: -0.1, Worse: 0.1, Noise: 0.02,
		CILow: 0.88, CIHigh: 0.92, P: 0.001, Verdict: "regressed", Blocks: 8, Base: map[string]float64{"rps": 100}, Head: map[string]float64{"rps": 90, "latency.p99": 0.01}}
	for src, want := range map[string]string{
		"worse > noise": "true", "worse > max(noise, 0.2)": "false", "matrix.c == 16": "true", `matrix.c == "16"`: "true", "matrix.c >= 32": "false",
		"matrix.c in [8, 16]": "true", `matrix.c in ["8"]`: "false", "head.latency.p99 > 0.005 && head.rps < base.rps": "true",
		"base.latency.p99 > 1": "err", "ci.high < 1": "true", "worse / 0 > 1": "err", "1/(worse-0.1) > 1": "err", `verdict == "regressed" && p < 0.01`: "true",
		"not (worse > noise) or blocks == 8": "true", "worse * 1e308 * 1e308 > 1 ": "err", `metric == "rps" ? worse > 0.05 : worse > 0.5`: "true",
		"9223372036854775807 + 1 > 0": "true", "-worse < 0": "true", "abs(change) > noise": "true", `scenario startsWith "db"`: "true",
		`head.rps / base.rps < 0.95`: "true", `matrix["c"] == 16`: "true", `verdict in ["regressed", "failed"]`: "true",
	} {
		g, err := CompileGate(src)
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		ok, err := g.Eval(row)
		got := fmt.Sprint(ok)
		if err != nil {
			got = "err"
		}
		if got != want {
			t.Errorf("%s: got %s (%v), want %s", src, got, err, want)
		}
	}
}

func TestExpectEval(t *testing.T) {
	for src, want := range map[string]bool{
		"status == 200": true, `status == 200 && body contains "ok"`: true, `headers["Content-Type"] startsWith "text/"`: true, "len(body) == 2": true,
		"status in [200, 204]": true, "status >= 300": false, `lower(body) == "ok"`: true, `headers["x-none"] == ""`: true, `headers.server == "x"`: true,
	} {
		e, err := CompileExpect(src)
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		ok, err := e.Eval(200, []byte("ok"), map[string][]string{"Content-Type": {"text/html"}, "Server": {"x"}})
		if err != nil || ok != want {
			t.Errorf("%s: got %v %v", src, ok, err)
		}
	}
}
