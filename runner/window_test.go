package runner

import (
	"slices"
	"strings"
	"testing"

	"github.com/tandem-bench/tandem/runner/load"
	"github.com/tandem-bench/tandem/spec"
)

// alternating is a driver that can take turns.
type alternating struct {
	load.Driver
	can bool
}

func (a alternating) Interleaves() bool { return a.can }

// Each copy is loaded by itself where the load asks for it or leaves no other
// way, and a limit that decides it is said.
func TestOneByOne(t *testing.T) {
	http := func(mode spec.Interleave, connections int) spec.Scenario {
		return spec.Scenario{Name: "x", Interleave: mode, HTTP: &spec.HTTP{Connections: connections}}
	}
	const many = 1 << 40 // more than any system lets anybody open
	for _, tt := range []struct {
		name string
		sc   spec.Scenario
		can  bool
		want bool
	}{
		{"turns", http(spec.Turns, 10), true, false},
		{"together", http(spec.Together, 10), true, false},
		{"windows", http(spec.Windows, 10), true, true},
		{"a tool", spec.Scenario{Interleave: spec.Windows, Exec: &spec.Exec{}}, false, true},
		{"processes take turns in any mode", spec.Scenario{Interleave: spec.Windows, Command: &spec.Process{}}, true, false},
		{"too many for one, too: opening says so", http(spec.Turns, many), true, false},
		{"websockets", spec.Scenario{Interleave: spec.Windows, WS: &spec.WS{Connections: 10}}, true, true},
	} {
		e := &execution{}
		w := &window{execution: e, sc: tt.sc, driver: alternating{can: tt.can}, instances: make([]*instance, 4)}
		if got := w.oneByOne(); got != tt.want || len(e.warnings) > 0 {
			t.Errorf("%s: %v, want %v; warnings %q", tt.name, got, tt.want, e.warnings)
		}
	}
}

// As many connections as only one copy may have open at a time.
func TestOneByOneForWantOfFiles(t *testing.T) {
	n := 1
	for load.CanOpen(2*n) == nil && n < 1<<30 {
		n *= 2
	}
	if n == 1<<30 {
		return // this system has no limit to speak of
	}
	e := &execution{}
	sc := spec.Scenario{Name: "x", Interleave: spec.Turns, HTTP: &spec.HTTP{Connections: n}}
	w := &window{execution: e, sc: sc, driver: alternating{can: true}, instances: make([]*instance, 4)}
	if !w.oneByOne() {
		t.Errorf("%d connections to each of 4 copies are opened at once", n)
	}
	if !slices.ContainsFunc(e.warnings, func(s string) bool { return strings.Contains(s, "one after the other") }) {
		t.Errorf("nothing is said: %q", e.warnings)
	}
}
