package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-bench/tandem/report"
	"github.com/tandem-bench/tandem/report/stats"
	"github.com/tandem-bench/tandem/runner"
	"github.com/tandem-bench/tandem/runner/proc"
	"github.com/tandem-bench/tandem/runner/source"
	"github.com/tandem-bench/tandem/spec"
)

type doctorFlags struct {
	blocks     int
	window     time.Duration
	interleave bool
}

func (a *app) doctorCmd() *cobra.Command {
	var f doctorFlags
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Tell what on this machine makes noise, and how much",
		Long: `Looks for what makes measurements noisy on this machine and says what to do
about each. Then it measures the same code against itself, a built-in server or
the baseline of a spec, and tells how small a change can be resolved here.

--interleave measures every mode of taking turns in the same blocks, at equal
measuring time, and compares how much their ratios spread.`,
		Example: `  tandem doctor
  tandem doctor -f bench.yaml
  tandem doctor --interleave --blocks 12 --window 750ms`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd.Context(), f) },
	}
	a.specFlags(cmd)
	cmd.Flags().Lookup("file").Usage = "measure the baseline of this spec (default: a built-in server)"
	cmd.Flags().IntVar(&f.blocks, "blocks", 8, "blocks to measure")
	cmd.Flags().DurationVar(&f.window, "window", 500*time.Millisecond, "measuring time of each copy in each block")
	cmd.Flags().BoolVar(&f.interleave, "interleave", false, "compare the modes of taking turns")
	return cmd
}

func (a *app) doctor(ctx context.Context, f doctorFlags) error {
	if f.blocks < 2 {
		return usageErrorf("--blocks: found %d, expected at least 2: a spread needs two", f.blocks)
	}
	if f.window <= 0 {
		return usageErrorf("--window: found %v, expected a time above zero", f.window)
	}
	a.printFindings(proc.ReadNoise())
	dir, err := os.MkdirTemp("", "tandem-doctor-")
	if err != nil {
		return notMeasured(err)
	}
	defer os.RemoveAll(dir)
	s, err := a.doctorSpec(dir, f)
	if err != nil {
		return err
	}
	analysis, err := a.measureSame(ctx, s, dir)
	if err != nil {
		return err
	}
	if f.interleave {
		return a.printInterleave(analysis)
	}
	return a.printResolution(s, analysis)
}

// printFindings lists what was looked at: what is wrong first.
func (a *app) printFindings(found []proc.Finding) {
	for _, f := range found {
		if f.OK {
			continue
		}
		fmt.Fprintf(a.stdout, "%s: %s\n", f.What, f.Found)
		if f.Means != "" {
			fmt.Fprintf(a.stdout, "    %s\n", f.Means)
		}
		if f.Do != "" {
			fmt.Fprintf(a.stdout, "    to do: %s\n", f.Do)
		}
	}
	var fine []string
	for _, f := range found {
		if f.OK {
			fine = append(fine, f.What+" ("+f.Found+")")
		}
	}
	if fine != nil {
		fmt.Fprintf(a.stdout, "nothing to do about: %s\n", strings.Join(fine, "; "))
	}
	fmt.Fprintln(a.stdout)
}

// builtinSpec measures the server that tandem carries in itself.
const builtinSpec = `version: 1
name: doctor
arms: { base: { dir: . }, same: { dir: . } }
server: { command: [ %q, doctor-server, "${port}" ] }
scenarios:
  hello: { http: { path: /, connections: 100 } }
`

// doctorSpec is the spec to measure, with the doctor's own plan.
func (a *app) doctorSpec(dir string, f doctorFlags) (*spec.Spec, error) {
	if a.file == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, notMeasured(err)
		}
		a.file = filepath.Join(dir, "bench.yaml")
		if err := os.WriteFile(a.file, fmt.Appendf(nil, builtinSpec, self), 0o644); err != nil {
			return nil, notMeasured(err)
		}
	}
	s, err := a.load()
	if err != nil {
		return nil, err
	}
	s.Plan.Blocks = spec.Blocks{Min: f.blocks, Max: f.blocks}
	s.Plan.Budget, s.Report, s.Thresholds = 0, nil, nil
	for i := range s.Scenarios {
		s.Scenarios[i].Window, s.Scenarios[i].Warmup = f.window, f.window/2
	}
	if f.interleave {
		s.Scenarios = eachMode(s.Scenarios)
	}
	return s, nil
}

