package github

import (
	"context"
	"errors"
	"net/http"

	"github.com/google/go-github/v93/github"
)

// ActionsBot is who GITHUB_TOKEN comments as. No person can have the name.
const ActionsBot = "github-actions[bot]"

// Comment is one comment of a pull request.
type Comment struct {
	ID     int64
	Author string
	Body   string
	URL    string
}

func commentOf(c *github.IssueComment) Comment {
	return Comment{ID: c.GetID(), Author: c.GetUser().GetLogin(), Body: c.GetBody(), URL: c.GetHTMLURL()}
}

// Login is who the token comments as. The token of a workflow may not ask,
// and is the bot's.
func (c *Client) Login(ctx context.Context) (string, error) {
	var user *github.User
	status := 0
	err := c.do(ctx, "asking who the token is", false, func() (resp *github.Response, err error) {
		user, resp, err = c.gh.Users.Get(ctx, "")
		status = statusOf(resp)
		return resp, err
	})
	var gone *Unavailable
	if errors.As(err, &gone) && (status == http.StatusForbidden || status == http.StatusNotFound) {
		return ActionsBot, nil
	}
	return user.GetLogin(), err
}

// Comments lists every comment of a pull request, the oldest first.
func (c *Client) Comments(ctx context.Context, pull int) ([]Comment, error) {
	var all []Comment
	o := &github.IssueListCommentsOptions{ListOptions: firstPage()}
	err := c.pages(ctx, "reading the comments", &o.ListOptions, func() (*github.Response, error) {
		page, resp, err := c.gh.Issues.ListComments(ctx, c.owner, c.repo, pull, o)
		for _, comment := range page {
			all = append(all, commentOf(comment))
		}
		return resp, err
	})
	return all, err
}

// Create writes a comment. Where its answer is lost it is not written again,
// and [MaybeWritten] says so of the error.
func (c *Client) Create(ctx context.Context, pull int, body string) (Comment, error) {
	var made *github.IssueComment
	err := c.do(ctx, "writing the comment", true, func() (resp *github.Response, err error) {
		made, resp, err = c.gh.Issues.CreateComment(ctx, c.owner, c.repo, pull, github.IssueCommentRequest{Body: body})
		return resp, err
	})
	return commentOf(made), err
}

// MaybeWritten reports whether the comment may have been written although
// Create failed: look before writing it again.
func MaybeWritten(err error) bool {
	var m maybeDone
	return errors.As(err, &m)
}

// Update writes a comment over. gone says that the comment is not there any
// more.
func (c *Client) Update(ctx context.Context, id int64, body string) (updated Comment, gone bool, err error) {
	var made *github.IssueComment
	status := 0
	err = c.do(ctx, "updating the comment", false, func() (resp *github.Response, err error) {
		made, resp, err = c.gh.Issues.UpdateComment(ctx, c.owner, c.repo, id, github.IssueCommentRequest{Body: body})
		status = statusOf(resp)
		return resp, err
	})
	return commentOf(made), err != nil && (status == http.StatusNotFound || status == http.StatusGone), err
}

// Delete takes a comment away; one that is gone already is no failure.
func (c *Client) Delete(ctx context.Context, id int64) error {
	status := 0
	err := c.do(ctx, "deleting a second comment", false, func() (*github.Response, error) {
		resp, err := c.gh.Issues.DeleteComment(ctx, c.owner, c.repo, id)
		status = statusOf(resp)
		return resp, err
	})
	if status == http.StatusNotFound {
		return nil
	}
	return err
}
