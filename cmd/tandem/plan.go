package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-bench/tandem/report"
	"github.com/tandem-bench/tandem/report/stats"
	"github.com/tandem-bench/tandem/runner"
	"github.com/tandem-bench/tandem/spec"
)

// startupGuess is what a start of one copy is taken to cost in an estimate,
// before any has been seen.
const startupGuess = 500 * time.Millisecond

func (a *app) planCmd() *cobra.Command {
	var asJSON bool
	var f runFlags
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Show what would run, in what order, how long, and what it could resolve",
		Long: `Shows the plan of a spec without running anything: the builds and commands of
every arm, the scenarios, the order of the first block, the expected duration,
and the smallest change that the plan finds at a given noise.`,
		Example: `  tandem plan
  tandem plan --profile ci --json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.load()
			if err != nil {
				return err
			}
			plan, err := makePlan(s, f, cmd.Flags().Changed("seed"), nil)
			if err != nil {
				return &exitError{exitUsage, err}
			}
			return a.printPlan(s, plan, asJSON)
		},
	}
	a.specFlags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().StringArrayVar(&f.scenarios, "scenario", nil, "only the scenarios that match this glob (repeatable)")
	cmd.Flags().StringVar(&f.shard, "shard", "", "part K of N of the scenarios, as K/N")
	cmd.Flags().Uint64Var(&f.seed, "seed", 0, "seed of every random order")
	return cmd
}

// planView is what plan shows; its JSON is what --json prints.
type planView struct {
	Name      string         `json:"name"`
	Seed      uint64         `json:"seed"`
	Services  []string       `json:"services,omitempty"` // in the order of their starts
	Hooks     []string       `json:"hooks,omitempty"`    // commands around the run and its parts
	Arms      []armView      `json:"arms"`
	Copies    int            `json:"copies"`
	Blocks    spec.Blocks    `json:"blocks"`
	Looks     []int          `json:"looks"`
	MinBlocks int            `json:"blocks_to_mark"` // the first look at which a row can be marked; 0: none
	Scenarios []scenarioView `json:"scenarios"`
	First     []string       `json:"first_block"` // the order of the first block
	Seconds   secondsView    `json:"seconds"`
	Resolves  []resolveView  `json:"resolves"`
}

type armView struct {
	Name     string   `json:"name"`
	Baseline bool     `json:"baseline"`
	Source   string   `json:"source"`
	Build    []string `json:"build,omitempty"`
	Server   string   `json:"server,omitempty"`
}

type scenarioView struct {
	ID     string  `json:"id"`
	Load   string  `json:"load"`
	Mode   string  `json:"interleave"`
	Window float64 `json:"window"` // seconds
	Warmup float64 `json:"warmup"` // seconds
}

type secondsView struct {
	Block  float64 `json:"block"`
	Least  float64 `json:"least"`
	Most   float64 `json:"most"`
	Budget float64 `json:"budget,omitempty"`
}

// resolveView is the smallest change found in four of five runs, where the
// ratio spreads by SD from block to block.
type resolveView struct {
	SD     float64 `json:"sd_per_block"`
	Change float64 `json:"change,omitempty"` // 0: none, since the plan cannot mark a row
}

func viewPlan(s *spec.Spec, p *runner.Plan) planView {
	block, least, most := p.Estimate(startupGuess)
	v := planView{
		Name: s.Name, Seed: p.Seed, Copies: p.Copies, Blocks: p.Blocks,
		Looks:   looks(p),
		Seconds: secondsView{Block: block.Seconds(), Least: least.Seconds(), Most: most.Seconds(), Budget: s.Plan.Budget.Seconds()},
	}
	for _, svc := range s.Services {
		v.Services = append(v.Services, svc.Name+": "+svc.Command.String())
	}
	v.Hooks = viewHooks(s)
	for _, name := range p.Arms {
		for _, arm := range s.Arms {
			if arm.Name == name {
				v.Arms = append(v.Arms, viewArm(s, arm))
			}
		}
	}
	judged := 0
	for _, sc := range p.Scenarios {
		v.Scenarios = append(v.Scenarios, scenarioView{
			ID: sc.ID(), Load: describeLoad(sc), Mode: string(sc.Interleave), Window: sc.Window.Seconds(), Warmup: sc.Warmup.Seconds(),
		})
		judged += len(report.Judged(sc, s)) * (len(p.Arms) - 1)
	}
	first := p.Block(0)
	for _, c := range first.Starts {
		v.First = append(v.First, fmt.Sprintf("start %s#%d", p.Arms[c.Arm], c.Index))
	}
	for _, k := range first.Scenarios {
		v.First = append(v.First, "load "+p.Scenarios[k].ID())
	}
	candidates := len(p.Arms) - 1
	v.MinBlocks = stats.MinBlocks(p.Copies, p.Copies, s.Alpha/float64(candidates), v.Looks...)
	whole := stats.Plan{
		Alpha: s.Alpha, Rows: judged / candidates, Candidates: candidates,
		CopiesBase: p.Copies, CopiesHead: p.Copies, Looks: v.Looks,
	}
	for _, sd := range []float64{0.01, 0.02, 0.04} {
		r := resolveView{SD: sd}
		if change := math.Expm1(whole.Resolvable(sd, p.Blocks.Max)); !math.IsInf(change, 0) {
			r.Change = change
		}
		v.Resolves = append(v.Resolves, r)
	}
	return v
}

func viewArm(s *spec.Spec, arm spec.Arm) armView {
	v := armView{Name: arm.Name, Baseline: arm.Name == s.Baseline, Source: "dir " + arm.Path}
	if arm.Git != nil {
		v.Source = "git " + arm.Git.Ref
		if arm.Git.MergeBase {
			v.Source += " (its merge base with HEAD)"
		}
	}
	for _, step := range append(append([]spec.Step{}, arm.Setup...), arm.Build...) {
		v.Build = append(v.Build, step.Run.String())
	}
	if arm.Server != nil {
		v.Server = arm.Server.Command.String()
	}
	return v
}

// viewHooks lists the commands around the run and its parts.
func viewHooks(s *spec.Spec) []string {
	var out []string
	add := func(what string, steps []spec.Step) {
		for _, st := range steps {
			out = append(out, what+": "+st.Run.String())
		}
	}
	for _, part := range []spec.Part{spec.RunPart, spec.BlockPart, spec.ScenarioPart, spec.WindowPart} {
		for _, svc := range s.Services {
			if svc.Reset != nil && svc.Reset.Before == part {
				add(fmt.Sprintf("before the %s, reset of %s", part, svc.Name), svc.Reset.Steps)
			}
		}
		add(fmt.Sprintf("before the %s", part), s.Before.Of(part))
		add(fmt.Sprintf("after the %s", part), s.After.Of(part))
	}
	return out
}

func describeLoad(sc spec.Scenario) string {
	switch {
	case sc.HTTP != nil && sc.HTTP.Rate > 0:
		return fmt.Sprintf("http %s %s at %g/s", sc.HTTP.Method, sc.HTTP.Path, sc.HTTP.Rate)
	case sc.HTTP != nil:
		return fmt.Sprintf("http %s %s over %d connections", sc.HTTP.Method, sc.HTTP.Path, sc.HTTP.Connections)
	case sc.WS != nil:
		return fmt.Sprintf("ws %s over %d connections", sc.WS.Path, sc.WS.Connections)
	case sc.Exec != nil && sc.Exec.Request != nil:
		return fmt.Sprintf("exec %s, with %s %s", sc.Exec.Command, sc.Exec.Request.Method, sc.Exec.Request.Path)
	case sc.Exec != nil:
		return "exec " + sc.Exec.Command.String()
	default:
		return "command " + sc.Command.Run.String()
	}
}

func (a *app) printPlan(s *spec.Spec, p *runner.Plan, asJSON bool) error {
	v := viewPlan(s, p)
	if asJSON {
		enc := json.NewEncoder(a.stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s, seed %d\n\n", v.Name, v.Seed)
	for _, arm := range v.Arms {
		role := "candidate"
		if arm.Baseline {
			role = "baseline"
		}
		fmt.Fprintf(&b, "%s %s: %s\n", role, arm.Name, arm.Source)
		for _, step := range arm.Build {
			fmt.Fprintf(&b, "    build   %s\n", step)
		}
		if arm.Server != "" {
			fmt.Fprintf(&b, "    server  %s\n", arm.Server)
		}
	}
	for _, svc := range v.Services {
		fmt.Fprintf(&b, "service %s\n", svc)
	}
	for _, h := range v.Hooks {
		fmt.Fprintf(&b, "%s\n", h)
	}
	b.WriteString("\n")
	for _, sc := range v.Scenarios {
		fmt.Fprintf(&b, "%s: %s; %gs of warm-up and %gs of measuring for each copy, %s\n", sc.ID, sc.Load, sc.Warmup, sc.Window, sc.Mode)
	}
	fmt.Fprintf(&b, "\nEach block starts %d copies of each arm afresh and takes about %s.\n", v.Copies, seconds(v.Seconds.Block))
	fmt.Fprintf(&b, "%s: about %s, builds apart", blockRange(v.Blocks), secondsRange(v.Seconds.Least, v.Seconds.Most))
	if v.Seconds.Budget > 0 {
		fmt.Fprintf(&b, "; the budget ends it after %s", seconds(v.Seconds.Budget))
	}
	fmt.Fprintf(&b, ".\nThe table is looked at after %s blocks; ", joinInts(v.Looks))
	if v.MinBlocks > 0 {
		fmt.Fprintf(&b, "the first look that can mark a row at alpha %g is that after %d.\n", s.Alpha, v.MinBlocks)
	} else {
		fmt.Fprintf(&b, "none of them can mark a row at alpha %g: allow more blocks or copies.\n", s.Alpha)
	}
	fmt.Fprintf(&b, "\nThe smallest change that is found in four of five runs of %d blocks:\n", v.Blocks.Max)
	for _, r := range v.Resolves {
		change := "none"
		if r.Change > 0 {
			change = fmt.Sprintf("%.1f%%", 100*r.Change)
		}
		fmt.Fprintf(&b, "  where ratios spread by %.0f%% from block to block: %s\n", 100*r.SD, change)
	}
	fmt.Fprintf(&b, "\nFirst block: %s\n", strings.Join(v.First, ", "))
	_, err := a.stdout.Write([]byte(b.String()))
	return err
}

func blockRange(b spec.Blocks) string {
	if b.Min == b.Max {
		return fmt.Sprintf("%d blocks", b.Max)
	}
	return fmt.Sprintf("%d to %d blocks", b.Min, b.Max)
}

func seconds(s float64) string {
	return roundTime(time.Duration(s * float64(time.Second)))
}

func secondsRange(least, most float64) string {
	if least == most {
		return seconds(most)
	}
	return seconds(least) + " to " + seconds(most)
}

func joinInts(all []int) string {
	var parts []string
	for _, n := range all {
		parts = append(parts, fmt.Sprint(n))
	}
	if len(parts) > 1 {
		return strings.Join(parts[:len(parts)-1], ", ") + " and " + parts[len(parts)-1]
	}
	return strings.Join(parts, "")
}
