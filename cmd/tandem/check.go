package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tandem-bench/tandem/report"
	"github.com/tandem-bench/tandem/runner/journal"
	"github.com/tandem-bench/tandem/spec"
)

func (a *app) checkCmd() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "check RESULT",
		Short: "Judge and gate a run again, by a spec from elsewhere",
		Long: `Gates a run again by the judged metrics, margin, thresholds and policies of the
spec here, whatever spec the run was taken with and whatever it says of its own
outcome. RESULT is a result.json, or a run's folder, journal or ID: a journal is
judged anew from its trials, a result.json from its figures. A scenario that the
spec names and the run lacks is a row without a verdict, and a table in which
nothing could be compared never passes.

It exits by the cause: 0 passed or warned, 1 a threshold or a policy failed,
3 unsure (where policy.unsure is fail), 4 could not measure or nothing could be
compared, 130 interrupted, 2 the spec or RESULT cannot be read.`,
		Example: `  tandem check result.json
  tandem check result.json -f trusted/bench.yaml --format github`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageErrorf("check takes one RESULT, found %d: a result.json, or a run's folder, journal or ID", len(args))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return a.check(args[0], format) },
	}
	a.specFlags(cmd)
	cmd.Flags().StringVar(&format, "format", "text", "what to print: "+strings.Join(report.Formats(), ", "))
	return cmd
}

func (a *app) check(arg, format string) error {
	if !slices.Contains(report.Formats(), format) {
		return usageErrorf("--format: found %q, expected one of %s", format, strings.Join(report.Formats(), ", "))
	}
	s, err := a.load()
	if err != nil {
		return err
	}
	analysis, err := a.regate(arg, s)
	if err != nil {
		return err
	}
	if err := a.show(analysis, format); err != nil {
		return notMeasured(err)
	}
	a.publish(analysis, arg, format)
	return outcomeError(analysis)
}

// regate reads what RESULT names, and judges it by s.
func (a *app) regate(arg string, s *spec.Spec) (*report.Analysis, error) {
	if info, err := os.Stat(arg); err == nil && info.IsDir() && !exists(filepath.Join(arg, "journal.jsonl")) && exists(filepath.Join(arg, "result.json")) {
		arg = filepath.Join(arg, "result.json") // an artifact that holds no more
	}
	if strings.HasSuffix(arg, ".json") {
		return readResult(arg, s)
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	path, err := findRun(dir, arg)
	if err != nil {
		return nil, err
	}
	run, err := journal.Open(path)
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	if err := wholeTable(arg, run.Header); err != nil {
		return nil, err
	}
	analysis, err := report.Analyze(run, s)
	if err != nil {
		return nil, usageErrorf("%s: %w", arg, err)
	}
	return analysis, nil
}

func readResult(path string, s *spec.Spec) (*report.Analysis, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	defer f.Close()
	analysis, err := report.ReadUntrusted(f)
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	if err := wholeTable(path, analysis.Header); err != nil {
		return nil, err
	}
	if err := analysis.Regate(s); err != nil {
		return nil, usageErrorf("%s: %w", path, err)
	}
	return analysis, nil
}

// wholeTable refuses a shard: its rows are judged with those of the others.
func wholeTable(arg string, h *journal.Header) error {
	if h.Shard == "" {
		return nil
	}
	return usageErrorf("%s is shard %s, a part of a table: join all shards by tandem merge, and check what it makes", arg, h.Shard)
}
