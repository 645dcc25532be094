package report

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/tandem-bench/tandem/runner/journal"
	"github.com/tandem-bench/tandem/spec"
)

func slower(arm, scenario string, by float64) func(string, string) float64 {
	return func(a, s string) float64 {
		if a == arm && s == scenario {
			return math.Log1p(-by)
		}
		return 0
	}
}

// crash is a failure as the runner tells it: with the end of what the server
// printed.
const crash = "the server ended in mid-run: exit status 3\n  the end of its output:\n    listening on 41873\n    Error: out of tokens\n        at take (/app/server.js:12:9)"

// failing makes the windows of one copy of head invalid, in every second block.
func failing(why string) func(*journal.Trial) bool {
	return func(t *journal.Trial) bool {
		if t.Arm == "head" && t.Copy == 1 && t.Block%2 == 1 {
			t.Invalid = why
		}
		return true
	}
}

// worlds are the runs of which every format has a golden file.
func worlds() map[string]*world {
	out := map[string]*world{}

	one := newWorld("http/hello-world")
	one.bare = false
	out["one"] = one

	moved := newWorld("http/hello-world", "http/json-post", "http/large-body")
	moved.speed = slower("head", "http/json-post", 0.08)
	moved.gates = []spec.Threshold{
		{Metric: "rps", Scenario: "*", Fail: gate("worse > max(noise, 0.03)"), Message: "throughput fell by more than 3%", Line: 40},
		{Metric: "latency.p99", Scenario: "*", Warn: gate("worse > noise"), Line: 44},
	}
	moved.bare = false
	out["moved"] = moved

	many := newWorld()
	for i := range 500 {
		many.scenarios = append(many.scenarios, httpScenario(fmt.Sprintf("route/%03d", i)))
	}
	many.judge, many.blocks = []string{"rps"}, 4
	many.speed = slower("head", "route/123", 0.2)
	out["many"] = many

	hostile := newWorld("a|b `c` <script>alert(1)</script> @user #12", "\x1b[31mred\x1b[0m\nnew line", "[x](http://evil.example) www.evil.example :tada: \u202egnp.exe",
		"日本語のとても長いシナリオの名前がここにあります", "very/long/"+string(bytes.Repeat([]byte("name/"), 40)))
	hostile.arms[0].Label, hostile.arms[1].Label = "<b>v1</b>|", "v2 \x1b]0;owned\x07 @all"
	out["hostile"] = hostile

	failed := newWorld("ok", "few-invalid", "many-invalid", "missing", "not-the-same", "only-new", "gone")
	failed.scenarios[5].Arms, failed.scenarios[6].Arms = []string{"head"}, []string{"base"}
	failed.edit = func(t *journal.Trial) bool {
		switch {
		case t.Scenario == "missing" || t.Scenario == "not-the-same":
			return false
		case t.Scenario == "only-new":
			return t.Arm == "head"
		case t.Scenario == "gone":
			return t.Arm == "base"
		case t.Scenario == "few-invalid" && t.Arm == "head" && t.Copy == 1 && t.Block%6 == 2,
			t.Scenario == "many-invalid" && t.Arm == "head" && t.Block%2 == 0:
			t.Invalid = "12 requests failed: status 503"
		}
		return true
	}
	failed.finish = func(j *journal.Run) {
		for i := range j.Checks {
			if j.Checks[i].Scenario == "not-the-same" {
				j.Checks[i].Outcome, j.Checks[i].Reason = journal.CheckIncomparable, "status 200 on base, 404 on head"
			}
		}
	}
	out["failed"] = failed

	crashed := newWorld("http/hello-world", "http/json-post")
	crashed.edit = failing(crash)
	out["crashed"] = crashed

	several := newWorld("http/hello-world", "http/json-post")
	several.arms = append(several.arms, journal.Arm{Name: "next", Label: "next 5.0", Source: "git next", Revision: "9999ab", Digest: "sha256:cc"})
	several.speed = slower("next", "http/hello-world", -0.12)
	out["several"] = several

	partial := newWorld("http/hello-world", "http/json-post")
	partial.edit = func(t *journal.Trial) bool { return t.Block < 5 || (t.Block == 5 && t.Scenario == "http/hello-world") }
	partial.finish = func(j *journal.Run) { j.Ends, j.End = j.Ends[:5], nil }
	out["partial"] = partial

	sweep := newWorld("http/hello-world")
	for _, c := range []string{"16", "64", "256"} {
		s := httpScenario("db")
		s.Matrix = []spec.Axis{{Name: "c", Value: c}, {Name: "size", Value: "1kB"}}
		sweep.scenarios = append(sweep.scenarios, s)
	}
	sweep.speed = slower("head", "db[c=256,size=1kB]", 0.15)
	sweep.judge = []string{"rps", "cpu_per_request", "latency.p99"}
	sweep.bare = false
	out["sweep"] = sweep
	return out
}

