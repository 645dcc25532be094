package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tandem-bench/tandem/cmd/tandem/internal/github/githubtest"
)

const comments = "/issues/12/comments"

// Where GitHub does not take the comment, the report goes to the summary and
// the job does not fail for it.
func TestCommentUnavailable(t *testing.T) {
	reset := func(d time.Duration) map[string]string {
		at := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC).Add(d)
		return map[string]string{"X-RateLimit-Limit": "1000", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": fmt.Sprint(at.Unix())}
	}
	body := func(message string) string {
		return fmt.Sprintf(`{"message": %q, "documentation_url": "https://docs.github.com/rest", "errors": [{"resource": "IssueComment", "code": "unprocessable", "field": "data", "message": "Body is spam"}]}`, message)
	}
	for name, c := range map[string]struct {
		fault  githubtest.Fault
		locked bool
		want   string
	}{
		"no right to write": {githubtest.Fault{Method: "POST", Path: comments, Times: 9, Status: 403, Body: body("Resource not accessible by integration")}, false,
			"writing the comment: status 403 (Resource not accessible by integration)"},
		"a locked conversation":  {githubtest.Fault{}, true, "a conversation that is not locked"},
		"not to be seen":         {githubtest.Fault{Method: "POST", Path: comments, Times: 9, Status: 404, Body: body("Not Found")}, false, "status 404 (Not Found)"},
		"an unwelcome content":   {githubtest.Fault{Method: "POST", Path: comments, Times: 9, Status: 422, Body: body("Validation Failed")}, false, "[data unprocessable Body is spam]"},
		"too many for long":      {githubtest.Fault{Path: comments, Times: 9, Status: 429, Header: map[string]string{"Retry-After": "600"}, Body: body("slow down")}, false, "status 429 (slow down)"},
		"a limit for an hour":    {githubtest.Fault{Path: comments, Times: 9, Status: 403, Header: reset(time.Hour), Body: body("API rate limit exceeded")}, false, "the rate limit is used up until 13:00:00 UTC"},
		"an outage":              {githubtest.Fault{Path: comments, Times: 99, Status: 503, Body: "<html>unicorn</html>"}, false, "reading the comments: status 503"},
		"an outage at the write": {githubtest.Fault{Method: "POST", Path: comments, Times: 99, Status: 502, Body: ""}, false, "it is not there, whatever GitHub answers"},
		"no connection":          {githubtest.Fault{Path: comments, Times: 99, Drop: true}, false, "no answer: EOF"},
		"another host": {githubtest.Fault{Path: comments, Times: 99, Status: 302, Header: map[string]string{"Location": "BLOBS/elsewhere"}}, false,
			"the API sends on to another host"},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t)
			j.gh.Fail(c.fault)
			j.gh.Locked = c.locked
			j.tandem(0)
			j.none(12)
			contains(t, j.stderr.String(), "The comment could not be kept up to date: ", c.want)
			contains(t, j.read("summary.md"), "could not be kept up to date", "### my-server: 3 regressed")
			for _, auth := range j.gh.BlobAuth() {
				if auth != "" {
					t.Errorf("another host got %q", auth)
				}
			}
			var waited time.Duration
			for _, d := range j.slept {
				waited += d
			}
			if waited > 10*time.Minute {
				t.Errorf("waited %v", j.slept)
			}
		})
	}
}

