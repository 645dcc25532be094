package github

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/google/go-github/v93/github"
)

// MaxArtifact is how large an artifact may be.
const MaxArtifact = 512 << 20

var (
	// ErrNoArtifact says that a run has left no artifact of the name.
	ErrNoArtifact = errors.New("the run left no such artifact")
	// ErrTooLarge says that an artifact is longer than MaxArtifact.
	ErrTooLarge = fmt.Errorf("the artifact has more than %d MiB", MaxArtifact>>20)
)

// Artifact writes the zip archive of a run's artifact to w. Of several with
// the name, which later attempts of a run leave, it is the last.
func (c *Client) Artifact(ctx context.Context, run Run, name string, w io.Writer) error {
	var found *github.Artifact
	o := firstPage()
	err := c.pages(ctx, "listing the run's artifacts", &o, func() (*github.Response, error) {
		page, resp, err := c.gh.Actions.ListWorkflowRunArtifacts(ctx, c.owner, c.repo, run.ID, &o)
		if err != nil {
			return resp, err
		}
		for _, a := range page.Artifacts {
			if a.GetName() == name && !a.GetExpired() && a.GetID() > found.GetID() {
				found = a
			}
		}
		return resp, nil
	})
	if err != nil {
		return err
	}
	if found == nil {
		return fmt.Errorf("%w: %q", ErrNoArtifact, name)
	}
	if found.GetSizeInBytes() > MaxArtifact {
		return ErrTooLarge
	}
	var location *url.URL
	err = c.do(ctx, "asking for the artifact", false, func() (resp *github.Response, err error) {
		location, resp, err = c.gh.Actions.DownloadArtifact(ctx, c.owner, c.repo, found.GetID(), 3)
		return resp, err
	})
	if err != nil {
		return err
	}
	return c.fetch(ctx, location, w)
}

// fetch reads the archive from where GitHub keeps it: another host, which
// gets no token, by an address that is a secret of its own.
func (c *Client) fetch(ctx context.Context, location *url.URL, w io.Writer) error {
	const doing = "fetching the artifact"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, location.String(), nil)
	if err != nil {
		return errors.New(doing + ": GitHub's answer names no address that could be fetched")
	}
	resp, err := c.download.Do(req)
	if err != nil {
		return &Unavailable{doing, explain(nil, err)}
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return &Unavailable{doing, fmt.Errorf("%s answered with status %d", location.Host, resp.StatusCode)}
	}
	n, err := io.Copy(w, io.LimitReader(resp.Body, MaxArtifact+1))
	if err != nil {
		return &Unavailable{doing, err}
	}
	if n > MaxArtifact {
		return ErrTooLarge
	}
	return nil
}
