package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tandem-bench/tandem/runner/journal"
	"github.com/tandem-bench/tandem/spec"
)

// The limits at which outside evidence qualifies a row. They are fixed here,
// before any run, and none depends on what the row shows.
const (
	saturated  = 0.95 // generator CPU seconds per second; above it, it measured itself
	serverIdle = 0.9  // server CPU seconds per second; below it, the server was not the limit
	sizeLimit  = 0.01 // difference of the response sizes
	littleGap  = 0.05 // between requests per second times latency, and the requests in flight
	stealLimit = 0.05 // share of the time taken by the hypervisor
	othersCPU  = 0.10 // CPU seconds per second of other processes on our CPUs
	rateGap    = 0.01 // between rps and requests / elapsed
)

// evidence is what the trials of a row tell of the conditions that they were
// taken under.
type evidence struct {
	base, head             []*journal.Trial // whose it is
	arms                   [2]armEvidence   // baseline, candidate
	little, steal, others  float64
	rateGap                float64
	toleratedErrors, notes []string
}

// armEvidence is that of one arm: medians over its trials.
type armEvidence struct {
	arm                  string
	generator            float64
	busy, size           float64
	busyKnown, sizeKnown bool
}

func newArmEvidence(arm string, trials []*journal.Trial) armEvidence {
	e := armEvidence{arm: arm, generator: median(audits(trials, func(a journal.Audit) float64 { return a.GeneratorBusy }))}
	e.busy, e.busyKnown = medianMetric(trials, "busy")
	e.size, e.sizeKnown = medianMetric(trials, "bytes_per_request")
	return e
}

// evidenceMemo keeps the evidence that was gathered last: the rows of a
// scenario are mostly of the same trials.
type evidenceMemo struct{ last *evidence }

func (m *evidenceMemo) of(p planned, s sample) *evidence {
	if e := m.last; e != nil && slices.Equal(e.base, s.baseTrials) && slices.Equal(e.head, s.headTrials) {
		return e
	}
	both := append(slices.Clone(s.baseTrials), s.headTrials...)
	m.last = &evidence{
		base: s.baseTrials, head: s.headTrials,
		arms:            [2]armEvidence{newArmEvidence(p.base.Name, s.baseTrials), newArmEvidence(p.head.Name, s.headTrials)},
		little:          median(audits(both, func(a journal.Audit) float64 { return a.LittleMismatch })),
		steal:           mean(audits(both, func(a journal.Audit) float64 { return a.Steal })),
		others:          mean(audits(both, func(a journal.Audit) float64 { return a.OthersCPU })),
		rateGap:         rateMismatch(both),
		toleratedErrors: toleratedErrors(p, s),
		notes:           trialWarnings(both),
	}
	return m.last
}

// rowWarnings says what qualifies a row that has samples.
func rowWarnings(p planned, s sample, e *evidence) []string {
	var out []string
	if w := limitWarning(p, e); w != "" {
		out = append(out, w)
	}
	if w := sizeWarning(e); w != "" {
		out = append(out, w)
	}
	if e.little > littleGap {
		out = append(out, fmt.Sprintf("requests per second times latency is off the requests in flight by %s: the latencies are not those of all requests", percent(e.little)))
	}
	if e.steal > stealLimit {
		out = append(out, fmt.Sprintf("the hypervisor took %s of the CPU time", percent(e.steal)))
	}
	if e.others > othersCPU {
		out = append(out, fmt.Sprintf("other processes used %s of a CPU on the same CPUs", percent(e.others)))
	}
	if e.rateGap > rateGap {
		out = append(out, fmt.Sprintf("rps differs from requests per measured second by %s", percent(e.rateGap)))
	}
	if s.dropped > 0 {
		out = append(out, fmt.Sprintf("%d of %d blocks left out: %s", s.dropped, s.dropped+len(s.blocks), s.reasons[0]))
	}
	out = append(out, e.toleratedErrors...)
	return append(out, e.notes...)
}

// limitWarning tells where the generator was the bottleneck of either arm.
func limitWarning(p planned, e *evidence) string {
	if !needsGenerator(p.metric) {
		return ""
	}
	for _, side := range e.arms {
		if side.generator <= saturated || (side.busyKnown && side.busy >= serverIdle) {
			continue
		}
		server := "the server's CPU use is not known"
		if side.busyKnown {
			server = "the server was " + percent(side.busy) + " busy"
		}
		return fmt.Sprintf("the load generator was the limit on %s: it used %s of its CPU while %s", side.arm, percent(side.generator), server)
	}
	return ""
}

func sizeWarning(e *evidence) string {
	b, h := e.arms[0], e.arms[1]
	if !b.sizeKnown || !h.sizeKnown || math.Abs(h.size-b.size) <= sizeLimit*b.size {
		return ""
	}
	return fmt.Sprintf("the responses differ in size: %s sends %.4g bytes per request, %s %.4g (%+.1f%%)", b.arm, b.size, h.arm, h.size, 100*(h.size/b.size-1))
}

func rateMismatch(trials []*journal.Trial) float64 {
	var gaps []float64
	for _, t := range trials {
		rps, ok1 := t.Metrics.Get("rps")
		n, ok2 := t.Metrics.Get("requests")
		if ok1 && ok2 && n > 0 && t.Elapsed > 0 {
			gaps = append(gaps, math.Abs(rps*t.Elapsed/n-1))
		}
	}
	return median(gaps)
}

