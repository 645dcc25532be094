package main

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tandem-bench/tandem/report"
)

func (a *app) reportCmd() *cobra.Command {
	out := outputs{known: report.Formats()}
	var detail bool
	cmd := &cobra.Command{
		Use:   "report [RUN]",
		Short: "Show a run again, in any format",
		Long: `Makes the report of a run again from its journal, whole or partial. RUN is an
ID, a run's folder, a journal or a result.json; the default is the latest run.
--format and -o may be repeated in pairs.`,
		Example: `  tandem report
  tandem report --detail
  tandem report 20261130-101500-a1b2 --format markdown -o bench.md --format json -o bench.json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageErrorf("report takes one RUN, found %d: %s", len(args), strings.Join(args, " "))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			return a.report(append(args, "")[0], out, detail)
		},
	}
	out.flags(cmd)
	cmd.Flags().BoolVar(&detail, "detail", false, "the latencies and rates of every arm, too (text)")
	return cmd
}

func (a *app) report(arg string, out outputs, detail bool) error {
	if err := out.check(); err != nil {
		return err
	}
	analysis, err := openRun(arg)
	if err != nil {
		return err
	}
	return out.write(a, func(w io.Writer, format string, o report.RenderOptions) error {
		o.Detail = detail
		return report.Write(w, format, analysis, o)
	})
}
