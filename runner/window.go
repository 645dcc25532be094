package runner

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/tandem-bench/tandem/runner/journal"
	"github.com/tandem-bench/tandem/runner/load"
	"github.com/tandem-bench/tandem/runner/proc"
	"github.com/tandem-bench/tandem/spec"
)

// scenario carries out one scenario of a block, with the commands around it.
// Its error ends the run, but for a hookError.
func (e *execution) scenario(ctx context.Context, b Block, k int, all []*instance) error {
	sc := e.Plan.Scenarios[k]
	return e.around(ctx, spec.ScenarioPart, partVars(b, sc.ID()), sc, func() error {
		return e.loadScenario(ctx, b, k, all)
	})
}

// loadScenario checks, warms up and measures one scenario on all copies of a
// block, and keeps a trial for each.
func (e *execution) loadScenario(ctx context.Context, b Block, k int, all []*instance) error {
	sc := e.Plan.Scenarios[k]
	instances := e.taking(sc, all)
	driver, err := load.New(sc, e.loadOptions())
	if err != nil {
		return fmt.Errorf("scenario %s: %w", sc.ID(), err)
	}
	w := &window{execution: e, sc: sc, block: b, driver: driver, instances: instances, index: k}
	w.report(Checking)
	answers, check := checkAll(ctx, driver, sc, instances)
	check = e.verify(ctx, sc, instances, check)
	if ctx.Err() != nil {
		return nil
	}
	check.Block = b.Index
	if err := e.rec.check(check); err != nil {
		return err
	}
	if check.Outcome != journal.CheckOK {
		return nil
	}
	for i, in := range instances {
		in.target.Expected = answers[i].response
	}
	return w.run(ctx)
}

// taking returns the instances of the arms that have the scenario.
func (e *execution) taking(sc spec.Scenario, all []*instance) []*instance {
	if sc.Arms == nil {
		return e.unpinned(sc, all)
	}
	var some []*instance
	for _, in := range all {
		for _, name := range sc.Arms {
			if name == e.Plan.Arms[in.Arm] {
				some = append(some, in)
			}
		}
	}
	return e.unpinned(sc, some)
}

// unpinned gives the commands of a scenario all CPUs where the spec leaves
// them to us: beside them the servers and the generator are idle, and a build
// with -j2 is to have two.
func (e *execution) unpinned(sc spec.Scenario, all []*instance) []*instance {
	if sc.Command == nil || e.Spec.Pins.Server != "auto" {
		return all
	}
	free := make([]*instance, len(all))
	for i, in := range all {
		c := *in
		c.target.CPUs = e.avail
		free[i] = &c
	}
	return free
}

// loadOptions says where the generator runs. It may poll without sleeping
// only where no server shares its CPUs.
func (e *execution) loadOptions() load.Options {
	return load.Options{
		Env: e.Env, CPUs: e.pins.Load, Loops: e.Spec.Generator.CPUs,
		Shared: e.serverHost() == "" && len(e.pins.Load.And(e.pins.Server)) > 0,
		Temp:   e.work,
	}
}

// window is one scenario in one block.
type window struct {
	*execution
	sc        spec.Scenario
	block     Block
	index     int // of the scenario in the plan
	driver    load.Driver
	instances []*instance
	began     time.Time // of the measuring
}

func (w *window) report(phase Phase) {
	w.execution.report(Status{Phase: phase, Block: w.block.Index + 1, Scenario: w.sc.ID()})
}

// run measures the window: with one load for all targets, or with one for
// each, in the order of the block's first cycle.
func (w *window) run(ctx context.Context) error {
	turns := w.Plan.Turns(w.block.Index, w.index, len(w.instances))
	if !w.oneByOne() {
		return w.hooked(ctx, w.instances, w.sc.Interleave, turns)
	}
	order := make([]int, len(w.instances))
	turns(0, order)
	for _, k := range order {
		one := func(_ int, order []int) { order[0] = 0 }
		if err := w.hooked(ctx, w.instances[k:k+1], spec.Windows, one); err != nil || ctx.Err() != nil {
			return err
		}
	}
	return nil
}

// oneByOne reports whether each target is loaded by itself, from its warm-up
// to the end of its window: where the driver cannot alternate; where a spec
// asks for whole windows, so that no connection idles in those of others; and
// where the connections to all targets at once are more than may be open.
func (w *window) oneByOne() bool {
	connections := 0
	switch {
	case !w.driver.Interleaves():
		return true
	case w.sc.HTTP != nil:
		connections = w.sc.HTTP.Connections
	case w.sc.WS != nil:
		connections = w.sc.WS.Connections
	default:
		return false
	}
	if w.sc.Interleave == spec.Windows {
		return true
	}
	all := connections * len(w.instances)
	if err := load.CanOpen(all); err != nil && load.CanOpen(connections) == nil {
		w.warnOnce(fmt.Sprintf("%s: the copies are loaded one after the other, in windows, since %d connections at once cannot be had: %v", w.sc.ID(), all, err))
		return true
	}
	return false
}

