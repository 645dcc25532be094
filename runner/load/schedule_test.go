package load

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tandem-bench/tandem/spec"
)

// stagePlayer is a player whose turns take the times that a test says.
type stagePlayer struct {
	took    func(target int, d time.Duration) time.Duration
	lates   []time.Duration // of each group, in order; then none
	log     []string
	settled []bool
	drained int
}

func (p *stagePlayer) turn(target int, d time.Duration) time.Duration {
	p.log = append(p.log, fmt.Sprint(target))
	return p.took(target, d)
}

func (p *stagePlayer) slice(d time.Duration) time.Duration {
	p.log = append(p.log, "all")
	return p.took(-1, d)
}

func (p *stagePlayer) expect(bool) {}

func (p *stagePlayer) drain() { p.drained++ }

func (p *stagePlayer) settle(keep bool) {
	p.log = append(p.log, "|")
	p.settled = append(p.settled, keep)
}

func (p *stagePlayer) late() time.Duration {
	n := len(p.settled) - 1 // asked once before the first group
	if len(p.log) == 0 {
		return 0
	}
	if n++; n >= 0 && n < len(p.lates) {
		return p.lates[n]
	}
	return 0
}

// exact takes just the length of a turn.
func exact(_ int, d time.Duration) time.Duration { return d }

// alternate turns the order around in every other cycle.
func alternate(cycle int, order []int) {
	for i := range order {
		order[i] = i
		if cycle%2 == 1 {
			order[i] = len(order) - 1 - i
		}
	}
}

func TestRotation_order(t *testing.T) {
	p := &stagePlayer{took: exact}
	r := rotation{Schedule: Schedule{Mode: spec.Turns, Window: 20 * time.Millisecond, Turn: 5 * time.Millisecond, Order: alternate}, p: p, targets: 2}
	if err := r.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	// Two cycles of two turns of 5 ms make a group, four cycles the window.
	want := []string{"0", "1", "1", "0", "|", "0", "1", "1", "0", "|"}
	if diff := cmp.Diff(want, p.log); diff != "" {
		t.Error(diff)
	}
	if r.cycles != 4 || r.dropped != 0 || p.drained != 1 {
		t.Errorf("%d cycles, %d dropped, drained %d times", r.cycles, r.dropped, p.drained)
	}
}

func TestRotation_discards(t *testing.T) {
	p := &stagePlayer{took: exact, lates: []time.Duration{0, 3 * time.Millisecond, time.Millisecond}}
	r := rotation{Schedule: Schedule{
		Mode: spec.Turns, Window: 30 * time.Millisecond, Turn: 10 * time.Millisecond, Order: forward,
		Guard: Guard{Lateness: 2 * time.Millisecond},
	}, p: p, targets: 2}
	if err := r.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]bool{true, false, true, true}, p.settled); diff != "" {
		t.Error(diff)
	}
	if r.cycles != 4 || r.dropped != 1 || r.late != 3*time.Millisecond {
		t.Errorf("%d cycles, %d dropped, %v late", r.cycles, r.dropped, r.late)
	}
}

func TestRotation_steal(t *testing.T) {
	ticks := []uint64{0, 0, 0, 1, 1, 1, 1, 1}
	reads := 0
	read := func([]byte) []byte {
		reads++
		return fmt.Appendf(nil, "cpu  0 0 0 0 0 0 0 9 0 0\ncpu0 1 2 3 4 5 6 7 %d 0 0\ncpu1 1 2 3 4 5 6 7 %d 0 0\nintr 1\n", ticks[reads-1], reads)
	}
	p := &stagePlayer{took: exact}
	r := rotation{Schedule: Schedule{
		Mode: spec.Turns, Window: 30 * time.Millisecond, Turn: 10 * time.Millisecond, Order: forward,
		Guard: Guard{Steal: true},
	}, p: p, targets: 2, evidence: evidence{cpus: []int{0}, read: read}}
	if err := r.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]bool{true, false, true, true}, p.settled); diff != "" {
		t.Error(diff)
	}
}

