package spec

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
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

// TestRoundTrip marshals every accepted spec to JSON and back: nothing is
// lost, expressions work afterwards, and the second JSON is the first.
func TestRoundTrip(t *testing.T) {
	gates := 0
	for _, file := range corpus(t, "ok") {
		src := read(t, file)
		s, _ := Parse(file, src, caseOptions(src))
		if s == nil {
			t.Fatalf("%s is refused", file)
		}
		first, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var back Spec
		if err := json.Unmarshal(first, &back); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if diff := cmp.Diff(*s, back, cmpSpec()); diff != "" {
			t.Errorf("%s: JSON loses something (-want +got):\n%s", file, diff)
		}
		second, err := json.Marshal(&back)
		if err != nil || !bytes.Equal(first, second) {
			t.Errorf("%s: the second JSON differs from the first (%v)", file, err)
		}
		for i, th := range back.Thresholds {
			if th.Fail == nil {
				continue
			}
			gates++
			ok1, err1 := th.Fail.Eval(testRow())
			ok2, err2 := s.Thresholds[i].Fail.Eval(testRow())
			if ok1 != ok2 || (err1 == nil) != (err2 == nil) {
				t.Errorf("%s: %s decides otherwise after the round trip", file, th.Fail.Source)
			}
		}
	}
	if gates < 10 {
		t.Errorf("only %d gates were compared", gates)
	}
}

// TestSecretsStayOut demands that no value of the environment that a
// template names lands in the JSON or in the printed form.
func TestSecretsStayOut(t *testing.T) {
	const secret = "hunter2-very-secret"
	src := validHead + `env: { A: "${env.TOKEN}", B: "x${env.TOKEN:-d}y" }
services: { db: { command: "./db ${port} ${env.TOKEN}", env: { P: "${env.TOKEN}" } } }
versions: { x: "echo ${env.TOKEN}" }
build: ["make ${env.TOKEN:?needed}"]
scenarios:
  a: { http: { path: "/${env.TOKEN}", method: POST, headers: { authorization: "Bearer ${env.TOKEN}" }, body: "${env.TOKEN}", sign: { header: x, hmac: sha1, key: "${env.TOKEN}" }, vars: { t: "${env.TOKEN}" } } }
  b: { ws: { message: "${env.TOKEN}", reply: "${env.TOKEN}" } }
  c: { exec: { command: "wrk ${url} ${env.TOKEN}", env: { T: "${env.TOKEN}" }, preset: wrk } }
  d: { command: { run: ["x", "${env.TOKEN}"], prepare: "y ${env.TOKEN}" } }
`
	s, diags := Parse("bench.yaml", []byte(src), Options{Env: func(name string) (string, bool) { return secret, name == "TOKEN" }, Stat: testStat})
	if s == nil {
		t.Fatalf("refused: %v", diags)
	}
	out, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var printed bytes.Buffer
	if err := Print(&printed, s); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{string(out), printed.String()} {
		if strings.Contains(text, secret) {
			t.Errorf("the secret is in:\n%s", text)
		}
		if n := strings.Count(text, "env.TOKEN"); n < 15 {
			t.Errorf("only %d references are left", n)
		}
	}
}

func TestFind(t *testing.T) {
	root := t.TempDir()
	deep := filepath.Join(root, "a", "b")
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(deep); err == nil || !strings.Contains(err.Error(), "tandem init") {
		t.Errorf("without a spec: %v", err)
	}
	// A folder of that name is no spec.
	if err := os.Mkdir(filepath.Join(deep, FileName), 0o755); err != nil {
		t.Fatal(err)
	}
	want := filepath.Join(root, FileName)
	if err := os.WriteFile(want, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := Find(deep); err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "bench.yml"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(other); err == nil || !strings.Contains(err.Error(), "rename it") {
		t.Errorf("with bench.yml: %v", err)
	}
}

func TestDigest(t *testing.T) {
	parse := func(src, profile string) *Spec {
		s, diags := Parse("bench.yaml", []byte(src), Options{Profile: profile, Env: testEnv, Stat: testStat})
		if s == nil {
			t.Fatalf("refused: %v", diags)
		}
		return s
	}
	with := validSpec + "profiles: { quick: { plan: { blocks: 4 } } }\n"
	digests := map[string]string{}
	for name, s := range map[string]*Spec{"plain": parse(validSpec, ""), "with": parse(with, ""), "quick": parse(with, "quick")} {
		if len(s.Digest) != 64 {
			t.Errorf("the digest %q is no SHA-256 in hex", s.Digest)
		}
		if other, dup := digests[s.Digest]; dup {
			t.Errorf("%s and %s have one digest", name, other)
		}
		digests[s.Digest] = name
	}
	if first, again := parse(with, ""), parse(with, ""); first.Digest != again.Digest {
		t.Error("the digest changes from reading to reading")
	}
}
