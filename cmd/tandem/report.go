package main

import (
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tandem-bench/tandem/report"
	"github.com/tandem-bench/tandem/runner/journal"
)

func (a *app) reportCmd() *cobra.Command {
	var formats, outputs []string
	cmd := &cobra.Command{
		Use:   "report [RUN]",
		Short: "Show a run again, in any format",
		Long: `Makes the report of a run again from its journal, whole or partial. RUN is an
ID, a run's folder or a journal file; the default is the latest run. --format and
-o may be repeated in pairs.`,
		Example: `  tandem report
  tandem report 20261130-101500-a1b2 --format markdown -o bench.md --format json -o bench.json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageErrorf("report takes one RUN, found %d: %s", len(args), strings.Join(args, " "))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			return a.report(append(args, "")[0], formats, outputs)
		},
	}
	cmd.Flags().StringArrayVar(&formats, "format", nil, "format: "+strings.Join(report.Formats(), ", ")+" (default text)")
	cmd.Flags().StringArrayVarP(&outputs, "output", "o", nil, "file for the format in the same place (default: standard output)")
	return cmd
}

func (a *app) report(arg string, formats, outputs []string) error {
	if len(formats) == 0 {
		formats = []string{"text"}
	}
	if len(outputs) > len(formats) {
		return usageErrorf("found %d -o for %d --format: each file needs a format", len(outputs), len(formats))
	}
	for _, f := range formats {
		if !slices.Contains(report.Formats(), f) {
			return usageErrorf("--format: found %q, expected one of %s", f, strings.Join(report.Formats(), ", "))
		}
	}
	dir, err := os.Getwd()
	if err != nil {
		return &exitError{exitUsage, err}
	}
	path, err := findRun(dir, arg)
	if err != nil {
		return err
	}
	run, err := journal.Open(path)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	analysis, err := report.Analyze(run, nil)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	for i, f := range formats {
		if i < len(outputs) {
			err = writeReport(outputs[i], f, analysis)
		} else {
			err = a.show(analysis, f)
		}
		if err != nil {
			return notMeasured(err)
		}
	}
	return nil
}
