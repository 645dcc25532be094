package main

import (
	"archive/zip"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tandem-bench/tandem/cmd/tandem/internal/github/githubtest"
)

type githubKey struct{}

// githubCommand is GitHub for a script, with pull request 12 from a fork.
//
//	github start          starts it, and sets the environment of a job
//	github run ID DIR     a run of the pull request's head left DIR as its artifact
//	github comments FILE  writes the bodies of the pull request's comments to FILE
func githubCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: github start|run|comments")
	}
	gh, _ := ts.Value(githubKey{}).(**githubtest.Server)
	head := strings.Repeat("a1", 20)
	switch {
	case args[0] == "start" && *gh == nil:
		*gh = githubtest.New()
		ts.Defer((*gh).Close)
		(*gh).AddPull(githubtest.Pull{Number: 12, State: "open", HeadRepo: 99, HeadOwner: "fork", Branch: "topic", Commit: head, Base: "main"})
		for name, value := range map[string]string{
			"GITHUB_ACTIONS": "true", "GITHUB_TOKEN": githubtest.Token, "GITHUB_REPOSITORY": githubtest.Repo, "GITHUB_API_URL": (*gh).URL(),
			"GITHUB_EVENT_PATH": ts.MkAbs("event.json"), "GITHUB_STEP_SUMMARY": ts.MkAbs("summary.md"),
		} {
			ts.Setenv(name, value)
		}
	case args[0] == "run" && len(args) == 3:
		var id int64
		fmt.Sscan(args[1], &id)
		(*gh).AddRun(githubtest.Run{ID: id, Attempt: 1, Event: "pull_request", Path: benchWorkflow, Conclusion: "success", HeadRepo: 99, HeadOwner: "fork", Branch: "topic", Commit: head})
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		ts.Check(z.AddFS(os.DirFS(ts.MkAbs(args[2]))))
		ts.Check(z.Close())
		(*gh).AddArtifact(id, benchArtifact, b.Bytes())
		event := fmt.Sprintf(`{"action": "completed", "workflow_run": {"id": %d}}`, id)
		ts.Check(os.WriteFile(ts.MkAbs("event.json"), []byte(event), 0o644))
	case args[0] == "comments" && len(args) == 2:
		var bodies []string
		for _, c := range (*gh).Comments(12) {
			bodies = append(bodies, c.Body)
		}
		ts.Check(os.WriteFile(filepath.Clean(ts.MkAbs(args[1])), []byte(strings.Join(bodies, "\n")), 0o644))
	default:
		ts.Fatalf("usage: github start|run ID DIR|comments FILE")
	}
}
