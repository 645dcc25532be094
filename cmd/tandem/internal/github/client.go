// Package github is the one place that talks to GitHub's API: it finds the
// pull request of a workflow run, fetches the run's artifact, and keeps a
// comment. The verb comment calls it, in a job that has a token and never runs
// the code under test.
//
// What GitHub answers is believed; what a pull request's author can choose
// (names, branches, titles, the artifact) is only ever compared or passed on.
package github

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/go-github/v93/github"
)

// Options say where the API is and who asks.
type Options struct {
	API       string // GITHUB_API_URL; "" means https://api.github.com
	Repo      string // OWNER/NAME
	Token     string
	UserAgent string
	Sleep     func(context.Context, time.Duration) error
	Now       func() time.Time
}

// Client asks the API about one repository.
type Client struct {
	gh          *github.Client
	owner, repo string
	download    *http.Client // carries no token
	sleep       func(context.Context, time.Duration) error
	now         func() time.Time
}

const (
	requestTimeout  = 30 * time.Second
	downloadTimeout = 5 * time.Minute
	// What a job waits for GitHub at most, in all, and how often it asks
	// again after a failure of GitHub's own.
	patience = 2 * time.Minute
	attempts = 4
)

// New makes a client.
func New(o Options) (*Client, error) {
	owner, repo, ok := strings.Cut(o.Repo, "/")
	if !ok || owner == "" || repo == "" || strings.ContainsAny(repo, "/?#%") || strings.ContainsAny(owner, "?#%") {
		return nil, fmt.Errorf("the repository is %q, expected OWNER/NAME", o.Repo)
	}
	api, err := apiURL(o.API)
	if err != nil {
		return nil, err
	}
	base := api.String()
	gh, err := github.NewClient(
		github.WithHTTPClient(&http.Client{Timeout: requestTimeout, CheckRedirect: stayOn(api)}),
		github.WithURLs(&base, &base), // nothing is sent to any other host's uploads
		github.WithAuthToken(o.Token),
		github.WithUserAgent(o.UserAgent),
		github.WithDisableRateLimitCheck(), // patience here, once
	)
	if err != nil {
		return nil, fmt.Errorf("making a client of %s: %w", api.Redacted(), err)
	}
	return &Client{gh: gh, owner: owner, repo: repo, download: downloader(api), sleep: o.Sleep, now: o.Now}, nil
}

// apiURL checks the API's address: the token goes there, so it must be
// encrypted on any network.
func apiURL(text string) (*url.URL, error) {
	if text == "" {
		text = "https://api.github.com"
	}
	u, err := url.Parse(strings.TrimSuffix(text, "/") + "/")
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("GITHUB_API_URL is not the address of an API, expected one such as https://github.example.com/api/v3")
	}
	if u.Scheme != "https" && !(u.Scheme == "http" && loopback(u)) {
		return nil, fmt.Errorf("GITHUB_API_URL begins with %s://, expected https://: the token would be sent in the clear", u.Scheme)
	}
	return u, nil
}

func loopback(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return ip != nil && ip.IsLoopback()
}

// stayOn follows redirects within the API's host, as for a renamed
// repository, and refuses every other.
func stayOn(api *url.URL) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		if req.URL.Scheme != api.Scheme || req.URL.Host != api.Host {
			return fmt.Errorf("the API sends on to another host (%s)", req.URL.Host)
		}
		if len(via) >= 5 {
			return errors.New("the API sends on more than five times")
		}
		return nil
	}
}

// downloader fetches artifacts from wherever GitHub keeps them, with no token.
func downloader(api *url.URL) *http.Client {
	return &http.Client{
		Timeout: downloadTimeout,
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if req.URL.Scheme != api.Scheme || len(via) >= 5 {
				return errors.New("the artifact's address sends on in a way that is not followed")
			}
			return nil
		},
	}
}

// Unavailable says that GitHub did not do what was asked of it, for a reason
// that is not the caller's: a right that the token lacks, a limit, an outage.
type Unavailable struct {
	Doing string
	Err   error
}

