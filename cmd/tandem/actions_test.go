package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tandem-bench/tandem/report"
)

// obeyed is what the runner takes for a command: "::" after blanks at the
// start of a line, or "##[" anywhere. Lines end as .NET's do.
var obeyed = regexp.MustCompile(`(?m)^[\s\x{0085}\x{00a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]*::|##\[`)

func guarded(t *testing.T, chunks ...string) string {
	t.Helper()
	var b bytes.Buffer
	g := &guard{w: &b, start: true}
	for _, c := range chunks {
		if n, err := g.Write([]byte(c)); n != len(c) || err != nil {
			t.Fatalf("wrote %d of %d bytes: %v", n, len(c), err)
		}
	}
	return b.String()
}

func TestGuardBreaksCommands(t *testing.T) {
	for in, want := range map[string]string{
		"::error::x":                   ": :error::x",
		"a\n::error::x\n":              "a\n: :error::x\n",
		"a\r::stop-commands::x":        "a\r: :stop-commands::x",
		" \t\u00a0\u3000::add-mask::x": " \t\u00a0\u3000: :add-mask::x",
		"x ##[error]y":                 "x ## [error]y",
		"###[group]":                   "### [group]",
		"a::b ::c:: d":                 "a::b ::c:: d",
		"::1":                          ": :1",
		":::":                          ": ::",
		"# [x] ## y":                   "# [x] ## y",
	} {
		if got := guarded(t, in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func FuzzGuard(f *testing.F) {
	f.Add("a\n ::error::##[x]\r::", int64(3))
	f.Fuzz(func(t *testing.T, s string, seed int64) {
		// However a text is cut into writes, nothing in it is obeyed, and
		// blanks apart it stays what it was.
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		var chunks []string
		for rest := s; rest != ""; {
			n := 1 + r.IntN(len(rest))
			chunks, rest = append(chunks, rest[:n]), rest[n:]
		}
		got := guarded(t, chunks...)
		if obeyed.MatchString(strings.ReplaceAll(got, "\r", "\n")) {
			t.Errorf("%q became %q", s, got)
		}
		if strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(s, " ", "") {
			t.Errorf("%q became %q", s, got)
		}
	})
}

// actionsApp is a step of GitHub Actions.
func actionsApp(t *testing.T) (a *app, dir string, stdout, stderr *bytes.Buffer) {
	t.Helper()
	dir = t.TempDir()
	env := map[string]string{"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": filepath.Join(dir, "summary"), "GITHUB_OUTPUT": filepath.Join(dir, "output")}
	stdout, stderr = new(bytes.Buffer), new(bytes.Buffer)
	a = &app{stdout: stdout, stderr: stderr, env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
	a.guardStreams()
	return a, dir, stdout, stderr
}

func analysisOf(t *testing.T, fixtureName string) *report.Analysis {
	t.Helper()
	a, err := report.ReadResult(bytes.NewReader(fixture(t, fixtureName)))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestPublish(t *testing.T) {
	a, dir, stdout, stderr := actionsApp(t)
	a.publish(analysisOf(t, "moved"), "out/result.json\nfoo<<EOF\nbar\nEOF", "text")
	lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
	if len(lines) > 10 || !strings.HasPrefix(lines[0], "::error ") || stdout.Len() > 0 {
		t.Errorf("annotations:\n%s\nstdout: %s", stderr, stdout)
	}
	contains(t, read(t, dir, "summary"), "### my-server: 3 regressed")
	outputs := parseOutputs(t, read(t, dir, "output"))
	want := map[string]string{"outcome": "failed", "regressed": "3", "improved": "0", "unsure": "0", "failed": "0", "result": "out/result.json\nfoo<<EOF\nbar\nEOF"}
	delete(outputs, "unsure") // as the fixture has it
	delete(want, "unsure")
	if fmt.Sprint(outputs) != fmt.Sprint(want) {
		t.Errorf("outputs %q, want %q", outputs, want)
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// parseOutputs reads outputs as the runner does, and fails where a delimiter
// is used twice.
func parseOutputs(t *testing.T, text string) map[string]string {
	t.Helper()
	found, ends := map[string]string{}, map[string]bool{}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		name, end, ok := strings.Cut(lines[i], "<<")
		if !ok || ends[end] || len(end) < 32 {
			t.Fatalf("line %d: %q", i, lines[i])
		}
		ends[end] = true
		var value []string
		for i++; i < len(lines) && lines[i] != end; i++ {
			value = append(value, lines[i])
		}
		found[name] = strings.Join(value, "\n")
	}
	return found
}

// Elsewhere nothing is published, and nothing of the output changes.
func TestOutsideOfActions(t *testing.T) {
	var stdout, stderr bytes.Buffer
	a := &app{stdout: &stdout, stderr: &stderr, env: func(string) (string, bool) { return "", false }}
	a.guardStreams()
	a.quiet()()
	a.publish(analysisOf(t, "moved"), "", "text")
	fmt.Fprint(a.stdout, "::error::x\n##[group]")
	if stdout.String() != "::error::x\n##[group]" || stderr.Len() > 0 {
		t.Errorf("stdout %q, stderr %q", &stdout, &stderr)
	}
}

func TestSummaryKeepsItsLimit(t *testing.T) {
	a, dir, _, _ := actionsApp(t)
	path := filepath.Join(dir, "summary")
	many, err := report.ReadResult(strings.NewReader(string(fixture(t, "moved"))))
	if err != nil {
		t.Fatal(err)
	}
	row := many.Rows[0]
	for i := range 3000 {
		row.Scenario = fmt.Sprintf("%04d%s", i, strings.Repeat("<", 60))
		many.Rows = append(many.Rows, row)
	}
	for range 2 {
		if err := a.summarizeRun(many); err != nil && !strings.Contains(err.Error(), "no room for more") {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if max := int64(report.SummaryLimit - summaryHeadroom); info.Size() > max || info.Size() < max/2 {
		t.Errorf("%d bytes, at most %d", info.Size(), max)
	}
	if err := os.WriteFile(path, make([]byte, report.SummaryLimit-summaryHeadroom), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := a.summarizeRun(many); err == nil || !strings.Contains(err.Error(), "no room for more") {
		t.Errorf("%v", err)
	}
}

// While children run, only who knows a fresh random word can make the runner
// obey.
func TestQuiet(t *testing.T) {
	a, _, _, stderr := actionsApp(t)
	a.quiet()()
	a.quiet()()
	m := regexp.MustCompile(`^::stop-commands::([0-9a-f]{32})\n::([0-9a-f]{32})::\n::stop-commands::([0-9a-f]{32})\n::([0-9a-f]{32})::\n$`).FindStringSubmatch(stderr.String())
	if m == nil || m[1] != m[2] || m[3] != m[4] || m[1] == m[3] {
		t.Errorf("%q", stderr)
	}
}
