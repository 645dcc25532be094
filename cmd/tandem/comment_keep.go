package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tandem-bench/tandem/cmd/tandem/internal/github"
	"github.com/tandem-bench/tandem/report"
	"github.com/tandem-bench/tandem/report/comment"
	"github.com/tandem-bench/tandem/spec"
)

// commenter keeps the comment of one workflow run's pull request.
type commenter struct {
	app    *app
	gh     *github.Client
	spec   *spec.Spec
	flags  commentFlags
	result string

	run      github.Run
	source   comment.Source
	author   string
	analysis *report.Analysis // judged by the trusted spec; nil where there is none
}

// keep does all that a workflow run asks for, and says in a sentence what.
func (c *commenter) keep(ctx context.Context, e event) (said string, err error) {
	if c.run, err = c.gh.Run(ctx, e.run); err != nil {
		return "", err
	}
	if why := c.notOurs(); why != "" {
		return "No comment: " + why + ".", nil
	}
	name := c.specName()
	c.source = comment.Source{
		Key:  comment.Key(name, c.app.profile, c.flags.workflow, c.flags.artifact),
		Head: c.run.Commit, Run: c.run.ID, Attempt: c.run.Attempt, RunURL: c.run.URL, Spec: name,
	}
	pulls, err := c.gh.Pulls(ctx, c.run)
	if err != nil {
		return "", err
	}
	if len(pulls) == 0 {
		return fmt.Sprintf("No comment: no open pull request comes from the branch %q of the run's repository.", c.run.Branch), nil
	}
	if c.author = c.flags.author; c.author == "" {
		if c.author, err = c.gh.Login(ctx); err != nil {
			return "", err
		}
	}
	measured, marked, err := c.sort(ctx, pulls, e.action == "completed")
	switch {
	case err != nil:
		return "", err
	case e.action != "completed":
		return fmt.Sprintf("The run is %s: %s marked as outdated.", strings.ReplaceAll(e.action, "_", " "), count(marked, "comment")), nil
	case len(measured) == 0:
		return fmt.Sprintf("No comment: the pull request has moved on from %s, which the run measured.", comment.Short(c.run.Commit)), nil
	case len(measured) > 1:
		return fmt.Sprintf("No comment: %d open pull requests are of the same branch and commit, and the run does not say which of them it measured.", len(measured)), nil
	}
	return c.comment(ctx, measured[0])
}

// notOurs says why the run is not to be commented on; "" where it is.
func (c *commenter) notOurs() string {
	switch {
	case c.run.Path != c.flags.workflow:
		// Anybody can give a workflow the name that starts this job.
		return fmt.Sprintf("the run is of the workflow %q, and %q measures (--workflow)", c.run.Path, c.flags.workflow)
	case c.run.Event != "pull_request":
		return fmt.Sprintf("the run was started by %q, and only those of a pull request get a comment", c.run.Event)
	case c.run.HeadRepo == 0:
		return "the repository that the run came from is gone"
	case c.run.Commit == "":
		return "GitHub does not say which commit the run measured"
	}
	return ""
}

// specName is the spec's path from the top of its repository.
func (c *commenter) specName() string {
	name := c.spec.Path
	if abs, err := filepath.Abs(name); err == nil {
		if rel, err := filepath.Rel(filepath.Dir(stateDir(filepath.Dir(abs))), abs); err == nil {
			name = rel
		}
	}
	return filepath.ToSlash(filepath.Clean(name))
}

// sort marks the comments of pull requests that are at another commit by now,
// and returns those that the run is of. A run that has only begun makes every
// earlier comment outdated.
func (c *commenter) sort(ctx context.Context, pulls []github.Pull, completed bool) (measured []github.Pull, marked int, err error) {
	for _, p := range pulls {
		if completed && p.Commit == c.run.Commit {
			measured = append(measured, p)
			continue
		}
		done, err := c.markStale(ctx, p)
		if err != nil {
			return nil, 0, err
		}
		if done {
			marked++
		}
	}
	return measured, marked, nil
}

// markStale marks our comment where it is of another commit than the pull
// request is at.
func (c *commenter) markStale(ctx context.Context, p github.Pull) (bool, error) {
	own, err := c.own(ctx, p.Number)
	if err != nil || len(own) == 0 {
		return false, err
	}
	body := comment.Stale(own[0].Body, p.Commit)
	if sameText(body, own[0].Body) {
		return false, nil
	}
	_, gone, err := c.gh.Update(ctx, own[0].ID, body)
	if gone {
		return false, nil
	}
	return err == nil, err
}

// own lists our comments of a pull request, the oldest first: those with the
// marker of this spec and job, written by who we are. Anybody can copy a
// marker, and only we can write as ourselves.
func (c *commenter) own(ctx context.Context, pull int) ([]github.Comment, error) {
	all, err := c.gh.Comments(ctx, pull)
	if err != nil {
		return nil, err
	}
	var own []github.Comment
	for _, x := range all {
		if m, ok := comment.ParseMarker(x.Body); ok && m.Key == c.source.Key && x.Author == c.author {
			own = append(own, x)
		}
	}
	return own, nil
}