// TestRotation_bounds: whatever the turns take and however bad the machine
// is, a run ends, all targets have the same number of turns in it, and what
// is discarded stays within its bound.
func TestRotation_bounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		targets := rapid.IntRange(1, 6).Draw(t, "targets")
		window := time.Duration(rapid.Int64Range(1, int64(100*time.Millisecond)).Draw(t, "window"))
		turn := time.Duration(rapid.Int64Range(0, int64(60*time.Millisecond)).Draw(t, "turn"))
		mode := rapid.SampledFrom([]spec.Interleave{spec.Turns, spec.Windows, spec.Together}).Draw(t, "mode")
		slow := rapid.SliceOfN(rapid.Int64Range(int64(100*time.Microsecond), int64(200*time.Millisecond)), targets, targets).Draw(t, "times")
		bad := rapid.Bool().Draw(t, "bad")
		p := &stagePlayer{took: func(target int, d time.Duration) time.Duration {
			if target < 0 {
				return d
			}
			return max(d, time.Duration(slow[target]))
		}}
		if bad {
			for range 10_000 {
				p.lates = append(p.lates, time.Second)
			}
		}
		r := rotation{Schedule: Schedule{Mode: mode, Window: window, Turn: turn, Order: alternate, Guard: Guard{Lateness: time.Millisecond}}, p: p, targets: targets}
		if err := r.run(context.Background()); err != nil {
			t.Fatal(err)
		}
		turns := map[string]int{}
		for _, e := range p.log {
			turns[e]++
		}
		for i := range targets {
			if mode != spec.Together && turns[fmt.Sprint(i)] != r.cycles {
				t.Fatalf("target %d had %d turns in %d cycles", i, turns[fmt.Sprint(i)], r.cycles)
			}
		}
		filled := true
		for _, d := range r.counted {
			filled = filled && d >= window
		}
		bound := time.Duration(maxStretch * float64(targets) * float64(window))
		if !filled && r.total < bound {
			t.Fatalf("counted %v of %v after %v of at most %v", r.counted, window, r.total, bound)
		}
	})
}

func TestRotation_cancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	p := &stagePlayer{took: func(_ int, d time.Duration) time.Duration { cancel(); return d }}
	r := rotation{Schedule: Schedule{Mode: spec.Turns, Window: time.Hour, Turn: time.Millisecond, Order: forward}, p: p, targets: 2}
	if err := r.run(ctx); err != context.Canceled {
		t.Errorf("error %v", err)
	}
	if p.drained != 1 || len(p.settled) != 1 {
		t.Errorf("drained %d times, settled %v", p.drained, p.settled)
	}
}

func TestRotation_empty(t *testing.T) {
	r := rotation{Schedule: Schedule{Mode: spec.Turns, Order: forward}, p: &stagePlayer{took: exact}, targets: 1}
	if err := r.run(context.Background()); err == nil {
		t.Error("a window of no length was accepted")
	}
}

func TestStealTicks(t *testing.T) {
	const stat = "cpu  10 0 10 100 0 0 0 30 0 0\ncpu0 5 0 5 50 0 0 0 10 0 0\ncpu1 5 0 5 50 0 0 0 20 0 0\nintr 12345\n"
	tests := []struct {
		name string
		stat string
		cpus []int
		want uint64
	}{
		{"all", stat, nil, 30},
		{"one", stat, []int{1}, 20},
		{"both", stat, []int{0, 1}, 30},
		{"none of them", stat, []int{7}, 0},
		{"empty", "", nil, 0},
		{"cut off", stat[:60], nil, 10},
		{"old kernel without steal", "cpu  1 2 3 4\ncpu0 1 2 3 4\n", nil, 0},
		{"only a name", "cpu\ncpu", nil, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := stealTicks([]byte(test.stat), test.cpus); got != test.want {
				t.Errorf("got %d, expected %d", got, test.want)
			}
		})
	}
}
