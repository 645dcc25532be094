package main

import (
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-bench/tandem/report"
	"github.com/tandem-bench/tandem/report/stats"
	"github.com/tandem-bench/tandem/runner"
	"github.com/tandem-bench/tandem/runner/journal"
	"github.com/tandem-bench/tandem/runner/source"
	"github.com/tandem-bench/tandem/spec"
)

type runFlags struct {
	scenarios []string
	out       string
	resume    string
	specSide  string
	allowFork bool
	same      bool
	dryRun    bool
	deadline  time.Duration
	format    string
	shard     string
	seed      uint64
	quiet     bool
}

func (a *app) runCmd() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Build the arms, measure them in turns, judge, and gate",
		Long: `Builds every arm, starts them side by side, alternates the load between them,
and prints a table with a verdict for each judged row. Everything that was
measured is kept in .tandem/runs/ID, also when the run is interrupted.

With --shard K/N it measures every N-th scenario, both arms of each on this
machine, and judges nothing: tandem merge joins the N shards into one run, and
judges the whole table. All shards need the same seed. A shard runs all its
blocks, or until its budget: it cannot know whether the table is settled.

Which spec counts, for all arms alike, is said by --spec-side. head is the file
as it is here. base is the file as the merge base has it: a change cannot loosen
its own gate with that. auto, the default, is base in a CI job for a pull
request (of GitHub: pull_request, merge_group; of GitLab: merge requests) where
the base has the file, and head everywhere else. What a pull request changes of
the spec, or of files that it names, is shown in the report, and can be made to
warn, to fail or to need a label: policy.spec_changed, policy.spec_changed_label.

A pull request from a fork is not run on a self-hosted runner of GitHub, since
whoever sent it could leave something there for later jobs; nor on the event
pull_request_target, whose job holds secrets. A pull request can change its own
workflow, too, so that GitHub's approval of fork runs is still needed.`,
		Example: `  tandem run                                   # bench.yaml, looked for upwards
  tandem run -f examples/quickstart/bench.yaml --profile quick
  tandem run --scenario 'http/*' --format markdown
  tandem run --same                            # your own false-alarm check: nothing may be marked
  tandem run --shard 2/4 --seed 7 --out shard-2   # then: tandem merge shard-1 shard-2 shard-3 shard-4`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.run(cmd.Context(), f, cmd.Flags().Changed("seed"))
		},
	}
	a.specFlags(cmd)
	fl := cmd.Flags()
	fl.StringArrayVar(&f.scenarios, "scenario", nil, "run only the scenarios that match this glob (repeatable)")
	fl.StringVar(&f.out, "out", "", "folder for journal.jsonl, result.json and logs/ (default .tandem/runs/ID)")
	fl.StringVar(&f.resume, "resume", "", "go on with the run of this ID after it was cut off")
	fl.BoolVar(&f.same, "same", false, "put the baseline in the place of every candidate: nothing may be marked")
	fl.BoolVar(&f.dryRun, "dry-run", false, "print the plan and run nothing")
	fl.DurationVar(&f.deadline, "deadline", 0, "end with a report before this much time is over: between blocks, or in one that hangs")
	fl.StringVar(&f.format, "format", "text", "what to print: "+strings.Join(report.Formats(), ", "))
	fl.StringVar(&f.shard, "shard", "", "measure part K of N of the scenarios, as K/N, for tandem merge")
	fl.Uint64Var(&f.seed, "seed", 0, "seed of every random order (default: the spec's, or a random one)")
	fl.StringVar(&f.specSide, "spec-side", sideAuto, "whose spec counts: auto, base or head")
	fl.BoolVar(&f.allowFork, "allow-fork", false, "run the code of a fork's pull request on a self-hosted runner, or beside secrets")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "show no progress")
	return cmd
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageErrorf("%s takes no arguments, found %q: see 'tandem %s --help'", cmd.Name(), args[0], cmd.Name())
	}
	return nil
}