// eachMode repeats every scenario in every mode of taking turns.
func eachMode(all []spec.Scenario) []spec.Scenario {
	var out []spec.Scenario
	for _, sc := range all {
		for _, mode := range []spec.Interleave{spec.Turns, spec.Together, spec.Windows} {
			one := sc
			one.Interleave = mode
			one.Matrix = append(slices.Clone(sc.Matrix), spec.Axis{Name: "interleave", Value: string(mode)})
			out = append(out, one)
		}
	}
	return out
}

// measureSame measures the baseline against itself.
func (a *app) measureSame(ctx context.Context, s *spec.Spec, dir string) (*report.Analysis, error) {
	state := stateDir(s.Dir)
	unlock, err := lockState(state)
	if err != nil {
		return nil, err
	}
	defer unlock()
	plan, err := runner.NewPlan(s, runner.PlanOptions{Seed: randomSeed()})
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	ctx, stop := signal.NotifyContext(ctx, endSignals()...)
	defer context.AfterFunc(ctx, stop)()
	defer stop()
	bar := a.newProgress(false)
	resume := a.quiet()
	run, err := runner.Run(ctx, runner.Options{
		Spec: s, Plan: plan, Env: a.env, Environ: a.environ, ID: "doctor", Out: filepath.Join(dir, "run"),
		Cache: filepath.Join(state, "cache"), Work: source.WorkParent(a.env), Tool: version(), Same: true,
		Looks: []int{plan.Blocks.Max}, Progress: bar.update, Now: a.now, MaxSteal: a.maxSteal,
	})
	bar.finish()
	resume()
	if ctx.Err() != nil {
		return nil, &exitError{exitInterrupted, nil}
	}
	if err != nil {
		return nil, notMeasured(err)
	}
	analysis, err := report.Analyze(run, nil)
	if err != nil {
		return nil, notMeasured(err)
	}
	return analysis, nil
}

// printInterleave compares the modes.
func (a *app) printInterleave(analysis *report.Analysis) error {
	fmt.Fprintf(a.stdout, "Spread of same-code ratios from block to block (standard deviation of the log ratio), at equal measuring time:\n\n")
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "Scenario\tMetric\tBlocks\tsd/block")
	for _, r := range analysis.Rows {
		if r.Judged {
			fmt.Fprintf(w, "%s\t%s\t%d\t%.2f%%\n", r.Scenario, r.Metric, r.Blocks, 100*r.BlockSD())
		}
	}
	return w.Flush()
}

// printResolution ends in the sentence that the user came for.
func (a *app) printResolution(s *spec.Spec, analysis *report.Analysis) error {
	h := analysis.Header
	perBlock := analysis.Finished.Sub(h.Started).Seconds() / float64(max(1, s.Plan.Blocks.Max))
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "Scenario\tMetric\tBlocks\tRatio\tsd/block")
	judged, worst := 0, 0.0
	for _, r := range analysis.Rows {
		if !r.Judged {
			continue
		}
		judged++
		if r.Blocks < 2 { // the others did not count
			fmt.Fprintf(w, "%s\t%s\t%d\tn/a\tn/a\n", r.Scenario, r.Metric, r.Blocks)
			continue
		}
		worst = max(worst, r.BlockSD())
		fmt.Fprintf(w, "%s\t%s\t%d\t%.3fx\t%.2f%%\n", r.Scenario, r.Metric, r.Blocks, r.Ratio, 100*r.BlockSD())
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if judged == 0 || worst == 0 {
		return notMeasured(fmt.Errorf("the same-code run gave no spread: %s", strings.Join(analysis.Warnings, "; ")))
	}
	fmt.Fprintln(a.stdout)
	for _, minutes := range []float64{1, 3, 10} {
		blocks := int(minutes * 60 / perBlock)
		smallest := stats.Resolvable(worst, blocks, judged, s.Alpha)
		if blocks < 2 || smallest > 1 {
			fmt.Fprintf(a.stdout, "in %g minutes (%d blocks of %d s): too few blocks to mark a row at alpha %g\n", minutes, blocks, int(perBlock+0.5), s.Alpha)
			continue
		}
		fmt.Fprintf(a.stdout, "on this machine, with this plan, Tandem resolves %.1f%% in %g minutes (%d blocks; found in four of five runs, alpha %g over %d rows)\n",
			100*smallest, minutes, blocks, s.Alpha, judged)
	}
	return nil
}

// doctorServerCmd is the built-in server that doctor measures.
func (a *app) doctorServerCmd() *cobra.Command {
	return &cobra.Command{
		Use: "doctor-server PORT", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			l, err := net.Listen("tcp", "127.0.0.1:"+args[0])
			if err != nil {
				return notMeasured(err)
			}
			return http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Write([]byte("hello\n"))
			}))
		},
	}
}
