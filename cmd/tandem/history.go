package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tandem-bench/tandem/report"
)

type historyFlags struct {
	out    outputs
	branch string
	name   string
}

func (a *app) historyCmd() *cobra.Command {
	f := historyFlags{out: outputs{known: []string{"text", "html", "json"}}}
	cmd := &cobra.Command{
		Use:   "history [PATH...]",
		Short: "Show the trend over many runs, and where it changed its level",
		Long: `Reads the results of many runs, from files and folders (every result.json below
them; default: the runs of this repository) or from a git branch, and shows each
row's ratio and value over time. Changes of level are found by optimal
partitioning: a slow drift, of which no single run sees more than noise, shows
here. 'tandem history add' keeps results for it.`,
		Example: `  tandem history
  tandem history results --format html -o history.html
  tandem history --branch bench-history --format html -o history.html`,
		Args: func(_ *cobra.Command, args []string) error {
			if f.branch != "" && len(args) > 0 {
				return usageErrorf("history reads files or a branch, found both: --branch %s and %s", f.branch, strings.Join(args, " "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.history(cmd.Context(), args, f) },
	}
	f.out.flags(cmd)
	cmd.Flags().StringVar(&f.branch, "branch", "", "read this git branch, as BRANCH or BRANCH:FOLDER")
	cmd.Flags().StringVar(&f.name, "name", "", "the benchmark, where the results are of several (default: that of the newest)")
	cmd.AddCommand(a.historyAddCmd())
	return cmd
}

func (a *app) history(ctx context.Context, paths []string, f historyFlags) error {
	if err := f.out.check(); err != nil {
		return err
	}
	files, err := a.historyFiles(ctx, paths, f.branch)
	if err != nil {
		return err
	}
	runs := a.historyRuns(files, f.name)
	if len(runs) == 0 {
		return usageErrorf("no result to show: make some with 'tandem run', keep them with 'tandem history add', or name the folder that holds them")
	}
	trend, err := report.History(runs)
	if err != nil {
		return notMeasured(err)
	}
	return f.out.write(a, func(w io.Writer, format string, o report.RenderOptions) error {
		return report.WriteHistory(w, format, trend, o)
	})
}

// resultData is one file that may be a result.
type resultData struct {
	path string
	data []byte
}

func (a *app) historyFiles(ctx context.Context, paths []string, branch string) ([]resultData, error) {
	if branch != "" {
		b, err := a.openBranch(ctx, branch)
		if err != nil {
			return nil, err
		}
		return b.results(ctx)
	}
	if len(paths) == 0 {
		dir, err := os.Getwd()
		if err != nil {
			return nil, &exitError{exitUsage, err}
		}
		paths = []string{filepath.Join(nearestState(dir), "runs")}
		if !exists(paths[0]) {
			return nil, usageErrorf("no runs in %s yet: make one with 'tandem run', or name a folder of results", shortPath(paths[0]))
		}
	}
	var files []resultData
	for _, path := range paths {
		err := filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(p) != ".json" {
				return err
			}
			data, err := os.ReadFile(p)
			files = append(files, resultData{p, data})
			return err
		})
		if err != nil {
			return nil, &exitError{exitUsage, err}
		}
	}
	return files, nil
}

// historyRuns reads the results of one benchmark and says what it leaves out:
// other files, other benchmarks, and runs that are no point of a trend.
func (a *app) historyRuns(files []resultData, name string) []*report.Analysis {
	var runs []*report.Analysis
	seen := map[string]bool{}
	left := map[string]int{}
	for _, f := range files {
		run, err := report.ReadResult(bytes.NewReader(f.data))
		switch {
		case err != nil:
			fmt.Fprintf(a.stderr, "left out: %s: %v\n", f.path, err)
		case run.Header.Same || run.Header.Shard != "":
			left["of the same code twice, or of a part of the plan"]++
		case seen[run.Header.ID]: // kept twice
		default:
			seen[run.Header.ID] = true
			runs = append(runs, run)
		}
	}
	if name == "" && len(runs) > 0 {
		name = slices.MaxFunc(runs, func(x, y *report.Analysis) int { return x.Header.Started.Compare(y.Header.Started) }).Spec.Name
	}
	runs = slices.DeleteFunc(runs, func(r *report.Analysis) bool {
		if r.Spec.Name != name {
			left[fmt.Sprintf("of %q", r.Spec.Name)]++
		}
		return r.Spec.Name != name
	})
	for _, why := range slices.Sorted(maps.Keys(left)) {
		fmt.Fprintf(a.stderr, "left out: %d %s\n", left[why], why)
	}
	return runs
}

func (a *app) historyAddCmd() *cobra.Command {
	var to, branch string
	cmd := &cobra.Command{
		Use:   "add [RUN]",
		Short: "Keep the result of a run for the history",
		Long: `Keeps a run's result.json as ID.json in a folder, or as a commit on a git branch,
whose files are not checked out for it: the working tree stays as it is. RUN is
as for 'tandem report'; the default is the latest run.`,
		Example: `  tandem history add --to results
  tandem history add --branch bench-history && git push origin bench-history`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageErrorf("history add takes one RUN, found %d: %s", len(args), strings.Join(args, " "))
			}
			if (to == "") == (branch == "") {
				return usageErrorf("history add needs a place: --to FOLDER or --branch BRANCH")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.historyAdd(cmd.Context(), append(args, "")[0], to, branch)
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "keep it in this folder")
	cmd.Flags().StringVar(&branch, "branch", "", "commit it to this git branch, as BRANCH or BRANCH:FOLDER")
	return cmd
}

func (a *app) historyAdd(ctx context.Context, arg, to, branch string) error {
	run, err := openRun(arg)
	if err != nil {
		return err
	}
	id := run.Header.ID
	if id == "" || id != filepath.Base(id) || strings.HasPrefix(id, ".") {
		return usageErrorf("the run's ID is %q, expected one that can name a file", id)
	}
	if to != "" {
		path := filepath.Join(to, id+".json")
		if err := writeReport(path, "json", run); err != nil {
			return notMeasured(err)
		}
		fmt.Fprintf(a.stderr, "kept as %s\n", path)
		return nil
	}
	var data bytes.Buffer
	if err := report.Write(&data, "json", run, report.RenderOptions{}); err != nil {
		return notMeasured(err)
	}
	b, err := a.openBranch(ctx, branch)
	if err != nil {
		return err
	}
	commit, err := b.add(ctx, id+".json", data.Bytes(), fmt.Sprintf("bench: %s, run %s", run.Spec.Name, id))
	if err != nil {
		return err
	}
	if commit == "" {
		fmt.Fprintf(a.stderr, "%s holds this result already\n", b.name)
		return nil
	}
	fmt.Fprintf(a.stderr, "kept on branch %s in commit %.12s; share it with: git push origin %s\n", b.name, commit, b.name)
	return nil
}