func (a *app) run(ctx context.Context, f runFlags, seeded bool) error {
	if !slices.Contains(report.Formats(), f.format) {
		return usageErrorf("--format: found %q, expected one of %s", f.format, strings.Join(report.Formats(), ", "))
	}
	if f.deadline < 0 {
		return usageErrorf("--deadline: found %v, expected a time above zero, such as 10m", f.deadline)
	}
	c, err := ciChange(a.env)
	if err != nil {
		return notMeasured(err)
	}
	if err := c.mayRun(f.allowFork); err != nil {
		return err
	}
	s, origin, err := a.loadSide(ctx, f.specSide, c)
	if err != nil {
		return err
	}
	state := stateDir(s.Dir)
	var resumed *journal.Run
	if f.resume != "" {
		if resumed, f.out, err = openResumed(state, f.resume); err != nil {
			return err
		}
	}
	if f.shard != "" && resumed == nil && !seeded && !s.Plan.SeedFixed {
		return usageErrorf("--shard %s: all shards of a run need the same seed: give each the same --seed N (in a CI job, the number of its pipeline), or write plan.seed into the spec", f.shard)
	}
	plan, err := makePlan(s, f, seeded, resumed)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	if f.dryRun {
		return a.printPlan(s, plan, false)
	}
	return a.measure(ctx, s, plan, f, state, resumed, origin)
}

// makePlan fixes the seed and makes the plan.
func makePlan(s *spec.Spec, f runFlags, seeded bool, resumed *journal.Run) (*runner.Plan, error) {
	o := runner.PlanOptions{Filter: f.scenarios}
	switch {
	case resumed != nil:
		o.Seed, o.Filter = resumed.Header.Seed, resumed.Header.Filter
		f.shard = resumed.Header.Shard
	case seeded:
		o.Seed = f.seed
	case s.Plan.SeedFixed:
		o.Seed = s.Plan.Seed
	default:
		o.Seed = randomSeed()
	}
	if f.shard != "" {
		var err error
		if o.Shard, err = parseShard(f.shard); err != nil {
			return nil, err
		}
	}
	return runner.NewPlan(s, o)
}

func parseShard(text string) (runner.Shard, error) {
	var sh runner.Shard
	if n, err := fmt.Sscanf(text, "%d/%d", &sh.K, &sh.N); n != 2 || err != nil || sh.K < 1 || sh.K > sh.N || sh.String() != text {
		return sh, fmt.Errorf("--shard: found %q, expected K/N with K from 1 to N, such as 2/4", text)
	}
	return sh, nil
}

func randomSeed() uint64 {
	var b [8]byte
	crand.Read(b[:]) // never fails (crypto/rand)
	// Short enough to type again.
	return binary.LittleEndian.Uint64(b[:]) % 1_000_000_000
}

// measure runs the plan and reports, whatever came of it.
func (a *app) measure(ctx context.Context, s *spec.Spec, plan *runner.Plan, f runFlags, state string, resumed *journal.Run, origin *journal.Origin) error {
	unlock, err := lockState(state)
	if err != nil {
		return err
	}
	defer unlock()
	id := a.newID()
	if resumed != nil {
		id = resumed.Header.ID
	}
	out := f.out
	if out == "" {
		out = filepath.Join(state, "runs", id)
	}
	if out, err = filepath.Abs(out); err != nil {
		return notMeasured(err)
	}
	if resumed == nil && exists(filepath.Join(out, "journal.jsonl")) {
		return usageErrorf("--out: %s holds a run already: choose another folder, or go on with it by --resume %s", out, out)
	}
	ctx, stop := signal.NotifyContext(ctx, endSignals()...)
	// After the first signal a second one ends this process at once; the
	// watchdog then ends what it started.
	defer context.AfterFunc(ctx, stop)()
	defer stop()
	bar := a.newProgress(f.quiet)
	o := runner.Options{
		Spec: s, Plan: plan, Env: a.env, Environ: a.environ,
		ID: id, Out: out, Cache: filepath.Join(state, "cache"), Work: source.WorkParent(a.env), Tool: version(),
		Filter: f.scenarios, Shard: plan.Shard.String(), Same: f.same || resumed != nil && resumed.Header.Same, Resume: resumed, Origin: origin,
		Looks: looks(plan), Progress: bar.update, Now: a.now, MaxSteal: a.maxSteal,
	}
	if plan.Shard.N == 0 {
		o.Settled = func(j *journal.Run) (bool, string) { return report.Settled(j, nil) }
	}
	if f.deadline > 0 {
		o.Deadline = a.now().Add(f.deadline)
	}
	resume := a.quiet()
	run, runErr := runner.Run(ctx, o)
	bar.finish()
	resume()
	if run == nil {
		if ctx.Err() != nil && resumed != nil {
			return &exitError{exitInterrupted, fmt.Errorf("interrupted before anything more was measured; what there was is kept: see it with tandem report %s, or go on with --resume", out)}
		}
		if ctx.Err() != nil {
			return &exitError{exitInterrupted, errors.New("interrupted before anything was measured")}
		}
		if refused := new(runner.ResumeError); errors.As(runErr, &refused) {
			return &exitError{exitUsage, runErr}
		}
		a.publishFailure(runErr)
		return notMeasured(runErr)
	}
	if plan.Shard.N > 0 {
		return a.concludeShard(run, runErr, out)
	}
	return a.conclude(run, runErr, s, out, f.format)
}

