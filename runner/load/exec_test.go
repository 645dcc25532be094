package load

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tandem-bench/tandem/spec"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden is what a preset made of an output, as the golden files hold it.
type golden struct {
	OK, Failed, InFlight int64
	Elapsed              string
	Metrics              map[string]float64
	Errors               []ErrorCount
}

func TestPresetGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/exec/*.std*")
	if err != nil || len(files) < 40 {
		t.Fatalf("%d outputs found, error %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
		t.Run(name, func(t *testing.T) {
			tool, _, _ := strings.Cut(name, "-")
			d := newTestExec(t, spec.Exec{Command: argv("true"), Preset: tool})
			out := &toolOutput{ended: true}
			text := []byte(readFile(t, file))
			if filepath.Ext(file) == ".stderr" {
				out.stderr = text
			} else {
				out.stdout = text
			}
			r := d.read(out)
			compareGolden(t, strings.TrimSuffix(file, filepath.Ext(file))+".golden", golden{
				r.ok, r.failed, r.inFlight, r.elapsed.Round(time.Microsecond).String(), round(r.metrics), r.tally.counts,
			})
			if strings.Contains(name, "ok") && (r.failed != 0 || r.ok == 0 || r.metrics["rps"] <= 0) {
				t.Errorf("a good run is taken for a bad one: %+v", r)
			}
			if !strings.Contains(name, "ok") && !goodRun(name) && r.failed == 0 {
				t.Errorf("a run with failures is taken for a good one: %+v", r)
			}
			for _, all := range []string{"500", "close", "refused"} {
				if strings.HasSuffix(name, all) && (r.ok != 0 || len(r.metrics) != 0) {
					t.Errorf("a run with nothing but failures has metrics: %+v", r)
				}
			}
		})
	}
}

// goodRun reports whether an output that is not named so is one without failures.
func goodRun(name string) bool {
	return name == "autocannon-warmup" || name == "h2load-count" || name == "wrk-latency"
}

// round keeps six figures, which is more than any tool prints.
func round(m map[string]float64) map[string]float64 {
	out := map[string]float64{}
	for k, v := range m {
		scale := math.Pow(10, 5-math.Floor(math.Log10(math.Abs(v))))
		out[k] = math.Round(v*scale) / scale
	}
	return out
}

func compareGolden(t *testing.T, file string, g golden) {
	t.Helper()
	var got bytes.Buffer
	e := json.NewEncoder(&got)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(g); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(readFile(t, file), got.String()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func newTestExec(t *testing.T, x spec.Exec) *execDriver {
	t.Helper()
	d, err := New(spec.Scenario{Name: "test", Exec: &x}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return d.(*execDriver)
}

// runExec runs one window of a tool against nothing.
func runExec(t *testing.T, x spec.Exec, window time.Duration) Sample {
	t.Helper()
	l, err := newTestExec(t, x).Open(t.Context(), commandTargets(t, "base"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got, err := l.Run(t.Context(), Schedule{Window: window, Order: rotate})
	if err != nil {
		t.Fatal(err)
	}
	return got[0]
}

func TestExecMetrics(t *testing.T) {
	tests := []struct {
		name   string
		output string
		e      spec.Extract
		want   float64
	}{
		{"regex", "x 1\nrate: 12.5 per s", spec.Extract{Regex: `rate: ([0-9.]+)`, Unit: "1/s"}, 12.5},
		{"last match", "rate: 1\nrate: 2", spec.Extract{Regex: `rate: ([0-9.]+)`, Unit: "1/s"}, 2},
		{"unit of the spec", "took 250", spec.Extract{Regex: `took (\d+)`, Unit: "ms"}, 0.25},
		{"unit of the output", "took 250us", spec.Extract{Regex: `took (\d+[a-z]+)`, Unit: "ms"}, 250e-6},
		{"thousands", "13,583,000 B", spec.Extract{Regex: `([0-9,]+) B`, Unit: "B"}, 13583000},
		{"count with k", "Req/Sec 20.17k", spec.Extract{Regex: `Sec (\S+)`, Unit: "1/s"}, 20170},
		{"exponent", "v=1.5e-3", spec.Extract{Regex: `v=(\S+)`, Unit: "s"}, 0.0015},
		{"percent", "hits 25%", spec.Extract{Regex: `hits (\S+)`, Unit: "ratio"}, 0.25},
		{"size", "2MiB", spec.Extract{Regex: `(.+)`, Unit: "B"}, 2 << 20},
		{"own unit", "score 7", spec.Extract{Regex: `score (\d)`, Unit: "points"}, 7},
		{"json", `{"a":{"b":[1,{"c":2.5}]}}`, spec.Extract{JSON: "a.b.1.c", Unit: "s"}, 2.5},
		{"json, dots in a key", `{"p":{"p99":1,"p99.9":3}}`, spec.Extract{JSON: "p.p99.9", Unit: "ms"}, 0.003},
		{"json, text with a unit", `{"t":"3 ms"}`, spec.Extract{JSON: "t", Unit: "s"}, 0.003},
		{"json, last line", "{\"v\":1}\nnoise\n{\"v\":2}\n", spec.Extract{JSON: "v", Unit: "1"}, 2},
		{"json, after text", "Summary\n\n{\n \"v\": {\n  \"w\": 4\n }\n}\n", spec.Extract{JSON: "v.w", Unit: "1"}, 4},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.e.Metric = "m"
			d := newTestExec(t, spec.Exec{Command: argv("true"), Metrics: []spec.Extract{tt.e}})
			for _, out := range []*toolOutput{{stdout: []byte(tt.output)}, {stderr: []byte(tt.output)}} {
				r := d.read(out)
				if r.failed > 0 {
					t.Fatal(r.tally.counts)
				}
				if got := r.metrics["m"]; math.Abs(got-tt.want) > 1e-12*math.Abs(tt.want) {
					t.Errorf("found %v, expected %v", got, tt.want)
				}
			}
		})
	}
}

func TestExecMissingMetrics(t *testing.T) {
	tests := []struct {
		name, output string
		e            spec.Extract
		want         string
	}{
		{"no match", "nothing here", spec.Extract{Regex: `rate: (\d+)`}, `metric m: no match of "rate: (\\d+)": nothing here`},
		{"not a number", "rate: fast", spec.Extract{Regex: `rate: (\w+)`}, `metric m: "fast" is not a number: rate: fast`},
		{"NaN", "rate: NaN", spec.Extract{Regex: `rate: (\w+)`}, `metric m: "NaN" is not a number: rate: NaN`},
		{"strange unit", "9 furlongs", spec.Extract{Regex: `(.+)`}, `metric m: "9 furlongs" has the unit "furlongs", which is not known: 9 furlongs`},
		{"no json", "oops", spec.Extract{JSON: "a"}, `metric m: no JSON in the output: oops`},
		{"no path", `{"a":1}`, spec.Extract{JSON: "b.c"}, `metric m: no b.c in the JSON: {"a":1}`},
		{"not a number in JSON", `{"a":[1]}`, spec.Extract{JSON: "a"}, `metric m: a of the JSON is []interface {}, expected a number: {"a":[1]}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.e.Metric = "m"
			d := newTestExec(t, spec.Exec{Command: argv("true"), Metrics: []spec.Extract{tt.e}})
			r := d.read(&toolOutput{stdout: []byte(tt.output)})
			if r.failed != 1 || len(r.metrics) != 0 {
				t.Fatalf("a missing metric is no failure: %+v", r)
			}
			if got := r.tally.counts[0].First[0]; got != tt.want {
				t.Errorf("found    %s\nexpected %s", got, tt.want)
			}
		})
	}
}

func TestExecRefuses(t *testing.T) {
	tests := []struct {
		x    spec.Exec
		want string
	}{
		{spec.Exec{Preset: "siege"}, `preset "siege" is not known: expected one of ab, autocannon,`},
		{spec.Exec{}, "nothing says how to read the tool's output"},
		{spec.Exec{Metrics: []spec.Extract{{Metric: "m"}}}, "metric m: expected either regex or json"},
		{spec.Exec{Metrics: []spec.Extract{{Metric: "m", Regex: "x"}}}, `metric m: regex "x" has no group`},
		{spec.Exec{Metrics: []spec.Extract{{Metric: "m", Regex: "("}}}, "metric m: error parsing regexp"},
		{spec.Exec{Preset: "wrk", Errors: []string{"("}}, "errors: error parsing regexp"},
	}
	for _, tt := range tests {
		_, err := New(spec.Scenario{Name: "test", Exec: &tt.x}, Options{})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("found %v, expected %s", err, tt.want)
		}
	}
}

// rateMetric reads "rate: N".
func rateMetric() []spec.Extract {
	return []spec.Extract{{Metric: "rps", Regex: `rate: ([0-9.]+)`, Unit: "1/s"}}
}

func TestExecFinite(t *testing.T) {
	tests := []struct {
		name, line string
		class      Class
		want       string // of the error; empty: none
	}{
		{"good", "echo rate: 5", "", ""},
		{"exit status", "echo rate: 5; echo broke >&2; exit 3", Other, "exit status 3: broke"},
		{"signal", "echo rate: 5; kill -TERM $$", Other, "ended by SIGTERM: rate: 5"},
		{"pattern", "echo rate: 5; echo 17 failures", Other, `the output matches "[1-9][0-9]* failures" of errors: 17 failures`},
		{"pattern on stderr", "echo rate: 5; echo 1 failures here >&2", Other, `the output matches "[1-9][0-9]* failures" of errors: 1 failures here`},
		{"no failures", "echo rate: 5; echo 0 failures", "", ""},
		{"nothing printed", "true", Protocol, `metric rps: no match of "rate: ([0-9.]+)"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := runExec(t, spec.Exec{Command: shell(tt.line), Metrics: rateMetric(), Errors: []string{"[1-9][0-9]* failures"}}, time.Second)
			if tt.want == "" {
				if s.Failed != 0 || s.Values()["rps"] != 5 {
					t.Errorf("a good run: %+v", s)
				}
				return
			}
			if s.Failed == 0 || s.Errors[0].Class != tt.class || s.Errors[0].First[0] != tt.want {
				t.Errorf("found %+v, expected %s: %s", s.Errors, tt.class, tt.want)
			}
			if s.Started != s.OK+s.Failed+s.InFlight+s.Discarded {
				t.Errorf("counts do not add up: %+v", s)
			}
		})
	}
}

func TestExecTimeout(t *testing.T) {
	x := spec.Exec{Command: shell("echo $$ > pid; echo rate: 5; sleep 600; true"), Metrics: rateMetric(), Timeout: 100 * time.Millisecond}
	d := newTestExec(t, x)
	targets := commandTargets(t, "base")
	l, err := d.Open(t.Context(), targets)
	if err != nil {
		t.Fatal(err)
	}
	got, err := l.Run(t.Context(), Schedule{Window: 100 * time.Millisecond, Order: rotate})
	if err != nil {
		t.Fatal(err)
	}
	if got[0].Failed == 0 || got[0].Errors[0].Class != Timeout {
		t.Errorf("a tool that does not end: %+v", got[0])
	}
	expectGone(t, strings.TrimSpace(readFile(t, targets[0].Dir+"/pid")))
}

func TestExecEndsWithContext(t *testing.T) {
	for _, endless := range []bool{false, true} {
		targets := commandTargets(t, "base")
		x := spec.Exec{Command: shell("sleep 600 & echo $! > pid.tmp; mv pid.tmp pid; wait"), Metrics: rateMetric(), Timeout: time.Hour, Endless: endless}
		l, err := newTestExec(t, x).Open(t.Context(), targets)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			defer cancel()
			for ctx.Err() == nil {
				if _, err := os.Stat(targets[0].Dir + "/pid"); err == nil {
					return
				}
				time.Sleep(time.Millisecond)
			}
		}()
		if _, err := l.Run(ctx, Schedule{Window: time.Hour, Order: rotate}); !errors.Is(err, context.Canceled) {
			t.Errorf("found %v, expected the context's error", err)
		}
		expectGone(t, strings.TrimSpace(readFile(t, targets[0].Dir+"/pid")))
	}
}

func TestExecVariables(t *testing.T) {
	tests := []struct {
		preset string
		window time.Duration
		want   string
	}{
		{"", 1500 * time.Millisecond, "1.5s"},
		{"wrk", 1500 * time.Millisecond, "2s"},
		{"wrk", 3 * time.Second, "3s"},
		{"ab", 200 * time.Millisecond, "1"},
		{"autocannon", 3 * time.Second, "3"},
		{"hey", 1500 * time.Millisecond, "1.5s"},
	}
	for _, tt := range tests {
		d := newTestExec(t, spec.Exec{
			Command: argv("echo", "${window}", "${connections}", "${url}", "${arm}"), Preset: tt.preset, Connections: 64,
			Metrics: rateMetric(), Env: map[string]spec.Template{"C": "${connections}"},
		})
		target := commandTargets(t, "base")[0]
		target.Vars["url"] = "http://127.0.0.1:1"
		c, err := d.child(target, tt.window, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"echo", tt.want, "64", "http://127.0.0.1:1", "base"}
		if diff := cmp.Diff(want, c.argv); diff != "" {
			t.Errorf("%s for %v (-want +got):\n%s", tt.preset, tt.window, diff)
		}
		if got := c.env[len(c.env)-1]; got != "C=64" {
			t.Errorf("environment has %s", got)
		}
	}
}

func TestExecMissingTool(t *testing.T) {
	d := newTestExec(t, spec.Exec{Command: argv("no-such-tool"), Preset: "wrk"})
	_, err := d.Open(t.Context(), commandTargets(t, "base"))
	if err == nil || !strings.Contains(err.Error(), `base#0: "no-such-tool" was not found in PATH=`) {
		t.Errorf("found %v", err)
	}
}

// A tool that buffers its pipe in blocks is made to write line by line, its
// first line is dropped, and it is stopped after the window.
func TestExecEndless(t *testing.T) {
	// grep buffers blocks of 4 KiB into a pipe: without stdbuf nothing of it
	// would come for minutes.
	line := "echo start; (echo rate: 1000000; while :; do sleep 0.02; echo rate: 5; echo rate: 7; done) | grep rate"
	s := runExec(t, spec.Exec{Command: shell(line), Metrics: rateMetric(), Endless: true, Timeout: time.Minute}, 100*time.Millisecond)
	if s.Failed != 0 {
		t.Fatal(s.Errors)
	}
	if rps := s.Values()["rps"]; rps < 5 || rps > 7 {
		t.Errorf("rps %v, expected the mean of 5 and 7 without the first line", rps)
	}
}

func TestExecEndlessPresets(t *testing.T) {
	for preset, line := range map[string]string{"http_load_test": "Req/sec: 10000.5", "load_test": "Msg/sec: 10000.5"} {
		script := "echo Running benchmark now...; echo " + line + "9; while :; do sleep 0.05; echo " + line + "; done"
		s := runExec(t, spec.Exec{Command: shell(script), Preset: preset, Timeout: time.Minute}, 100*time.Millisecond)
		if s.Failed != 0 {
			t.Fatal(s.Errors)
		}
		v := s.Values()
		if v["rps"] != 10000.5 {
			t.Errorf("%s: rps %v, expected 10000.5", preset, v["rps"])
		}
		if _, ok := v["msgs"]; ok != (preset == "load_test") {
			t.Errorf("%s: metrics %v", preset, v)
		}
		if want := int64(10000.5*s.Elapsed.Seconds() + 0.5); s.OK != want {
			t.Errorf("%s: %d responses counted, expected %d in %v", preset, s.OK, want, s.Elapsed)
		}
	}
}

func TestExecEndlessFailures(t *testing.T) {
	tests := []struct{ name, line, want string }{
		{"ends by itself", "echo Cannot connect to server", "the tool ended by itself with exit status 0: Cannot connect to server"},
		{"never says a thing", "sleep 600", "no end after"},
		{"one line only", "echo Req/sec: 5; sleep 600", "no end after"},
		{"an error on the way", "echo ERROR: outstanding bytes negative!; while :; do echo Req/sec: 5; sleep 0.02; done", "ERROR: outstanding bytes negative!"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := runExec(t, spec.Exec{Command: shell(tt.line), Preset: "http_load_test", Timeout: 300 * time.Millisecond}, 10*time.Millisecond)
			if s.Failed == 0 || !strings.Contains(s.Errors[0].First[0], tt.want) {
				t.Errorf("found %+v, expected %s", s, tt.want)
			}
		})
	}
}

func FuzzPresets(f *testing.F) {
	files, err := filepath.Glob("testdata/exec/*.stdout")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, name := range presetNames() {
			d := newTestExec(t, spec.Exec{Command: argv("true"), Preset: name})
			out := &toolOutput{stdout: b, ended: true}
			if d.endless {
				out.ended = false
				for i, l := range bytes.Split(b, []byte("\n")) {
					out.lines = append(out.lines, toolLine{l, time.Duration(i) * time.Second})
				}
			}
			r := d.read(out)
			if r.ok < 0 || r.failed < 0 || r.inFlight < 0 {
				t.Errorf("%s: negative counts %d, %d, %d", name, r.ok, r.failed, r.inFlight)
			}
			if r.ok == 0 && r.failed == 0 {
				t.Errorf("%s: neither success nor failure", name)
			}
			for k, v := range r.metrics {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					t.Errorf("%s: %s is %v", name, k, v)
				}
			}
		}
	})
}

func FuzzQuantity(f *testing.F) {
	for _, s := range []string{"1", "1,234.5 ms", "20.17k", "1e3s", "-5%", "3e", "nan", "١"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, unit, err := splitQuantity(s)
		if err != nil {
			return
		}
		v2, unit2, err := splitQuantity(fmt.Sprintf("%v %s", v, unit))
		if err != nil || v != v2 || unit != unit2 {
			t.Errorf("%q is %v %q, which is %v %q again, error %v", s, v, unit, v2, unit2, err)
		}
	})
}
