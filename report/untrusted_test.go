package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tandem-bench/tandem/spec"
)

// resultJSON is the result.json of a made-up run.
func resultJSON(t *testing.T, world string) []byte {
	t.Helper()
	var b bytes.Buffer
	check(t, Write(&b, "json", analyses()[world], RenderOptions{}))
	return b.Bytes()
}

// What Tandem writes is accepted, hostile names included, and comes to the
// same verdicts, gates and outcome when it is judged again.
func TestUntrustedAcceptsWhatWeWrite(t *testing.T) {
	for name, a := range analyses() {
		t.Run(name, func(t *testing.T) {
			back, err := ReadUntrusted(bytes.NewReader(resultJSON(t, name)))
			check(t, err)
			check(t, back.Regate(a.Spec))
			opts := cmp.Options{cmpopts.EquateNaNs(), cmpopts.EquateEmpty(), cmpopts.EquateApprox(1e-9, 0), cmpopts.IgnoreUnexported(Row{})}
			if diff := cmp.Diff(a.Rows, back.Rows, opts); diff != "" {
				t.Errorf("rows differ:\n%s", diff)
			}
			if diff := cmp.Diff(a.Gates, back.Gates, opts); diff != "" {
				t.Errorf("gates differ:\n%s", diff)
			}
			if a.Outcome != back.Outcome {
				t.Errorf("outcome %s, was %s", back.Outcome, a.Outcome)
			}
		})
	}
}

// forge changes a result.json as a tree of JSON values.
func forge(t *testing.T, world string, change func(doc map[string]any)) []byte {
	t.Helper()
	var doc map[string]any
	check(t, json.Unmarshal(resultJSON(t, world), &doc))
	change(doc)
	out, err := json.Marshal(doc)
	check(t, err)
	return out
}

func rowsOf(doc map[string]any) []any { return doc["rows"].([]any) }

func firstRow(doc map[string]any) map[string]any { return rowsOf(doc)[0].(map[string]any) }

