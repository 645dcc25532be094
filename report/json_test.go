package report

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(ResultSchema()))
	check(t, err)
	c := jsonschema.NewCompiler()
	check(t, c.AddResource("result.schema.json", doc))
	s, err := c.Compile("result.schema.json")
	check(t, err)
	return s
}

func TestResultsMatchTheSchema(t *testing.T) {
	schema := compileSchema(t)
	for name, a := range analyses() {
		var b bytes.Buffer
		check(t, Write(&b, "json", a, RenderOptions{}))
		doc, err := jsonschema.UnmarshalJSON(&b)
		check(t, err)
		if err := schema.Validate(doc); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The schema must also refuse: a misspelled verdict, a missing ratio.
func TestSchemaRefuses(t *testing.T) {
	schema := compileSchema(t)
	var b bytes.Buffer
	check(t, Write(&b, "json", analyses()["moved"], RenderOptions{}))
	for _, r := range [][2]string{
		{`"verdict": "regressed"`, `"verdict": "regresed"`},
		{`"ratio":`, `"ration":`},
		{`"outcome": "failed"`, `"outcome": "red"`},
		{`"version": 1`, `"version": 2`},
	} {
		broken := strings.Replace(b.String(), r[0], r[1], 1)
		if broken == b.String() {
			t.Fatalf("the result does not hold %s", r[0])
		}
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(broken))
		check(t, err)
		if schema.Validate(doc) == nil {
			t.Errorf("accepted %s", r[1])
		}
	}
}

// A result read back renders as it did, and judges to the same outcome.
func TestResultRoundTrip(t *testing.T) {
	for name, a := range analyses() {
		t.Run(name, func(t *testing.T) {
			var first, second bytes.Buffer
			check(t, Write(&first, "json", a, RenderOptions{}))
			back, err := ReadResult(bytes.NewReader(first.Bytes()))
			check(t, err)
			check(t, Write(&second, "json", back, RenderOptions{}))
			if diff := cmp.Diff(first.String(), second.String()); diff != "" {
				t.Errorf("json differs:\n%s", diff)
			}
			check(t, back.Regate(a.Spec))
			opts := cmp.Options{cmpopts.EquateNaNs(), cmpopts.EquateEmpty(), cmpopts.EquateApprox(1e-12, 0)}
			if diff := cmp.Diff(a.Gates, back.Gates, opts); diff != "" {
				t.Errorf("gates differ after Regate:\n%s", diff)
			}
			if a.Outcome != back.Outcome {
				t.Errorf("outcome %s, was %s", back.Outcome, a.Outcome)
			}
		})
	}
}

func TestReadResultRefuses(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`{`, "not a result.json"},
		{`{"version": 99, "tool": "9.1"}`, "use the version of tandem that wrote it (9.1)"},
		{`{"version": 1}`, "names 0 arm(s)"},
		{`[]`, "not a result.json"},
	} {
		_, err := ReadResult(strings.NewReader(c.in))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.in, err, c.want)
		}
	}
}

func FuzzReadResult(f *testing.F) {
	f.Add([]byte(`{"version":1,"arms":[{"name":"a"},{"name":"b"}],"rows":[{"ratio":null,"matrix":{"c":"1"}}],"gates":[{}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := ReadResult(bytes.NewReader(data))
		if err != nil {
			return
		}
		for _, format := range Formats() {
			if err := Write(&bytes.Buffer{}, format, a, RenderOptions{Width: 80}); err != nil && !errors.Is(err, errNoTrials) {
				t.Errorf("%s: %v", format, err)
			}
		}
		for _, r := range a.Rows {
			if math.IsInf(r.Ratio, 0) {
				t.Error("an infinite ratio")
			}
		}
	})
}
