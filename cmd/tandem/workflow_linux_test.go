package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	"gopkg.in/yaml.v3"
)

// workflowFile is what of a GitHub workflow, or of a composite action, the
// scripts carry out.
type workflowFile struct {
	Jobs map[string]struct {
		If    string         `yaml:"if"`
		Steps []workflowStep `yaml:"steps"`
	} `yaml:"jobs"`
	Runs struct {
		Steps []workflowStep `yaml:"steps"`
	} `yaml:"runs"`
}

type workflowStep struct {
	Name string            `yaml:"name"`
	If   string            `yaml:"if"`
	Uses string            `yaml:"uses"`
	Run  string            `yaml:"run"`
	Env  map[string]string `yaml:"env"`
	With map[string]string `yaml:"with"`
}

// runJob carries out a job of a workflow as far as a machine without GitHub
// can: job FILE JOB [NAME=VALUE...]. Its run steps are run by bash as a
// runner does; checkout and tandem's own action find their work done, and
// artifacts are folders below $WORK/artifacts. NAME=VALUE answers the
// expression ${{ NAME }}; one without an answer fails the script. JOB "action"
// is the steps of a composite action.
func runJob(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: job FILE JOB [NAME=VALUE...]")
	}
	var file workflowFile
	ts.Check(yaml.Unmarshal([]byte(ts.ReadFile(args[0])), &file))
	steps := file.Runs.Steps
	if args[1] != "action" {
		job, ok := file.Jobs[args[1]]
		if !ok {
			ts.Fatalf("%s has no job %q", args[0], args[1])
		}
		steps = job.Steps
	}
	values := map[string]string{
		"runner.temp": ts.Getenv("RUNNER_TEMP"), "always()": "true",
		"github.event.pull_request.head.sha || github.sha": "",
	}
	for _, a := range args[2:] {
		// "inputs.args!=true" answers the expression inputs.args != ''.
		if name, value, ok := strings.Cut(a, "!="); ok {
			values[name+" != ''"] = value
		} else if name, value, ok := strings.Cut(a, "="); ok {
			values[name] = value
		}
	}
	failed := false
	ran := 0
	for _, s := range steps {
		if on := evaluate(ts, s.If, values); on == "false" || failed && on != "true" {
			continue
		}
		ran++
		if err := s.perform(ts, values); err != nil {
			ts.Logf("step %q: %v", s.Name+s.Uses, err)
			failed = true
		}
	}
	if ran == 0 {
		ts.Fatalf("job %s ran no step", args[1])
	}
	if failed != neg {
		ts.Fatalf("job %s: failed is %v", args[1], failed)
	}
}

// runGitLabJob carries out the script of a GitLab job, and what comes after
// it in any case, as its runner does: gitlabjob FILE JOB.
func runGitLabJob(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: gitlabjob FILE JOB")
	}
	var file map[string]struct {
		Script []string `yaml:"script"`
		After  []string `yaml:"after_script"`
	}
	ts.Check(yaml.Unmarshal([]byte(ts.ReadFile(args[0])), &file))
	job := file[args[1]]
	if len(job.Script) == 0 || len(job.After) == 0 {
		ts.Fatalf("%s has no job %q with a script and one after it", args[0], args[1])
	}
	err := ts.Exec("bash", "-eo", "pipefail", "-c", strings.Join(job.Script, "\n"))
	if (err != nil) != neg {
		ts.Fatalf("job %s: %v", args[1], err)
	}
	ts.Check(ts.Exec("bash", "-eo", "pipefail", "-c", strings.Join(job.After, "\n")))
}

var expression = regexp.MustCompile(`\$\{\{\s*(.*?)\s*\}\}`)

// evaluate answers the expressions of a text.
func evaluate(ts *testscript.TestScript, text string, values map[string]string) string {
	return expression.ReplaceAllStringFunc(text, func(m string) string {
		inner := expression.FindStringSubmatch(m)[1]
		v, ok := values[inner]
		if !ok {
			ts.Fatalf("no answer for the expression %s", inner)
		}
		return v
	})
}

func (s workflowStep) perform(ts *testscript.TestScript, values map[string]string) error {
	with := map[string]string{}
	for name, text := range s.With {
		with[name] = evaluate(ts, text, values)
	}
	if s.Uses != "" {
		return useAction(ts, s.Uses, with)
	}
	if expression.MatchString(s.Run) {
		ts.Fatalf("step %q has an expression in its script", s.Name)
	}
	var argv []string
	for name, text := range s.Env {
		argv = append(argv, name+"="+evaluate(ts, text, values))
	}
	slices.Sort(argv)
	return ts.Exec("env", append(argv, "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", s.Run)...)
}

// useAction does what the actions of the workflows would do here.
func useAction(ts *testscript.TestScript, uses string, with map[string]string) error {
	name, commit, _ := strings.Cut(uses, "@")
	if !wholeCommit.MatchString(commit) {
		ts.Fatalf("%s is not pinned by a commit", uses)
	}
	artifacts := filepath.Join(ts.Getenv("WORK"), "artifacts")
	switch name {
	case "actions/checkout", "actions/setup-go", "tandem-bench/tandem":
		return nil // the script is in its clone, with tandem and go on PATH
	case "actions/upload-artifact":
		if _, err := os.Stat(with["path"]); os.IsNotExist(err) && with["if-no-files-found"] == "ignore" {
			return nil
		}
		return os.CopyFS(filepath.Join(artifacts, with["name"]), os.DirFS(with["path"]))
	case "actions/download-artifact":
		found, err := filepath.Glob(filepath.Join(artifacts, with["pattern"]))
		for _, dir := range found {
			if err == nil {
				err = os.CopyFS(filepath.Join(with["path"], filepath.Base(dir)), os.DirFS(dir))
			}
		}
		return err
	}
	return fmt.Errorf("no stand-in for the action %s", name)
}