// hooked measures with the commands around windows. They run before the
// connections are opened, so that none of them idles meanwhile.
func (w *window) hooked(ctx context.Context, instances []*instance, mode spec.Interleave, order func(int, []int)) error {
	return w.around(ctx, spec.WindowPart, partVars(w.block, w.sc.ID()), w.sc, func() error {
		return w.measure(ctx, instances, mode, order)
	})
}

// measure opens connections to the instances, warms them up, measures, and
// keeps the trials. Failures of the servers are in the trials; its error is
// of the generator or of the journal.
func (w *window) measure(ctx context.Context, instances []*instance, mode spec.Interleave, order func(int, []int)) error {
	outer := ctx
	ctx, cancel := w.limitWindow(ctx, len(instances))
	defer cancel()
	targets := make([]load.Target, len(instances))
	for i, in := range instances {
		targets[i] = in.target
	}
	w.report(WarmingUp)
	if err := w.prime(ctx, targets, order); err != nil || ctx.Err() != nil {
		return w.generatorFailure(ctx, err)
	}
	conns, err := w.driver.Open(ctx, targets)
	if err != nil {
		if outer.Err() != nil {
			return nil
		}
		return w.invalid(instances, fmt.Sprintf("opening the connections: %v", err))
	}
	defer conns.Close()
	s := load.Schedule{Mode: mode, Window: w.sc.Window, Turn: w.turn(mode), Order: order, Guard: w.guard()}
	solo, err := w.warmUp(ctx, conns, s)
	if err != nil || ctx.Err() != nil {
		return w.generatorFailure(ctx, err)
	}
	w.report(Measuring)
	w.began = w.Now()
	before, err := w.read(instances)
	if err != nil {
		return w.invalid(instances, err.Error())
	}
	samples, err := conns.Run(ctx, s)
	if err != nil || ctx.Err() != nil {
		return w.generatorFailure(ctx, err)
	}
	after, err := w.read(instances)
	if err != nil {
		return w.invalid(instances, err.Error())
	}
	for i, in := range instances {
		t := w.trial(in, samples[i], before, after, i)
		if i < len(solo) {
			t.Audit.SoloRPS = solo[i]
		}
		if err := w.rec.trial(t); err != nil {
			return err
		}
	}
	return nil
}

func (w *window) turn(mode spec.Interleave) time.Duration {
	if mode == spec.Turns {
		return w.Spec.Plan.Turn
	}
	return 0
}

func (w *window) guard() load.Guard {
	if w.MaxSteal >= 1 {
		return load.Guard{}
	}
	g := load.Guard{Steal: true, Lateness: lateness}
	g.CPUs = append(g.CPUs, w.pinsHere()...)
	return g
}

// warmUp loads each target alone, then, in mode turns, in turns. The last
// part of the solo time is measured, to tell how far the absolute figures of
// turns are from those of an uninterrupted window. It returns the requests
// per second of each target in that part, or nil where there was none.
func (w *window) warmUp(ctx context.Context, conns load.Load, s load.Schedule) ([]float64, error) {
	total := w.sc.Warmup
	if total == 0 {
		return nil, nil
	}
	alone := s
	alone.Mode, alone.Turn, alone.Guard = spec.Windows, 0, load.Guard{}
	if s.Mode != spec.Turns || w.sc.Command != nil { // processes take turns in any mode
		alone.Mode, alone.Window = s.Mode, total
		_, err := conns.Run(ctx, alone)
		return nil, err
	}
	part := func(share float64) time.Duration { return time.Duration(float64(total) * share) }
	alone.Window = part(1 - soloShare - settleShare)
	if _, err := conns.Run(ctx, alone); err != nil || ctx.Err() != nil {
		return nil, err
	}
	alone.Window = part(soloShare)
	samples, err := conns.Run(ctx, alone)
	if err != nil || ctx.Err() != nil {
		return nil, err
	}
	solo := make([]float64, len(samples))
	for i, sample := range samples {
		solo[i] = sample.Values()["rps"]
	}
	s.Window, s.Guard = part(settleShare), load.Guard{}
	_, err = conns.Run(ctx, s)
	return solo, err
}

func (w *window) read(instances []*instance) (reading, error) {
	r := reading{at: w.Now(), usage: make([]proc.Usage, len(instances)), services: w.readServices(), there: w.readThere()}
	for i, in := range instances {
		if in.process == nil {
			continue
		}
		u, err := in.process.Usage()
		if err != nil {
			if why := in.dead(); why != "" {
				return r, fmt.Errorf("%s", why)
			}
			return r, fmt.Errorf("reading the CPU time of %s: %w", in.name, err)
		}
		r.usage[i] = u
	}
	if w.auditor != nil {
		audit, err := w.auditor.Read()
		r.audit, r.known = audit, err == nil
	}
	return r, nil
}

// invalid keeps a trial for each instance that says why there is none.
func (w *window) invalid(instances []*instance, why string) error {
	for _, in := range instances {
		if err := w.rec.trial(journal.Trial{
			Block: w.block.Index, Scenario: w.sc.ID(), Arm: w.Plan.Arms[in.Arm], Copy: in.Index, Slot: in.slot,
			Started: w.Now(), Invalid: why,
		}); err != nil {
			return err
		}
	}
	return nil
}

