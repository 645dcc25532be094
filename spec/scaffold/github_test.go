package scaffold

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rhysd/actionlint"
	"gopkg.in/yaml.v3"
)

const someCommit = "0123456789abcdef0123456789abcdef01234567"

// variants are the workflows that init can write.
func variants(t *testing.T) map[string]File {
	t.Helper()
	out := map[string]File{}
	for name, o := range map[string]WorkflowOptions{
		"whole":  {Tandem: someCommit},
		"shards": {Tandem: someCommit, Label: "v1.2.3", Shards: 4},
		"most":   {Tandem: someCommit, Shards: MaxShards},
		"below":  {Tandem: someCommit, File: "services/api/bench.yaml", Shards: 2},
	} {
		files, err := Workflows(o)
		if err != nil || len(files) != 2 {
			t.Fatal(len(files), err)
		}
		for _, f := range files {
			out[name+" "+f.Path] = f
		}
	}
	return out
}

func TestWorkflowsPassActionlint(t *testing.T) {
	for name, f := range variants(t) {
		l, err := actionlint.NewLinter(io.Discard, &actionlint.LinterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		found, err := l.Lint(f.Path, []byte(f.Text), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range found {
			t.Errorf("%s: %v\n%s", name, e, f.Text)
		}
	}
}

// workflow is what of a workflow the audits below look at.
type workflow struct {
	On          map[string]any `yaml:"on"`
	Permissions map[string]any `yaml:"permissions"`
	Concurrency map[string]any `yaml:"concurrency"`
	Jobs        map[string]job `yaml:"jobs"`
}

type job struct {
	RunsOn      string            `yaml:"runs-on"`
	Timeout     int               `yaml:"timeout-minutes"`
	Permissions map[string]string `yaml:"permissions"`
	Steps       []step            `yaml:"steps"`
}

type step struct {
	If      string            `yaml:"if"`
	Uses    string            `yaml:"uses"`
	Run     string            `yaml:"run"`
	Shell   string            `yaml:"shell"`
	Timeout int               `yaml:"timeout-minutes"`
	With    map[string]string `yaml:"with"`
	Env     map[string]string `yaml:"env"`
}

var (
	pinned      = regexp.MustCompile(`^[a-z-]+/[a-z-]+@[0-9a-f]{40}$`)
	pinnedLine  = regexp.MustCompile(`uses: actions/\S+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	fixedRunner = regexp.MustCompile(`^ubuntu-\d\d\.\d\d$`)
)

// audit looks for what zizmor would complain of in a list of steps: actions
// that can be moved, credentials left in a checkout, expressions in scripts.
func audit(steps []step) (found []string) {
	complain := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	for i, s := range steps {
		if s.Uses != "" && !pinned.MatchString(s.Uses) {
			complain("step %d: %q is not pinned by a commit", i, s.Uses)
		}
		if strings.HasPrefix(s.Uses, "actions/checkout@") && s.With["persist-credentials"] != "false" {
			complain("step %d: the checkout keeps its credentials", i)
		}
		if strings.HasPrefix(s.Uses, "actions/setup-go@") && s.With["cache"] != "false" {
			complain("step %d: a cache that jobs share can be poisoned", i)
		}
		if strings.Contains(s.Run, "${{") {
			complain("step %d: an expression in a script: %q", i, s.Run)
		}
		if s.Run != "" && strings.Contains(s.Shell, "${{") {
			complain("step %d: an expression chooses the shell", i)
		}
	}
	return found
}

func TestWorkflowsAreSafe(t *testing.T) {
	for name, f := range variants(t) {
		var w workflow
		if err := yaml.Unmarshal([]byte(f.Text), &w); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for line := range strings.Lines(f.Text) {
			if line = strings.TrimRight(line, "\n"); strings.Contains(line, "uses: actions/") && !pinnedLine.MatchString(line) {
				t.Errorf("%s: no version beside the commit: %s", name, line)
			}
		}
		if strings.Contains(f.Text, "secrets") && !strings.HasPrefix(f.Text, "#") || strings.Contains(f.Text, "secrets.") || strings.Contains(f.Text, "[[") {
			t.Errorf("%s: secrets, or an open template", name)
		}
		if len(w.Concurrency) == 0 || len(w.Jobs) == 0 {
			t.Errorf("%s: %d jobs, concurrency %v", name, len(w.Jobs), w.Concurrency)
		}
		for id, j := range w.Jobs {
			for _, complaint := range audit(j.Steps) {
				t.Errorf("%s, job %s: %s", name, id, complaint)
			}
			if !fixedRunner.MatchString(j.RunsOn) || j.Timeout == 0 {
				t.Errorf("%s, job %s: runs on %q for at most %d minutes", name, id, j.RunsOn, j.Timeout)
			}
			for _, s := range j.Steps {
				if s.Run != "" && (s.Timeout == 0 || s.Timeout >= j.Timeout) {
					t.Errorf("%s, job %s: %q may take %d minutes of the job's %d", name, id, s.Run, s.Timeout, j.Timeout)
				}
				if strings.HasPrefix(s.Uses, "actions/upload-artifact@") && s.If != "${{ always() }}" {
					t.Errorf("%s, job %s: uploads only if %q", name, id, s.If)
				}
			}
		}
	}
}

// The job that runs the code of the pull request can do nothing, and the job
// that can do something runs nothing of it.
func TestWorkflowsKeepRightsAndCodeApart(t *testing.T) {
	for name, f := range variants(t) {
		var w workflow
		if err := yaml.Unmarshal([]byte(f.Text), &w); err != nil {
			t.Fatal(err)
		}
		var events []string
		for e := range w.On {
			events = append(events, e)
		}
		slices.Sort(events)
		if strings.HasSuffix(f.Path, "/bench.yml") {
			if fmt.Sprint(events, w.Permissions) != "[merge_group pull_request] map[contents:read]" {
				t.Errorf("%s: on %v with %v", name, events, w.Permissions)
			}
			for id, j := range w.Jobs {
				if j.Permissions != nil {
					t.Errorf("%s: job %s has rights of its own: %v", name, id, j.Permissions)
				}
			}
			if strings.Contains(f.Text, "github.token") || strings.Contains(f.Text, "GITHUB_TOKEN") {
				t.Errorf("%s names a token", name)
			}
			continue
		}
		rights := w.Jobs["comment"].Permissions
		if fmt.Sprint(events, w.Permissions, rights) != "[workflow_run] map[] map[actions:read contents:read pull-requests:write]" {
			t.Errorf("%s: on %v with %v and %v", name, events, w.Permissions, rights)
		}
		for _, s := range w.Jobs["comment"].Steps {
			if s.With["ref"] != "" || s.With["repository"] != "" || s.Run != "" && !strings.HasPrefix(s.Run, "tandem comment") {
				t.Errorf("%s: a step that may touch the pull request: %+v", name, s)
			}
		}
	}
}

// The audit above would notice: each weakening of a workflow is found.
func TestAuditFindsWeaknesses(t *testing.T) {
	for _, s := range []step{
		{Uses: "actions/checkout@v4", With: map[string]string{"persist-credentials": "false"}},
		{Uses: "actions/checkout@" + someCommit},
		{Uses: "actions/setup-go@" + someCommit},
		{Run: "echo ${{ github.event.pull_request.title }}"},
	} {
		if len(audit([]step{s})) == 0 {
			t.Errorf("nothing is wrong with %+v", s)
		}
	}
}

func TestActionIsSafe(t *testing.T) {
	text, err := os.ReadFile("../../action.yml")
	if err != nil {
		t.Fatal(err)
	}
	var action struct {
		Inputs map[string]any `yaml:"inputs"`
		Runs   struct {
			Using string `yaml:"using"`
			Steps []step `yaml:"steps"`
		} `yaml:"runs"`
	}
	if err := yaml.Unmarshal(text, &action); err != nil {
		t.Fatal(err)
	}
	if action.Runs.Using != "composite" || len(action.Runs.Steps) < 3 {
		t.Fatalf("%+v", action.Runs)
	}
	for _, complaint := range audit(action.Runs.Steps) {
		t.Error(complaint)
	}
	for name := range action.Inputs {
		for i, s := range action.Runs.Steps {
			if s.Run != "" && strings.Contains(s.Run, "inputs."+name) {
				t.Errorf("step %d takes input %s into its script", i, name)
			}
		}
	}
	// actionlint reads an action where a workflow uses it.
	use := "on: push\njobs:\n  a:\n    runs-on: ubuntu-24.04\n    steps:\n      - uses: ./\n        with: { args: run }\n"
	project, err := actionlint.NewProject("../..")
	if err != nil {
		t.Fatal(err)
	}
	l, err := actionlint.NewLinter(io.Discard, &actionlint.LinterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found, err := l.Lint(".github/workflows/use.yml", []byte(use), project)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range found {
		t.Error(e)
	}
}

func TestWorkflowsRefuse(t *testing.T) {
	for _, o := range []WorkflowOptions{
		{}, {Tandem: "v1"}, {Tandem: strings.ToUpper(someCommit)}, {Tandem: someCommit, Shards: MaxShards + 1}, {Tandem: someCommit, Shards: -1},
		{Tandem: someCommit, File: "a b/bench.yaml"}, {Tandem: someCommit, File: "$(id)/bench.yaml"}, {Tandem: someCommit, File: "../bench.yaml"}, {Tandem: someCommit, File: "-x/bench.yaml"},
	} {
		if _, err := Workflows(o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}
