package main

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tandem-bench/tandem/cmd/tandem/internal/github/githubtest"
	"github.com/tandem-bench/tandem/report/comment"
)

// The commits of the tests, as git writes them.
var (
	headA = strings.Repeat("a1", 20)
	headB = strings.Repeat("b2", 20)
)

const trustedSpec = `version: 1
name: my-server
arms:
  base: { git: main }
  head: { dir: . }
server:
  command: node server.js --port ${port}
  ready: { http: / }
scenarios:
  http/hello-world: { http: { path: / } }
  http/json-post: { http: { path: /json } }
  http/large-body: { http: { path: /large } }
judge: [rps, cpu_per_request]
thresholds:
  - { metric: rps, fail: 'worse > max(noise, 0.03)', message: throughput fell }
`

// job is a trusted job in front of a server: pull request 12, from the branch
// topic of a fork, at headA, which run 500 has measured.
type job struct {
	t      *testing.T
	gh     *githubtest.Server
	dir    string
	env    map[string]string
	now    time.Time
	slept  []time.Duration
	stdout bytes.Buffer
	stderr bytes.Buffer
}

func newJob(t *testing.T) *job {
	t.Helper()
	gh := githubtest.New()
	t.Cleanup(gh.Close)
	dir := t.TempDir()
	j := &job{t: t, gh: gh, dir: dir, now: time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC), env: map[string]string{
		"GITHUB_ACTIONS": "true", "GITHUB_TOKEN": githubtest.Token, "GITHUB_REPOSITORY": githubtest.Repo, "GITHUB_API_URL": gh.URL(),
		"GITHUB_EVENT_PATH": filepath.Join(dir, "event.json"), "GITHUB_STEP_SUMMARY": filepath.Join(dir, "summary.md"), "GITHUB_OUTPUT": filepath.Join(dir, "output"),
	}}
	j.write("bench.yaml", trustedSpec)
	j.gh.AddPull(githubtest.Pull{Number: 12, State: "open", HeadRepo: 99, HeadOwner: "fork", Branch: "topic", Commit: headA, Base: "main"})
	j.measured(500, headA, fixture(t, "moved"))
	return j
}

// measured adds a run of the pull request with its artifact, and makes it the
// event.
func (j *job) measured(run int64, commit string, result []byte) {
	j.gh.AddRun(githubtest.Run{ID: run, Attempt: 1, Event: "pull_request", Path: benchWorkflow, Conclusion: "success", HeadRepo: 99, HeadOwner: "fork", Branch: "topic", Commit: commit})
	if result != nil {
		j.gh.AddArtifact(run, benchArtifact, zipped(j.t, map[string][]byte{"result.json": result, "journal.jsonl": []byte("{}\n"), "logs/build.txt": []byte("x")}))
	}
	j.event(run, "completed")
}

func (j *job) event(run int64, action string) {
	j.write("event.json", fmt.Sprintf(`{"action": %q, "workflow_run": {"id": %d, "name": "bench", "path": "lie", "pull_requests": [{"number": 1}]}}`, action, run))
}

func (j *job) write(name, text string) {
	j.t.Helper()
	if err := os.WriteFile(filepath.Join(j.dir, name), []byte(text), 0o644); err != nil {
		j.t.Fatal(err)
	}
}

func (j *job) read(name string) string {
	data, err := os.ReadFile(filepath.Join(j.dir, name))
	if err != nil && !os.IsNotExist(err) {
		j.t.Fatal(err)
	}
	return string(data)
}

// tandem runs the verb, and fails unless it exits with the code.
func (j *job) tandem(code int, args ...string) string {
	j.t.Helper()
	j.stdout.Reset()
	j.stderr.Reset()
	j.slept = nil
	a := &app{
		stdin: strings.NewReader(""), stdout: &j.stdout, stderr: &j.stderr,
		env: func(name string) (string, bool) { v, ok := j.env[name]; return v, ok },
		now: func() time.Time { return j.now },
		sleep: func(_ context.Context, d time.Duration) error {
			j.slept = append(j.slept, d)
			j.now = j.now.Add(d)
			return nil
		},
	}
	args = append([]string{"comment", "-f", filepath.Join(j.dir, "bench.yaml")}, args...)
	if got := a.execute(args); got != code {
		j.t.Fatalf("exit code %d, want %d\nstdout: %s\nstderr: %s", got, code, &j.stdout, &j.stderr)
	}
	everything := j.stdout.String() + j.stderr.String() + j.read("summary.md") + j.read("output")
	if strings.Contains(everything, githubtest.Token) || strings.Contains(everything, "secret-signature") {
		j.t.Errorf("a secret is printed:\n%s", everything)
	}
	return j.stdout.String()
}

