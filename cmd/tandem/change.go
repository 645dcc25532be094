package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/tandem-bench/tandem/spec"
)

// change is a pull or merge request, as the CI system that runs us describes
// it: by variables and files that its code cannot write.
type change struct {
	name      string // for messages: "pull request 12"
	base      string // commit of the branch that it goes to
	head      string // its own commit; empty: the one that is checked out
	fork      string // the repository that it comes from, where that is another one
	labels    []string
	secrets   bool // the job has the secrets of the repository (pull_request_target)
	ownRunner bool // the machine is not one that GitHub throws away afterwards
}

// maxPayload bounds an event file. GitHub's own limit for a payload is 25 MB.
const maxPayload = 32 << 20

// ciChange finds the change that a CI job runs for; nil where it runs for
// none, or in no CI system that is known.
func ciChange(env spec.Env) (*change, error) {
	get := func(name string) string { v, _ := env(name); return v }
	switch {
	case get("GITHUB_ACTIONS") == "true":
		return githubChange(get)
	case get("GITLAB_CI") == "true" && get("CI_MERGE_REQUEST_IID") != "":
		return gitlabChange(get), nil
	}
	return nil, nil
}

// githubEvent is what of an event's payload says whose change it is.
type githubEvent struct {
	Number      int `json:"number"`
	PullRequest *struct {
		Head   githubSide `json:"head"`
		Base   githubSide `json:"base"`
		Labels []struct {
			Name string `json:"name"`
		} `json:"labels"`
	} `json:"pull_request"`
	MergeGroup *struct {
		Head string `json:"head_sha"`
		Base string `json:"base_sha"`
	} `json:"merge_group"`
}

type githubSide struct {
	SHA  string `json:"sha"`
	Repo *struct {
		ID   int64  `json:"id"`
		Name string `json:"full_name"`
	} `json:"repo"` // null where the fork was deleted
}

func githubChange(get func(string) string) (*change, error) {
	kind := get("GITHUB_EVENT_NAME")
	if !slices.Contains([]string{"pull_request", "pull_request_target", "merge_group"}, kind) {
		return nil, nil
	}
	path := get("GITHUB_EVENT_PATH")
	event, err := readEvent(path)
	if err != nil {
		return nil, fmt.Errorf("this is a GitHub job for a %s, and its event file cannot be read (GITHUB_EVENT_PATH is %q): %w", kind, path, err)
	}
	// Runners that do not say what they are are older than the variable, and
	// GitHub's own are not.
	c := &change{secrets: kind == "pull_request_target", ownRunner: get("RUNNER_ENVIRONMENT") != "github-hosted"}
	switch p, m := event.PullRequest, event.MergeGroup; {
	case m != nil && kind == "merge_group":
		c.name, c.base, c.head = "merge group", m.Base, m.Head
	case p != nil && kind != "merge_group":
		c.name, c.base, c.head = "pull request "+strconv.Itoa(event.Number), p.Base.SHA, p.Head.SHA
		for _, l := range p.Labels {
			c.labels = append(c.labels, l.Name)
		}
		switch h, b := p.Head.Repo, p.Base.Repo; {
		case h == nil:
			c.fork = "a fork that is deleted"
		case b == nil || h.ID != b.ID:
			c.fork = h.Name
		}
	}
	if c.base == "" || c.head == "" {
		return nil, fmt.Errorf("the event file %s names no base and head of the %s: it is not the payload of one", path, kind)
	}
	return c, nil
}

func readEvent(path string) (*githubEvent, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxPayload+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxPayload {
		return nil, fmt.Errorf("it is longer than %d MiB", maxPayload>>20)
	}
	event := new(githubEvent)
	return event, json.Unmarshal(data, event)
}

// gitlabChange reads GitLab's variables of a merge request pipeline.
func gitlabChange(get func(string) string) *change {
	c := &change{name: "merge request " + get("CI_MERGE_REQUEST_IID")}
	// The tip of the target branch is known in merged-results pipelines only;
	// the other is the merge base itself.
	for _, name := range []string{"CI_MERGE_REQUEST_TARGET_BRANCH_SHA", "CI_MERGE_REQUEST_DIFF_BASE_SHA"} {
		if c.base == "" {
			c.base = get(name)
		}
	}
	for _, name := range []string{"CI_MERGE_REQUEST_SOURCE_BRANCH_SHA", "CI_COMMIT_SHA"} {
		if c.head == "" {
			c.head = get(name)
		}
	}
	if get("CI_MERGE_REQUEST_SOURCE_PROJECT_ID") != get("CI_MERGE_REQUEST_PROJECT_ID") {
		c.fork = get("CI_MERGE_REQUEST_SOURCE_PROJECT_PATH")
	}
	for _, l := range strings.Split(get("CI_MERGE_REQUEST_LABELS"), ",") {
		if l != "" {
			c.labels = append(c.labels, l)
		}
	}
	return c
}

// mayRun refuses to run a stranger's code where that is dangerous.
func (c *change) mayRun(allowed bool) error {
	const how = "if that is meant, run with --allow-fork"
	switch {
	case c == nil || c.fork == "" || allowed:
		return nil
	case c.secrets:
		return notMeasured(fmt.Errorf("%s comes from %s, and a job on pull_request_target holds this repository's token and secrets, which the code under test could take: use the event pull_request; %s", c.name, c.fork, how))
	case c.ownRunner:
		return notMeasured(fmt.Errorf("%s comes from %s, and this runner is self-hosted: what a stranger's code leaves on it, later jobs would run into; use a runner that GitHub hosts, or one that is thrown away after each job; %s", c.name, c.fork, how))
	}
	return nil
}