// trial makes the record of one instance's window.
func (w *window) trial(in *instance, s load.Sample, before, after reading, i int) journal.Trial {
	t := journal.Trial{
		Block: w.block.Index, Scenario: w.sc.ID(), Arm: w.Plan.Arms[in.Arm], Copy: in.Index, Slot: in.slot,
		Started: w.began, Elapsed: s.Elapsed.Seconds(), Turns: s.Turns,
		Interval: s.Interval, Errors: errorCounts(s.Errors),
		Audit: w.auditOf(s, before, after), Services: w.serviceUse(w.Plan.Arms[in.Arm], before, after),
	}
	metrics := s.Values()
	if in.process != nil && w.sc.Command == nil { // a command's metrics are its own processes'
		addUsage(metrics, s, before.usage[i], after.usage[i])
	}
	t.Metrics = journal.NewMetrics(metrics)
	if s.Latency != nil && s.Latency.TotalCount() > 0 {
		if encoded, err := s.Latency.Encode(hdrhistogram.V2CompressedEncodingCookieBase); err == nil {
			t.Latency = encoded
		}
	}
	t.Invalid = w.judgeTrial(in, s, t.Audit.Steal)
	t.Warnings = trialWarnings(t)
	return t
}

// addUsage adds what the server used. CPU time cannot be read turn by turn
// (the clock of a process that runs on another CPU stands still between
// ticks), so it is that of the driver's whole run, and is divided by all that
// was answered and by all the time that was loaded in it, discarded cycles
// included. The metric cpu is the part of it that falls to the counted turns,
// so that it goes with requests and elapsed.
func addUsage(m map[string]float64, s load.Sample, before, after proc.Usage) {
	cpu := (after.CPU - before.CPU).Seconds()
	answered := s.OK + s.Failed + s.Discarded
	m["max_rss"] = float64(after.MaxRSS)
	if answered > 0 {
		m["cpu_per_request"] = cpu / float64(answered)
	}
	if s.TotalElapsed > 0 {
		m["busy"] = cpu / s.TotalElapsed.Seconds()
		m["cpu"] = m["busy"] * s.Elapsed.Seconds()
	}
}

// judgeTrial says why a window does not count, by the limits fixed
// beforehand, or "".
func (w *window) judgeTrial(in *instance, s load.Sample, steal float64) string {
	if why := in.dead(); why != "" {
		return why
	}
	if s.Invalid != "" {
		return s.Invalid
	}
	if s.OK == 0 && s.Discarded == 0 && w.sc.Exec == nil && w.sc.Command == nil {
		return fmt.Sprintf("no valid response in the whole window%s", firstError(s.Errors))
	}
	if total := s.OK + s.Discarded + s.Failed; s.Failed > 0 && float64(s.Failed) > w.sc.Errors*float64(total) {
		return fmt.Sprintf("%d of %d requests failed%s", s.Failed, total, firstError(s.Errors))
	}
	if s.OK == 0 && s.Discarded > 0 {
		return fmt.Sprintf("all %d cycles were disturbed from outside (stolen CPU, or other processes on the generator's CPU): lengthen the window, or run on a quieter machine", s.Cycles)
	}
	if steal > cmp.Or(w.MaxSteal, maxSteal) {
		return fmt.Sprintf("%.0f%% of the CPUs' time was stolen by the hypervisor", 100*steal)
	}
	if in.process != nil && w.Spec.Pins.Require {
		if err := in.process.VerifyPins(w.pins.Server); err != nil {
			return fmt.Sprintf("the server was not where it was pinned: %v", err)
		}
	}
	return ""
}

func firstError(errs []load.ErrorCount) string {
	if len(errs) == 0 {
		return ""
	}
	most := errs[0]
	for _, c := range errs {
		if c.Count > most.Count {
			most = c
		}
	}
	text := fmt.Sprintf(", most of them with %s", most.Class)
	if len(most.First) > 0 {
		text += ": " + most.First[0]
	}
	return text
}

func errorCounts(errs []load.ErrorCount) []journal.ErrorCount {
	var out []journal.ErrorCount
	for _, c := range errs {
		out = append(out, journal.ErrorCount{Class: string(c.Class), Count: c.Count, First: c.First})
	}
	return out
}

func trialWarnings(t journal.Trial) []string {
	var w []string
	if t.Audit.LittleMismatch > littleTolerance {
		w = append(w, fmt.Sprintf("Little's law is off by %.0f%%: throughput times mean latency is not the number of requests in flight", 100*t.Audit.LittleMismatch))
	}
	if t.Audit.Cycles > 0 && float64(t.Audit.Discarded) > manyDiscarded*float64(t.Audit.Cycles) {
		w = append(w, "more than 40% of the cycles were disturbed from outside (stolen CPU, or other processes on the generator's CPU) and discarded for all copies alike")
	}
	return w
}
