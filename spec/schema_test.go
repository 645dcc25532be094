package spec

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	tandem "github.com/tandem-bench/tandem"
)

func compileSchema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(tandem.Schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		t.Fatalf("schema.json is no JSON Schema: %v", err)
	}
	return s
}

// instance is a document as a JSON Schema sees it.
func instance(n *node) any {
	switch {
	case n.kind == mapKind:
		m := map[string]any{}
		for _, f := range n.fields {
			m[f.key.text] = instance(f.val)
		}
		return m
	case n.kind == seqKind:
		l := []any{}
		for _, it := range n.items {
			l = append(l, instance(it))
		}
		return l
	case n.tag == tagNull:
		return nil
	case n.tag == tagBool:
		return strings.EqualFold(n.text, "true")
	case n.isNumber():
		if i, err := strconv.ParseInt(n.text, 0, 64); err == nil {
			return int(i)
		}
		if f, err := strconv.ParseFloat(n.text, 64); err == nil && isFinite(f) {
			return f
		}
	}
	return n.text
}

// document reads a file's nodes, or nil where it is not the YAML of a spec.
func document(src []byte) *node {
	d := &decoder{src: newSource("x.yaml", string(src))}
	n := d.parseYAML()
	if HasErrors(d.diags) {
		return nil
	}
	return n
}

// structural are the kinds of errors that a schema can see.
var structural = []string{kindUnknownKey, kindMissingKey, kindWrongType, kindBadValue, kindEmpty, kindConflict, kindUnit, kindName, kindDuplicate}

// beyondSchema are the cases of testdata/err that are structural and that
// the schema lets through, with the reason.
var beyondSchema = map[string]string{
	"host-differs": "arms are compared", "host-one-arm": "arms are compared", "host-command": "servers and commands are compared",
	"host-user":               "keys are compared",
	"arm-git-option":          "what git takes for a revision",
	"arm-git-range":           "what git takes for a revision",
	"arm-server-no-command":   "depends on the shared server",
	"server-no-command":       "depends on what the arms add",
	"exec-counter-group":      "a regular expression within a text",
	"exec-regex-bad":          "a regular expression within a text",
	"exec-regex-group":        "a regular expression within a text",
	"ready-log-regex":         "a regular expression within a text",
	"ready-timeout-zero":      "the bounds of a duration",
	"plan-blocks-order":       "compares two values",
	"plan-blocks-hex":         "a spelling of numbers",
	"plan-blocks-octal":       "a spelling of numbers",
	"plan-blocks-underscore":  "a spelling of numbers",
	"matrix-octal":            "a spelling of numbers",
	"pins-backwards":          "compares two values",
	"http-headers-twice":      "compares names without case",
	"http-pacer-swing":        "compares two values",
	"http-pipeline-close":     "depends on a value",
	"http-pipeline-mode":      "an incomplete use that defaults may complete",
	"http-rate-pipeline":      "depends on a value",
	"http-rate-think":         "may come from defaults",
	"http-rate-zero":          "the bounds of a rate",
	"matrix-exclude-all":      "what a matrix comes to",
	"matrix-include-twice":    "what a matrix comes to",
	"matrix-not-a-number":     "what a reference comes to",
	"report-same":             "compares two values",
	"scenario-errors-command": "may come from defaults",
	"scenario-expect-command": "may come from defaults",
	"scenario-no-driver":      "the driver may come from defaults",
	"profiles-removes-all":    "what a profile comes to",
	"verify-path":             "depends on the kind of the scenario",
	"prime-exec":              "may come from defaults",
	"key-twice":               "YAML readers drop one of the two",
	"scenario-twice":          "YAML readers drop one of the two",
}

// TestSchemaAgrees holds schema.json and the parser together: one corpus,
// accepted and refused by both.
func TestSchemaAgrees(t *testing.T) {
	schema := compileSchema(t)
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"ok", "err"} {
		files, err := filepath.Glob(filepath.Join(here, "testdata", dir, "*.yaml"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no corpus: %v", err)
		}
		t.Chdir(filepath.Join(here, "testdata", dir))
		for _, file := range files {
			name := strings.TrimSuffix(filepath.Base(file), ".yaml")
			src := read(t, file)
			n := document(src)
			if n == nil {
				continue // not YAML: editors say so themselves
			}
			_, diags := Parse(filepath.Base(file), src, caseOptions(src))
			schemaErr := schema.Validate(instance(n))
			reason, beyond := beyondSchema[name]
			switch seen := structuralErrors(diags); {
			case !HasErrors(diags) && schemaErr != nil:
				t.Errorf("%s/%s: the parser accepts it, the schema does not: %v", dir, name, schemaErr)
			case len(seen) > 0 && schemaErr == nil && !beyond:
				t.Errorf("%s/%s: the schema accepts what the parser refuses: %s", dir, name, seen[0].Message)
			case schemaErr != nil && beyond && len(seen) > 0:
				t.Errorf("%s/%s: the schema does see it: remove the exception %q", dir, name, reason)
			}
		}
	}
}

