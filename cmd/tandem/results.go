package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/tandem-bench/tandem/report"
	"github.com/tandem-bench/tandem/runner/journal"
)

// openRun judges the run that an argument names: an ID, a run's folder or its
// journal, which is judged again, or a result.json, which is taken as it says.
// An empty argument is the latest run.
func openRun(arg string) (*report.Analysis, error) {
	if path, ok := resultFile(arg); ok {
		return openResult(path)
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
	analysis, err := report.Analyze(run, nil)
	if err != nil {
		return nil, &exitError{exitUsage, fmt.Errorf("%s: %w", path, err)}
	}
	return analysis, nil
}

// resultFile finds a result.json: the file itself, or one in a folder that
// holds no journal.
func resultFile(arg string) (string, bool) {
	info, err := os.Stat(arg)
	switch {
	case arg == "" || err != nil:
		return "", false
	case !info.IsDir():
		return arg, filepath.Ext(arg) == ".json"
	}
	path := filepath.Join(arg, "result.json")
	return path, !exists(filepath.Join(arg, "journal.jsonl")) && exists(path)
}

func openResult(path string) (*report.Analysis, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	defer f.Close()
	analysis, err := report.ReadResult(f)
	if err != nil {
		return nil, &exitError{exitUsage, fmt.Errorf("%s: %w", path, err)}
	}
	return analysis, nil
}
