package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tandem-bench/tandem/cmd/tandem/internal/github/githubtest"
)

func TestCommentWithoutAResult(t *testing.T) {
	for name, leave := range map[string]func(*job){
		"no artifact":    func(j *job) { j.measured(501, headA, nil) },
		"an expired one": func(j *job) { j.measured(501, headA, fixture(t, "moved")); j.gh.Expire(501) },
		"no result in it": func(j *job) {
			j.measured(501, headA, nil)
			j.gh.AddArtifact(501, benchArtifact, zipped(t, map[string][]byte{"journal.jsonl": nil}))
		},
		"one of that name": func(j *job) {
			j.measured(501, headA, nil)
			j.gh.AddArtifact(501, "tandem-run-x", zipped(t, map[string][]byte{"result.json": fixture(t, "moved")}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t)
			j.tandem(0)
			leave(j)
			j.tandem(0, "--when", "regressed") // it is there, so it is kept true
			contains(t, j.body(12), "### benchmark: no result", "before it had a result")
		})
	}
}

func TestCommentRefusesForgedResults(t *testing.T) {
	whole := fixture(t, "moved")
	for name, c := range map[string]struct {
		archive []byte
		want    string
	}{
		"no archive":        {[]byte("PK\x03\x04 hello"), "not a zip archive"},
		"a way out":         {zipped(t, map[string][]byte{"result.json": whole, "../../etc/cron.d/x": []byte("x")}), "does not lie plainly below"},
		"an unknown format": {zipped(t, map[string][]byte{"result.json": edited(t, func(d map[string]any) { d["version"] = 9 })}), `version "9"`},
		"a contradiction": {zipped(t, map[string][]byte{"result.json": edited(t, func(d map[string]any) {
			find(d, "http/json-post", "rps")["ratio"] = 1
		})}), "contradicts itself"},
		"a same-code run":     {zipped(t, map[string][]byte{"result.json": edited(t, func(d map[string]any) { d["same"] = true })}), "same-code run"},
		"an alpha of its own": {zipped(t, map[string][]byte{"result.json": edited(t, func(d map[string]any) { d["spec"].(map[string]any)["alpha"] = 1e-12 })}), "judged at alpha 1e-12"},
		"a shard":             {zipped(t, map[string][]byte{"result.json": edited(t, func(d map[string]any) { d["shard"] = "1/2" })}), "join the shards"},
		"another commit's":    {zipped(t, map[string][]byte{"result.json": edited(t, func(d map[string]any) { d["revisions"] = map[string]any{"head": headB} })}), `of commit "b2b2b2b2b2b2", and the workflow run of "a1a1a1a1a1a1"`},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t)
			j.measured(501, headA, nil)
			j.gh.AddArtifact(501, benchArtifact, c.archive)
			j.tandem(4)
			contains(t, j.stderr.String(), c.want)
			contains(t, j.body(12), "### benchmark: no result", "refused")
			contains(t, j.read("summary.md"), "is written")
		})
	}
	j := newJob(t)
	j.gh.Claim(500, 1<<40)
	j.tandem(4)
	contains(t, j.stderr.String(), "more than 512 MiB")
}

// Rows that a result leaves out do not pass by that, whatever filter it
// claims to have had.
func TestCommentMissesWhatIsLeftOut(t *testing.T) {
	j := newJob(t)
	j.measured(501, headA, edited(t, func(doc map[string]any) {
		var rows []any
		for _, r := range doc["rows"].([]any) {
			if r.(map[string]any)["scenario"] != "http/json-post" {
				rows = append(rows, r)
			}
		}
		doc["rows"] = rows
		doc["plan"].(map[string]any)["filter"] = []string{"nothing"}
	}))
	j.tandem(0)
	contains(t, j.body(12), "removed", "(failed)", "http/json-post: removed: the spec names this scenario")
}

// What a pull request changes of its own benchmark is GitHub's to say, and so
// is the label that allows it.
func TestCommentOfAChangedSpec(t *testing.T) {
	policy := "policy: { spec_changed_label: bench-ok }\n"
	for name, c := range map[string]struct {
		files, labels []string
		claim         any
		wants         []string
		without       string
	}{
		"nothing":             {nil, nil, nil, []string{"nothing moved (passed)"}, "changes the benchmark"},
		"other files":         {[]string{"src/bench.yaml", "body.json.bak"}, nil, nil, []string{"nothing moved (passed)"}, "changes the benchmark"},
		"the spec":            {[]string{"bench.yaml"}, nil, nil, []string{"nothing moved (failed)", "changes bench.yaml, which needs the label bench-ok"}, "allows"},
		"a renamed spec":      {[]string{"bench.yaml -> old.yaml"}, nil, nil, []string{"nothing moved (failed)", "changes bench.yaml"}, "allows"},
		"a body on page two":  {append(manyFiles(150), "body.json"), nil, nil, []string{"nothing moved (failed)", "changes body.json"}, "allows"},
		"the workflow":        {[]string{".github/workflows/bench.yml"}, nil, nil, []string{"nothing moved (failed)", "changes .github/workflows/bench.yml"}, "allows"},
		"more than is listed": {manyFiles(3000), nil, nil, []string{"nothing moved (failed)", "changes more files than GitHub lists"}, "allows"},
		"with the label":      {[]string{"bench.yaml"}, []string{"x", "bench-ok"}, nil, []string{"nothing moved (passed)", "its label bench-ok allows"}, "needs"},
		"a claimed label":     {[]string{"bench.yaml"}, nil, "bench-ok", []string{"nothing moved (failed)", "which needs the label bench-ok"}, "allows"},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t)
			j.write("bench.yaml", strings.Replace(trustedSpec, "{ path: /json }", "{ method: POST, path: /json, body: { file: body.json } }", 1)+policy)
			j.write("body.json", "{}")
			j.gh.EditPull(12, func(p *githubtest.Pull) { p.Files, p.Labels = c.files, c.labels })
			var doc map[string]any
			if err := json.Unmarshal(still(t), &doc); err != nil {
				t.Fatal(err)
			}
			doc["revisions"] = map[string]any{"base": headB, "head": headA, "merge_base": headB}
			doc["spec"].(map[string]any)["approved"] = c.claim
			doc["spec"].(map[string]any)["side"] = "base"
			result, err := json.Marshal(doc)
			if err != nil {
				t.Fatal(err)
			}
			j.measured(501, headA, result)
			j.tandem(0)
			body := strings.NewReplacer("&#95;", "_").Replace(j.body(12))
			contains(t, body, c.wants...)
			if strings.Contains(body, c.without) {
				t.Errorf("it says %q:\n%s", c.without, body)
			}
		})
	}
}

func manyFiles(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("src/%d.go", i))
	}
	return names
}