func TestUntrustedRefuses(t *testing.T) {
	whole := string(resultJSON(t, "moved"))
	edit := func(change func(map[string]any)) string { return string(forge(t, "moved", change)) }
	long := strings.Repeat("x", 1<<20)
	for name, c := range map[string]struct{ in, want string }{
		"nothing":                  {"", "not a result.json"},
		"a list":                   {"[]", "not a result.json"},
		"a truncated document":     {whole[:len(whole)/2], "not a result.json"},
		"two documents":            {whole + whole, "not a result.json"},
		"NaN":                      {strings.Replace(whole, `"ratio": `, `"ratio": NaN, "was": `, 1), "not a result.json"},
		"an infinite number":       {strings.Replace(whole, `"ratio": `, `"ratio": 1e999, "was": `, 1), "not a result.json"},
		"bytes that are not UTF-8": {strings.Replace(whole, "my-server", "my-\xff", 1), "not UTF-8"},
		"no version":               {edit(func(d map[string]any) { delete(d, "version") }), "has version"},
		"a later version":          {edit(func(d map[string]any) { d["version"] = 2 }), `has version "2", expected 1`},
		"a version in words":       {strings.Replace(whole, `"version": 1`, `"version": "one"`, 1), "not a result.json"},
		"a bomb of lists":          {strings.Replace(whole, `"warnings": []`, `"warnings": `+strings.Repeat("[", 5000)+strings.Repeat("]", 5000), 1), "nested more than 8 deep"},
		"many items":               {strings.Replace(whole, `"looks": [`, `"looks": [`+strings.Repeat("1,", 20000), 1), "more than 10000 items"},
		"a name of a megabyte":     {edit(func(d map[string]any) { firstRow(d)["scenario"] = long }), "a text of 1048576 bytes"},
		"a key of a megabyte":      {edit(func(d map[string]any) { firstRow(d)["matrix"] = map[string]any{long: "1"} }), "a key of 1048576 bytes"},
		"a long label":             {edit(func(d map[string]any) { d["arms"].([]any)[0].(map[string]any)["label"] = long[:2000] }), "named too long"},
		"a key twice":              {strings.Replace(whole, `"outcome":`, `"outcome": "passed", "outcome":`, 1), `the key "outcome" stands twice`},
		"a key in another case":    {strings.Replace(whole, `"outcome":`, `"Outcome": "passed", "outcome":`, 1), `the key "Outcome" is none`},
		"a folded letter":          {strings.Replace(whole, `"seed":`, `"ſeed": 3, "seed":`, 1), "is none of a result.json"},
		"one arm":                  {edit(func(d map[string]any) { d["arms"] = d["arms"].([]any)[:1] }), "names 1 arms"},
		"an arm twice":             {edit(func(d map[string]any) { a := d["arms"].([]any); d["arms"] = append(a, a[1]) }), "there twice"},
		"another baseline":         {edit(func(d map[string]any) { d["baseline"] = "head" }), `the baseline is "head"`},
		"alpha of 2":               {edit(func(d map[string]any) { d["spec"].(map[string]any)["alpha"] = 2 }), "alpha is 2"},
		"a row twice":              {edit(func(d map[string]any) { d["rows"] = append(rowsOf(d), rowsOf(d)[0]) }), "stands there twice"},
		"an unknown verdict":       {edit(func(d map[string]any) { firstRow(d)["verdict"] = "great" }), `verdict is "great"`},
		"better by name":           {edit(func(d map[string]any) { firstRow(d)["better"] = "faster" }), `better is "faster"`},
		"swapped arms": {edit(func(d map[string]any) {
			r := firstRow(d)
			r["baseline"], r["candidate"] = r["candidate"], r["baseline"]
		}), "not the baseline and a candidate"},
		"a negative ratio": {edit(func(d map[string]any) { firstRow(d)["ratio"] = -1 }), "the ratio is -1"},
		"negative noise":   {edit(func(d map[string]any) { firstRow(d)["noise"] = -0.5 }), "the figure -0.5"},
		"p of 7":           {edit(func(d map[string]any) { firstRow(d)["p"] = 7 }), "p is 7"},
		"another ratio":    {edit(func(d map[string]any) { firstRow(d)["ratio"] = 1.5 }), "the ratio is 1.5, and that of its blocks"},
		"another value":    {edit(func(d map[string]any) { firstRow(d)["candidate"].(map[string]any)["value"] = 1e6 }), "and that of its values"},
		"another range":    {edit(func(d map[string]any) { firstRow(d)["range"] = []any{0.1, 5} }), "the range is 0.1 to 5"},
		"another interval": {edit(func(d map[string]any) { firstRow(d)["ci"] = []any{1.2, 1.3} }), "outside its interval"},
		"a block of zero":  {edit(func(d map[string]any) { firstRow(d)["per_block"].([]any)[0] = 0 }), "a block has the ratio 0"},
		"fewer blocks":     {edit(func(d map[string]any) { firstRow(d)["blocks"] = 2 }), "it counts 2 blocks, with 12 ratios"},
		"minus one trials": {edit(func(d map[string]any) { firstRow(d)["candidate"].(map[string]any)["trials"] = -1 }), "fewer than no blocks"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadUntrusted(strings.NewReader(c.in))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if err != nil && len(err.Error()) > 500 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
	if _, err := ReadUntrusted(strings.NewReader(strings.Repeat(" ", maxResultBytes) + whole)); err == nil || !strings.Contains(err.Error(), "longer than 32 MiB") {
		t.Errorf("32 MiB of spaces: %v", err)
	}
}

func TestUntrustedTooManyRows(t *testing.T) {
	in := forge(t, "moved", func(d map[string]any) {
		var rows []any
		for i := range maxResultRows + 1 {
			r := map[string]any{}
			for k, v := range firstRow(d) {
				r[k] = v
			}
			r["scenario"] = fmt.Sprint("s", i)
			rows = append(rows, r)
		}
		d["rows"] = rows
	})
	if _, err := ReadUntrusted(bytes.NewReader(in)); err == nil || !strings.Contains(err.Error(), "has 5001 rows") {
		t.Errorf("%v", err)
	}
}

// Whatever a result says of itself, its figures decide.
func TestRegateIgnoresClaims(t *testing.T) {
	limit := func(s *spec.Spec) {
		s.Thresholds = []spec.Threshold{{Metric: "rps", Scenario: "*", Fail: gate("worse > max(noise, 0.03)")}}
	}
	for name, claim := range map[string]func(row map[string]any){
		"same":         func(r map[string]any) { r["verdict"] = "same" },
		"unsure":       func(r map[string]any) { r["verdict"] = "unsure" },
		"improved":     func(r map[string]any) { r["verdict"], r["better"] = "improved", "lower" },
		"incomparable": func(r map[string]any) { r["verdict"] = "incomparable" },
		"new":          func(r map[string]any) { r["verdict"] = "new" },
		"other change": func(r map[string]any) { r["change"], r["worse"] = 0.5, -0.5 },
		"no verdict":   func(r map[string]any) { r["verdict"] = nil },
	} {
		t.Run(name, func(t *testing.T) {
			in := forge(t, "moved", func(d map[string]any) {
				for _, r := range rowsOf(d) {
					r := r.(map[string]any)
					r["marked"], r["gate"] = false, "pass"
					if r["scenario"] == "http/json-post" && r["metric"] == "rps" {
						claim(r)
					}
				}
				d["gates"], d["outcome"] = []any{}, "passed"
			})
			a, err := ReadUntrusted(bytes.NewReader(in))
			check(t, err)
			s := *analyses()["moved"].Spec
			limit(&s)
			check(t, a.Regate(&s))
			r := row(t, a, "http/json-post", "rps")
			if r.Verdict != Regressed || !r.Marked || r.Worse < 0.05 || r.Better != "higher" {
				t.Errorf("%s, marked %v, worse %g, better %s", r.Verdict, r.Marked, r.Worse, r.Better)
			}
			if a.Outcome != GateFailed {
				t.Errorf("outcome %s", a.Outcome)
			}
		})
	}
}

// A verdict without figures is kept only where nothing contradicts it.
func TestRegateWithoutFigures(t *testing.T) {
	for _, c := range []struct {
		claim      any
		base, head int
		want       Verdict
		outcome    Outcome
	}{
		{"new", 0, 4, New, Passed},
		{"new", 4, 4, Failed, NotMeasured},
		{"removed", 4, 0, Removed, GateFailed},
		{"removed", 4, 4, Failed, NotMeasured},
		{"same", 4, 4, Failed, NotMeasured},
		{"regressed", 4, 4, Failed, NotMeasured},
		{"incomparable", 0, 0, Incomparable, NotMeasured},
		{nil, 0, 0, Failed, NotMeasured},
	} {
		in := forge(t, "one", func(d map[string]any) {
			for i, r := range rowsOf(d) {
				r := r.(map[string]any)
				if i > 0 || !r["judged"].(bool) {
					continue
				}
				for _, k := range []string{"ratio", "change", "worse", "noise", "p", "confidence"} {
					r[k] = nil
				}
				r["verdict"] = c.claim
				r["baseline"].(map[string]any)["trials"] = c.base
				r["candidate"].(map[string]any)["trials"] = c.head
			}
		})
		a, err := ReadUntrusted(bytes.NewReader(in))
		check(t, err)
		s := *analyses()["one"].Spec
		check(t, a.Regate(&s))
		if got := a.Rows[0].Verdict; got != c.want || a.Outcome != c.outcome {
			t.Errorf("%v with %d and %d trials: %s and %s, want %s and %s", c.claim, c.base, c.head, got, a.Outcome, c.want, c.outcome)
		}
	}
}

// A result that was judged by another margin or digest says so.
func TestRegateSaysThatTheSpecIsAnother(t *testing.T) {
	a, err := ReadUntrusted(bytes.NewReader(resultJSON(t, "one")))
	check(t, err)
	s := *analyses()["one"].Spec
	s.Digest = "d2"
	check(t, a.Regate(&s))
	check(t, a.Regate(&s))
	if got := strings.Count(strings.Join(a.Warnings, "\n"), anotherSpec); got != 1 {
		t.Errorf("said %d times: %q", got, a.Warnings)
	}
}

func FuzzReadUntrusted(f *testing.F) {
	var b bytes.Buffer
	if err := Write(&b, "json", analyses()["failed"], RenderOptions{}); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte(`{"version":1,"arms":[{"name":"a"},{"name":"b"}],"baseline":"a","rows":[{"ratio":null,"matrix":{"C":"1"}}]}`))
	s := *analyses()["failed"].Spec
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := ReadUntrusted(bytes.NewReader(data))
		if err != nil {
			return
		}
		if a.Regate(&s) != nil {
			return
		}
		for _, r := range a.Rows {
			if r.Judged && r.Verdict.measured() && !(r.Ratio > 0 && !math.IsInf(r.Ratio, 0)) {
				t.Errorf("%s: %s with the ratio %g", r.Scenario, r.Verdict, r.Ratio)
			}
		}
		var md bytes.Buffer
		if err := Write(&md, "markdown", a, RenderOptions{Limit: CommentLimit}); err != nil || md.Len() > CommentLimit {
			t.Errorf("%d bytes, %v", md.Len(), err)
		}
	})
}
