// Package examples_test runs every example, whole but short.
package examples_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tandem-bench/tandem/spec"
)

// short is a profile that goes through everything and measures next to
// nothing. It is added to a copy of each spec.
const short = `
  test-short:
    plan: { blocks: 2, window: 40ms, warmup: 20ms }
`

// specs are the examples' spec files.
func specs(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob("*/*.yaml")
	if err != nil || len(found) == 0 {
		t.Fatalf("found no examples (%v)", err)
	}
	return found
}

// prepared is a spec in a copy of its example's folder, where the example's
// set-up has run, if it has one.
func prepared(t *testing.T, path string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), filepath.Dir(path))
	if err := os.CopyFS(dir, os.DirFS(filepath.Dir(path))); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "setup.sh")); err == nil {
		setup := exec.Command("sh", "./setup.sh")
		setup.Dir = dir
		if out, err := setup.CombinedOutput(); err != nil {
			t.Fatalf("%s: setup.sh: %v\n%s", path, err, out)
		}
	}
	return filepath.Join(dir, filepath.Base(path))
}

func TestEverySpecIsValid(t *testing.T) {
	for _, path := range specs(t) {
		path = prepared(t, path)
		for _, profile := range append(profiles(t, path), "") {
			s, diags, err := spec.Load(path, spec.Options{Profile: profile, Env: os.LookupEnv})
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range diags {
				t.Errorf("%s:%d:%d, profile %q: %s", d.File, d.Line, d.Column, profile, d.Message)
			}
			if s == nil {
				t.Errorf("%s, profile %q: no spec", path, profile)
			}
		}
	}
}

// profiles are the names below the key profiles, which ends every example.
func profiles(t *testing.T, path string) []string {
	t.Helper()
	_, tail, ok := strings.Cut(read(t, path), "\nprofiles:\n")
	if !ok {
		t.Fatalf("%s does not end in profiles", path)
	}
	var out []string
	for line := range strings.Lines(tail) {
		name, _, ok := strings.Cut(strings.TrimPrefix(line, "  "), ":")
		if ok && strings.HasPrefix(line, "  ") && !strings.HasPrefix(line, "   ") && !strings.HasPrefix(line, "  #") {
			out = append(out, name)
		}
	}
	return out
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestExamplesRun runs each example in a folder of its own, from its build to
// its report. What it says of the rows is left open: so short a run on a busy
// machine may find anything but a failure.
func TestExamplesRun(t *testing.T) {
	tandem := filepath.Join(t.TempDir(), "tandem")
	if out, err := exec.Command("go", "build", "-o", tandem, "../cmd/tandem").CombinedOutput(); err != nil {
		t.Fatalf("build tandem: %v\n%s", err, out)
	}
	for _, path := range specs(t) {
		t.Run(filepath.ToSlash(path), func(t *testing.T) {
			file := prepared(t, path)
			if err := os.WriteFile(file, []byte(read(t, file)+short), 0o644); err != nil {
				t.Fatal(err)
			}
			run(t, tandem, file)
		})
	}
}

func run(t *testing.T, tandem, file string) {
	out := filepath.Join(t.TempDir(), "out")
	cmd := exec.Command(tandem, "run", "-f", file, "--profile", "test-short", "--out", out, "--quiet")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1 && exit.ExitCode() != 3) {
		t.Fatalf("%v\n%s", err, said.Bytes())
	}
	var result struct {
		Rows []struct{ Scenario, Metric, Verdict string }
	}
	if err := json.Unmarshal([]byte(read(t, filepath.Join(out, "result.json"))), &result); err != nil {
		t.Fatal(err)
	}
	s, _, err := spec.Load(file, spec.Options{Env: os.LookupEnv})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range result.Rows {
		switch r.Verdict {
		case "regressed", "improved", "same", "unsure":
			seen[r.Scenario] = true
		case "": // shown, not judged
		default:
			t.Errorf("%s %s is %q", r.Scenario, r.Metric, r.Verdict)
		}
	}
	for _, sc := range s.Scenarios {
		if !seen[sc.Name] && !seen[sc.ID()] {
			t.Errorf("scenario %s has no verdict", sc.ID())
		}
	}
	if t.Failed() {
		t.Log(said.String())
	}
}

// The two arms of a framework comparison run one and the same program.
func TestExpressServersAreTheSame(t *testing.T) {
	if read(t, "express/v4/server.js") != read(t, "express/v5/server.js") {
		t.Error("server.js differs between v4 and v5")
	}
}

// A lock file must not name the registry that it was made with.
func TestLockFilesNameNoRegistry(t *testing.T) {
	locks, err := filepath.Glob("*/*/package-lock.json")
	if err != nil || len(locks) == 0 {
		t.Fatalf("found no lock files (%v)", err)
	}
	for _, path := range locks {
		if strings.Contains(read(t, path), `"resolved"`) {
			t.Errorf("%s says where its packages were fetched; make it with npm's omit-lockfile-registry-resolved", path)
		}
	}
}
