package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/tandem-bench/tandem/runner/journal"
	"github.com/tandem-bench/tandem/spec"
)

// ResultVersion is the version of result.json that this package writes.
const ResultVersion = 1

// The wire form of result.json; result.schema.json describes it. Figures are
// in base units, and what is not known or not finite is null.
type (
	resultFile struct {
		Version  int             `json:"version"`
		ID       string          `json:"id"`
		Tool     string          `json:"tool"`
		Name     string          `json:"name"`
		Seed     uint64          `json:"seed"`
		Spec     resultSpec      `json:"spec"`
		Commits  *commits        `json:"revisions,omitempty"`
		Started  time.Time       `json:"started"`
		Finished time.Time       `json:"finished"`
		Partial  string          `json:"partial,omitempty"`
		TimeUp   string          `json:"time_up,omitempty"`
		Same     bool            `json:"same,omitempty"`
		Shard    string          `json:"shard,omitempty"`
		Host     journal.Host    `json:"host"`
		Pins     journal.Pins    `json:"pins"`
		Baseline string          `json:"baseline"`
		Arms     []resultArm     `json:"arms"`
		Plan     resultPlan      `json:"plan"`
		Promise  resultPromise   `json:"promise"`
		Audit    resultAudit     `json:"audit"`
		Services []resultService `json:"services,omitempty"`
		Rows     []resultRow     `json:"rows"`
		Gates    []resultGate    `json:"gates"`
		Warnings []string        `json:"warnings"`
		Outcome  Outcome         `json:"outcome"`
	}
	resultSpec struct {
		Digest   string   `json:"digest"`
		Side     string   `json:"side"`
		Path     string   `json:"path,omitempty"`
		Profile  string   `json:"profile,omitempty"`
		Changed  []string `json:"changed,omitempty"`
		Approved string   `json:"approved,omitempty"`
		Alpha    float64  `json:"alpha"`
		Margin   float64  `json:"margin"`
		Judge    []string `json:"judge"`
	}
	commits struct {
		Base      string `json:"base,omitempty"`
		Head      string `json:"head,omitempty"`
		MergeBase string `json:"merge_base,omitempty"`
	}
	resultArm struct {
		Name     string            `json:"name"`
		Label    string            `json:"label"`
		Source   string            `json:"source"`
		Revision string            `json:"revision"`
		Dirty    bool              `json:"dirty"`
		Digest   string            `json:"digest,omitempty"`
		Cached   bool              `json:"cached,omitempty"`
		Versions map[string]string `json:"versions,omitempty"`
	}
	resultPlan struct {
		Blocks     spec.Blocks     `json:"blocks"`
		Window     float64         `json:"window"` // seconds
		Warmup     float64         `json:"warmup"`
		Turn       float64         `json:"turn"`
		Budget     float64         `json:"budget"`
		Interleave spec.Interleave `json:"interleave"`
		Copies     int             `json:"copies"`
		Looks      []int           `json:"looks"`
		Filter     []string        `json:"filter,omitempty"`
	}
	resultPromise struct {
		Alpha        float64 `json:"alpha"`
		Rows         int     `json:"rows"`
		Permutations int     `json:"permutations"`
		Exact        bool    `json:"exact"`
		MinBlocks    int     `json:"min_blocks"`
	}
	resultAudit struct {
		Trials        int     `json:"trials"`
		Invalid       int     `json:"invalid"`
		Cycles        int     `json:"cycles"`
		Discarded     int     `json:"discarded"`
		BlocksDropped int     `json:"blocks_dropped"`
		StealMax      float64 `json:"steal_max"`
		StealMean     float64 `json:"steal_mean"`
		SoloRatio     float64 `json:"solo_ratio,omitempty"`
	}
	resultService struct {
		Name    string  `json:"name"`
		Arm     string  `json:"arm,omitempty"`
		Busy    float64 `json:"busy"`
		BusyMax float64 `json:"busy_max"`
		MaxRSS  int64   `json:"max_rss"`
	}
	resultRow struct {
		Scenario    string       `json:"scenario"`
		Name        string       `json:"name"`
		Matrix      axes         `json:"matrix"`
		Metric      string       `json:"metric"`
		Unit        string       `json:"unit"`
		Better      string       `json:"better"`
		Judged      bool         `json:"judged"`
		Control     bool         `json:"control,omitempty"`
		Baseline    resultSide   `json:"baseline"`
		Candidate   resultSide   `json:"candidate"`
		Ratio       number       `json:"ratio"`
		Change      number       `json:"change"`
		Worse       number       `json:"worse"`
		CI          [2]number    `json:"ci"`
		Confidence  number       `json:"confidence"`
		Noise       number       `json:"noise"`
		P           number       `json:"p"`
		Blocks      int          `json:"blocks"`
		Dropped     int          `json:"dropped"`
		DropReasons []string     `json:"drop_reasons,omitempty"`
		BlockIDs    []int        `json:"block_ids"`
		PerBlock    []number     `json:"per_block"`
		Range       [2]number    `json:"range"`
		Verdict     *Verdict     `json:"verdict"`
		Marked      bool         `json:"marked"`
		Reason      string       `json:"reason,omitempty"`
		MoreBlocks  int          `json:"more_blocks,omitempty"`
		Gate        *spec.Action `json:"gate"`
		Warnings    []string     `json:"warnings"`
	}
	resultSide struct {
		Arm     string            `json:"arm"`
		Value   number            `json:"value"`
		Trials  int               `json:"trials"`
		Metrics map[string]number `json:"metrics"`
	}
	resultGate struct {
		Threshold int         `json:"threshold"`
		Metric    string      `json:"metric"`
		Scenario  string      `json:"scenario"`
		Arm       string      `json:"arm"`
		Level     spec.Action `json:"level"`
		Source    string      `json:"source,omitempty"`
		Message   string      `json:"message,omitempty"`
		Reason    string      `json:"reason,omitempty"`
		Policy    string      `json:"policy,omitempty"`
		Undecided bool        `json:"undecided,omitempty"`
		Line      int         `json:"line,omitempty"`
	}
)

