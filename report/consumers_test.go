package report

import (
	"bytes"
	"encoding/csv"
	"encoding/xml"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/joshdk/go-junit"
	"github.com/prometheus/common/expfmt"
	"golang.org/x/perf/benchfmt"

	"github.com/tandem-bench/tandem/spec"
)

// The tests of this file hand reports to those who read them.

func render(t *testing.T, format string, a *Analysis) []byte {
	t.Helper()
	var b bytes.Buffer
	check(t, Write(&b, format, a, RenderOptions{}))
	return b.Bytes()
}

// benchstat's own reader accepts every line, and loses none.
func TestBenchfmtReader(t *testing.T) {
	for name, a := range analyses() {
		windows := 0
		for _, s := range a.scenarios() {
			windows += len(a.trialsOf(s))
		}
		r := benchfmt.NewReader(bytes.NewReader(render(t, "benchfmt", a)), name)
		results := 0
		for r.Scan() {
			switch rec := r.Result().(type) {
			case *benchfmt.SyntaxError:
				t.Errorf("%s: %v", name, rec)
			case *benchfmt.Result:
				results++
				if arm := rec.GetConfig("arm"); a.armIndex(arm) < 0 {
					t.Errorf("%s: arm %q", name, arm)
				}
			}
		}
		check(t, r.Err())
		if results != windows {
			t.Errorf("%s: benchstat reads %d windows of %d", name, results, windows)
		}
	}
}

// The real benchstat puts the arms side by side, and its medians are those
// of our trials.
func TestBenchstat(t *testing.T) {
	a := analyses()["moved"]
	path := filepath.Join(t.TempDir(), "run.txt")
	check(t, os.WriteFile(path, render(t, "benchfmt", a), 0o600))
	cmd := exec.Command("go", "tool", "benchstat", "-col", "arm", "-format", "csv", "-filter", ".unit:req/s", path)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go tool benchstat: %v\n%s", err, out)
	}
	r := csv.NewReader(bytes.NewReader(out))
	r.FieldsPerRecord = -1
	lines, err := r.ReadAll()
	check(t, err)
	found := 0
	for _, l := range lines {
		scenario := strings.Replace(l[0], "Http/", "http/", 1)
		if len(l) < 4 || !slices.Contains(a.scenarios(), scenario) {
			continue
		}
		found++
		for k, arm := range []string{"base", "head"} {
			var rps []float64
			for _, tr := range a.trialsOf(scenario) {
				if tr.Arm == arm {
					rps = append(rps, tr.Metrics.Value("rps"))
				}
			}
			got, err := strconv.ParseFloat(l[1+2*k], 64)
			check(t, err)
			if math.Abs(got/median(rps)-1) > 1e-9 {
				t.Errorf("%s of %s: benchstat's median %v, ours %v", scenario, arm, got, median(rps))
			}
		}
	}
	if found != 3 {
		t.Errorf("benchstat shows %d of 3 scenarios:\n%s", found, out)
	}
}

func TestPrometheusParser(t *testing.T) {
	for name, a := range analyses() {
		var p expfmt.TextParser
		text := string(render(t, "openmetrics", a))
		families, err := p.TextToMetricFamilies(strings.NewReader(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, m := range families["tandem_ratio"].GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			ok := slices.ContainsFunc(a.Rows, func(r Row) bool {
				return plain(r.Scenario) == labels["scenario"] && r.Metric == labels["metric"] && r.Ratio == m.GetGauge().GetValue()
			})
			if !ok {
				t.Errorf("%s: %v is no row", name, labels)
			}
		}
		if !strings.HasSuffix(text, "\n# EOF\n") {
			t.Errorf("%s: no end", name)
		}
	}
}

// The parser of the OpenMetrics project's own Python client, which is strict,
// reads every sample.
func TestOpenMetricsParser(t *testing.T) {
	const script = `
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families
for family in text_string_to_metric_families(sys.stdin.read()):
    for s in family.samples:
        print(s.name)
`
	for name, a := range analyses() {
		if name == "many" {
			continue
		}
		doc := render(t, "openmetrics", a)
		cmd := exec.Command("/usr/bin/python3", "-c", script) // Debian's, which has the package
		cmd.Stdin = bytes.NewReader(doc)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v (.ci/setup installs python3-prometheus-client)\n%s", name, err, out)
			continue
		}
		var want []string
		for l := range strings.Lines(string(doc)) {
			if !strings.HasPrefix(l, "#") {
				want = append(want, l[:strings.IndexAny(l, "{ ")])
			}
		}
		if got := strings.Fields(string(out)); !slices.Equal(got, want) {
			t.Errorf("%s: read %d samples of %d", name, len(got), len(want))
		}
	}
}

