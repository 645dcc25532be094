package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tandem-bench/tandem/runner"
	"github.com/tandem-bench/tandem/runner/journal"
	"github.com/tandem-bench/tandem/spec"
)

func TestRoundTime(t *testing.T) {
	for d, want := range map[time.Duration]string{
		400 * time.Millisecond: "0s",
		59 * time.Second:       "59s",
		60 * time.Second:       "1m",
		69 * time.Second:       "1m10s",
		10 * time.Minute:       "10m",
		3601 * time.Second:     "1h0m",
	} {
		if got := roundTime(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

// screen is as much of a terminal as the live view uses. What it does not know
// fails the test, and so does a line that is wider than it.
type screen struct {
	t       *testing.T
	columns int
	lines   []string
	row     int
	col     int
	writes  int
}

func (s *screen) Write(p []byte) (int, error) {
	s.writes++
	for rest := string(p); rest != ""; {
		rest = s.next(rest)
	}
	return len(p), nil
}

// next obeys the first character or sequence of a text.
func (s *screen) next(text string) string {
	for s.row >= len(s.lines) {
		s.lines = append(s.lines, "")
	}
	var up int
	switch {
	case text[0] == '\r':
		s.col = 0
	case text[0] == '\n':
		s.row, s.col = s.row+1, 0
	case strings.HasPrefix(text, "\x1b[J"):
		s.lines = append(s.lines[:s.row:s.row], string([]rune(s.lines[s.row])[:s.col]))
		return text[3:]
	case text[0] == '\x1b':
		n, err := fmt.Sscanf(text, "\x1b[%dA", &up)
		if n != 1 || err != nil || up > s.row {
			s.t.Fatalf("the screen cannot obey %.20q in line %d", text, s.row)
		}
		s.row -= up
		return text[strings.IndexByte(text, 'A')+1:]
	default:
		r := []rune(text)[0]
		line := append([]rune(s.lines[s.row]), []rune(strings.Repeat(" ", s.col))...)[:s.col]
		s.lines[s.row] = string(append(line, r))
		if s.col++; s.col >= s.columns {
			s.t.Fatalf("a line fills the screen: %q", s.lines[s.row])
		}
		return text[len(string(r)):]
	}
	return text[1:]
}

func (s *screen) String() string { return strings.Join(s.lines, "\n") }

// runOf is a run under way: so many blocks in which head does 20% fewer
// requests in every scenario but the first.
func runOf(t *testing.T, blocks, scenarios int) *journal.Run {
	t.Helper()
	s := spec.Spec{Name: "live", Baseline: "base", Judge: []string{"rps"}, Alpha: 0.01, Margin: 0.01,
		Arms: []spec.Arm{{Name: "base"}, {Name: "head"}}, Plan: spec.Plan{Blocks: spec.Blocks{Min: 4, Max: 20}, Copies: 2}}
	h := &journal.Header{Version: 1, ID: "x", Copies: 2, Looks: []int{4, 8, 20}, Arms: []journal.Arm{{Name: "base"}, {Name: "head"}}}
	run := &journal.Run{Header: h}
	for k := range scenarios {
		name := fmt.Sprintf("http/scenario-%d", k)
		s.Scenarios = append(s.Scenarios, spec.Scenario{Name: name, HTTP: &spec.HTTP{Connections: 1}})
		h.Rows = append(h.Rows, name)
	}
	var err error
	h.Spec, err = json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	for b := range blocks {
		for k, name := range h.Rows {
			for i, arm := range []string{"base", "base", "head", "head"} {
				rps := 1000 + float64((b*7+i*5+k*3)%11)
				if arm == "head" && k > 0 {
					rps *= 0.8
				}
				run.Trials = append(run.Trials, journal.Trial{Block: b, Scenario: name, Arm: arm, Copy: i % 2, Elapsed: 1, Metrics: journal.NewMetrics(map[string]float64{"rps": rps})})
			}
		}
		run.Ends = append(run.Ends, journal.BlockEnd{Block: b})
	}
	return run
}

func liveOn(s *screen, lines int) *progress {
	return &progress{
		now:  func() time.Time { return time.Unix(0, 0) },
		live: &liveView{w: s, size: func() (int, int) { return s.columns, lines }},
	}
}

// The view grows and shrinks in its place, never wraps, and is gone at the end.
func TestLiveView(t *testing.T) {
	for _, columns := range []int{40, 80, 120} {
		s := &screen{t: t, columns: columns}
		fmt.Fprint(s, "$ tandem run\n")
		p := liveOn(s, 24)
		p.update(runner.Status{Phase: runner.Building, Detail: "base"})
		if got := s.String(); got != "$ tandem run\nbuild, base" {
			t.Errorf("%d columns: %q", columns, got)
		}
		for b := 1; b <= 9; b++ {
			p.update(runner.Status{Phase: runner.Starting, Block: b, Blocks: 20, Detail: "base#0", Left: time.Minute, Run: runOf(t, b-1, 3)})
			p.update(runner.Status{Phase: runner.Measuring, Block: b, Blocks: 20, Scenario: "http/scenario-0", Left: time.Minute, Run: runOf(t, b-1, 3)})
		}
		got := s.String()
		if n := strings.Count(got, "settled so far"); n != 1 || !strings.HasPrefix(got, "$ tandem run\n3 of 3 rows settled so far") {
			t.Errorf("%d columns: the view stands there %d times:\n%s", columns, n, got)
		}
		if last := s.lines[len(s.lines)-1]; !strings.HasPrefix("block 9 of at most 20, measure, http/scenario-0, at most 1m left", strings.TrimSuffix(last, "~")) {
			t.Errorf("%d columns: the last line is %q", columns, last)
		}
		if columns >= 80 && strings.Count(got, "regressed") != 3 { // once in the head
			t.Errorf("%d columns:\n%s", columns, got)
		}
		p.finish()
		if got := s.String(); got != "$ tandem run\n" {
			t.Errorf("%d columns: at the end %q", columns, got)
		}
	}
}

// A table that is too long for the terminal is cut, or it could not be written
// over.
func TestLiveViewOfManyRows(t *testing.T) {
	s := &screen{t: t, columns: 100}
	p := liveOn(s, 12)
	p.update(runner.Status{Phase: runner.Starting, Block: 9, Blocks: 20, Run: runOf(t, 8, 40)})
	if len(s.lines) > 12 || !strings.Contains(s.String(), "and 35 rows more") {
		t.Errorf("%d lines:\n%s", len(s.lines), s)
	}
	p = liveOn(&screen{t: t, columns: 100}, 5) // too low for any table
	p.update(runner.Status{Phase: runner.Starting, Block: 9, Blocks: 20, Run: runOf(t, 8, 4)})
	if p.live.above != 0 {
		t.Errorf("%d lines above the status", p.live.above)
	}
}

// A log gets one line for each block.
func TestProgressOfALog(t *testing.T) {
	var log bytes.Buffer
	p := &progress{log: &log, now: func() time.Time { return time.Unix(0, 0) }}
	for b := 1; b <= 2; b++ {
		for range 3 {
			p.update(runner.Status{Phase: runner.Starting, Block: b, Blocks: 20, Left: 50 * time.Second, Run: runOf(t, 8*(b-1), 2)})
			p.update(runner.Status{Phase: runner.Measuring, Block: b, Blocks: 20, Run: runOf(t, 8*(b-1), 2)})
		}
	}
	p.finish()
	want := "block 1 of at most 20, at most 50s left\nblock 2 of at most 20, at most 50s left; 2 of 2 rows settled so far (1 regressed, 1 same)\n"
	if log.String() != want {
		t.Errorf("%q", log.String())
	}
	p = &progress{log: &log, quiet: true}
	p.update(runner.Status{Phase: runner.Building, Detail: "base"})
	if log.String() != want {
		t.Error("--quiet says something")
	}
}

// Looking at a table that takes long to judge does not hold the run up.
func TestLooksAreRationed(t *testing.T) {
	clock := time.Unix(0, 0)
	p := &progress{log: &bytes.Buffer{}, now: func() time.Time { clock = clock.Add(10 * time.Second); return clock }}
	p.took, p.looked = time.Second, clock
	p.look(runOf(t, 3, 1))
	if p.so != "" {
		t.Error("it looked though the last look took a tenth of the time since")
	}
	clock = clock.Add(time.Minute)
	p.look(runOf(t, 3, 1))
	if p.so == "" {
		t.Error("it did not look")
	}
}
