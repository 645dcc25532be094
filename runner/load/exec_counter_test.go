package load

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tandem-bench/tandem/spec"
)

// tellingServer counts its requests and tells, in a few ways, how many they
// were. Under /all, the questions count as well.
func tellingServer(t *testing.T) (Target, *atomic.Int64) {
	var served, asked atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		served.Add(1)
		_, _ = io.WriteString(w, "hello, world!")
	})
	answer := func(path, format string, count func() int64) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintf(w, format, count()) })
	}
	answer("/count", "%d\n", served.Load)
	answer("/all", "%d", func() int64 { return served.Load() + asked.Add(1) })
	answer("/json", `{"http":{"requests":%d}}`, served.Load)
	answer("/metrics", "# HELP x_total Requests.\nx_created 17\nx_total %d\ny_total 4\n", served.Load)
	answer("/words", "%d requests", served.Load)
	answer("/falling", "%d", func() int64 {
		if served.Load() > 0 {
			return 5
		}
		return 1000
	})
	answer("/restless", "%d", func() int64 { return 7 * asked.Add(1) })
	answer("/idle", "%d", func() int64 { return 3 })
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return Target{Name: "base#0", Addr: s.Listener.Addr().String(), Dir: t.TempDir(), Env: os.Environ(), Vars: spec.Vars{"url": s.URL}}, &served
}

// runCounted runs one window of a tool with a counter.
func runCounted(t *testing.T, x spec.Exec, target Target) Sample {
	t.Helper()
	x.Timeout, x.Connections = time.Minute, 4
	l, err := newTestExec(t, x).Open(t.Context(), []Target{target})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got, err := l.Run(t.Context(), Schedule{Window: 100 * time.Millisecond, Order: rotate})
	if err != nil {
		t.Fatal(err)
	}
	if s := got[0]; s.Started != s.OK+s.Failed+s.InFlight+s.Discarded {
		t.Errorf("counts do not add up: %+v", s)
	}
	return got[0]
}

const abCommand = "ab -q -k -n 200 -c ${connections} ${url}/"

// The count is the server's own, in whatever way it tells it.
func TestExecCounter(t *testing.T) {
	for name, x := range map[string]spec.Exec{
		"with a preset":            {Preset: "ab", Counter: &spec.Counter{HTTP: "/count"}},
		"alone":                    {Counter: &spec.Counter{HTTP: "/count"}},
		"that counts its readings": {Counter: &spec.Counter{HTTP: "/all"}},
		"in JSON":                  {Counter: &spec.Counter{HTTP: "/json", JSON: "http.requests"}},
		"in a line":                {Counter: &spec.Counter{HTTP: "${url}/metrics", Regex: `(?m)^x_total (\d+)`}},
		"with metrics":             {Counter: &spec.Counter{HTTP: "/count"}, Metrics: []spec.Extract{{Metric: "rps", Regex: `Requests per second: +([0-9.]+)`, Unit: "1/s"}}},
	} {
		t.Run(name, func(t *testing.T) {
			target, served := tellingServer(t)
			x.Command = shell(abCommand)
			s := runCounted(t, x, target)
			if s.OK != 200 || served.Load() != 200 || s.Failed != 0 || s.Invalid != "" {
				t.Fatalf("%d counted, the server answered %d: %+v", s.OK, served.Load(), s)
			}
			v := s.Values()
			if v["requests"] != 200 || v["rps"] <= 0 {
				t.Errorf("%v", v)
			}
			if _, own := v["latency.mean"]; own != (x.Preset != "") {
				t.Errorf("%v", v)
			}
		})
	}
}

// What a tool says of failures still holds, and a tool that claims more than
// the server answered is not believed.
func TestExecCounterFailures(t *testing.T) {
	tests := []struct {
		name    string
		counter spec.Counter
		command string
		want    string
	}{
		{"no such path", spec.Counter{HTTP: "http://127.0.0.1:1/x"}, abCommand, "connection refused"},
		{"no number", spec.Counter{HTTP: "/words"}, abCommand, `"0 requests" is more than a number: say where it stands by regex or json`},
		{"not found", spec.Counter{HTTP: "/metrics", Regex: `(?m)^z_total (\d+)`}, abCommand, `no match of "(?m)^z_total (\\d+)"`},
		{"falls", spec.Counter{HTTP: "/falling"}, abCommand, "it fell from 1000 to 5"},
		{"rises by itself", spec.Counter{HTTP: "/restless"}, abCommand, "it does not come to rest without load"},
		{"claims too much", spec.Counter{HTTP: "/idle"}, abCommand, "the tool counts 200 responses, the server answered 0 requests"},
		{"exits badly", spec.Counter{HTTP: "/count"}, abCommand + "; exit 3", "exit status 3"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			target, _ := tellingServer(t)
			s := runCounted(t, spec.Exec{Command: shell(tt.command), Preset: "ab", Counter: &tt.counter}, target)
			if s.Failed == 0 || !strings.Contains(s.Invalid, tt.want) || !strings.Contains(s.Errors[0].First[0], tt.want) {
				t.Errorf("found %q and %+v, expected %s", s.Invalid, s.Errors, tt.want)
			}
		})
	}
}

// A counter that cannot be read is found before any load.
func TestExecCounterCheck(t *testing.T) {
	target, _ := tellingServer(t)
	d := newTestExec(t, spec.Exec{Command: shell("true"), Counter: &spec.Counter{HTTP: "/words"}})
	if _, err := d.Check(t.Context(), target); err == nil || !strings.Contains(err.Error(), "base#0: counter "+target.Vars["url"]+"/words: ") {
		t.Errorf("found %v", err)
	}
	d = newTestExec(t, spec.Exec{Command: shell("true"), Counter: &spec.Counter{HTTP: "/all"}})
	if _, err := d.Check(t.Context(), target); err != nil {
		t.Error(err)
	}
}

// Of an endless tool, the rate is what the server answered between the first
// line that is dropped and the last one of the window; the requests before
// and after are known, too, so that CPU time can be divided by all of them.
func TestExecCounterEndless(t *testing.T) {
	target, served := tellingServer(t)
	// ab's report is kept away: it says ERROR where its mean and median differ.
	line := "while :; do ab -q -k -n 50 -c ${connections} ${url}/ >/dev/null; echo Req/sec: 77; done"
	s := runCounted(t, spec.Exec{Command: shell(line), Preset: "http_load_test", Counter: &spec.Counter{HTTP: "/all"}}, target)
	if s.Failed != 0 || s.OK == 0 || s.OK+s.Discarded != served.Load() || s.Discarded < 50 {
		t.Fatalf("%d and %d outside of the window counted, the server answered %d: %+v", s.OK, s.Discarded, served.Load(), s.Errors)
	}
	if want := float64(s.OK) / s.Elapsed.Seconds(); s.Values()["rps"] != want || s.TotalElapsed <= s.Elapsed {
		t.Errorf("rps %v, expected %v; %v of %v", s.Values()["rps"], want, s.Elapsed, s.TotalElapsed)
	}
	s = runCounted(t, spec.Exec{Command: shell("echo Req/sec: 5; exit 1"), Preset: "http_load_test", Counter: &spec.Counter{HTTP: "/all"}}, target)
	if want := "the tool ended by itself with exit status 1: Req/sec: 5"; s.Invalid != want {
		t.Errorf("found %q, expected %q", s.Invalid, want)
	}
}