// body is the one comment of a pull request.
func (j *job) body(pull int) string {
	j.t.Helper()
	all := j.gh.Comments(pull)
	if len(all) != 1 {
		j.t.Fatalf("pull request %d has %d comments, want one: %+v", pull, len(all), all)
	}
	return all[0].Body
}

func (j *job) none(pull int) {
	j.t.Helper()
	if all := j.gh.Comments(pull); len(all) != 0 {
		j.t.Errorf("pull request %d has the comments %+v", pull, all)
	}
}

// fixture is a result.json of the report's golden files.
func fixture(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../report/testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// still is the fixture "moved" as it would be had nothing moved: every row
// holds the figures of one that did not.
func still(t *testing.T) []byte {
	return edited(t, func(doc map[string]any) {
		for _, m := range []string{"rps", "cpu_per_request", "latency.p99"} {
			calm := find(doc, "http/hello-world", m)
			for _, s := range []string{"http/json-post", "http/large-body"} {
				r := find(doc, s, m)
				for k, v := range calm {
					if k != "scenario" && k != "name" {
						r[k] = v
					}
				}
			}
		}
	})
}

func edited(t *testing.T, change func(doc map[string]any)) []byte {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(fixture(t, "moved"), &doc); err != nil {
		t.Fatal(err)
	}
	change(doc)
	out, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func find(doc map[string]any, scenario, metric string) map[string]any {
	for _, r := range doc["rows"].([]any) {
		if r := r.(map[string]any); r["scenario"] == scenario && r["metric"] == metric {
			return r
		}
	}
	panic("no row " + scenario + " " + metric)
}

func zipped(t *testing.T, files map[string][]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, data := range files {
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write(data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func contains(t *testing.T, text string, wants ...string) {
	t.Helper()
	for _, w := range wants {
		if !strings.Contains(text, w) {
			t.Errorf("it lacks %q:\n%s", w, text)
		}
	}
}

func TestCommentIsWrittenOnceAndKept(t *testing.T) {
	j := newJob(t)
	contains(t, j.tandem(0), "The comment on pull request 12 is written: https://github.com/octo/app/pull/12#issuecomment-")
	first := j.body(12)
	contains(t, first, "<!-- tandem key=", " head="+headA+" run=500 attempt=1 -->\n", "### my-server: 3 regressed", "throughput fell",
		"Commit a1a1a1a, [run 500](https://github.com/octo/app/actions/runs/500)", "this repository's own bench.yaml")
	contains(t, j.read("output"), "comment<<tandem_", "#issuecomment-")

	// The same again: left as it is.
	before := len(j.gh.Writes())
	contains(t, j.tandem(0), "is true already")
	if writes := j.gh.Writes(); len(writes) != before {
		t.Errorf("written again: %v", writes)
	}

	// A new head, without the regression: updated in place, whatever --when.
	id := j.gh.Comments(12)[0].ID
	j.gh.MovePull(12, headB)
	j.measured(501, headB, still(t))
	contains(t, j.tandem(0, "--when", "regressed"), "is updated")
	contains(t, j.body(12), "head="+headB, "nothing moved (passed)")
	if now := j.gh.Comments(12)[0]; now.ID != id || strings.Contains(now.Body, "**regressed**") {
		t.Errorf("comment %d was %d:\n%s", now.ID, id, now.Body)
	}

	// The artifacts' host, which is not GitHub's API, got no token.
	for _, auth := range j.gh.BlobAuth() {
		if auth != "" {
			t.Errorf("the artifacts' host got %q", auth)
		}
	}
}

func TestCommentWhen(t *testing.T) {
	calm, fails := still(t), edited(t, func(doc map[string]any) {
		for _, m := range []string{"rps", "cpu_per_request", "latency.p99"} {
			r := find(doc, "http/json-post", m)
			r["verdict"], r["ratio"], r["reason"] = "failed", nil, "the server ended"
		}
	})
	for _, c := range []struct {
		when   string
		result []byte
		wanted bool
	}{
		{"always", calm, true}, {"changed", calm, false}, {"regressed", calm, false},
		{"changed", fails, true}, {"regressed", fails, false},
		{"changed", fixture(t, "moved"), true}, {"regressed", fixture(t, "moved"), true},
	} {
		j := newJob(t)
		j.measured(501, headA, c.result)
		said := j.tandem(0, "--when", c.when)
		if got := len(j.gh.Comments(12)) == 1; got != c.wanted {
			t.Errorf("--when %s: written %v, want %v: %s", c.when, got, c.wanted, said)
		}
	}
	j := newJob(t)
	j.tandem(2, "--when", "never")
	contains(t, j.stderr.String(), `--when: found "never", expected always, changed or regressed`)
}

// The verdicts, gates and markdown in a result are nothing to the comment.
func TestCommentGatesAgain(t *testing.T) {
	j := newJob(t)
	j.measured(501, headA, edited(t, func(doc map[string]any) {
		doc["gates"], doc["outcome"], doc["name"] = []any{}, "passed", "@everyone looks **good**"
		doc["markdown"], doc["pull_request"], doc["number"] = "# [owned](https://evil.example)", 99, 99
		for _, r := range doc["rows"].([]any) {
			r := r.(map[string]any)
			r["marked"], r["verdict"], r["better"] = false, "same", "lower"
		}
	}))
	j.gh.AddPull(githubtest.Pull{Number: 99, State: "open", HeadRepo: 7, HeadOwner: "octo", Branch: "other", Commit: headA, Base: "main"})
	j.tandem(0)
	body := j.body(12)
	contains(t, body, "### my-server: 3 regressed", "(failed)", "fail: http/json-post req/s: throughput fell")
	if strings.Contains(body, "owned") || strings.Contains(body, "everyone") {
		t.Errorf("the result's own texts are shown:\n%s", body)
	}
	j.none(99)
}

func TestCommentFindsThePullRequest(t *testing.T) {
	other := func(number int, edit func(*githubtest.Pull)) func(*job) {
		return func(j *job) {
			p := githubtest.Pull{Number: number, State: "open", HeadRepo: 99, HeadOwner: "fork", Branch: "topic", Commit: headA, Base: "main"}
			edit(&p)
			j.gh.AddPull(p)
		}
	}
	run := func(edit func(*githubtest.Run)) func(*job) {
		return func(j *job) {
			r := githubtest.Run{ID: 500, Attempt: 1, Event: "pull_request", Path: benchWorkflow, Conclusion: "success", HeadRepo: 99, HeadOwner: "fork", Branch: "topic", Commit: headA}
			edit(&r)
			j.gh.AddRun(r)
		}
	}
	for name, c := range map[string]struct {
		change func(*job)
		said   string
		on     int // the pull request that gets the comment; 0: none
	}{
		"another branch at the same commit":  {other(13, func(p *githubtest.Pull) { p.Branch = "twin" }), "12 is written", 12},
		"another fork at the same commit":    {other(13, func(p *githubtest.Pull) { p.HeadRepo, p.HeadOwner = 98, "twin" }), "12 is written", 12},
		"a second fork of one owner":         {other(13, func(p *githubtest.Pull) { p.HeadRepo = 98 }), "12 is written", 12},
		"two bases of one branch and commit": {other(13, func(p *githubtest.Pull) { p.Base = "release" }), "2 open pull requests are of the same branch and commit", 0},
		"a closed one of the same branch":    {other(13, func(p *githubtest.Pull) { p.State = "closed" }), "12 is written", 12},
		"a fork's branch named main": {func(j *job) {
			other(13, func(p *githubtest.Pull) { p.Branch = "main" })(j)
			other(14, func(p *githubtest.Pull) { p.HeadRepo, p.HeadOwner, p.Branch = githubtest.RepoID, "octo", "main" })(j)
			run(func(r *githubtest.Run) { r.Branch = "main" })(j)
		}, "13 is written", 13},
		"a deleted fork":              {run(func(r *githubtest.Run) { r.HeadRepo = 0 }), "the repository that the run came from is gone", 0},
		"a closed pull request":       {func(j *job) { j.gh.ClosePull(12) }, "no open pull request comes from the branch \"topic\"", 0},
		"a workflow at another path":  {run(func(r *githubtest.Run) { r.Path = ".github/workflows/evil.yml" }), `of the workflow ".github/workflows/evil.yml"`, 0},
		"the path with a revision":    {run(func(r *githubtest.Run) { r.Path += "@refs/pull/12/merge" }), "12 is written", 12},
		"a push":                      {run(func(r *githubtest.Run) { r.Event = "push" }), `started by "push"`, 0},
		"a head that moved before":    {func(j *job) { j.gh.MovePull(12, headB) }, "has moved on from a1a1a1a", 0},
		"a head that moves meanwhile": {func(j *job) { j.gh.OnGet = func(s *githubtest.Server, path string) { s.Move(12, headB) } }, "has moved on from a1a1a1a", 0},
		"a close meanwhile": {func(j *job) {
			j.gh.OnGet = func(s *githubtest.Server, path string) { s.ClosePull(12) }
		}, "pull request 12 is closed", 0},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t)
			c.change(j)
			contains(t, j.tandem(0), c.said)
			contains(t, j.read("summary.md"), "omment")
			for _, n := range []int{1, 12, 13, 14} {
				if n != c.on {
					j.none(n)
				} else {
					j.body(n)
				}
			}
		})
	}
}

func TestCommentIsFoundByMarkerAndAuthor(t *testing.T) {
	j := newJob(t)
	j.gh.PageSize = 7
	j.tandem(0)
	ours := j.gh.Comments(12)[0]

	// On another server: the marker by others, in another place, of another
	// spec; and ours on a later page.
	k := newJob(t)
	k.gh.PageSize = 7
	old := strings.Replace(ours.Body, "run=500", "run=499", 1)
	k.gh.AddComment(12, "mallory", old)
	k.gh.AddComment(12, "github-actions", old)
	k.gh.AddComment(12, "github-actions[bot]", "> "+old)
	k.gh.AddComment(12, "github-actions[bot]", strings.Replace(old, "key=", "key=0", 1))
	k.gh.AddComment(12, "github-actions[bot]", comment.Marker{Key: "0123456789abcdef", Head: headA, Run: 1, Attempt: 1}.String()+"\nof another spec")
	for i := range 30 {
		k.gh.AddComment(12, "reviewer", fmt.Sprint("remark ", i))
	}
	id := k.gh.AddComment(12, "github-actions[bot]", strings.ReplaceAll(old, "\n", "\r\n"))
	second := k.gh.AddComment(12, "github-actions[bot]", old)
	before := k.gh.Comments(12)
	contains(t, k.tandem(0), "is updated")
	after := k.gh.Comments(12)
	if len(after) != len(before)-1 {
		t.Fatalf("%d comments, were %d", len(after), len(before))
	}
	for i, c := range after {
		switch {
		case c.ID == second:
			t.Error("the second comment of ours is still there")
		case c.ID == id && c.Body != ours.Body:
			t.Errorf("ours is not up to date:\n%s", c.Body)
		case c.ID != id && c != before[i]:
			t.Errorf("a comment of %s changed:\n%s", c.Author, c.Body)
		}
	}
	if n := strings.Count(strings.Join(k.gh.Requests(), "\n"), "GET /repos/octo/app/issues/12/comments"); n != 6 {
		t.Errorf("%d pages read, want all 6", n)
	}
}

func TestCommentOfOtherSpecsAndJobsStandsApart(t *testing.T) {
	j := newJob(t)
	j.tandem(0)
	j.write("other.yaml", trustedSpec)
	j.gh.AddArtifact(500, "nightly", zipped(t, map[string][]byte{"result.json": still(t)}))
	j.tandem(0, "-f", filepath.Join(j.dir, "other.yaml"))
	j.tandem(0, "--artifact", "nightly")
	if n := len(j.gh.Comments(12)); n != 3 {
		t.Errorf("%d comments, want 3", n)
	}
}

func TestCommentGoesStale(t *testing.T) {
	j := newJob(t)
	j.tandem(0)
	first := j.body(12)

	// A push: its run is requested, and the comment is of the old head.
	j.gh.MovePull(12, headB)
	j.measured(501, headB, nil)
	j.event(501, "requested")
	contains(t, j.tandem(0), "The run is requested: 1 comment marked as outdated")
	stale := j.body(12)
	contains(t, stale, "> **Outdated:** this is of commit a1a1a1a; the pull request is at b2b2b2b now", "3 regressed")
	before := len(j.gh.Writes())
	contains(t, j.tandem(0), "0 comments marked")
	if len(j.gh.Writes()) != before {
		t.Error("marked twice")
	}

	// The old head's run comes in late: it does not undo that.
	j.measured(502, headA, fixture(t, "moved"))
	contains(t, j.tandem(0), "has moved on")
	if j.body(12) != stale {
		t.Errorf("changed:\n%s", j.body(12))
	}

	// Another push; then its result makes the comment true again.
	headC := strings.Repeat("c3", 20)
	j.gh.MovePull(12, headC)
	j.event(501, "in_progress")
	j.tandem(0)
	contains(t, j.body(12), "this is of commit a1a1a1a; the pull request is at c3c3c3c now")
	if n := strings.Count(j.body(12), "Outdated"); n != 1 {
		t.Errorf("outdated %d times:\n%s", n, j.body(12))
	}
	j.gh.MovePull(12, headA)
	j.tandemOf(500)
	if j.body(12) != first {
		t.Errorf("not as at first:\n%s", j.body(12))
	}
}

func (j *job) tandemOf(run int64) {
	j.t.Helper()
	j.event(run, "completed")
	j.tandem(0)
}

// A comment of a later run or attempt is not overwritten by an earlier one
// that took longer.
func TestCommentKeepsTheLaterRun(t *testing.T) {
	j := newJob(t)
	j.measured(501, headA, still(t))
	j.tandem(0)
	later := j.body(12)
	j.event(500, "completed")
	contains(t, j.tandem(0), "it is of a later run")
	if j.body(12) != later {
		t.Errorf("overwritten:\n%s", j.body(12))
	}
}