// number is a figure that JSON may not be able to write.
type number float64

func (n number) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(n)) || math.IsInf(float64(n), 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

func (n *number) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*n = number(math.NaN())
		return nil
	}
	return json.Unmarshal(data, (*float64)(n))
}

// axes is a matrix point as a JSON object that keeps the order of the axes.
type axes []spec.Axis

func (x axes) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, a := range x {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(a.Name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(a.Value)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func (x *axes) UnmarshalJSON(data []byte) error {
	*x = nil
	var plain map[string]string
	if err := json.Unmarshal(data, &plain); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	for d.More() {
		tok, err := d.Token()
		if err != nil {
			return err
		}
		if _, ok := tok.(json.Delim); ok {
			continue
		}
		name, _ := tok.(string)
		var value string
		if err := d.Decode(&value); err != nil {
			return err
		}
		*x = append(*x, spec.Axis{Name: name, Value: value})
	}
	return nil
}

func writeJSON(w io.Writer, a *Analysis, _ RenderOptions) error {
	return encodeJSON(w, toResult(a))
}

// encodeJSON writes a document for people and programs alike.
func encodeJSON(w io.Writer, doc any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(doc)
}

func toResult(a *Analysis) resultFile {
	h, p := a.Header, a.Spec.Plan
	f := resultFile{
		Version: ResultVersion, ID: h.ID, Tool: h.Tool, Name: a.Spec.Name, Seed: h.Seed,
		Spec: resultSpec{Digest: a.Spec.Digest, Side: a.SpecSide, Path: a.Spec.Path, Profile: a.Spec.Profile,
			Alpha: a.Spec.Alpha, Margin: a.Spec.Margin, Judge: emptyNotNull(a.Spec.Judge)},
		Started: h.Started, Finished: a.Finished, Partial: a.Partial, TimeUp: a.TimeUp, Same: h.Same, Shard: h.Shard,
		Host: h.Host, Pins: h.Pins, Baseline: a.Baseline.Name,
		Plan: resultPlan{Blocks: p.Blocks, Window: p.Window.Seconds(), Warmup: p.Warmup.Seconds(), Turn: p.Turn.Seconds(),
			Budget: p.Budget.Seconds(), Interleave: p.Interleave, Copies: h.Copies, Looks: emptyNotNull(a.Promise.Looks), Filter: h.Filter},
		Promise: resultPromise{a.Promise.Alpha, a.Promise.Rows, a.Promise.Permutations, a.Promise.Exact, a.Promise.MinBlocks},
		Audit:   resultAudit(a.Audit),
		Rows:    []resultRow{}, Gates: []resultGate{}, Warnings: emptyNotNull(a.Warnings), Outcome: a.Outcome,
	}
	if o := h.Origin; o != nil {
		f.Spec.Changed, f.Spec.Approved = o.Changed, o.Approved
		f.Commits = &commits{o.Base, o.Head, o.MergeBase}
	}
	for _, arm := range a.Arms {
		f.Arms = append(f.Arms, resultArm(arm))
	}
	for _, s := range a.Services {
		f.Services = append(f.Services, resultService(s))
	}
	levels := a.gateLevels()
	for _, r := range a.Rows {
		f.Rows = append(f.Rows, toResultRow(r, levels))
	}
	for _, g := range a.Gates {
		f.Gates = append(f.Gates, resultGate(g))
	}
	return f
}

type rowKey struct{ scenario, arm, metric string }

// gateLevels is the worst level of any gate on each gated row.
func (a *Analysis) gateLevels() map[rowKey]spec.Action {
	rank := map[spec.Action]int{spec.Pass: 0, spec.Warn: 1, spec.Fail: 2}
	out := map[rowKey]spec.Action{}
	for _, g := range a.Gates {
		k := rowKey{g.Scenario, g.Arm, g.Metric}
		if old, ok := out[k]; !ok || rank[g.Level] > rank[old] {
			out[k] = g.Level
		}
	}
	return out
}

func toResultRow(r Row, levels map[rowKey]spec.Action) resultRow {
	out := resultRow{
		Scenario: r.Scenario, Name: r.Name, Matrix: r.Matrix, Metric: r.Metric, Unit: r.Unit, Better: r.Better,
		Judged: r.Judged, Control: r.Control, Baseline: toResultSide(r.Base), Candidate: toResultSide(r.Head),
		Ratio: number(r.Ratio), Change: number(r.Change), Worse: number(r.Worse),
		CI: [2]number{number(r.CI[0]), number(r.CI[1])}, Confidence: number(r.Confidence),
		Noise: number(r.Noise), P: number(r.P), Blocks: r.Blocks, Dropped: r.Dropped, DropReasons: r.DropReasons,
		BlockIDs: emptyNotNull(r.BlockIDs), PerBlock: []number{}, Range: [2]number{number(r.Range[0]), number(r.Range[1])},
		Marked: r.Marked, Reason: r.Reason, MoreBlocks: r.MoreBlocks, Warnings: emptyNotNull(r.Warnings),
	}
	if r.Confidence == 0 {
		out.Confidence = number(math.NaN())
	}
	for _, v := range r.PerBlock {
		out.PerBlock = append(out.PerBlock, number(v))
	}
	if r.Verdict != "" {
		out.Verdict = &r.Verdict
	}
	if level, ok := levels[rowKey{r.Scenario, r.Head.Arm, r.Metric}]; ok {
		out.Gate = &level
	}
	return out
}

func toResultSide(s Side) resultSide {
	m := make(map[string]number, len(s.Metrics))
	for k, v := range s.Metrics {
		m[k] = number(v)
	}
	return resultSide{Arm: s.Arm, Value: number(s.Value), Trials: s.Trials, Metrics: m}
}

func emptyNotNull[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// ReadResult reads a result.json back, as far as renderers and gates need
// it. A result that was made elsewhere is taken as it says; its gates can be
// drawn again by a spec that is trusted, with [Analysis.Regate].
func ReadResult(r io.Reader) (*Analysis, error) {
	var f resultFile
	if err := json.NewDecoder(r).Decode(&f); err != nil {
		return nil, fmt.Errorf("not a result.json: %w", err)
	}
	if f.Version < 1 || f.Version > ResultVersion {
		return nil, fmt.Errorf("result.json has version %d, and this version reads 1 to %d: use the version of tandem that wrote it (%s)", f.Version, ResultVersion, f.Tool)
	}
	if len(f.Arms) < 2 {
		return nil, fmt.Errorf("not a result.json: it names %d arm(s), and a comparison has a baseline and a candidate", len(f.Arms))
	}
	return fromResult(f), nil
}

func fromResult(f resultFile) *Analysis {
	h := &journal.Header{
		ID: f.ID, Tool: f.Tool, Started: f.Started, Seed: f.Seed, Filter: f.Plan.Filter, Same: f.Same, Host: f.Host,
		Copies: f.Plan.Copies, Looks: f.Plan.Looks, Shard: f.Shard, Pins: f.Pins,
	}
	seconds := func(s float64) time.Duration { return time.Duration(math.Round(s * float64(time.Second))) }
	a := &Analysis{
		Header: h, SpecSide: f.Spec.Side, Finished: f.Finished, Partial: f.Partial, TimeUp: f.TimeUp, Outcome: f.Outcome,
		Spec: &spec.Spec{
			Path: f.Spec.Path, Digest: f.Spec.Digest, Profile: f.Spec.Profile, Name: f.Name, Baseline: f.Baseline,
			Alpha: f.Spec.Alpha, Margin: f.Spec.Margin, Judge: f.Spec.Judge,
			Plan: spec.Plan{Blocks: f.Plan.Blocks, Window: seconds(f.Plan.Window), Warmup: seconds(f.Plan.Warmup), Turn: seconds(f.Plan.Turn),
				Budget: seconds(f.Plan.Budget), Interleave: f.Plan.Interleave, Copies: f.Plan.Copies, Seed: f.Seed},
		},
		Promise:  Promise{f.Promise.Alpha, f.Promise.Rows, f.Plan.Looks, f.Promise.Permutations, f.Promise.Exact, f.Promise.MinBlocks},
		Audit:    AuditSummary(f.Audit),
		Warnings: f.Warnings,
	}
	switch {
	case f.Outcome == Interrupted:
		a.endReason = journal.EndInterrupted
	case f.Partial != "":
		a.endReason = journal.EndFailed
	default:
		a.endReason = journal.EndBlocks
	}
	if c := f.Commits; c != nil {
		h.Origin = &journal.Origin{Side: f.Spec.Side, Base: c.Base, Head: c.Head, MergeBase: c.MergeBase, Changed: f.Spec.Changed, Approved: f.Spec.Approved}
	}
	for _, arm := range f.Arms {
		h.Arms = append(h.Arms, journal.Arm(arm))
	}
	a.Arms, a.Baseline = h.Arms, h.Arms[0]
	for _, r := range f.Rows {
		a.Rows = append(a.Rows, fromResultRow(r))
		if !slices.Contains(h.Rows, r.Scenario) {
			h.Rows = append(h.Rows, r.Scenario)
		}
	}
	for _, s := range f.Services {
		a.Services = append(a.Services, ServiceSummary(s))
	}
	for _, g := range f.Gates {
		a.Gates = append(a.Gates, GateResult(g))
	}
	return a
}

func fromResultRow(r resultRow) Row {
	out := Row{
		Scenario: r.Scenario, Name: r.Name, Matrix: r.Matrix, Metric: r.Metric, Unit: r.Unit, Better: r.Better,
		Judged: r.Judged, Control: r.Control, Base: fromResultSide(r.Baseline), Head: fromResultSide(r.Candidate),
		Ratio: float64(r.Ratio), Change: float64(r.Change), Worse: float64(r.Worse),
		CI: [2]float64{float64(r.CI[0]), float64(r.CI[1])}, Confidence: float64(r.Confidence), Noise: float64(r.Noise), P: float64(r.P),
		Range: [2]float64{float64(r.Range[0]), float64(r.Range[1])}, BlockIDs: r.BlockIDs, Blocks: r.Blocks, Dropped: r.Dropped,
		DropReasons: r.DropReasons, Marked: r.Marked, Reason: r.Reason, MoreBlocks: r.MoreBlocks, Warnings: r.Warnings,
	}
	for _, v := range r.PerBlock {
		out.PerBlock = append(out.PerBlock, float64(v))
	}
	if r.Verdict != nil {
		out.Verdict = *r.Verdict
	}
	if math.IsNaN(out.Confidence) {
		out.Confidence = 0 // of no interval
	}
	// An infinite noise is written as null: a row with a verdict of the test
	// has a noise, be it infinite.
	if out.Judged && out.Verdict.measured() && math.IsNaN(out.Noise) {
		out.Noise = math.Inf(1)
	}
	return out
}

func fromResultSide(s resultSide) Side {
	m := make(map[string]float64, len(s.Metrics))
	for k, v := range s.Metrics {
		m[k] = float64(v)
	}
	return Side{Arm: s.Arm, Value: float64(s.Value), Metrics: m, Trials: s.Trials}
}
