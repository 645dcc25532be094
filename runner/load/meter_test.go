package load

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The one-second samples are of measuring time: groups that were discarded
// are in none of them, and the rest of a second at the end is in none either.
func TestMeterSeconds(t *testing.T) {
	var m meter
	m.reset(true)
	group := func(n int, d time.Duration, keep bool) {
		for range n {
			m.valid(1000, 1000)
		}
		m.elapsed += int64(d)
		m.settle(keep)
	}
	for range 100 { // 1,000 per second for a second, in groups of 10 ms
		group(10, 10*time.Millisecond, true)
	}
	group(500, 10*time.Millisecond, false)
	for range 50 { // 200 per second for another, in groups of 20 ms
		group(4, 20*time.Millisecond, true)
	}
	group(3, 500*time.Millisecond, true)
	s := m.result()
	if diff := cmp.Diff([]float64{1000, 200}, s.Interval); diff != "" {
		t.Errorf("one-second samples (-want +got):\n%s", diff)
	}
	if s.OK != 1203 || s.Discarded != 500 || s.Elapsed != 2500*time.Millisecond || s.TotalElapsed != 2510*time.Millisecond {
		t.Errorf("ok %d, discarded %d, elapsed %v of %v", s.OK, s.Discarded, s.Elapsed, s.TotalElapsed)
	}
}