// looks are the numbers of blocks after which the table is looked at. A shard
// holds a part of the table and looks at none of it before its end, so that
// the whole error rate is left to the joined table.
func looks(p *runner.Plan) []int {
	if p.Shard.N > 0 {
		return []int{p.Blocks.Max}
	}
	return stats.Looks(p.Blocks.Min, p.Blocks.Max)
}

// endSignals are the signals that end a run with a report. Under nohup a
// closed terminal is none of them.
func endSignals() []os.Signal {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

// conclude analyses the run, writes every report, and turns the outcome into
// an exit code.
func (a *app) conclude(run *journal.Run, runErr error, s *spec.Spec, out, format string) error {
	analysis, err := report.Analyze(run, nil)
	if err != nil {
		return notMeasured(errors.Join(runErr, err))
	}
	err = errors.Join(writeReport(filepath.Join(out, "result.json"), "json", analysis), writeReports(s, analysis))
	if runErr != nil && len(run.Trials) == 0 {
		// A table of empty rows would only bury the reason.
		a.publishFailure(runErr)
		return notMeasured(errors.Join(runErr, err))
	}
	err = errors.Join(err, a.show(analysis, format))
	if format == "text" {
		a.sayKept(out)
	}
	a.publish(analysis, filepath.Join(out, "result.json"), format)
	if runErr != nil {
		return notMeasured(errors.Join(runErr, err))
	}
	if err != nil {
		return notMeasured(err)
	}
	return outcomeError(analysis)
}

// sayKept tells where the run is, and how to see it again. The command stands
// whole on a line of its own where one line is not enough: it is to be copied.
func (a *app) sayKept(out string) {
	where, again := "kept in "+shortPath(out), "see it again with: tandem report "+a.runName(out)
	sep := "; "
	if width := a.width(a.stderr); width > 0 && len(where)+len(sep)+len(again) > width {
		sep = "\n"
	}
	fmt.Fprint(a.stderr, "\n", where, sep, again, "\n")
}

// runName is what a RUN argument may call a run's folder: its ID, where that
// leads to it, or its path.
func (a *app) runName(out string) string {
	id := filepath.Base(out)
	if dir, err := os.Getwd(); err == nil {
		if path, err := findRun(dir, id); err == nil && path == filepath.Join(out, "journal.jsonl") {
			return id
		}
	}
	return shortPath(out)
}

// outcomeError maps an outcome to its exit code. The report has said why.
func outcomeError(a *report.Analysis) error {
	codes := map[report.Outcome]int{
		report.GateFailed:  exitGateFailed,
		report.Undecided:   exitUnsure,
		report.NotMeasured: exitNotMeasured,
		report.Interrupted: exitInterrupted,
	}
	if code, ok := codes[a.Outcome]; ok {
		return &exitError{code, nil}
	}
	return nil
}

// show prints an analysis to standard output.
func (a *app) show(analysis *report.Analysis, format string) error {
	return report.Write(a.product(format), format, analysis, a.renderOptions(format))
}

// asciiOnly says whether the locale has no UTF-8.
func (a *app) asciiOnly() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v, ok := a.env(name); ok && v != "" {
			v = strings.ToLower(v)
			return !strings.Contains(v, "utf-8") && !strings.Contains(v, "utf8")
		}
	}
	return false // an empty environment says nothing; CI logs are UTF-8
}

// writeReports writes the files that the spec asks for, in its folder.
func writeReports(s *spec.Spec, analysis *report.Analysis) error {
	var errs []error
	for _, r := range s.Report {
		path := r.Path
		if !filepath.IsAbs(path) {
			path = filepath.Join(s.Dir, path)
		}
		errs = append(errs, writeReport(path, r.Format, analysis))
	}
	return errors.Join(errs...)
}

// writeReport writes one file whole or not at all.
func writeReport(path, format string, analysis *report.Analysis) error {
	return writeWhole(path, format, func(w io.Writer) error {
		return report.Write(w, format, analysis, report.RenderOptions{})
	})
}

// newID names a run: its time, so that IDs sort, and a random tail.
func (a *app) newID() string {
	var b [2]byte
	crand.Read(b[:])
	return a.now().UTC().Format("20060102-150405-") + hex.EncodeToString(b[:])
}