func structuralErrors(diags []Diagnostic) []Diagnostic {
	return slices.DeleteFunc(slices.Clone(diags), func(d Diagnostic) bool {
		return d.Severity != Error || !slices.Contains(structural, d.Kind)
	})
}

// TestSchemaDocuments demands a description and an example for each key.
func TestSchemaDocuments(t *testing.T) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(tandem.Schema))
	if err != nil {
		t.Fatal(err)
	}
	keys := 0
	var walk func(v any, path string)
	walk = func(v any, path string) {
		switch v := v.(type) {
		case map[string]any:
			props, _ := v["properties"].(map[string]any)
			closed := v["additionalProperties"] == false
			for name, p := range props {
				m, isSchema := p.(map[string]any)
				if !isSchema || !closed {
					continue
				}
				keys++
				if text, _ := m["description"].(string); len(text) < 10 || !strings.HasSuffix(text, ".") {
					t.Errorf("%s.%s has no description that is a sentence", path, name)
				}
				if _, ok := m["examples"].([]any); !ok && !strings.HasPrefix(path, "/$defs/profile") {
					t.Errorf("%s.%s has no example", path, name)
				}
			}
			if props != nil && v["type"] == "object" && !closed && v["additionalProperties"] == nil {
				t.Errorf("%s accepts any key", path)
			}
			for k, c := range v {
				walk(c, path+"/"+k)
			}
		case []any:
			for i, c := range v {
				walk(c, fmt.Sprintf("%s/%d", path, i))
			}
		}
	}
	walk(doc, "")
	if keys < 150 {
		t.Errorf("%d keys are documented, expected more", keys)
	}
}

// TestSchemaExamples demands that each example is what its schema accepts.
func TestSchemaExamples(t *testing.T) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(tandem.Schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	checked := 0
	var walk func(v any, path string)
	walk = func(v any, path string) {
		switch v := v.(type) {
		case map[string]any:
			if examples, ok := v["examples"].([]any); ok {
				s, err := c.Compile("schema.json#" + path)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range examples {
					checked++
					if err := s.Validate(e); err != nil {
						t.Errorf("the example %v of %s: %v", e, path, err)
					}
				}
			}
			for k, sub := range v {
				walk(sub, path+"/"+strings.NewReplacer("~", "~0", "/", "~1", "^", "%5E").Replace(k))
			}
		case []any:
			for i, sub := range v {
				walk(sub, fmt.Sprintf("%s/%d", path, i))
			}
		}
	}
	walk(map[string]any{"$defs": doc.(map[string]any)["$defs"]}, "")
	for name, p := range doc.(map[string]any)["properties"].(map[string]any) {
		walk(p, "/properties/"+name)
	}
	if checked < 100 {
		t.Errorf("%d examples were checked, expected more", checked)
	}
}

// TestSchemaKeys compares the keys of each mapping with the parser's.
func TestSchemaKeys(t *testing.T) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(tandem.Schema))
	if err != nil {
		t.Fatal(err)
	}
	root := doc.(map[string]any)
	defs := root["$defs"].(map[string]any)
	defs[""] = root
	defs["body"] = defs["http"].(map[string]any)["properties"].(map[string]any)["body"].(map[string]any)["anyOf"].([]any)[1]
	defs["blocks"] = defs["plan"].(map[string]any)["properties"].(map[string]any)["blocks"].(map[string]any)["anyOf"].([]any)[1]
	defs["step"] = defs["step"].(map[string]any)["anyOf"].([]any)[1]
	for name, o := range map[string]*object{
		"": rootObject, "armPart": armObject, "step": stepObject, "serverPart": serverObject, "ready": readyObject, "stop": stopObject,
		"servicePart": serviceObject, "hostPart": hostObject, "pins": pinsObject, "generator": generatorObject, "limits": limitsObject, "plan": planObject,
		"blocks": blocksObject, "scenario": scenarioObject, "scenarioPart": scenarioObject, "http": httpObject, "body": bodyObject,
		"request": requestObject, "reset": resetObject, "hooks": hooksObject, "verifyPart": verifyObject, "prime": primeObject, "pacerPart": pacerObject, "tls": tlsObject, "signPart": signObject, "ws": wsObject, "execPart": execObject,
		"extract": extractObject, "processPart": processObject, "threshold": thresholdObject, "policy": policyObject, "report": reportObject,
	} {
		def, ok := defs[name].(map[string]any)
		if !ok {
			t.Errorf("the schema has no $defs/%s", name)
			continue
		}
		var keys []string
		for k := range def["properties"].(map[string]any) {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		want := slices.Sorted(slices.Values(o.keys))
		if !slices.Equal(keys, want) {
			t.Errorf("$defs/%s has the keys %v, the parser %v", name, keys, want)
		}
	}
}