// toleratedErrors names failed requests that the spec's budget allowed.
func toleratedErrors(p planned, s sample) []string {
	var out []string
	for _, side := range []struct {
		arm    string
		trials []*journal.Trial
	}{{p.base.Name, s.baseTrials}, {p.head.Name, s.headTrials}} {
		count, first := map[string]int64{}, map[string]string{}
		for _, t := range side.trials {
			for _, e := range t.Errors {
				count[e.Class] += e.Count
				if first[e.Class] == "" && len(e.First) > 0 {
					first[e.Class] = e.First[0]
				}
			}
		}
		for _, class := range sortedKeys(count) {
			out = append(out, join(fmt.Sprintf("%s: %d requests failed (%s) within the allowed share", side.arm, count[class], class), first[class]))
		}
	}
	return out
}

// trialWarnings gathers what the trials themselves say, each text once.
func trialWarnings(trials []*journal.Trial) []string {
	count := map[string]int{}
	var order []string
	for _, t := range trials {
		for _, w := range t.Warnings {
			if count[w]++; count[w] == 1 {
				order = append(order, w)
			}
		}
	}
	var out []string
	for _, w := range order {
		out = append(out, fmt.Sprintf("%s (%d of %d windows)", w, count[w], len(trials)))
	}
	return out
}

const anotherSpec = "judged by another spec than the run was taken with"

// runWarnings says what qualifies the whole table.
func runWarnings(j *journal.Run, a *Analysis, run *spec.Spec) []string {
	out := slices.Clone(j.Header.Warnings)
	if j.Header.Shard != "" {
		out = append(out, fmt.Sprintf("this is shard %s alone: its verdicts are those of a smaller table, and only the joined one (tandem merge) can be gated", j.Header.Shard))
	}
	out = append(out, changedSpec(j.Header, a)...)
	if j.Torn {
		out = append(out, "the last line of the journal was cut off and is left out")
	}
	if j.Resume > 0 {
		out = append(out, fmt.Sprintf("the run was resumed %d time(s): its blocks are not all of one sitting", j.Resume))
	}
	if a.SpecSide == "given" && a.Spec.Digest != run.Digest {
		out = append(out, anotherSpec)
	}
	out = append(out, identicalArms(j.Header, run)...)
	if n := a.fewestUnmarkable(); n > 0 {
		need := fmt.Sprintf("the first look that can is after %d", a.Promise.MinBlocks)
		if a.Promise.MinBlocks == 0 {
			need = "nor can any look of this plan; allow more blocks or copies"
		}
		out = append(out, fmt.Sprintf("%s cannot mark any change at alpha %g: %s", count(n, "block"), a.Spec.Alpha, need))
	}
	for i := range a.Rows {
		r := &a.Rows[i]
		if r.Control && (r.Verdict == Regressed || r.Verdict == Improved) {
			w := fmt.Sprintf("control row %s (%s) moved by %+.1f%%: something other than the code differs between the arms, so no verdict of this run can be trusted", r.Scenario, r.Metric, 100*r.Change)
			out = append(out, w)
			r.Warnings = append(r.Warnings, "a control row moved")
		}
	}
	out = append(out, idleThresholds(a)...)
	if j.End != nil {
		out = append(out, j.End.Warnings...)
	}
	return out
}

// changedSpec says that the change under test changes what it is measured by.
func changedSpec(h *journal.Header, a *Analysis) []string {
	o := h.Origin
	if o == nil || len(o.Changed) == 0 {
		return nil
	}
	what := "the change under test changes the benchmark itself: " + changedList(o)
	if o.Side == "base" {
		return []string{what + "; both arms were measured by the spec of the base, and a changed one counts once it is merged"}
	}
	return []string{what + "; both arms were measured by the changed spec"}
}

// changedList names the changed files, the first few of many.
func changedList(o *journal.Origin) string {
	const most = 5
	names := o.Changed[:min(most, len(o.Changed))]
	text := strings.Join(names, ", ")
	if more := len(o.Changed) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// fewestUnmarkable is the least number of blocks of any row whose noise is not
// known yet, and 0 where each could be marked.
func (a *Analysis) fewestUnmarkable() int {
	fewest := 0
	for _, r := range a.Rows {
		if r.Judged && r.Blocks > 0 && math.IsInf(r.Noise, 1) && (fewest == 0 || r.Blocks < fewest) {
			fewest = r.Blocks
		}
	}
	return fewest
}

// identicalArms warns where two arms hold the same bytes and are started the
// same way: then the baseline was measured against itself, most likely since
// a build left the other arm's products in place.
func identicalArms(h *journal.Header, run *spec.Spec) []string {
	if h.Same {
		return nil
	}
	base := h.Arms[0]
	var out []string
	for _, arm := range h.Arms[1:] {
		if base.Digest == "" || arm.Digest != base.Digest || !sameStart(run, base.Name, arm.Name) {
			continue
		}
		out = append(out, fmt.Sprintf("the built trees of %s and %s are identical and both are started the same way: the same program was measured twice", base.Name, arm.Name))
	}
	return out
}

func sameStart(s *spec.Spec, a, b string) bool {
	type start struct {
		Server   *spec.Server
		Env      map[string]spec.Template
		Services []spec.Service
	}
	of := func(name string) []byte {
		for _, arm := range s.Arms {
			if arm.Name == name {
				data, err := json.Marshal(start{arm.Server, arm.Env, arm.Services})
				if err != nil {
					return nil
				}
				return data
			}
		}
		return nil
	}
	return bytes.Equal(of(a), of(b))
}

func idleThresholds(a *Analysis) []string {
	if len(a.Header.Filter) > 0 || a.Header.Shard != "" {
		return nil
	}
	var out []string
	for _, t := range a.Spec.Thresholds {
		if !slices.ContainsFunc(a.Rows, func(r Row) bool { return r.Judged && t.Selects(r.Metric, r.Scenario, r.Name) }) {
			out = append(out, fmt.Sprintf("the threshold in line %d (metric %s, scenario %s) selects no row", t.Line, t.Metric, t.Scenario))
		}
	}
	return out
}