// What passes by itself is waited for.
func TestCommentWaits(t *testing.T) {
	at := time.Date(2026, 3, 14, 12, 0, 30, 0, time.UTC)
	secondary := `{"message": "You have exceeded a secondary rate limit", "documentation_url": "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"}`
	for name, c := range map[string]struct {
		fault githubtest.Fault
		slept []time.Duration
	}{
		"a limit until soon": {githubtest.Fault{Path: comments, Times: 1, Status: 403, Body: `{"message": "API rate limit exceeded"}`,
			Header: map[string]string{"X-RateLimit-Limit": "60", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": fmt.Sprint(at.Unix())}}, []time.Duration{31 * time.Second}},
		"a second limit": {githubtest.Fault{Method: "POST", Path: comments, Times: 1, Status: 403, Header: map[string]string{"Retry-After": "7"}, Body: secondary}, []time.Duration{7 * time.Second}},
		"too many":       {githubtest.Fault{Method: "POST", Path: comments, Times: 1, Status: 429, Header: map[string]string{"Retry-After": "3"}, Body: "{}"}, []time.Duration{3 * time.Second}},
		"two outages":    {githubtest.Fault{Path: "/pulls", Times: 2, Status: 500, Body: "{}"}, []time.Duration{time.Second, 2 * time.Second}},
		"a lost line":    {githubtest.Fault{Path: "/actions/runs/500", Times: 1, Drop: true}, []time.Duration{time.Second}},
		"no archive yet": {githubtest.Fault{Path: "/zip", Times: 1, Status: 503, Body: "{}"}, []time.Duration{time.Second}},
		// Written, and the answer lost: looked for, not written again.
		"a lost answer": {githubtest.Fault{Method: "POST", Path: comments, Times: 1, Done: true, Status: 502, Body: "{}"}, []time.Duration{lookAgain}},
		"a lost reply":  {githubtest.Fault{Method: "POST", Path: comments, Times: 1, Done: true, Drop: true}, []time.Duration{lookAgain}},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t)
			j.gh.Fail(c.fault)
			j.tandem(0)
			contains(t, j.body(12), "3 regressed")
			if fmt.Sprint(j.slept) != fmt.Sprint(c.slept) {
				t.Errorf("waited %v, want %v", j.slept, c.slept)
			}
		})
	}
}

// A comment that is deleted between the look and the write is written anew.
func TestCommentDeletedMeanwhile(t *testing.T) {
	j := newJob(t)
	j.tandem(0)
	j.measured(501, headA, still(t))
	j.gh.BeforeWrite = func(s *githubtest.Server) { s.DropComments(); s.BeforeWrite = nil }
	contains(t, j.tandem(0), "is written")
	contains(t, j.body(12), "run=501", "nothing moved")
}

func TestCommentRefusesToStart(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*job)
		code   int
		want   string
	}{
		"no token":              {func(j *job) { delete(j.env, "GITHUB_TOKEN") }, 2, "GITHUB_TOKEN is not set"},
		"a token of another":    {func(j *job) { j.env["GITHUB_TOKEN"] = "ghs_other" }, 4, "GitHub does not accept the token"},
		"no repository":         {func(j *job) { delete(j.env, "GITHUB_REPOSITORY") }, 2, `the repository is "", expected OWNER/NAME`},
		"a strange repository":  {func(j *job) { j.env["GITHUB_REPOSITORY"] = "octo/app/../other" }, 2, "expected OWNER/NAME"},
		"an open address":       {func(j *job) { j.env["GITHUB_API_URL"] = "http://github.example.com/api/v3" }, 2, "the token would be sent in the clear"},
		"an address with words": {func(j *job) { j.env["GITHUB_API_URL"] = "https://me:pass@github.example.com" }, 2, "GITHUB_API_URL is not the address of an API"},
		"no event":              {func(j *job) { delete(j.env, "GITHUB_EVENT_PATH") }, 2, "no workflow run is given"},
		"another event":         {func(j *job) { j.write("event.json", `{"pull_request": {"number": 12}}`) }, 2, "is no workflow_run"},
		"a broken event":        {func(j *job) { j.write("event.json", `{`) }, 2, "reading the event"},
		"a broken spec":         {func(j *job) { j.write("bench.yaml", "version: 1\nnam: x\n") }, 2, "nam"},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t)
			c.change(j)
			j.tandem(c.code)
			contains(t, j.stderr.String(), c.want)
			if strings.Contains(j.stderr.String(), "pass") && name == "an address with words" {
				t.Error("the address is printed with its password")
			}
		})
	}
}

// A result can also be given as a file, by a job that has fetched it.
func TestCommentFromFiles(t *testing.T) {
	j := newJob(t)
	delete(j.env, "GITHUB_EVENT_PATH")
	j.write("result.json", string(fixture(t, "moved")))
	j.write("run.zip", string(zipped(t, map[string][]byte{"result.json": still(t)})))
	j.tandem(0, "--run", "500", j.dir)
	contains(t, j.body(12), "3 regressed")
	j.tandem(0, "--run", "500", filepath.Join(j.dir, "run.zip"))
	contains(t, j.body(12), "nothing moved")
	j.tandem(0, "--run", "500", filepath.Join(j.dir, "result.json"))
	contains(t, j.body(12), "3 regressed")
	j.tandem(2, "--run", "500", filepath.Join(j.dir, "absent.json"))
	contains(t, j.stderr.String(), "absent.json")
	j.tandem(2, "a", "b")
	contains(t, j.stderr.String(), "comment takes one RESULT, found 2: a b")
}

