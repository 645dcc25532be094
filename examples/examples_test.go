// Package examples_test runs every example, whole but short.
package examples_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tandem-bench/tandem/spec"
)

// short is a profile that goes through everything that another one does, and
// measures next to nothing. It is added to a copy of each spec. Load tools
// know whole seconds only, so there is no warm-up.
const short = `
  test-short:
    <<: *%s
    plan: { blocks: 1, window: 50ms, warmup: 0s }
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
	tandem := build(t)
	for _, path := range specs(t) {
		for _, profile := range []string{"quick", "external"} {
			if !strings.Contains(read(t, path), fmt.Sprintf("\n  %s: &%s ", profile, profile)) {
				if profile == "quick" {
					t.Errorf("%s has no profile quick with an anchor", path)
				}
				continue
			}
			t.Run(filepath.ToSlash(path)+"/"+profile, func(t *testing.T) {
				file := prepared(t, path)
				text := read(t, file) + fmt.Sprintf(short, profile)
				if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
				run(t, tandem, file)
			})
		}
	}
}

// build makes the tandem of this checkout.
func build(t *testing.T) string {
	t.Helper()
	tandem := filepath.Join(t.TempDir(), "tandem")
	if out, err := exec.Command("go", "build", "-o", tandem, "../cmd/tandem").CombinedOutput(); err != nil {
		t.Fatalf("build tandem: %v\n%s", err, out)
	}
	return tandem
}

// disturbed is why a window does not count on a machine that others use: that
// says nothing of the example.
var disturbed = regexp.MustCompile(`stolen by the hypervisor|cycles were disturbed from outside`)

func run(t *testing.T, tandem, file string) {
	out := filepath.Join(t.TempDir(), "out")
	cmd := exec.Command(tandem, "run", "-f", file, "--profile", "test-short", "--out", out, "--quiet")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1 && exit.ExitCode() != 3 && exit.ExitCode() != 4) {
		t.Fatalf("%v\n%s", err, said.Bytes())
	}
	failed := cmd.ProcessState.ExitCode() == 4
	var result struct {
		Rows []struct {
			Scenario, Metric, Verdict, Reason string
			Judged                            bool
		}
	}
	if err := json.Unmarshal([]byte(read(t, filepath.Join(out, "result.json"))), &result); err != nil {
		t.Fatal(err)
	}
	s, _, err := spec.Load(file, spec.Options{Profile: "test-short", Env: os.LookupEnv})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range result.Rows {
		if !r.Judged { // autocannon's p50 in whole milliseconds may be 0
			continue
		}
		if r.Verdict == "failed" && disturbed.MatchString(r.Reason) {
			t.Logf("%s %s: %s", r.Scenario, r.Metric, r.Reason)
			seen[r.Scenario], failed = true, false
			continue
		}
		switch r.Verdict {
		case "regressed", "improved", "same", "unsure":
			seen[r.Scenario] = true
		default:
			t.Errorf("%s %s is %q", r.Scenario, r.Metric, r.Verdict)
		}
	}
	if failed {
		t.Error("exit code 4, and no row says that the machine was in the way")
	}
	for _, sc := range s.Scenarios {
		if !seen[sc.ID()] {
			t.Errorf("scenario %s has no verdict", sc.ID())
		}
	}
	if t.Failed() {
		t.Log(said.String())
	}
}

// Two versions of a package are compared by one and the same program.
func TestServersAreTheSame(t *testing.T) {
	for _, pair := range [][2]string{{"express/v4/server.js", "express/v5/server.js"}, {"webhooks/old/server.mjs", "webhooks/new/server.mjs"}} {
		if read(t, pair[0]) != read(t, pair[1]) {
			t.Errorf("%s and %s differ", pair[0], pair[1])
		}
	}
}

// The workflows of the pull request are those that init writes for its
// repository, on its main branch.
func TestWorkflowsAreThoseOfInit(t *testing.T) {
	repo := filepath.Join(filepath.Dir(prepared(t, "pr-server/bench.yaml")), "repo")
	commit := regexp.MustCompile(`tandem-bench/tandem@([0-9a-f]{40})`).FindStringSubmatch(read(t, "pr-server/workflows/bench.yml"))
	if commit == nil {
		t.Fatal("bench.yml names no commit of tandem")
	}
	for _, args := range [][]string{{"git", "checkout", "-q", "main"}, {build(t), "init", "--github", "--tandem", commit[1]}} {
		c := exec.Command(args[0], args[1:]...)
		c.Dir = repo
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", args, err, out)
		}
	}
	for _, name := range []string{"bench.yml", "bench-comment.yml"} {
		if diff := cmp.Diff(read(t, filepath.Join(repo, ".github/workflows", name)), read(t, filepath.Join("pr-server/workflows", name))); diff != "" {
			t.Errorf("%s (-init +here): %s", name, diff)
		}
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
