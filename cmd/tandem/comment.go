package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-bench/tandem/cmd/tandem/internal/github"
	"github.com/tandem-bench/tandem/report"
	"github.com/tandem-bench/tandem/report/comment"
	"github.com/tandem-bench/tandem/runner/journal"
	"github.com/tandem-bench/tandem/spec"
)

type commentFlags struct {
	when     string
	artifact string
	workflow string
	author   string
	run      int64
}

// The names that the workflows of 'tandem init --github' use.
const (
	benchArtifact = "tandem-run"
	benchWorkflow = ".github/workflows/bench.yml"
)

func (a *app) commentCmd() *cobra.Command {
	var f commentFlags
	cmd := &cobra.Command{
		Use:   "comment [RESULT]",
		Short: "Keep one comment of a pull request up to date",
		Long: `Makes the comment of a pull request from a run that another job made, and keeps
it true: one comment a spec and job, updated in place, marked as outdated once
the pull request has moved on. It is made for a workflow_run workflow, whose
token may write comments and which never runs the pull request's code.

The result is taken as data that anybody may have written: it is judged and
gated again by the spec of -f. RESULT is a run's folder, its result.json or its
zip archive; without it, the artifact of the workflow run is fetched. The pull
request is found by the run's repository, branch and commit, as GitHub says
them.

The token is read from GITHUB_TOKEN; GITHUB_REPOSITORY, GITHUB_EVENT_PATH and
GITHUB_API_URL say the rest, as in a job of GitHub Actions. Where GitHub does
not take the comment, the report goes to the job summary and the exit code
is 0.`,
		Example: `  tandem comment
  tandem comment --when regressed --workflow .github/workflows/bench.yml
  tandem comment --run 9876543210 run.zip`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageErrorf("comment takes one RESULT, found %d: %s", len(args), strings.Join(args, " "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.comment(cmd.Context(), f, append(args, "")[0])
		},
	}
	a.specFlags(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.when, "when", string(comment.Always), "write a first comment: always, changed or regressed; once written it is kept true")
	fl.StringVar(&f.artifact, "artifact", benchArtifact, "name of the artifact that holds the run's folder")
	fl.StringVar(&f.workflow, "workflow", benchWorkflow, "path of the workflow that measures; runs of any other are left alone")
	fl.StringVar(&f.author, "author", "", "login that the token comments as (default: asked of GitHub, or "+github.ActionsBot+")")
	fl.Int64Var(&f.run, "run", 0, "ID of the workflow run (default: that of the workflow_run event)")
	return cmd
}

// commentTimeout ends a job that waits for GitHub.
const commentTimeout = 10 * time.Minute

func (a *app) comment(ctx context.Context, f commentFlags, result string) error {
	switch comment.When(f.when) {
	case comment.Always, comment.Changed, comment.Regressed:
	default:
		return usageErrorf("--when: found %q, expected always, changed or regressed", f.when)
	}
	s, err := a.load()
	if err != nil {
		return err
	}
	event, err := a.commentEvent(f)
	if err != nil {
		return err
	}
	gh, err := a.github()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, commentTimeout)
	defer cancel()
	c := &commenter{app: a, gh: gh, spec: s, flags: f, result: result}
	said, err := c.keep(ctx, event)
	var exit *exitError
	var refused *refusedResult
	var unavailable *github.Unavailable
	switch {
	case errors.As(err, &exit):
		return err
	case errors.As(err, &refused):
		a.complain("telling the job summary", a.noteSummary(said+"\n\n"+err.Error()))
		return notMeasured(err)
	case errors.As(err, &unavailable), errors.Is(err, context.DeadlineExceeded):
		return a.fallBack(c, err)
	case err != nil:
		return notMeasured(err)
	}
	a.complain("telling the job summary", a.noteSummary(said))
	_, err = fmt.Fprintln(a.stdout, said)
	return err
}

// fallBack puts the report where it can be read although GitHub did not take
// the comment.
func (a *app) fallBack(c *commenter, why error) error {
	text := "The comment could not be kept up to date: " + why.Error()
	fmt.Fprintln(a.stderr, "tandem:", text)
	a.complain("telling the job summary", a.noteSummary(text))
	if c.analysis == nil {
		return nil
	}
	if path, _ := a.env("GITHUB_STEP_SUMMARY"); path != "" {
		a.complain("writing the job summary", a.summarizeRun(c.analysis))
		return nil
	}
	return a.show(c.analysis, "text")
}

// noteSummary adds a paragraph to the job summary.
func (a *app) noteSummary(text string) error {
	return a.addSummary(func(w io.Writer, _ int) error {
		_, err := io.WriteString(w, report.EscapeMarkdown(text)+"\n")
		return err
	})
}

