package report

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/tandem-bench/tandem/report/stats"
	"github.com/tandem-bench/tandem/runner/journal"
	"github.com/tandem-bench/tandem/spec"
)

// maxDropped is the share of a row's blocks that may be left out before the
// row counts as failed rather than being judged from the rest. Blocks are
// left out for what happened in them, so a row that loses many is no longer
// a fair sample of either arm.
const maxDropped = 1.0 / 3

// Analyze judges a run. A nil spec means the one that the journal carries; a
// given one brings its own alpha, judged metrics, thresholds and policies, and
// the scenarios that it names are held against those of the run.
//
// It fails only where the journal cannot be understood at all, or is of other
// arms than a given spec. A run that was cut off is analysed as far as it goes
// and says so in Partial.
func Analyze(j *journal.Run, s *spec.Spec) (*Analysis, error) {
	if j == nil || j.Header == nil {
		return nil, errors.New("the journal has no header, so there is nothing to report")
	}
	h := j.Header
	if len(h.Arms) < 2 {
		return nil, fmt.Errorf("the journal names %d arm(s), and a comparison needs a baseline and a candidate", len(h.Arms))
	}
	run, err := headerSpec(h)
	if err != nil {
		return nil, err
	}
	if s != nil {
		if err := sameArms(h.Arms, s); err != nil {
			return nil, err
		}
	}
	a := &Analysis{Header: h, Spec: s, SpecSide: "given", Baseline: h.Arms[0], Arms: h.Arms, run: j}
	if s == nil {
		a.Spec, a.SpecSide = run, "run"
		if h.Origin != nil {
			a.SpecSide = h.Origin.Side
		}
	}
	a.Finished, a.Partial = finish(j)
	if j.End != nil {
		a.endReason = j.End.Reason
		if a.endReason == journal.EndBudget {
			a.TimeUp = j.End.Detail
		}
	}
	ix := newIndex(j)
	plan := planRows(h, run, a.Spec, ix.measured)
	samples := a.fillRows(plan, ix, j)
	a.judge(plan, samples, ix)
	a.Audit = sumAudit(j.Trials, a.Rows)
	a.Services = sumServices(run, j.Trials)
	a.Warnings = runWarnings(j, a, run)
	a.applyGates()
	return a, nil
}

// headerSpec decodes the spec that a run was taken with.
func headerSpec(h *journal.Header) (*spec.Spec, error) {
	s := new(spec.Spec)
	if err := json.Unmarshal(h.Spec, s); err != nil {
		return nil, fmt.Errorf("the spec kept in the journal cannot be read: %w", err)
	}
	return s, nil
}

// finish says when the run ended, and why it ended before its plan did.
func finish(j *journal.Run) (time.Time, string) {
	if j.End == nil {
		last := j.Header.Started
		for _, t := range j.Trials {
			if end := t.Started.Add(time.Duration(t.Elapsed * float64(time.Second))); end.After(last) {
				last = end
			}
		}
		for _, e := range j.Ends {
			if e.Ended.After(last) {
				last = e.Ended
			}
		}
		return last, "the journal has no end: the run is still going on, or was killed"
	}
	switch j.End.Reason {
	case journal.EndInterrupted, journal.EndFailed:
		return j.End.Ended, join(j.End.Reason, j.End.Detail)
	}
	return j.End.Ended, ""
}

// join puts a detail behind a phrase, where there is one.
func join(phrase, detail string) string {
	if detail == "" {
		return phrase
	}
	return phrase + ": " + detail
}

// newRow fills in what is known of a row without judging it.
func newRow(p planned, s sample, j *journal.Run, a *Analysis, sides sideMemo, known *evidenceMemo) Row {
	m := metricOf(p.metric, p.scenario)
	nan := math.NaN()
	r := Row{
		Scenario: p.scenario.ID(), Name: p.scenario.Name, Matrix: p.scenario.Matrix,
		Metric: p.metric, Unit: m.Unit, Better: m.Better,
		Judged: p.judged, Control: p.scenario.Control,
		Base:  sides.of(p.base.Name, p.metric, s.baseTrials),
		Head:  sides.of(p.head.Name, p.metric, s.headTrials),
		Ratio: nan, Change: nan, Worse: nan, Noise: nan, P: nan,
		CI: [2]float64{nan, nan}, Range: [2]float64{nan, nan},
		Blocks: len(s.blocks), BlockIDs: s.blocks, Dropped: s.dropped, DropReasons: s.reasons,
	}
	r.Verdict, r.Reason = unmeasured(p, s, j, a)
	switch {
	case r.Verdict == New:
		r.Head = newSide(p.head.Name, p.metric, validTrials(j, r.Scenario, p.head.Name))
	case r.Verdict == Removed:
		r.Base = newSide(p.base.Name, p.metric, validTrials(j, r.Scenario, p.base.Name))
	case r.Verdict == "":
		e := known.of(p, s)
		r.Warnings = rowWarnings(p, s, e)
		r.limited = limitWarning(p, e) != ""
	}
	return r
}

