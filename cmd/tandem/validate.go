package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-bench/tandem/report/stats"
	"github.com/tandem-bench/tandem/runner/proc"
	"github.com/tandem-bench/tandem/runner/source"
	"github.com/tandem-bench/tandem/spec"
)

// validateFlags are the flags of validate.
type validateFlags struct {
	format  string
	print   bool
	resolve bool
}

func (a *app) validateCmd() *cobra.Command {
	var f validateFlags
	cmd := &cobra.Command{
		Use:   "validate [FILE...]",
		Short: "Check specs without running anything",
		Long: `Checks specs: their keys, values, references, expressions, metrics, plan and
pins. It is offline and runs nothing; --resolve asks git whether the revisions
and merge bases exist. Without a file it looks for bench.yaml in this folder and
above. Exits with 2 where a spec has errors.

--print shows what the spec comes to, with the profile, the defaults and every
matrix point in its place. That is for reading; it is not a spec itself.`,
		Example: `  tandem validate
  tandem validate --print --profile ci
  tandem validate --format github benchmarks/*.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.validate(cmd.Context(), args, f) },
	}
	a.specFlags(cmd)
	cmd.Flags().StringVar(&f.format, "format", "text", "how to write what is found: text, json, github or sarif")
	cmd.Flags().BoolVar(&f.print, "print", false, "print the resolved spec: defaults, profile and matrices applied")
	cmd.Flags().BoolVar(&f.resolve, "resolve", false, "ask git whether the revisions and merge bases exist")
	return cmd
}

func (a *app) validate(ctx context.Context, files []string, f validateFlags) error {
	switch {
	case !slices.Contains(spec.DiagnosticFormats(), f.format):
		return usageErrorf("there is no format %q; formats are %s", f.format, strings.Join(spec.DiagnosticFormats(), ", "))
	case f.print && f.format != "text":
		return usageErrorf("--print shows a spec and --format %s shows what is wrong with it: name one of them", f.format)
	case a.file != "" && len(files) > 0:
		return usageErrorf("name the files as arguments or by -f, not both")
	}
	if len(files) == 0 {
		path, err := a.specPath()
		if err != nil {
			return err
		}
		files = []string{path}
	}
	o := a.specOptions()
	if f.resolve {
		o.Resolve = resolver(ctx, o.Env)
	}
	var all []spec.Diagnostic
	var summary []string
	for _, file := range files {
		s, diags, err := spec.Load(file, o)
		if err != nil {
			diags = []spec.Diagnostic{{File: file, Severity: spec.Error, Message: err.Error(), Kind: spec.KindFile}}
		}
		all = append(all, diags...)
		summary = append(summary, summarize(file, s, diags))
		if f.print && s != nil {
			if err := a.printSpec(s, len(files) > 1); err != nil {
				return err
			}
		}
	}
	if err := a.writeDiagnostics(all, summary, f); err != nil {
		return err
	}
	if spec.HasErrors(all) {
		return &exitError{exitUsage, nil}
	}
	return nil
}

func (a *app) printSpec(s *spec.Spec, several bool) error {
	if several {
		if _, err := fmt.Fprintln(a.stdout, "---"); err != nil {
			return err
		}
	}
	return spec.Print(a.stdout, s)
}

// writeDiagnostics writes what was found: beside a printed spec to stderr,
// otherwise as the product of the verb to stdout.
func (a *app) writeDiagnostics(all []spec.Diagnostic, summary []string, f validateFlags) error {
	if f.print {
		return a.printDiagnostics(all)
	}
	if f.format != "text" {
		return spec.WriteDiagnostics(a.product(f.format), f.format, version(), all)
	}
	if a.colored(a.stdout) {
		if err := spec.WriteTextStyled(a.stdout, all, paint); err != nil {
			return err
		}
	} else if err := spec.WriteText(a.stdout, all); err != nil {
		return err
	}
	_, err := fmt.Fprintln(a.stdout, strings.Join(summary, "\n"))
	return err
}

// summarize is the last line about a file.
func summarize(file string, s *spec.Spec, diags []spec.Diagnostic) string {
	errs, warnings := spec.CountDiagnostics(diags)
	found := count(warnings, "warning")
	if s == nil {
		if warnings == 0 {
			return fmt.Sprintf("%s: %s", file, count(errs, "error"))
		}
		return fmt.Sprintf("%s: %s, %s", file, count(errs, "error"), found)
	}
	line := fmt.Sprintf("%s: valid: %s, %s", file, count(len(s.Arms), "arm"), count(len(s.Scenarios), "scenario"))
	if warnings > 0 {
		line += ", " + found
	}
	return line
}

func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// resolver asks git for revisions and merge bases, as a run would.
func resolver(ctx context.Context, env spec.Env) func(spec.Git) error {
	return func(g spec.Git) error {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		return source.Resolve(ctx, g, env)
	}
}

// specPower is what package stats knows about plans, for the checks of the
// spec.
func specPower() spec.Power {
	return spec.Power{
		MinBlocks: func(p spec.Plan, alpha float64) int {
			return stats.MinBlocks(p.Copies, p.Copies, alpha, stats.Looks(p.Blocks.Min, p.Blocks.Max)...)
		},
		Resolvable: func(p spec.Plan, sd, alpha float64, rows int) float64 {
			plan := stats.Plan{
				Alpha: alpha, Rows: rows, Candidates: 1, CopiesBase: p.Copies, CopiesHead: p.Copies,
				Looks: stats.Looks(p.Blocks.Min, p.Blocks.Max),
			}
			return math.Expm1(plan.Resolvable(sd, p.Blocks.Max))
		},
	}
}

// cpus are the CPUs that this process may use, for the checks of pins; none
// where the system does not tell.
func cpus() []int {
	available, err := proc.Available()
	if err != nil {
		return nil
	}
	return available
}