// options are the ways in which each format is rendered.
var goldenForms = []struct {
	name, format string
	o            RenderOptions
}{
	{"text", "text", RenderOptions{}},
	{"80.text", "text", RenderOptions{Width: 80}},
	{"ascii.text", "text", RenderOptions{Width: 100, ASCII: true}},
	{"detail.text", "text", RenderOptions{Width: 120, Detail: true}},
	{"detail.60.text", "text", RenderOptions{Width: 60, ASCII: true, Detail: true}},
	{"color.text", "text", RenderOptions{Color: true}},
	{"md", "markdown", RenderOptions{}},
	{"json", "json", RenderOptions{}},
	{"csv", "csv", RenderOptions{}},
	{"junit.xml", "junit", RenderOptions{}},
	{"bench", "benchfmt", RenderOptions{}},
	{"prom", "openmetrics", RenderOptions{}},
	{"github", "github", RenderOptions{}},
	{"html", "html", RenderOptions{}},
	{"autocannon.json", "autocannon", RenderOptions{}},
	{"summary.md", "summary", RenderOptions{}},
}

// analyses are the worlds, judged once for all tests; no test changes them.
var analyses = sync.OnceValue(func() map[string]*Analysis {
	out := map[string]*Analysis{}
	for name, w := range worlds() {
		a, err := Analyze(w.run(), nil)
		if err != nil {
			panic(err)
		}
		out[name] = a
	}
	return out
})

func TestGolden(t *testing.T) {
	for name, a := range analyses() {
		t.Run(name, func(t *testing.T) {
			for _, f := range goldenForms {
				switch {
				case name == "many" && f.format == "text" && f.name != "80.text":
					continue // they say the same at length
				case f.format == "html" && !slices.Contains([]string{"one", "failed", "hostile"}, name):
					continue // the browser's test opens more
				case f.format == "autocannon" && name != "one" && name != "failed":
					continue
				}
				var b bytes.Buffer
				if err := Write(&b, f.format, a, f.o); err != nil {
					t.Fatal(err)
				}
				doc := settle(f.format, b.String())
				if name == "many" && f.name != "80.text" && f.name != "md" {
					doc = head(doc, 60)
				}
				golden(t, name+"."+f.name, doc)
			}
		})
	}
}

var longNumber = regexp.MustCompile(`-?[0-9]+\.[0-9]{5,}(e[-+][0-9]+)?`)

// settle makes a report that holds figures in full the same on machines that
// round differently in the last place, and cuts those that go on and on.
func settle(format, s string) []byte {
	switch format {
	case "json", "csv", "benchfmt", "openmetrics", "autocannon":
		s = longNumber.ReplaceAllStringFunc(s, func(n string) string {
			v, err := strconv.ParseFloat(n, 64)
			if err != nil {
				return n
			}
			return strconv.FormatFloat(v, 'g', 7, 64)
		})
	}
	if format == "csv" || format == "benchfmt" {
		return head([]byte(s), 60)
	}
	return []byte(s)
}

// head is the first lines of a document, and how many there are beyond.
func head(doc []byte, most int) []byte {
	lines := strings.SplitAfter(string(doc), "\n")
	if len(lines) > most {
		lines = append(lines[:most], fmt.Sprintf("(%d lines more)\n", len(lines)-most))
	}
	return []byte(strings.Join(lines, ""))
}