func TestCommentRefusesALink(t *testing.T) {
	j := newJob(t)
	j.write("secret", "a secret")
	if err := os.Symlink(filepath.Join(j.dir, "secret"), filepath.Join(j.dir, "result.json")); err != nil {
		t.Fatal(err)
	}
	j.tandem(4, j.dir)
	contains(t, j.stderr.String(), "is not a plain file")
}

// Names from a result can neither mark up, mention, link nor hide anything.
func TestCommentOfHostileNames(t *testing.T) {
	names := []string{
		"a|b\nc", "`code` ```\n", "</details><details open><summary>x</summary>", "--> <!-- tandem key=", "@everyone @octo/admins #1 GH-1",
		"[x](https://evil.example)", "![x](https://evil.example/pixel.png)", "https://evil.example www.evil.example mailto:x@evil.example",
		"\u202egnp.exe\u2066", "\x1b[31mred\x1b]8;;https://evil.example\x07", "<img src=x onerror=alert(1)>", "**bold** _it_ ~~s~~ $math$ :tada: <!--",
		"::error::owned", "\r\n### heading", "&lt;b&gt;",
	}
	result := edited(t, func(doc map[string]any) {
		row := find(doc, "http/json-post", "rps")
		var rows []any
		for i, n := range names {
			r := map[string]any{}
			for k, v := range row {
				r[k] = v
			}
			r["scenario"], r["name"] = n, n
			r["warnings"] = []any{n}
			if i%2 == 0 {
				r["ratio"], r["verdict"], r["reason"] = nil, "failed", n
			}
			rows = append(rows, r)
		}
		doc["rows"], doc["warnings"], doc["partial"] = append(doc["rows"].([]any), rows...), names, names[0]
		doc["arms"].([]any)[1].(map[string]any)["label"] = names[2]
		doc["arms"].([]any)[1].(map[string]any)["revision"] = names[5]
		doc["host"].(map[string]any)["cpu"] = names[3]
		doc["tool"] = names[4]
	})
	j := newJob(t)
	j.measured(501, headA, result)
	j.tandem(0)
	body := j.body(12)
	_, rest, _ := strings.Cut(body, "\n")
	for _, tag := range []string{"<details><summary>", "</summary>", "</details>", "<sub>", "</sub>", "<pre>", "</pre>"} {
		rest = strings.ReplaceAll(rest, tag, "")
	}
	rest = strings.ReplaceAll(rest, "[run 501](https://github.com/octo/app/actions/runs/501)", "")
	for _, bad := range []string{"<", "@", "](", "![", "`", "://", "www.", "GH-", ":tada", "~~", "\x1b", "\u202e", "\u2066", "\r", "\n### h", "$math"} {
		if i := strings.Index(rest, bad); i >= 0 {
			t.Errorf("%q is obeyed: ...%s", bad, rest[max(0, i-80):min(len(rest), i+80)])
		}
	}
	for _, line := range strings.Split(rest, "\n") {
		if strings.HasPrefix(line, "| ") && strings.Count(line, "|") != 8 {
			t.Errorf("a row of %d cells: %s", strings.Count(line, "|")-1, line)
		}
	}
}

// The longest result that is read makes a comment that GitHub takes.
func TestCommentOfManyRows(t *testing.T) {
	result := edited(t, func(doc map[string]any) {
		row := find(doc, "http/json-post", "rps")
		rows := doc["rows"].([]any)
		for i := len(rows); i < 800; i++ {
			r := map[string]any{}
			for k, v := range row {
				r[k] = v
			}
			name := fmt.Sprintf("%04d%s", i, strings.Repeat("<", 60))
			r["scenario"], r["name"], r["warnings"] = name, name, []any{name + strings.Repeat("|", 1000)}
			rows = append(rows, r)
		}
		doc["rows"] = rows
	})
	j := newJob(t)
	j.measured(501, headA, result)
	j.tandem(0)
	body := j.body(12)
	if n := utf8.RuneCountInString(body); n > 65536 || n < 10000 {
		t.Errorf("%d characters", n)
	}
	contains(t, body, "left out here", "<sub>Commit a1a1a1a")
	if strings.Count(body, "<details>") != strings.Count(body, "</details>") {
		t.Error("a section is left open")
	}
}