// TestSchemaAgreesOnMutations changes accepted specs at random, and demands
// that parser and schema agree on the outcome.
func TestSchemaAgreesOnMutations(t *testing.T) {
	schema := compileSchema(t)
	rng := rand.New(rand.NewPCG(1, 2))
	disagreements := 0
	files := corpus(t, "ok")
	for _, file := range files {
		n := document(read(t, file))
		if n == nil {
			t.Fatalf("%s is not YAML", file)
		}
		for range 30 {
			m := mutate(rng, n)
			src := render(m)
			back := document([]byte(src))
			if back == nil {
				continue // a mutation that YAML does not take
			}
			_, diags := Parse(file, []byte(src), caseOptions(nil))
			seen := structuralErrors(diags)
			err := schema.Validate(instance(back))
			switch {
			case err != nil && HasErrors(diags): // both refuse it
				continue
			case err == nil && (len(seen) == 0 || blind(seen)):
				continue
			}
			if disagreements++; disagreements < 20 {
				t.Errorf("%s, mutated:\n%s\nparser: %v\nschema: %v", file, src, messages(diags), err)
			}
		}
	}
}

// blind reports whether errors are only such as a schema cannot see.
func blind(diags []Diagnostic) bool {
	if len(diags) == 0 {
		return false
	}
	for _, d := range diags {
		if !slices.ContainsFunc(schemaBlind, func(s string) bool { return strings.Contains(d.Message, s) }) {
			return false
		}
	}
	return true
}

// schemaBlind are the messages about what a schema cannot see.
var schemaBlind = []string{
	"expected a duration from", "is not a revision", "not a regular expression", "expected one group", "no points left", "(which is", "is above the largest",
	"is here twice", "checks responses", "errors is a share", "under the profile", "expected a rate above", "exclude each other", "goes with", "needs keepalive",
	"expected one of http, ws, exec and command", `server: the key "command" is missing`, "expected a size from", "sends requests one by one", "think waits",
	"found neither", "found an empty mapping", "is not a CPU", "runs backwards", "expected less than the mean", "whole number of bytes", "is written to one file", "are written to one file",
	"is no ssh destination", "is no address", "that compares machines", "a command runs on this machine", "runs as who ssh logs in",
}

func messages(diags []Diagnostic) string {
	var b strings.Builder
	for _, d := range diags {
		fmt.Fprintf(&b, "%d:%d %s [%s]\n", d.Line, d.Column, d.Message, d.Kind)
	}
	return b.String()
}

// mutate copies a document with one random change.
func mutate(rng *rand.Rand, n *node) *node {
	var all, originals []*node
	var clone func(n *node) *node
	clone = func(n *node) *node {
		c := *n
		c.items, c.fields = nil, nil
		out := &c
		all, originals = append(all, out), append(originals, n)
		for _, it := range n.items {
			out.items = append(out.items, clone(it))
		}
		for _, f := range n.fields {
			out.fields = append(out.fields, field{key: f.key, val: clone(f.val)})
		}
		return out
	}
	root := clone(n)
	target := all[rng.IntN(len(all))]
	switch op := rng.IntN(5); {
	case op == 0 && len(target.fields) > 0: // drop a key
		i := rng.IntN(len(target.fields))
		target.fields = slices.Delete(target.fields, i, i+1)
	case op == 1 && len(target.fields) > 0: // rename a key
		i := rng.IntN(len(target.fields))
		k := *target.fields[i].key
		k.text = []string{k.text + "x", "x-" + k.text, "path", "dir", "name", "", "a b", "..", "http"}[rng.IntN(9)]
		target.fields[i].key = &k
	case op == 2 && len(target.fields) > 0: // add a key of another mapping
		donor := originals[rng.IntN(len(originals))]
		if len(donor.fields) > 0 {
			target.fields = append(target.fields, donor.fields[rng.IntN(len(donor.fields))])
		}
	case op == 3 && len(target.items) > 0: // empty a list
		target.items = nil
	default: // another value
		v := []node{
			{tag: tagNull}, {tag: tagInt, text: "7"}, {tag: tagInt, text: "0"}, {tag: tagInt, text: "-1"}, {tag: tagFloat, text: "0.5"}, {tag: tagBool, text: "true"},
			{tag: tagStr, text: "text"}, {tag: tagStr}, {tag: tagStr, text: "${env.USER}"}, {tag: tagStr, text: "10s"}, {tag: tagStr, text: "5"}, {tag: tagStr, text: "/"},
			{kind: seqKind}, {kind: mapKind}, {kind: seqKind, items: []*node{{tag: tagStr, text: "a"}}}, {tag: tagStr, text: "1kB"}, {tag: tagStr, text: "7/s"},
		}[rng.IntN(17)]
		*target = v
	}
	return root
}

// render writes a document as JSON, which is YAML.
func render(n *node) string {
	switch {
	case n.kind == mapKind:
		var parts []string
		for _, f := range n.fields {
			parts = append(parts, strconv.Quote(f.key.text)+": "+render(f.val))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case n.kind == seqKind:
		var parts []string
		for _, it := range n.items {
			parts = append(parts, render(it))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case n.tag == tagNull:
		return "null"
	case n.tag == tagStr:
		return strconv.Quote(n.text)
	}
	return n.text
}
