package github

import (
	"context"
	"strings"

	"github.com/google/go-github/v93/github"
)

// Run is a workflow run, as GitHub records it.
type Run struct {
	ID         int64
	Attempt    int
	Event      string // what triggered it: pull_request, push, ...
	Path       string // of its workflow file
	Conclusion string
	URL        string

	HeadRepo  int64  // 0 where the repository is gone
	HeadOwner string // its owner
	Branch    string
	Commit    string
}

// Run looks up a workflow run.
func (c *Client) Run(ctx context.Context, id int64) (Run, error) {
	var run *github.WorkflowRun
	err := c.do(ctx, "looking up the workflow run", false, func() (resp *github.Response, err error) {
		run, resp, err = c.gh.Actions.GetWorkflowRunByID(ctx, c.owner, c.repo, id)
		return resp, err
	})
	if err != nil {
		return Run{}, err
	}
	// A path can carry the revision behind an @.
	path, _, _ := strings.Cut(run.GetPath(), "@")
	return Run{
		ID: run.GetID(), Attempt: run.GetRunAttempt(), Event: run.GetEvent(), Path: path,
		Conclusion: run.GetConclusion(), URL: run.GetHTMLURL(),
		HeadRepo: run.GetHeadRepository().GetID(), HeadOwner: run.GetHeadRepository().GetOwner().GetLogin(),
		Branch: run.GetHeadBranch(), Commit: run.GetHeadSHA(),
	}, nil
}

// Pull is a pull request, as far as a comment needs it.
type Pull struct {
	Number   int
	Open     bool
	HeadRepo int64
	Branch   string
	Commit   string
	Labels   []string
}

// From reports whether the run was made for the pull request's branch, be it
// of another commit. The repository's ID tells a fork's branch from a branch
// of the same name elsewhere.
func (p Pull) From(r Run) bool {
	return p.Open && r.HeadRepo != 0 && p.HeadRepo == r.HeadRepo && p.Branch == r.Branch
}

func pullOf(pr *github.PullRequest) Pull {
	p := Pull{
		Number: pr.GetNumber(), Open: pr.GetState() == "open",
		HeadRepo: pr.GetHead().GetRepo().GetID(), Branch: pr.GetHead().GetRef(), Commit: pr.GetHead().GetSHA(),
	}
	if pr != nil {
		for _, l := range pr.Labels {
			p.Labels = append(p.Labels, l.GetName())
		}
	}
	return p
}

// Pulls lists the open pull requests of the run's branch, whatever commit
// they are at by now.
func (c *Client) Pulls(ctx context.Context, run Run) ([]Pull, error) {
	if run.HeadRepo == 0 || run.HeadOwner == "" || run.Branch == "" {
		return nil, nil
	}
	var found []Pull
	o := &github.PullRequestListOptions{State: "open", Head: run.HeadOwner + ":" + run.Branch, ListOptions: firstPage()}
	err := c.pages(ctx, "looking for the pull request", &o.ListOptions, func() (*github.Response, error) {
		page, resp, err := c.gh.PullRequests.List(ctx, c.owner, c.repo, o)
		for _, pr := range page {
			// The filter is by names; a fork of a fork can bear both.
			if p := pullOf(pr); p.From(run) {
				found = append(found, p)
			}
		}
		return resp, err
	})
	return found, err
}

// Pull looks one pull request up again.
func (c *Client) Pull(ctx context.Context, number int) (Pull, error) {
	var pr *github.PullRequest
	err := c.do(ctx, "looking up the pull request", false, func() (resp *github.Response, err error) {
		pr, resp, err = c.gh.PullRequests.Get(ctx, c.owner, c.repo, number)
		return resp, err
	})
	return pullOf(pr), err
}

// MostFiles is how many files of a pull request GitHub lists.
const MostFiles = 3000

// Files lists the files that a pull request adds, changes, renames or deletes,
// by both names of a renamed one, up to [MostFiles].
func (c *Client) Files(ctx context.Context, number int) ([]string, error) {
	var files []string
	o := firstPage()
	err := c.pages(ctx, "listing the files of the pull request", &o, func() (*github.Response, error) {
		page, resp, err := c.gh.PullRequests.ListFiles(ctx, c.owner, c.repo, number, &o)
		for _, f := range page {
			files = append(files, f.GetFilename())
			if old := f.GetPreviousFilename(); old != "" {
				files = append(files, old)
			}
		}
		return resp, err
	})
	return files, err
}

func firstPage() github.ListOptions { return github.ListOptions{PerPage: 100, Page: 1} }

// maxPages ends a list that does not end by itself.
const maxPages = 100

// pages reads a list to its end. list reads the page that o names.
func (c *Client) pages(ctx context.Context, doing string, o *github.ListOptions, list func() (*github.Response, error)) error {
	for range maxPages {
		next := 0
		err := c.do(ctx, doing, false, func() (*github.Response, error) {
			resp, err := list()
			if err == nil {
				next = resp.NextPage
			}
			return resp, err
		})
		if err != nil || next == 0 {
			return err
		}
		o.Page = next
	}
	return nil
}