// unmeasured says why a row cannot be judged, if it cannot.
func unmeasured(p planned, s sample, j *journal.Run, a *Analysis) (Verdict, string) {
	if p.absent != "" {
		return p.absent, p.reason
	}
	var failed string
	for _, c := range j.Checks {
		if c.Scenario != p.scenario.ID() || (c.Arm != "" && c.Arm != p.base.Name && c.Arm != p.head.Name) {
			continue
		}
		switch c.Outcome {
		case journal.CheckIncomparable:
			return Incomparable, c.Reason
		case journal.CheckNew:
			return New, c.Reason
		case journal.CheckRemoved:
			return Removed, c.Reason
		case journal.CheckFailed:
			if failed == "" {
				failed = c.Reason
			}
		}
	}
	total := len(s.blocks) + s.dropped
	switch {
	case total == 0 && failed != "":
		return Failed, failed
	case total == 0 && a.Partial != "":
		return Failed, "no block was finished (" + a.Partial + ")"
	case total == 0 && a.TimeUp != "":
		return Failed, "no block was finished (" + a.TimeUp + ")"
	case total == 0:
		return Failed, "no block holds a trial of it"
	case float64(s.dropped) > maxDropped*float64(total):
		why := s.reasons[0]
		if failed != "" {
			why = failed
		}
		return Failed, fmt.Sprintf("%d of %d blocks do not count, more than a third: %s", s.dropped, total, why)
	}
	return "", ""
}

// validTrials are the trials of one arm that count where no pairs are needed.
func validTrials(j *journal.Run, scenario, arm string) []*journal.Trial {
	var out []*journal.Trial
	for i := range j.Trials {
		if t := &j.Trials[i]; t.Scenario == scenario && t.Arm == arm && t.Invalid == "" {
			out = append(out, t)
		}
	}
	return out
}

// newSide averages every metric of one arm over the trials that count. A
// metric that some trials lack has no honest average over all, and is left out.
func newSide(arm, metric string, trials []*journal.Trial) Side {
	s := Side{Arm: arm, Value: math.NaN(), Metrics: map[string]float64{}, Trials: len(trials)}
	if len(trials) == 0 {
		return s
	}
	names := trials[0].Metrics.Names()
	centers := make([]center, len(names))
	for _, t := range trials {
		at := 0
		for name, v := range t.Metrics.All() {
			for at < len(names) && names[at] < name {
				at++
			}
			if at < len(names) && names[at] == name {
				centers[at].add(v)
				at++
			}
		}
	}
	for i, name := range names {
		if centers[i].n == len(trials) {
			s.Metrics[name] = centers[i].value()
		}
	}
	if v, ok := s.Metrics[metric]; ok {
		s.Value = v
	}
	return s
}

// center gathers values for their geometric mean, whose quotient is the mean
// of the log ratios; where one is not positive, for the arithmetic mean.
type center struct {
	n           int
	sum, logSum float64
	notPositive bool
}

func (c *center) add(v float64) {
	c.n++
	c.sum += v
	c.notPositive = c.notPositive || !(v > 0)
	c.logSum += math.Log(v)
}

func (c *center) value() float64 {
	if c.notPositive {
		return c.sum / float64(c.n)
	}
	return math.Exp(c.logSum / float64(c.n))
}

// centerOf is the center of values.
func centerOf(vs []float64) float64 {
	var c center
	for _, v := range vs {
		c.add(v)
	}
	return c.value()
}