// comment makes the comment's text and posts it.
func (c *commenter) comment(ctx context.Context, p github.Pull) (string, error) {
	changed, approved, err := c.changes(ctx, p)
	if err != nil {
		return "", err
	}
	a, err := c.readResult(ctx)
	if err == nil {
		if why := judge(a, c.spec, c.run.Commit, changed, approved); why != nil {
			err = &refusedResult{why}
		}
	}
	var refused *refusedResult
	var body, problem string
	wanted := c.flags.when == string(comment.Always)
	switch {
	case err == nil:
		c.analysis = a
		wanted = comment.When(c.flags.when).Wants(a)
		if body, err = comment.Render(a, c.source); err != nil {
			return "", err
		}
	case errors.Is(err, comment.ErrNoResult), errors.Is(err, github.ErrNoArtifact):
		problem = fmt.Sprintf("The run ended as %q before it had a result; its log says why.", c.run.Conclusion)
		err = nil
	case errors.As(err, &refused):
		problem = "The run's result is refused, and nothing of it is shown: " + err.Error()
	default:
		return "", err
	}
	if problem != "" {
		body = comment.RenderProblem(problem, c.source)
	}
	said, postErr := c.post(ctx, p, body, wanted)
	if postErr != nil {
		return said, postErr
	}
	return said, err
}

// lookAgain is when a comment that may have been written shows in the list.
const lookAgain = 2 * time.Second

// changes lists what the pull request changes of the benchmark itself, as
// GitHub says it, and the label that the policy asks for, if it has that.
func (c *commenter) changes(ctx context.Context, p github.Pull) (changed []string, approved string, err error) {
	files, err := c.gh.Files(ctx, p.Number)
	if err != nil {
		return nil, "", err
	}
	// The spec's own folder is where it names files from; a command may name
	// them from the top of the tree.
	own := c.specName()
	watched := []string{own, c.flags.workflow} // which measures, and could upload what it likes
	for _, name := range c.spec.Harness() {
		watched = append(watched, path.Join(path.Dir(own), name), path.Clean(name))
	}
	for _, f := range files {
		if slices.ContainsFunc(watched, func(w string) bool { return f == w || strings.HasPrefix(f, w+"/") }) {
			changed = append(changed, f)
		}
	}
	if len(files) >= github.MostFiles {
		changed = append(changed, "more files than GitHub lists")
	}
	slices.Sort(changed)
	if label := c.spec.Policy.SpecChangedLabel; slices.Contains(p.Labels, label) {
		approved = label
	}
	return slices.Compact(changed), approved, nil
}

// post writes the comment, or updates it, or leaves it.
func (c *commenter) post(ctx context.Context, p github.Pull, body string, wanted bool) (string, error) {
	// Each turn looks at the comments anew: the answer of a write can be
	// lost, and a comment deleted meanwhile.
	for range 3 {
		own, err := c.own(ctx, p.Number)
		if err != nil {
			return "", err
		}
		if len(own) == 0 && !wanted {
			return fmt.Sprintf("No comment on pull request %d: nothing to say by --when %s.", p.Number, c.flags.when), nil
		}
		if said, done, err := c.left(ctx, p, own, body); done || err != nil {
			return said, err
		}
		var made github.Comment
		did := "updated"
		if len(own) == 0 {
			did = "written"
			if made, err = c.gh.Create(ctx, p.Number, body); github.MaybeWritten(err) {
				if err := c.app.sleep(ctx, lookAgain); err != nil {
					return "", err
				}
				continue
			}
		} else {
			var gone bool
			if made, gone, err = c.gh.Update(ctx, own[0].ID, body); gone {
				continue
			}
		}
		if err != nil {
			return "", err
		}
		return c.posted(ctx, p, made, own, did)
	}
	return "", &github.Unavailable{Doing: "writing the comment", Err: errors.New("it is not there, whatever GitHub answers")}
}

// left says why the comment is left as it is, if it is.
func (c *commenter) left(ctx context.Context, p github.Pull, own []github.Comment, body string) (said string, done bool, err error) {
	if len(own) > 0 {
		if m, _ := comment.ParseMarker(own[0].Body); m.Newer(c.source) {
			return fmt.Sprintf("The comment on pull request %d is left: it is of a later run.", p.Number), true, nil
		}
		if len(own) == 1 && sameText(own[0].Body, body) {
			return fmt.Sprintf("The comment on pull request %d is true already: %s", p.Number, own[0].URL), true, nil
		}
	}
	// The last look before the write: a comment must not say of a new head
	// what was measured of an old one.
	now, err := c.gh.Pull(ctx, p.Number)
	switch {
	case err != nil:
		return "", false, err
	case !now.From(c.run):
		return fmt.Sprintf("No comment: pull request %d is closed, or of another branch now.", p.Number), true, nil
	case now.Commit != c.run.Commit:
		_, err := c.markStale(ctx, now)
		return fmt.Sprintf("No comment: pull request %d has moved on from %s, which the run measured.", p.Number, comment.Short(c.run.Commit)), true, err
	}
	return "", false, nil
}

// posted tidies up after a write and says what was done.
func (c *commenter) posted(ctx context.Context, p github.Pull, made github.Comment, own []github.Comment, did string) (string, error) {
	// Two jobs at once can both have written a first comment.
	for i := 1; i < len(own); i++ {
		if err := c.gh.Delete(ctx, own[i].ID); err != nil {
			return "", err
		}
	}
	said := fmt.Sprintf("The comment on pull request %d is %s: %s", p.Number, did, made.URL)
	if made.Author != c.author {
		said += fmt.Sprintf(" (as %q: give --author %q, or the next run will not know it for its own)", made.Author, made.Author)
	}
	c.app.complain("writing the step's outputs", c.app.setOutputs([]output{{"comment", made.URL}}))
	return said, nil
}

// sameText compares as GitHub keeps texts: it may change line ends.
func sameText(a, b string) bool {
	plain := func(s string) string { return strings.TrimSpace(strings.ReplaceAll(s, "\r\n", "\n")) }
	return plain(a) == plain(b)
}
