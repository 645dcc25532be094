package spec

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// testRow is a row that has regressed by a tenth.
func testRow() RowEnv {
	return RowEnv{
		Metric: "rps", Scenario: "db[c=16]", Matrix: map[string]string{"c": "16", "proto": "h1"},
		Ratio: 0.9, Change: -0.1, Worse: 0.1, Noise: 0.02, CILow: 0.88, CIHigh: 0.92, P: 0.001, Verdict: "regressed", Blocks: 8,
		Base: map[string]float64{"rps": 100, "custom": 2}, Head: map[string]float64{"rps": 90, "latency.p99": 0.01, "bad": math.NaN()},
	}
}

func TestGateEval(t *testing.T) {
	const no, yes, refused = "false", "true", "error"
	for src, want := range map[string]string{
		"worse > noise":                            yes,
		"worse > max(noise, 0.2)":                  no,
		"worse > noise && worse > 0.03":            yes,
		"worse > noise and not (worse > 0.5)":      yes,
		"0.05 < worse < 0.2":                       yes,
		"0.05 < worse < 0.09":                      no,
		"ci.high < 1":                              yes,
		"ci.low > 0.9 || p < 0.01":                 yes,
		"abs(change) > noise":                      yes,
		"-worse < 0":                               yes,
		"blocks == 8":                              yes,
		"blocks >= 9":                              no,
		`metric == "rps"`:                          yes,
		`scenario startsWith "db"`:                 yes,
		`scenario contains "c=16"`:                 yes,
		`verdict in ["regressed", "failed"]`:       yes,
		`verdict not in ["regressed"]`:             no,
		"matrix.c == 16":                           yes,
		`matrix.c == "16"`:                         yes,
		"matrix.c >= 32":                           no,
		"matrix.c in [8, 16]":                      yes,
		`matrix.c in ["8"]`:                        no,
		`matrix["proto"] == "h1"`:                  yes,
		"matrix.c > 8 && matrix.c < 32":            yes,
		"head.latency.p99 > 0.005":                 yes,
		"head.rps / base.rps < 0.95":               yes,
		"(base.rps - head.rps) / base.rps == 0.1":  yes,
		"base.custom * 2 == 4":                     yes,
		`metric == "rps" ? worse > 0.05 : false`:   yes,
		`if metric == "x" { true } else { false }`: no,
		"round(worse * 100) == 10":                 yes,
		"9223372036854775807 + 1 > 0":              yes,
		"worse > 1e-300":                           yes,

		// What is missing, infinite or no number decides nothing.
		"base.latency.p99 > 1":             refused,
		"head.bad > 1":                     refused,
		"not (head.bad > 1)":               refused,
		"head.bad == head.bad || true":     refused,
		"worse / 0 > 1":                    refused,
		"worse / 0 < 1":                    refused,
		"1 / (1 / (worse - 0.1)) == 0":     refused,
		"0 / (worse - 0.1) != 1":           refused,
		"worse * 1e308 * 1e308 > 1":        refused,
		"max(worse * 1e308 * 1e308, 1) >1": refused,
		"matrix.size == 1":                 refused,
		"matrix.proto > 1":                 refused,
	} {
		g, err := CompileGate(src)
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		got := evalWord(g.Eval(testRow()))
		if got != want {
			t.Errorf("%s: got %s, want %s", src, got, want)
		}
	}
}

func evalWord(ok bool, err error) string {
	switch {
	case err != nil && ok:
		return "true with an error"
	case err != nil:
		return "error"
	case ok:
		return "true"
	}
	return "false"
}

// TestGateNeverPassesNonsense makes one input of a gate no finite number:
// the gate must be an error, whatever it says of it.
func TestGateNeverPassesNonsense(t *testing.T) {
	names := map[string]func(*RowEnv, float64){
		"ratio": func(r *RowEnv, f float64) { r.Ratio = f }, "change": func(r *RowEnv, f float64) { r.Change = f },
		"worse": func(r *RowEnv, f float64) { r.Worse = f }, "noise": func(r *RowEnv, f float64) { r.Noise = f },
		"ci.low": func(r *RowEnv, f float64) { r.CILow = f }, "ci.high": func(r *RowEnv, f float64) { r.CIHigh = f },
		"p": func(r *RowEnv, f float64) { r.P = f }, "head.rps": func(r *RowEnv, f float64) { r.Head["rps"] = f },
		"base.rps": func(r *RowEnv, f float64) { r.Base["rps"] = f },
	}
	for name, set := range names {
		for _, form := range []string{"X > 0.5", "X <= 0.5", "not (X > 0.5)", "true || X > 1", "false && X > 1", "X != X", "abs(X) >= 0", "min(X, 1) < 2", "1 / X < 1"} {
			g, err := CompileGate(strings.ReplaceAll(form, "X", name))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
				row := testRow()
				set(&row, f)
				if got := evalWord(g.Eval(row)); got != "error" {
					t.Errorf("%s with %s = %v: got %s, want an error", g.Source, name, f, got)
				}
			}
		}
	}
}

