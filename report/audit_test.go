package report

import "testing"

func TestABlockLeftOutIsCountedOnceAScenario(t *testing.T) {
	judged := func(scenario, metric string, dropped int) Row {
		return Row{Scenario: scenario, Metric: metric, Judged: true, Verdict: Same, Dropped: dropped}
	}
	for _, tc := range []struct {
		name string
		rows []Row
		want int
	}{
		{"none", []Row{judged("a", "rps", 0)}, 0},
		{"two metrics of one scenario", []Row{judged("a", "rps", 1), judged("a", "cpu_per_request", 1)}, 1},
		{"two scenarios", []Row{judged("a", "rps", 1), judged("b", "rps", 2)}, 3},
		{"rows that are only shown", []Row{{Scenario: "a", Metric: "busy", Verdict: Same, Dropped: 3}}, 0},
		{"rows without figures", []Row{{Scenario: "a", Metric: "rps", Judged: true, Verdict: Failed, Dropped: 3}}, 0},
	} {
		if got := blocksDropped(tc.rows); got != tc.want {
			t.Errorf("%s: %d blocks, want %d", tc.name, got, tc.want)
		}
	}
}
