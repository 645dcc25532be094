package report

import (
	"slices"
	"strings"

	"github.com/tandem-bench/tandem/runner/journal"
	"github.com/tandem-bench/tandem/spec"
)

// planned is a row before anything is known of it. The table is planned
// from the header and the spec alone, so that no row can vanish because its
// scenario did.
type planned struct {
	scenario spec.Scenario
	base     journal.Arm
	head     journal.Arm
	group    int // the candidate's number, from 0
	metric   string
	judged   bool
	absent   Verdict // New, Removed or "": the arms that have the scenario
	reason   string
}

// planRows lists every row of the table: the planned scenarios, times the
// candidates, times the metrics that are judged, gated or shown.
func planRows(h *journal.Header, run, given *spec.Spec, measured func(scenario string) map[string]bool) []planned {
	var rows []planned
	for _, sc := range planScenarios(h, run, given) {
		for g, head := range h.Arms[1:] {
			base := h.Arms[0]
			inBase, inHead := sc.has(base.Name), sc.has(head.Name)
			if !inBase && !inHead {
				continue
			}
			p := planned{scenario: sc.Scenario, base: base, head: head, group: g, absent: sc.absent, reason: sc.reason}
			switch {
			case sc.absent != "":
			case !inBase:
				p.absent, p.reason = New, "the baseline does not have this scenario"
			case !inHead:
				p.absent, p.reason = Removed, "the candidate does not have this scenario"
			}
			rows = append(rows, p.metrics(given, measured(sc.ID()))...)
		}
	}
	return rows
}

type plannedScenario struct {
	spec.Scenario
	absent Verdict
	reason string
}

func (s plannedScenario) has(arm string) bool {
	return s.Arms == nil || slices.Contains(s.Arms, arm)
}

// planScenarios lists the scenarios of the run in its own order, and then
// those that only the given spec names: where a run is judged by a spec from
// elsewhere, a scenario that the run's own spec left out must not pass
// unseen.
func planScenarios(h *journal.Header, run, given *spec.Spec) []plannedScenario {
	ran, want := byID(run), byID(given)
	var out []plannedScenario
	for _, id := range h.Rows {
		g, wanted := want[id]
		sc, ok := ran[id]
		switch {
		case ok && wanted:
			sc.Judge, sc.Control = g.Judge, g.Control
		case wanted:
			sc = g
		case !ok:
			sc = spec.Scenario{Name: id}
		}
		out = append(out, plannedScenario{Scenario: sc})
	}
	if given == run || h.Shard != "" {
		return out
	}
	for _, sc := range given.Scenarios {
		if !slices.Contains(h.Rows, sc.ID()) {
			out = append(out, plannedScenario{sc, Removed, "the spec names this scenario, and the run did not plan it"})
		}
	}
	return out
}

func byID(s *spec.Spec) map[string]spec.Scenario {
	m := make(map[string]spec.Scenario, len(s.Scenarios))
	for _, sc := range s.Scenarios {
		m[sc.ID()] = sc
	}
	return m
}

// metrics makes one row of p for each metric: the judged ones in the spec's
// order, then those that a threshold asks for (a gate needs the row's noise,
// so they are judged too, within the same error rate), then the shown ones.
func (p planned) metrics(s *spec.Spec, measured map[string]bool) []planned {
	judged := judgedMetrics(p.scenario, s, measured)
	judged = append(judged, gatedMetrics(p.scenario, s, judged, measured)...)
	var rows []planned
	for _, m := range judged {
		r := p
		r.metric, r.judged = m, true
		rows = append(rows, r)
	}
	if p.absent != "" {
		return rows
	}
	for _, m := range shown {
		if measured[m] && !slices.Contains(judged, m) {
			r := p
			r.metric = m
			rows = append(rows, r)
		}
	}
	return rows
}

// shown are the metrics that a reader wants beside the judged ones.
var shown = []string{
	"rps", "msgs", "wall", "cpu_per_request", "cpu", "latency.p50", "latency.p99",
	"response_time.p99", "rtt.p50", "rtt.p99", "max_rss",
}

// measured is the set of metrics that any trial of the scenario holds.
func (ix *index) measured(scenario string) map[string]bool {
	m := map[string]bool{}
	var last []string
	for _, trials := range ix.trials[scenario] {
		for _, t := range trials {
			if t == nil || slices.Equal(t.Metrics.Names(), last) {
				continue
			}
			last = t.Metrics.Names()
			for _, name := range last {
				m[name] = true
			}
		}
	}
	return m
}

// Judged lists the metrics of a scenario that get verdicts, as far as they
// are known before anything is measured.
func Judged(sc spec.Scenario, s *spec.Spec) []string {
	judged := judgedMetrics(sc, s, nil)
	return append(judged, gatedMetrics(sc, s, judged, nil)...)
}

// judgedMetrics is the scenario's own list, or what of the spec's list its
// kind can have: `judge: [rps]` does not fail a scenario that runs a
// compiler, which is judged by its natural metrics instead.
func judgedMetrics(sc spec.Scenario, s *spec.Spec, measured map[string]bool) []string {
	if sc.Judge != nil {
		return slices.Clone(sc.Judge)
	}
	var out []string
	for _, m := range s.Judge {
		if measured[m] || applies(m, sc) {
			out = append(out, m)
		}
	}
	if len(out) == 0 {
		out = natural(sc)
	}
	return out
}

// applies reports whether trials of the scenario can have the metric. Of a
// scenario that the spec does not know, nothing is known against it.
func applies(metric string, sc spec.Scenario) bool {
	unknown := sc.HTTP == nil && sc.WS == nil && sc.Exec == nil && sc.Command == nil
	return unknown || sc.HasMetric(metric)
}

// natural is what a kind of scenario is judged by where the spec's list
// names nothing that it has.
func natural(sc spec.Scenario) []string {
	switch {
	case sc.Command != nil:
		return []string{"wall", "cpu"}
	case sc.WS != nil:
		return []string{"msgs", "cpu_per_request"}
	case sc.Exec != nil && len(sc.Exec.Metrics) > 0:
		return []string{sc.Exec.Metrics[0].Metric}
	}
	return []string{"rps"}
}

// gatedMetrics lists the metrics beyond the judged ones that thresholds
// select. A plain name is taken as it is; a glob takes in what was measured;
// `*` means the judged metrics, since a table of every percentile would
// drown the rows that matter in its own error rate.
func gatedMetrics(sc spec.Scenario, s *spec.Spec, judged []string, measured map[string]bool) []string {
	var out []string
	add := func(m string) {
		if !slices.Contains(judged, m) && !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	for _, t := range s.Thresholds {
		if t.Metric == "*" || t.Metric == "" {
			continue
		}
		if !strings.ContainsAny(t.Metric, "*?[{\\") {
			if t.Selects(t.Metric, sc.ID(), sc.Name) && (measured[t.Metric] || applies(t.Metric, sc)) {
				add(t.Metric)
			}
			continue
		}
		for _, m := range sortedKeys(measured) {
			if t.Selects(m, sc.ID(), sc.Name) {
				add(m)
			}
		}
	}
	return out
}
