package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func header() Header {
	return Header{ID: "20260102-030405-abcd", Tool: "test", Started: start, Seed: 7, Spec: json.RawMessage(`{"name":"x"}`),
		Arms: []Arm{{Name: "base"}, {Name: "head"}}, Rows: []string{"http/a"}, Copies: 2, Looks: []int{4}}
}

func trial(block, copy int) Trial {
	return Trial{Block: block, Scenario: "http/a", Arm: "base", Copy: copy, Started: start, Elapsed: 1,
		Metrics: NewMetrics(map[string]float64{"rps": 1000 + float64(block)}), Latency: []byte{1, 2, 3},
		Errors: []ErrorCount{{Class: "timeout", Count: 2, First: []string{"a", "b"}}}}
}

// write makes a journal of two blocks, the second one unfinished.
func write(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	w, err := Create(path, header())
	if err != nil {
		t.Fatal(err)
	}
	steps := []error{
		w.Check(Check{Scenario: "http/a", Outcome: CheckOK}), w.Trial(trial(0, 0)), w.Trial(trial(0, 1)), w.EndBlock(BlockEnd{Block: 0, Ended: start}),
		w.Check(Check{Block: 1, Scenario: "http/a", Outcome: CheckOK}), w.Trial(trial(1, 0)), w.Close(),
	}
	if err := errors.Join(steps...); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRoundTrip(t *testing.T) {
	run, err := Open(write(t))
	if err != nil {
		t.Fatal(err)
	}
	h := header()
	h.Version = Version
	want := &Run{
		Header: &h,
		Trials: []Trial{trial(0, 0), trial(0, 1), trial(1, 0)},
		Checks: []Check{{Scenario: "http/a", Outcome: CheckOK}, {Block: 1, Scenario: "http/a", Outcome: CheckOK}},
		Ends:   []BlockEnd{{Block: 0, Ended: start}},
	}
	if diff := cmp.Diff(want, run); diff != "" {
		t.Error(diff)
	}
}

// A journal that is cut off at any byte is read as far as its lines are
// whole, or refused where not even the header is.
func TestCutAtEveryByte(t *testing.T) {
	path := write(t)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	firstLine := strings.IndexByte(string(data), '\n') + 1
	for n := range len(data) {
		run, err := Read(strings.NewReader(string(data[:n])))
		if n < firstLine {
			if !errors.Is(err, ErrEmpty) {
				t.Fatalf("cut at %d: %v, want ErrEmpty", n, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
		whole := strings.Count(string(data[:n]), "\n") - 1
		if got := len(run.Trials) + len(run.Checks) + len(run.Ends); got != whole {
			t.Fatalf("cut at %d: %d records, want %d", n, got, whole)
		}
		if torn := data[n-1] != '\n'; run.Torn != torn {
			t.Fatalf("cut at %d: torn %v, want %v", n, run.Torn, torn)
		}
	}
}

func TestContinueSupersedesTheUnfinishedBlock(t *testing.T) {
	for _, tail := range []string{"", `{"trial":{"block":1,"sce`, strings.Repeat("\x00", 40) + "\n"} {
		path := write(t)
		appendTo(t, path, tail)
		w, err := Continue(path, 1)
		if err != nil {
			t.Fatal(err)
		}
		again := trial(1, 0)
		again.Metrics = NewMetrics(map[string]float64{"rps": 5})
		if err := errors.Join(w.Trial(again), w.EndBlock(BlockEnd{Block: 1, Ended: start}), w.End(End{Ended: start, Reason: EndBlocks})); err != nil {
			t.Fatal(err)
		}
		run, err := Open(path)
		if err != nil {
			t.Fatalf("after the tail %q: %v", tail, err)
		}
		want := []Trial{trial(0, 0), trial(0, 1), again}
		if diff := cmp.Diff(want, run.Trials); diff != "" {
			t.Errorf("after the tail %q:\n%s", tail, diff)
		}
		if run.Resume != 1 || run.End == nil || len(run.Ends) != 2 || len(run.Checks) != 1 {
			t.Errorf("after the tail %q: %+v", tail, run)
		}
	}
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	f.Close()
}

func TestDamageIsNamedByLine(t *testing.T) {
	ok := `{"header":{"version":1,"id":"a"}}` + "\n"
	tests := []struct{ name, data, want string }{
		{"empty", "", "no header"},
		{"not json", "hello\nworld\n", "line 1: invalid character"},
		{"another format", `{"spans":[]}` + "\n" + ok, "line 1: no header"},
		{"a trial first", `{"trial":{}}` + "\n" + ok, "line 1: no header"},
		{"two headers", ok + ok + `{"end":{}}` + "\n", "line 2: a second header"},
		{"garbage inside", ok + "garbage\n" + `{"end":{}}` + "\n", "line 2: invalid character"},
		{"unknown record", ok + `{"x":1}` + "\n" + `{"end":{}}` + "\n", "line 2: a record of an unknown kind"},
		{"a later format", `{"header":{"version":99,"tool":"v9"}}` + "\n", "line 1: journal format 99, and this version reads formats 1 to 1"},
	}
	for _, tt := range tests {
		_, err := Read(strings.NewReader(tt.data))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestMetricsThatAreNoNumbersAreLeftOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	w, err := Create(path, header())
	if err != nil {
		t.Fatal(err)
	}
	bad := trial(0, 0)
	bad.Metrics = NewMetrics(map[string]float64{"rps": math.NaN(), "cpu": math.Inf(1), "wall": 2})
	if err := errors.Join(w.Trial(bad), w.Close()); err != nil {
		t.Fatal(err)
	}
	run, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(NewMetrics(map[string]float64{"wall": 2}), run.Trials[0].Metrics); diff != "" {
		t.Error(diff)
	}
}

func TestCreateRefusesToOverwrite(t *testing.T) {
	path := write(t)
	if _, err := Create(path, header()); !errors.Is(err, os.ErrExist) {
		t.Errorf("got %v", err)
	}
}

// After a failed write the writer keeps saying so: a record that is missing
// in the middle would be worse than an end.
func TestFirstFailureSticks(t *testing.T) {
	w, err := Create(filepath.Join(t.TempDir(), "j"), header())
	if err != nil {
		t.Fatal(err)
	}
	w.f.Close()
	first := w.Trial(trial(0, 0))
	if first == nil {
		t.Fatal("a write to a closed file succeeded")
	}
	if again := w.Check(Check{}); again != first {
		t.Errorf("got %v, then %v", first, again)
	}
}

func FuzzRead(f *testing.F) {
	h := `{"header":{"version":1,"id":"a"}}` + "\n"
	for _, s := range []string{h, h + `{"trial":{"block":0,"metrics":{"rps":1}}}` + "\n", h + `{"resume":{"block":0}}` + "\n", h + "x", "{}\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		run, err := Read(strings.NewReader(string(data)))
		if err == nil && run.Header == nil {
			t.Error("no error and no header")
		}
	})
}

// FuzzTrialLine holds the scanner to encoding/json: what it understands, it
// understands in the same way.
func FuzzTrialLine(f *testing.F) {
	full := trial(3, 1)
	full.Interval, full.Invalid, full.Warnings = []float64{1, 2.5e-9}, "a \"quote\" and 日", []string{"w", "<x>"}
	full.Services = []ServiceUse{{Name: "db", Busy: 0.25, MaxRSS: 1 << 30}}
	full.Audit = Audit{Steal: 0.01, GeneratorBusy: 1, Involuntary: 5, Discarded: 2, Cycles: 3, OthersCPU: 1, Throttled: 2, TimeWait: 3, Frequency: 3e9, SoloRPS: 4, LittleMismatch: 5}
	for _, tr := range []Trial{{}, trial(0, 0), full} {
		data, err := json.Marshal(line{Trial: &tr})
		if err != nil {
			f.Fatal(err)
		}
		if _, ok := newScanner().trial(data); !ok {
			f.Fatalf("the scanner does not understand what the writer writes: %s", data)
		}
		f.Add(string(data))
	}
	for _, s := range []string{`{"trial":{"block":1e2}}`, `{"trial":{"block":-0,"metrics":{"a":-0.0,"a":1}}}`, `{"trial":{"block":1},"end":{}}`, `{"trial":{"interval":[]}}`, `{"trial":{"metrics":{"a":1e999}}}`, `{"trial":{"latency":"AA\n=="}}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, data string) {
		s := newScanner()
		for range 2 { // the second time, names are known
			got, ok := s.trial([]byte(data))
			if !ok {
				return
			}
			var want line
			if err := json.Unmarshal([]byte(data), &want); err != nil {
				t.Fatalf("encoding/json refuses what the scanner accepts: %v in %s", err, data)
			}
			if diff := cmp.Diff(line{Trial: got}, want); diff != "" {
				t.Fatalf("in %s:\n%s", data, diff)
			}
		}
	})
}

// BenchmarkOpen reads the journal of a very long run.
func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(b.TempDir(), "j")
	w, err := Create(path, header())
	if err != nil {
		b.Fatal(err)
	}
	metrics := map[string]float64{}
	for i := range 40 {
		metrics[fmt.Sprintf("latency.p%d", i)] = 1.0 / float64(i+1)
	}
	for i := range 200_000 {
		if err := w.Trial(Trial{Block: i / 4, Scenario: "http/a", Arm: "base", Metrics: NewMetrics(metrics), Latency: make([]byte, 300)}); err != nil {
			b.Fatal(err)
		}
	}
	w.Close()
	for b.Loop() {
		if _, err := Open(path); err != nil {
			b.Fatal(err)
		}
	}
}