func (u *Unavailable) Error() string { return u.Doing + ": " + u.Err.Error() }
func (u *Unavailable) Unwrap() error { return u.Err }

// ErrToken says that GitHub does not know the token.
var ErrToken = errors.New("GitHub does not accept the token: is GITHUB_TOKEN that of this job, and not expired?")

// maybeDone says that a request may have been carried out although its answer
// is lost.
type maybeDone struct{ error }

func (m maybeDone) Unwrap() error { return m.error }

// do makes a request until it is answered, as far as patience goes. once
// keeps it from being repeated where it may have been carried out.
func (c *Client) do(ctx context.Context, doing string, once bool, request func() (*github.Response, error)) error {
	deadline := c.now().Add(patience)
	for attempt := 1; ; attempt++ {
		resp, err := request()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		wait, again, done := c.retry(resp, err, attempt)
		switch {
		case done && once:
			return maybeDone{&Unavailable{doing, explain(resp, err)}}
		case !again || attempt == attempts || c.now().Add(wait).After(deadline):
			if statusOf(resp) == http.StatusUnauthorized {
				return ErrToken
			}
			return &Unavailable{doing, explain(resp, err)}
		}
		if err := c.sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// retry says how long to wait before asking again, whether to, and whether the
// request may have been carried out.
func (c *Client) retry(resp *github.Response, err error, attempt int) (wait time.Duration, again, done bool) {
	backoff := time.Second << (attempt - 1)
	var primary *github.RateLimitError
	var secondary *github.AbuseRateLimitError
	switch {
	case errors.As(err, &primary):
		// A second more, for clocks that differ.
		return max(primary.Rate.Reset.Sub(c.now())+time.Second, time.Second), true, false
	case errors.As(err, &secondary):
		if secondary.RetryAfter != nil {
			return *secondary.RetryAfter, true, false
		}
		return time.Minute, true, false
	}
	status := statusOf(resp)
	switch {
	case status == http.StatusTooManyRequests:
		return retryAfter(resp, backoff), true, false
	case status >= 500:
		return retryAfter(resp, backoff), true, true
	case status == 0: // no answer: the connection failed, at either end of the request
		return backoff, true, true
	}
	return 0, false, false
}

func statusOf(resp *github.Response) int {
	if resp == nil || resp.Response == nil {
		return 0
	}
	return resp.StatusCode
}

func retryAfter(resp *github.Response, otherwise time.Duration) time.Duration {
	var seconds int
	if _, err := fmt.Sscan(resp.Header.Get("Retry-After"), &seconds); err != nil || seconds < 0 {
		return otherwise
	}
	return time.Duration(seconds) * time.Second
}

// explain says what GitHub answered and what to do, without the address: an
// artifact's holds a signature.
func explain(resp *github.Response, err error) error {
	var primary *github.RateLimitError
	if errors.As(err, &primary) {
		return fmt.Errorf("the rate limit is used up until %s", primary.Rate.Reset.UTC().Format("15:04:05 MST"))
	}
	var secondary *github.AbuseRateLimitError
	if errors.As(err, &secondary) {
		return errors.New("GitHub asks to slow down (a secondary rate limit)")
	}
	status := statusOf(resp)
	var u *url.Error
	if errors.As(err, &u) {
		return fmt.Errorf("no answer: %w", u.Err)
	}
	if status == 0 {
		return fmt.Errorf("no answer: %w", err)
	}
	message := ""
	var answer *github.ErrorResponse
	if errors.As(err, &answer) && answer.Message != "" {
		message = fmt.Sprintf(" (%.200s)", answer.Message)
		for _, e := range answer.Errors[:min(len(answer.Errors), 2)] {
			message += fmt.Sprintf(" [%.100s %.100s %.200s]", e.Field, e.Code, e.Message)
		}
	}
	hint := map[int]string{
		http.StatusForbidden:           "; the job needs the permissions pull-requests: write, actions: read, contents: read, and a conversation that is not locked",
		http.StatusNotFound:            "; it is gone, or the token may not see it",
		http.StatusUnprocessableEntity: "; GitHub does not take this content",
	}[status]
	return fmt.Errorf("status %d%s%s", status, message, hint)
}