// A parser of JUnit files, which knows nothing of ours, finds a test for each
// gate, and for each judged row without one, with the right status.
func TestJUnitParser(t *testing.T) {
	for name, a := range analyses() {
		suites, err := junit.Ingest(render(t, "junit", a))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := map[junit.Status]int{}
		gated := map[rowKey]bool{}
		for _, g := range a.Gates {
			gated[rowKey{g.Scenario, g.Arm, g.Metric}] = true
			switch {
			case g.Level != spec.Fail:
				want[junit.StatusPassed]++
			case g.Undecided || g.Policy == "failed" || g.Policy == "incomparable":
				want[junit.StatusError]++
			default:
				want[junit.StatusFailed]++
			}
		}
		for _, r := range a.Rows {
			switch {
			case !r.Judged || gated[rowKey{r.Scenario, r.Head.Arm, r.Metric}]:
			case r.Verdict == Unsure || !r.Verdict.measured():
				want[junit.StatusSkipped]++
			default:
				want[junit.StatusPassed]++
			}
		}
		got := map[junit.Status]int{}
		for _, s := range suites {
			for _, c := range s.Tests {
				got[c.Status]++
				if c.Name == "" || c.Classname == "" || (c.Error == nil && c.Status == junit.StatusFailed) {
					t.Errorf("%s: %+v", name, c)
				}
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

func TestJUnitCounts(t *testing.T) {
	for name, a := range analyses() {
		var doc junitSuites
		check(t, xml.Unmarshal(render(t, "junit", a), &doc))
		var tests, failures, errs, skipped int
		for _, s := range doc.Suites {
			tests += len(s.Cases)
			for _, c := range s.Cases {
				failures += bit(c.Failure != nil)
				errs += bit(c.Error != nil)
				skipped += bit(c.Skipped != nil)
			}
		}
		if got := [4]int{doc.Tests, doc.Failures, doc.Errors, doc.Skipped}; got != [4]int{tests, failures, errs, skipped} {
			t.Errorf("%s: says %v, holds %v", name, got, [4]int{tests, failures, errs, skipped})
		}
		if bad := failures+errs > 0; bad != (a.Outcome == GateFailed || a.Outcome == NotMeasured) {
			t.Errorf("%s: %d failures and %d errors, and the outcome is %s", name, failures, errs, a.Outcome)
		}
	}
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestCSVHoldsEveryFigure(t *testing.T) {
	for name, a := range analyses() {
		if name == "many" {
			continue // a hundred thousand lines more of the same
		}
		lines, err := csv.NewReader(bytes.NewReader(render(t, "csv", a))).ReadAll()
		check(t, err)
		want := 1
		for _, tr := range a.run.Trials {
			want += len(tr.Metrics.Names())
		}
		if len(lines) != want {
			t.Errorf("%s: %d lines, want %d", name, len(lines), want)
		}
		for _, l := range lines[1:] {
			for _, c := range l {
				if _, err := strconv.ParseFloat(c, 64); err != nil && c != "" && strings.ContainsAny(c[:1], "=+-@\t\r") {
					t.Errorf("%s: a spreadsheet would run %q", name, c)
				}
			}
		}
	}
}

// A command of GitHub's is one line, and no text can start another.
func TestGitHubCommandsCannotBeInjected(t *testing.T) {
	w := newWorld("evil\n::error::owned", "50%25 off")
	w.finish = nil
	w.policy.Unsure = "warn"
	w.noise = 0.1
	for _, l := range strings.Split(strings.TrimSpace(string(render(t, "github", analyze(t, w)))), "\n") {
		if !strings.HasPrefix(l, "::warning ") || strings.Contains(l, "\r") {
			t.Errorf("%q", l)
		}
	}
	var many []string
	for i := range 30 {
		many = append(many, fmt.Sprintf("s%d", i))
	}
	w = newWorld(many...)
	w.blocks, w.judge, w.policy.Unsure = 2, []string{"rps"}, "fail"
	out := string(render(t, "github", analyze(t, w)))
	if n := strings.Count(out, "\n"); n != maxAnnotations || strings.Count(out, "::error ") != n-1 || !strings.Contains(out, "::22 more") {
		t.Errorf("%d annotations:\n%s", n, out)
	}
}

func TestResultsWithoutTrials(t *testing.T) {
	a, err := ReadResult(bytes.NewReader(render(t, "json", analyses()["one"])))
	check(t, err)
	for _, format := range []string{"csv", "benchfmt", "autocannon"} {
		if err := Write(&bytes.Buffer{}, format, a, RenderOptions{}); err == nil || !strings.Contains(err.Error(), "journal") {
			t.Errorf("%s: %v", format, err)
		}
	}
}
