package main

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tandem-bench/tandem/report"
)

func (a *app) compareCmd() *cobra.Command {
	out := outputs{known: []string{"text", "markdown", "json"}}
	cmd := &cobra.Command{
		Use:   "compare OLD NEW",
		Short: "Hold two runs of different times against each other",
		Long: `Compares the candidates of two runs, which saw the machine at different moments.
Their values cannot be compared; where both runs measured the same baseline, the
ratios to it can, and rows get a verdict. Elsewhere they are shown without one.

OLD and NEW are IDs, runs' folders, journals or result.json files. The exit code
is 0 whatever the verdicts are: gates belong to a run.`,
		Example: `  tandem compare 20261123-090000-a1b2 20261130-101500-c3d4
  tandem compare last-week/result.json .tandem/runs/20261130-101500-c3d4 --format markdown`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usageErrorf("compare takes two runs, OLD and NEW, found %d: %s", len(args), strings.Join(args, " "))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return a.compare(args[0], args[1], out) },
	}
	out.flags(cmd)
	return cmd
}

func (a *app) compare(oldRun, newRun string, out outputs) error {
	if err := out.check(); err != nil {
		return err
	}
	before, err := openRun(oldRun)
	if err != nil {
		return err
	}
	after, err := openRun(newRun)
	if err != nil {
		return err
	}
	c := report.Compare(before, after)
	return out.write(a, func(w io.Writer, format string, o report.RenderOptions) error {
		return report.WriteComparison(w, format, c, o)
	})
}
