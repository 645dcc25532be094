package spec

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHarnessNamesWhatIsMeasuredBy(t *testing.T) {
	const text = `version: 1
name: x
arms: { base: { git: main }, head: { dir: . } }
build: [make -f build.mk]
server: { command: "node server.js ${port}" }
services:
  db: { command: "sh 'bench/db.sh' --conf=bench/db.conf", setup: [./init.sh], ready: { exec: [sh, ready.sh] }, reset: { run: ./reset.sh >/dev/null } }
before: { run: ./seed.sh, window: [{ run: ./fill.sh }] }
after: { block: [sh, ./clean.sh] }
scenarios:
  load: { exec: { command: "wrk -s lua/order.lua -t1.5 -d${window} ${url}/", metrics: { rps: { regex: 'x ([0-9.]+)' } } } }
  args: { exec: { command: [tool, "@body.json", ../shared.js], metrics: { rps: { regex: 'x ([0-9.]+)' } } } }
  tool: { command: { run: ./bin/tool, prepare: { run: rm -rf out.tmp } }, verify: ./verify.sh, before: ./first.sh, after: ./last.sh }
`
	s, diags := Parse("bench.yaml", []byte(text), Options{Env: testEnv})
	if s == nil {
		t.Fatal(diags)
	}
	s.Scenarios = append(s.Scenarios, Scenario{HTTP: &HTTP{BodyFile: s.Dir + "/data/body.json", Data: s.Dir + "/users.csv"}})
	want := []string{"../shared.js", "bench/db.conf", "bench/db.sh", "body.json", "clean.sh", "data/body.json", "fill.sh", "first.sh", "init.sh", "last.sh", "lua/order.lua", "out.tmp", "ready.sh", "reset.sh", "seed.sh", "users.csv", "verify.sh"}
	if diff := cmp.Diff(want, s.Harness()); diff != "" {
		t.Error(diff)
	}
}