// judge fills in ratios, noise and verdicts of the rows that have samples.
func (a *Analysis) judge(plan []planned, samples []sample, ix *index) {
	var rows []stats.Row
	var at []int
	for i := range a.Rows {
		r := &a.Rows[i]
		if r.Verdict != "" {
			continue
		}
		r.setBlocks(samples[i])
		if r.Judged {
			rows = append(rows, stats.Row{
				Base: logs(samples[i].base), Head: logs(samples[i].head),
				Blocks: samples[i].blocks, Group: plan[i].group, Margin: math.Log1p(a.Spec.Margin),
			})
			at = append(at, i)
		}
	}
	o := a.statsOptions(ix)
	a.Promise = Promise{
		Alpha: o.Alpha, Rows: len(rows), Looks: o.Looks,
		MinBlocks: stats.MinBlocks(ix.copies, ix.copies, o.Alpha/float64(o.Groups), o.Looks...),
	}
	if len(rows) == 0 {
		return
	}
	table, err := stats.Judge(rows, o)
	if err != nil {
		for _, i := range at {
			a.Rows[i].Verdict, a.Rows[i].Reason = Failed, err.Error()
		}
		return
	}
	a.Promise.Permutations, a.Promise.Exact = table.Permutations, table.Exact
	for k, i := range at {
		a.Rows[i].settle(table.Results[k], table.Confidence)
	}
}

// statsOptions finds the look that the run is at. A run that its budget ended
// may spend what is left of alpha, since the end did not depend on what was
// measured. One that somebody interrupted may have ended because of what they
// saw, and is judged as if it went on.
func (a *Analysis) statsOptions(ix *index) stats.Options {
	blocks := ix.progress()
	o := stats.Options{
		Alpha: a.Spec.Alpha, Seed: a.Header.Seed, Looks: a.Header.Looks,
		Groups: len(a.Arms) - 1, Last: a.endReason == journal.EndBudget || a.endReason == journal.EndBlocks,
	}
	if len(o.Looks) == 0 {
		o.Looks = []int{max(blocks, 1)}
	}
	o.Look, _ = stats.LookAt(o.Looks, blocks)
	return o
}

// setBlocks fills in the ratio of each block, with no verdict.
func (r *Row) setBlocks(s sample) {
	var sum float64
	r.PerBlock = make([]float64, len(s.blocks))
	r.Range = [2]float64{math.Inf(1), math.Inf(-1)}
	for b := range s.blocks {
		d := meanLog(s.head[b]) - meanLog(s.base[b])
		sum += d
		r.PerBlock[b] = math.Exp(d)
		r.Range[0] = math.Min(r.Range[0], r.PerBlock[b])
		r.Range[1] = math.Max(r.Range[1], r.PerBlock[b])
	}
	r.setEffect(sum / float64(len(s.blocks)))
}

func meanLog(vs []float64) float64 {
	var sum float64
	for _, v := range vs {
		sum += math.Log(v)
	}
	return sum / float64(len(vs))
}

func (r *Row) setEffect(logRatio float64) {
	r.Ratio = math.Exp(logRatio)
	r.Change = math.Expm1(logRatio)
	r.Worse = r.Change
	if r.Better == "higher" {
		r.Worse = -r.Change
	}
}

// settle turns a judged result into a verdict.
func (r *Row) settle(t stats.Result, confidence float64) {
	r.setEffect(t.Effect)
	r.CI = [2]float64{math.Exp(t.CI[0]), math.Exp(t.CI[1])}
	r.Confidence = confidence
	r.P = t.P
	// The critical log ratio is symmetric; the change it stands for is not.
	// The side on which the row moved is the one that decides the mark.
	r.Noise = math.Expm1(t.Critical)
	if t.Effect < 0 && !math.IsInf(t.Critical, 1) {
		r.Noise = -math.Expm1(-t.Critical)
	}
	r.Marked = t.Marked
	switch {
	case t.Marked && r.Worse > 0:
		r.Verdict = Regressed
	case t.Marked:
		r.Verdict = Improved
	case t.Same:
		r.Verdict = Same
	default:
		r.Verdict, r.MoreBlocks = Unsure, t.More
	}
	if r.limited && r.Verdict == Same {
		r.Verdict = Unsure
		r.Reason = "the load generator was the limit, so both arms may hide a difference"
	}
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}
