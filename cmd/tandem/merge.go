package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tandem-bench/tandem/report"
	"github.com/tandem-bench/tandem/runner/journal"
)

func (a *app) mergeCmd() *cobra.Command {
	var out, format string
	cmd := &cobra.Command{
		Use:   "merge DIR...",
		Short: "Join the shards of one run, and judge the whole table",
		Long: `Joins the run folders of all shards of one plan (tandem run --shard K/N) into
one run: journal.jsonl, result.json and logs/. The table's error rate and the
thresholds are evaluated over the joined table, by the spec that the shards
were taken with. Shards of another spec, seed, revision or version of tandem
are refused, and so is a set that lacks one. A DIR may also hold the run
folders: tandem merge shards.`,
		Example: `  tandem merge shard-1 shard-2 --out run
  tandem report run --format markdown`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageErrorf("merge takes the folders of all shards, found none: see 'tandem merge --help'")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return a.merge(args, out, format) },
	}
	cmd.Flags().StringVar(&out, "out", "", "folder for the joined run (default .tandem/runs/ID)")
	cmd.Flags().StringVar(&format, "format", "text", "what to print: "+strings.Join(report.Formats(), ", "))
	return cmd
}

func (a *app) merge(args []string, out, format string) error {
	if !slices.Contains(report.Formats(), format) {
		return usageErrorf("--format: found %q, expected one of %s", format, strings.Join(report.Formats(), ", "))
	}
	dirs, err := shardDirs(args)
	if err != nil {
		return err
	}
	var runs []*journal.Run
	for _, dir := range dirs {
		run, err := journal.Open(filepath.Join(dir, "journal.jsonl"))
		if err != nil {
			return notMeasured(err)
		}
		runs = append(runs, run)
	}
	id := a.newID()
	merged, err := journal.Merge(runs, id)
	if errors.Is(err, journal.ErrMissingShards) {
		return notMeasured(err)
	}
	if err != nil {
		return &exitError{exitUsage, err}
	}
	analysis, err := report.Analyze(merged, nil)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	if out, err = a.keepMerged(merged, dirs, runs, out, id); err != nil {
		return err
	}
	err = errors.Join(writeReport(filepath.Join(out, "result.json"), "json", analysis), a.show(analysis, format))
	if err != nil {
		return notMeasured(err)
	}
	if format == "text" {
		fmt.Fprintf(a.stderr, "\nkept in %s; see it again with: tandem report %s\n", shortPath(out), shortPath(out))
	}
	a.publish(analysis, filepath.Join(out, "result.json"), format)
	return outcomeError(analysis)
}

// shardDirs finds the run folders that the arguments name: a run's own, or
// one that holds them, as a CI job downloads them.
func shardDirs(args []string) ([]string, error) {
	var dirs []string
	for _, arg := range args {
		if exists(filepath.Join(arg, "journal.jsonl")) {
			dirs = append(dirs, arg)
			continue
		}
		inside, err := filepath.Glob(filepath.Join(arg, "*", "journal.jsonl"))
		if err != nil || len(inside) == 0 {
			return nil, usageErrorf("no run in %s: expected a folder with a journal.jsonl, or one that holds such folders", arg)
		}
		for _, path := range inside {
			dirs = append(dirs, filepath.Dir(path))
		}
	}
	return dirs, nil
}

// keepMerged writes the joined journal and the logs of every shard.
func (a *app) keepMerged(merged *journal.Run, dirs []string, runs []*journal.Run, out, id string) (string, error) {
	if out == "" {
		wd, err := os.Getwd()
		if err != nil {
			return "", notMeasured(err)
		}
		out = filepath.Join(stateDir(wd), "runs", id)
	}
	path := filepath.Join(out, "journal.jsonl")
	if exists(path) {
		return "", usageErrorf("--out: %s holds a run already: choose another folder", out)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return "", notMeasured(err)
	}
	if err := journal.Save(path, merged); err != nil {
		return "", notMeasured(err)
	}
	for i, dir := range dirs {
		to := filepath.Join(out, "logs", "shard-"+strings.ReplaceAll(runs[i].Header.Shard, "/", "-of-"))
		if err := copyLogs(filepath.Join(dir, "logs"), to); err != nil {
			return "", notMeasured(fmt.Errorf("keeping the logs of %s: %w", dir, err))
		}
	}
	return out, nil
}

// copyLogs copies the regular files of a folder of logs, if there is one.
// Links are left out: the folder may come from a job that ran anybody's code.
func copyLogs(from, to string) error {
	entries, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		data, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, e.Name()), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// concludeShard says what a shard measured. It judges nothing: a part of a
// table has no error rate of its own to spend.
func (a *app) concludeShard(run *journal.Run, runErr error, out string) error {
	h := run.Header
	fmt.Fprintf(a.stdout, "shard %s: measured %s in %s, seed %d\n", h.Shard, count(len(h.Rows), "scenario"), count(len(run.Ends), "block"), h.Seed)
	fmt.Fprintf(a.stderr, "kept in %s; with all shards there: tandem merge DIR...\n", shortPath(out))
	if runErr != nil {
		return notMeasured(runErr)
	}
	if run.End != nil && run.End.Reason == journal.EndInterrupted {
		return &exitError{exitInterrupted, nil}
	}
	return nil
}