// github makes a client from the environment.
func (a *app) github() (*github.Client, error) {
	token, _ := a.env("GITHUB_TOKEN")
	if strings.TrimSpace(token) == "" {
		return nil, usageErrorf("GITHUB_TOKEN is not set: give the step 'env: { GITHUB_TOKEN: ${{ github.token }} }'")
	}
	repo, _ := a.env("GITHUB_REPOSITORY")
	api, _ := a.env("GITHUB_API_URL")
	gh, err := github.New(github.Options{
		API: api, Repo: repo, Token: strings.TrimSpace(token), UserAgent: "tandem/" + strings.ReplaceAll(version(), " ", "-"),
		Now: a.now, Sleep: a.sleep,
	})
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	return gh, nil
}

// event is what triggered the job.
type event struct {
	run    int64
	action string // requested, in_progress or completed
}

// maxEvent is more than GitHub sends (25 MB).
const maxEvent = 32 << 20

// commentEvent finds the workflow run: by --run, or in the event's payload,
// which GitHub writes.
func (a *app) commentEvent(f commentFlags) (event, error) {
	if f.run != 0 {
		return event{f.run, "completed"}, nil
	}
	path, _ := a.env("GITHUB_EVENT_PATH")
	if path == "" {
		return event{}, usageErrorf("no workflow run is given: name one by --run, or run this in a workflow that a workflow_run event starts")
	}
	file, err := os.Open(path)
	if err != nil {
		return event{}, &exitError{exitUsage, fmt.Errorf("reading the event (GITHUB_EVENT_PATH): %w", err)}
	}
	defer file.Close()
	var payload struct {
		Action string `json:"action"`
		Run    struct {
			ID int64 `json:"id"`
		} `json:"workflow_run"`
	}
	if err := json.NewDecoder(io.LimitReader(file, maxEvent)).Decode(&payload); err != nil {
		return event{}, &exitError{exitUsage, fmt.Errorf("reading the event (GITHUB_EVENT_PATH): %w", err)}
	}
	if payload.Run.ID == 0 {
		return event{}, usageErrorf("the event that started this job is no workflow_run: start it by 'on: workflow_run', or name a run by --run")
	}
	return event{payload.Run.ID, payload.Action}, nil
}

// refusedResult is a result that is not taken: no run of Tandem makes it.
type refusedResult struct{ error }

func (r *refusedResult) Unwrap() error { return r.error }

// readResult reads a result from a file, a folder, or the run's artifact.
func (c *commenter) readResult(ctx context.Context) (*report.Analysis, error) {
	if c.result == "" {
		return c.fetchResult(ctx)
	}
	path := c.result
	if info, err := os.Lstat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, comment.ResultName)
		if !exists(path) {
			return nil, comment.ErrNoResult
		}
	}
	// What unpacked it may have made a link of it.
	info, err := os.Lstat(path)
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	if !info.Mode().IsRegular() {
		return nil, &refusedResult{fmt.Errorf("%s is not a plain file", path)}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	defer f.Close()
	return readOpened(f)
}

// fetchResult reads the result in the artifact of the workflow run.
func (c *commenter) fetchResult(ctx context.Context) (*report.Analysis, error) {
	f, err := os.CreateTemp("", "tandem-artifact-*")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if err := c.gh.Artifact(ctx, c.run, c.flags.artifact, f); errors.Is(err, github.ErrTooLarge) {
		return nil, &refusedResult{err}
	} else if err != nil {
		return nil, err
	}
	return readOpened(f)
}

// readOpened reads a zip archive or a result.json, whichever it is.
func readOpened(f *os.File) (*report.Analysis, error) {
	var start [2]byte
	if _, err := f.ReadAt(start[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	var a *report.Analysis
	var err error
	if string(start[:]) == "PK" {
		var info os.FileInfo
		if info, err = f.Stat(); err != nil {
			return nil, err
		}
		a, err = comment.ReadArchive(f, info.Size())
	} else if _, err = f.Seek(0, io.SeekStart); err == nil {
		a, err = report.ReadUntrusted(f)
	}
	if err != nil && !errors.Is(err, comment.ErrNoResult) {
		return nil, &refusedResult{err}
	}
	return a, err
}

// judge gates a result by the trusted spec, and refuses one that says of itself
// that it is of another commit than the run. changed is what the pull request
// changes of the benchmark, and approved the label that allows it.
func judge(a *report.Analysis, s *spec.Spec, commit string, changed []string, approved string) error {
	origin := journal.Origin{}
	if a.Header.Origin != nil {
		origin = *a.Header.Origin
	}
	switch {
	case a.Header.Same:
		return errors.New("it is of a same-code run, which says nothing of the pull request")
	case a.Header.Shard != "":
		return fmt.Errorf("it is shard %.10q of a run: join the shards first, by tandem merge", a.Header.Shard)
	case origin.Head != "" && origin.Head != commit:
		return fmt.Errorf("it is of commit %.12q, and the workflow run of %.12q", origin.Head, commit)
	}
	// A filter would excuse rows for being absent, and is a claim. So is what
	// the result says of changes to the benchmark.
	a.Header.Filter = nil
	origin.Changed, origin.Approved = changed, approved
	a.Header.Origin = &origin
	if err := a.Regate(s); err != nil {
		return err
	}
	a.Spec.Name = s.Name
	return nil
}
