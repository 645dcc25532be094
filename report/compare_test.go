package report

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/tandem-bench/tandem/runner/journal"
)

// twoRuns are runs of the same baseline on machines of different speed; the
// candidate is slower than it by the two shares.
func twoRuns(t *testing.T, oldBy, newBy float64) (*Analysis, *Analysis) {
	t.Helper()
	old := newWorld("a", "b")
	old.speed = slower("head", "a", oldBy)
	old.finish = func(j *journal.Run) { j.Header.ID = "old" }
	now := newWorld("a", "b")
	now.seed, now.speed = 99, slower("head", "a", newBy)
	now.edit = func(tr *journal.Trial) bool { // a machine at half the speed
		setMetric(tr, "rps", tr.Metrics.Value("rps")/2)
		setMetric(tr, "cpu_per_request", tr.Metrics.Value("cpu_per_request")*(2))
		tr.Elapsed *= 2
		return true
	}
	return analyze(t, old), analyze(t, now)
}

func compared(t *testing.T, c *Comparison, scenario, metric string) *ComparedRow {
	t.Helper()
	for i := range c.Rows {
		if c.Rows[i].Scenario == scenario && c.Rows[i].Metric == metric {
			return &c.Rows[i]
		}
	}
	t.Fatalf("no row %s %s", scenario, metric)
	return nil
}

func TestCompareByRatioOfRatios(t *testing.T) {
	c := Compare(twoRuns(t, 0.02, 0.12))
	r := compared(t, c, "a", "rps")
	if want := 0.88 / 0.98; math.Abs(r.Ratio-want) > 0.02 || r.Verdict != Regressed {
		t.Errorf("ratio %v (want about %v), %s", r.Ratio, want, r.Verdict)
	}
	if r := compared(t, c, "b", "rps"); r.Verdict == Regressed || r.Verdict == Improved {
		t.Errorf("nothing changed, on a machine of half the speed: %s at %v", r.Verdict, r.Ratio)
	}
	if c := Compare(twoRuns(t, 0.12, 0.02)); compared(t, c, "a", "rps").Verdict != Improved {
		t.Error("the other way round is no improvement")
	}
}

// Without a common baseline no row has a verdict.
func TestCompareNeedsTheSameBaseline(t *testing.T) {
	arm := func(digest, revision string, dirty bool) journal.Arm {
		return journal.Arm{Name: "base", Digest: digest, Revision: revision, Dirty: dirty}
	}
	for _, c := range []struct {
		a, b journal.Arm
		same bool
		why  string
	}{
		{arm("x", "1", false), arm("x", "2", true), true, "built trees are identical"},
		{arm("x", "1", false), arm("y", "1", false), false, "built trees differ"},
		{arm("", "1", false), arm("", "1", false), true, "commit 1"},
		{arm("", "1", false), arm("", "1", true), false, "uncommitted"},
		{arm("", "1", false), arm("", "2", false), false, "different commits"},
		{arm("", "", false), arm("", "", false), false, "not recorded"},
	} {
		old, now := twoRuns(t, 0, 0.3)
		old.Baseline, now.Baseline = c.a, c.b
		got := Compare(old, now)
		if got.SameBase != c.same || !strings.Contains(got.Why, c.why) {
			t.Errorf("%+v and %+v: %v, %s", c.a, c.b, got.SameBase, got.Why)
		}
		if r := compared(t, got, "a", "rps"); (r.Verdict != "") != c.same || math.IsNaN(r.Ratio) {
			t.Errorf("%+v and %+v: verdict %q, ratio %v", c.a, c.b, r.Verdict, r.Ratio)
		}
	}
}

// Two runs of unchanged code are marked no more often than alpha says.
func TestCompareFalseAlarms(t *testing.T) {
	const runs = 300
	alarms := 0
	for i := range runs {
		old, now := newWorld("a", "b"), newWorld("a", "b")
		old.blocks, now.blocks = 4, 6
		old.seed, now.seed = uint64(1000+i), uint64(90000+i)
		a, err := Analyze(old.run(), nil)
		check(t, err)
		b, err := Analyze(now.run(), nil)
		check(t, err)
		for _, r := range Compare(a, b).Rows {
			if r.Verdict == Regressed || r.Verdict == Improved {
				alarms++
				break
			}
		}
	}
	// At alpha 0.01, more than 9 of 300 has a chance of one in a thousand.
	if alarms > 9 {
		t.Errorf("%d of %d comparisons of unchanged code are marked", alarms, runs)
	}
}

func TestCompareMissingRows(t *testing.T) {
	old, now := analyze(t, newWorld("a", "gone")), analyze(t, newWorld("a", "new"))
	c := Compare(old, now)
	if v := compared(t, c, "gone", "rps").Verdict; v != Removed {
		t.Errorf("gone: %s", v)
	}
	if v := compared(t, c, "new", "rps").Verdict; v != New {
		t.Errorf("new: %s", v)
	}
	now = analyses()["failed"]
	if r := compared(t, Compare(now, now), "missing", "rps"); r.Verdict != Incomparable || !strings.Contains(r.Reason, "failed") {
		t.Errorf("failed: %s %q", r.Verdict, r.Reason)
	}
}

func TestWriteComparison(t *testing.T) {
	c := Compare(twoRuns(t, 0.02, 0.12))
	c.New.Header.Host.Kernel = "6.9.1"
	c.warn()
	for _, f := range []struct {
		name, format string
		o            RenderOptions
	}{{"compare.text", "text", RenderOptions{Width: 100}}, {"compare.60.text", "text", RenderOptions{Width: 60, ASCII: true}}, {"compare.md", "markdown", RenderOptions{}}, {"compare.json", "json", RenderOptions{}}} {
		var b bytes.Buffer
		check(t, WriteComparison(&b, f.format, c, f.o))
		golden(t, f.name, settle(f.format, b.String()))
		if f.format == "json" && !json.Valid(b.Bytes()) {
			t.Error("not JSON")
		}
	}
	if err := WriteComparison(&bytes.Buffer{}, "junit", c, RenderOptions{}); err == nil {
		t.Error("accepted junit")
	}
}