// TestGateArithmetic compares gates with Go's own arithmetic.
func TestGateArithmetic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		row := testRow()
		row.Worse = rapid.Float64Range(-1, 1).Draw(t, "worse")
		row.Noise = rapid.Float64Range(0, 1).Draw(t, "noise")
		level := rapid.Float64Range(0, 1).Draw(t, "level")
		g, err := CompileGate("worse > max(noise, " + trimFloat(level) + ")")
		if err != nil {
			t.Fatal(err)
		}
		got, err := g.Eval(row)
		if want := row.Worse > max(row.Noise, level); err != nil || got != want {
			t.Fatalf("worse %v, noise %v, level %v: got %v (%v), want %v", row.Worse, row.Noise, level, got, err, want)
		}
	})
}

func TestExpectEval(t *testing.T) {
	const body = `{"ok":true,"n":20,"name":"Größe","list":[{"id":7},{"id":8}],"none":null}`
	header := map[string][]string{"Content-Type": {"application/json; charset=utf-8"}, "Server": {"x"}, "Vary": {"a", "b"}}
	const no, yes, refused = "false", "true", "error"
	for src, want := range map[string]string{
		"status == 200":                      yes,
		"status >= 200 && status < 300":      yes,
		"status in [200, 204]":               yes,
		"status in [201]":                    no,
		`body contains "Größe"`:              yes,
		`body startsWith "{"`:                yes,
		`lower(body) contains "größe"`:       yes,
		"len(body) == 74":                    yes,
		`len(trim("  ab ")) == 2`:            yes,
		`headers["Content-Type"] != ""`:      yes,
		`headers["content-type"] == "x"`:     no,
		`headers["x-none"] == ""`:            yes,
		`headers.server == "x"`:              yes,
		`headers.vary == "a, b"`:             yes,
		"json.ok":                            yes,
		"json.ok == true && json.n == 20":    yes,
		"json.n > 5 && json.n * 2 == 40":     yes,
		`json.name == "Größe"`:               yes,
		`json["name"] startsWith "G"`:        yes,
		"len(json.list) == 2":                yes,
		"len(json) == 5":                     yes,
		"json.list[1].id == 8":               yes,
		`json.list[0]["id"] in [7, 9]`:       yes,
		"json.n in [1, 2]":                   no,
		"not json.ok":                        no,
		"json.missing == 1":                  refused,
		"json.missing != 1":                  refused,
		"json.list[2].id == 9":               refused,
		"json.n.deep == 1":                   refused,
		"json.ok[0] == 1":                    refused,
		"json.name > 5":                      refused,
		"len(json.n) == 1":                   refused,
		"json.none":                          no,
		"status / (status - 200) > 1":        refused,
		`json.name == 5`:                     no,
		`status == 500 && json.missing == 1`: no,
	} {
		e, err := CompileExpect(src)
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		if got := evalWord(e.Eval(200, []byte(body), header)); got != want {
			_, err := e.Eval(200, []byte(body), header)
			t.Errorf("%s: got %s (%v), want %s", src, got, err, want)
		}
	}
	e, err := CompileExpect("json.ok")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Eval(200, []byte("<html>"), nil); err == nil || !strings.Contains(err.Error(), "not JSON") {
		t.Errorf("a body that is not JSON: %v", err)
	}
}

// TestExprRefuses lists what must never be compiled, since it could run
// long, or read what is not the expression's business.
func TestExprRefuses(t *testing.T) {
	for _, src := range []string{
		"any([1], # > 0)", "all(1..1000000000, true)", "map([1], #)[0] > 0", "filter([1], true) == [1]", "sum([1, 2]) > 1", "reduce([1], #acc) > 1",
		"len(1..1000000000) > 1", `scenario matches "(a+)+$"`, `repeat("a", 1000000000) == ""`, "let x = 1; x > 0", "now() > 1", `$env["worse"] > 1`, "$env == 1",
		`fromJSON("{}") == 1`, "toJSON(worse) == 1", "worse | abs() > 1", "worse ** 2 > 1", "worse % 2 == 1", "[1, 2, 3][0] == 1", "{a: 1}.a == 1", "scenario[0:1] == \"a\"",
		"__finite(worse) > 1", `__field(worse, "a") == 1`, "axis_numbers.c == 1", "Metric == 1", `scenario + scenario == ""`, "nil == nil", "head?.rps > 1", "worse ?? 1 > 1",
		"true; false", "head.rps()", "head", "ci", "matrix", "base == head", `"a" < "b"`, "worse", "1", `"true"`, "[true]", "matrix.c.d == 1", "noise.x > 1", `p == "1"`,
	} {
		if g, err := CompileGate(src); err == nil {
			t.Errorf("%s is accepted: %v", src, g)
		}
		if e, err := CompileExpect(src); err == nil && src != "[true]" {
			t.Errorf("%s is accepted as an expect: %v", src, e)
		}
	}
}
