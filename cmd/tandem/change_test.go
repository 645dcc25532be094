package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// event writes a payload and returns the environment of its job.
func jobEnv(t *testing.T, payload string, vars map[string]string) func(string) (string, bool) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "event.json")
	if err := os.WriteFile(path, []byte(payload), 0o644); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{"GITHUB_ACTIONS": "true", "GITHUB_EVENT_NAME": "pull_request", "GITHUB_EVENT_PATH": path, "RUNNER_ENVIRONMENT": "github-hosted"}
	for k, v := range vars {
		all[k] = v
	}
	return func(name string) (string, bool) { v, ok := all[name]; return v, ok }
}

const (
	ownPull = `{"number":12,"pull_request":{"labels":[{"name":"a"},{"name":"b c"}],
		"head":{"sha":"h1","repo":{"id":1,"full_name":"o/r"}},"base":{"sha":"b1","repo":{"id":1,"full_name":"o/r"}}}}`
	forkPull = `{"number":13,"pull_request":{"head":{"sha":"h1","ref":"main","repo":{"id":2,"full_name":"mallory/r"}},"base":{"sha":"b1","repo":{"id":1,"full_name":"o/r"}}}}`
	gonePull = `{"number":14,"pull_request":{"head":{"sha":"h1","repo":null},"base":{"sha":"b1","repo":{"id":1,"full_name":"o/r"}}}}`
	group    = `{"merge_group":{"head_sha":"h2","base_sha":"b2"}}`
)

func TestChangeOfACIJob(t *testing.T) {
	for _, c := range []struct {
		name    string
		payload string
		vars    map[string]string
		want    *change
	}{
		{"a pull request", ownPull, nil, &change{name: "pull request 12", base: "b1", head: "h1", labels: []string{"a", "b c"}}},
		{"from a fork", forkPull, nil, &change{name: "pull request 13", base: "b1", head: "h1", fork: "mallory/r"}},
		{"from a deleted fork", gonePull, nil, &change{name: "pull request 14", base: "b1", head: "h1", fork: "a fork that is deleted"}},
		{"with secrets", forkPull, map[string]string{"GITHUB_EVENT_NAME": "pull_request_target"}, &change{name: "pull request 13", base: "b1", head: "h1", fork: "mallory/r", secrets: true}},
		{"self-hosted", ownPull, map[string]string{"RUNNER_ENVIRONMENT": "self-hosted"}, &change{name: "pull request 12", base: "b1", head: "h1", labels: []string{"a", "b c"}, ownRunner: true}},
		{"a runner that does not say", forkPull, map[string]string{"RUNNER_ENVIRONMENT": ""}, &change{name: "pull request 13", base: "b1", head: "h1", fork: "mallory/r", ownRunner: true}},
		{"a merge group", group, map[string]string{"GITHUB_EVENT_NAME": "merge_group"}, &change{name: "merge group", base: "b2", head: "h2"}},
		{"a push", ownPull, map[string]string{"GITHUB_EVENT_NAME": "push"}, nil},
		{"no CI", ownPull, map[string]string{"GITHUB_ACTIONS": ""}, nil},
		{"GitLab, no merge request", "", map[string]string{"GITHUB_ACTIONS": "", "GITLAB_CI": "true"}, nil},
		{"GitLab", "", map[string]string{
			"GITHUB_ACTIONS": "", "GITLAB_CI": "true", "CI_MERGE_REQUEST_IID": "3", "CI_MERGE_REQUEST_DIFF_BASE_SHA": "m", "CI_COMMIT_SHA": "h",
			"CI_MERGE_REQUEST_LABELS": "x,y", "CI_MERGE_REQUEST_PROJECT_ID": "1", "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "1",
		}, &change{name: "merge request 3", base: "m", head: "h", labels: []string{"x", "y"}}},
		{"GitLab, merged results of a fork", "", map[string]string{
			"GITHUB_ACTIONS": "", "GITLAB_CI": "true", "CI_MERGE_REQUEST_IID": "3", "CI_MERGE_REQUEST_DIFF_BASE_SHA": "m", "CI_COMMIT_SHA": "merged",
			"CI_MERGE_REQUEST_TARGET_BRANCH_SHA": "t", "CI_MERGE_REQUEST_SOURCE_BRANCH_SHA": "h",
			"CI_MERGE_REQUEST_PROJECT_ID": "1", "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "2", "CI_MERGE_REQUEST_SOURCE_PROJECT_PATH": "mallory/r",
		}, &change{name: "merge request 3", base: "t", head: "h", fork: "mallory/r"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ciChange(jobEnv(t, c.payload, c.vars))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(change{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEventFilesThatAreNone(t *testing.T) {
	for payload, want := range map[string]string{
		"":                      "cannot be read",
		"[]":                    "cannot be read",
		"{}":                    "names no base and head",
		group:                   "names no base and head",
		`{"pull_request":null}`: "names no base and head",
		`{"pull_request":{"head":{"sha":"h"},"base":{}}}`: "names no base and head",
		strings.Repeat(" ", maxPayload+1):                 "longer than 32 MiB",
	} {
		if _, err := ciChange(jobEnv(t, payload, nil)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", payload, err, want)
		}
	}
	if _, err := ciChange(jobEnv(t, ownPull, map[string]string{"GITHUB_EVENT_PATH": "/none"})); err == nil {
		t.Error("a missing event file is no error")
	}
}

func TestForksMayRunOnlyWhereTheyCanDoNoHarm(t *testing.T) {
	for _, c := range []struct {
		change  *change
		allowed bool
		want    string
	}{
		{nil, false, ""},
		{&change{ownRunner: true, secrets: true}, false, ""},
		{&change{fork: "mallory/r"}, false, ""},
		{&change{name: "pull request 1", fork: "mallory/r", ownRunner: true}, false, "this runner is self-hosted"},
		{&change{name: "pull request 1", fork: "mallory/r", secrets: true}, false, "token and secrets"},
		{&change{name: "pull request 1", fork: "mallory/r", ownRunner: true, secrets: true}, true, ""},
	} {
		err := c.change.mayRun(c.allowed)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.change, err, c.want)
		}
	}
}
