package report

import (
	"bytes"
	"flag"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/tandem-bench/tandem/runner/journal"
)

var htmlOut = flag.String("html", "", "write screenshots of the HTML reports into this folder")

// pages renders every world.
func pages(t *testing.T) map[string][]byte {
	out := map[string][]byte{}
	for name, a := range analyses() {
		out[name] = render(t, "html", a)
	}
	return out
}

// The page is whole: every tag closed, every id once, every link within the
// page leads somewhere, every picture has words, and nothing is fetched.
func TestHTMLIsWhole(t *testing.T) {
	void := map[string]bool{"meta": true, "link": true, "input": true, "path": true}
	for name, doc := range pages(t) {
		ids, links := map[string]int{}, map[string]bool{}
		var open []string
		z := html.NewTokenizer(bytes.NewReader(doc))
		for kind := z.Next(); kind != html.ErrorToken; kind = z.Next() {
			tok := z.Token()
			switch kind {
			case html.StartTagToken:
				if !void[tok.Data] {
					open = append(open, tok.Data)
				}
			case html.EndTagToken:
				if len(open) == 0 || open[len(open)-1] != tok.Data {
					t.Fatalf("%s: </%s> closes %v", name, tok.Data, open)
				}
				open = open[:len(open)-1]
			}
			attrs := map[string]string{}
			for _, a := range tok.Attr {
				attrs[a.Key] = a.Val
			}
			if id := attrs["id"]; id != "" && kind == html.StartTagToken {
				ids[id]++
			}
			for _, key := range []string{"href", "src", "action", "srcset"} {
				if v, ok := attrs[key]; ok && !strings.HasPrefix(v, "#") && v != "data:," {
					t.Errorf("%s: %s=%q leads out of the page", name, key, v)
				}
			}
			if h := attrs["href"]; strings.HasPrefix(h, "#") {
				links[h[1:]] = true
			}
			if tok.Data == "svg" && kind == html.StartTagToken && (attrs["role"] != "img" || attrs["aria-label"] == "") {
				t.Errorf("%s: a picture without words", name)
			}
		}
		if len(open) != 0 {
			t.Errorf("%s: not closed: %v", name, open)
		}
		for id, n := range ids {
			if n > 1 {
				t.Errorf("%s: id %s %d times", name, id, n)
			}
		}
		for link := range links {
			if ids[link] == 0 {
				t.Errorf("%s: #%s leads nowhere", name, link)
			}
		}
	}
}

func TestHTMLEscapesNames(t *testing.T) {
	doc := string(pages(t)["hostile"])
	for _, bad := range []string{"<script>alert", "<b>v1", "\x1b", "\u202e"} {
		if strings.Contains(doc, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	if n := strings.Count(doc, "<script"); n != 1 {
		t.Errorf("%d scripts", n)
	}
	if m := regexp.MustCompile(`(NaN|Inf)[^a-z]`).FindString(doc); m != "" {
		t.Errorf("a figure that is none: %s", m)
	}
}

// A hundred rows of twenty blocks, each with its pictures, stay under a
// megabyte.
func TestHTMLSize(t *testing.T) {
	doc := hundredRows(t)
	if len(doc) > 1_000_000 {
		t.Errorf("%d bytes", len(doc))
	}
	if n := bytes.Count(doc, []byte("<svg")); n < 200 {
		t.Errorf("%d pictures of 100 rows", n)
	}
}

// hundredRows is the page of a hundred rows of twenty blocks.
func hundredRows(t *testing.T) []byte {
	t.Helper()
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprintf("http/route-%d", i))
	}
	w := newWorld(names...)
	w.judge, w.blocks = []string{"rps"}, 20
	return render(t, "html", analyze(t, w))
}

func TestHTMLOfVeryManyRows(t *testing.T) {
	doc := pages(t)["many"]
	if n := bytes.Count(doc, []byte(`<tr data-name`)); n != 500 {
		t.Errorf("%d rows", n)
	}
	if !bytes.Contains(doc, []byte("350 scenarios more without pictures")) {
		t.Error("the page does not say what it leaves out")
	}
	if !bytes.Contains(doc, []byte(`open><summary>route/123`)) {
		t.Error("the row that moved has no pictures")
	}
}

// Without trials there are no pictures of them, and the rest stands.
func TestHTMLOfAResult(t *testing.T) {
	a, err := ReadResult(bytes.NewReader(render(t, "json", analyses()["moved"])))
	check(t, err)
	doc := string(render(t, "html", a))
	if strings.Contains(doc, `id="scenarios"`) || !strings.Contains(doc, "0.921x (-7.9%)") {
		t.Error("the page of a result is not the table alone")
	}
}

// A journal of one block, of one window without any metric, of no trial.
func TestHTMLOfLittle(t *testing.T) {
	for name, edit := range map[string]func(*journal.Trial) bool{
		"one block":  func(tr *journal.Trial) bool { return tr.Block == 0 },
		"no metrics": func(tr *journal.Trial) bool { tr.Metrics = journal.Metrics{}; return true },
		"no trials":  func(*journal.Trial) bool { return false },
		"zeros":      func(tr *journal.Trial) bool { setMetric(tr, "rps", 0); return true },
		"the same":   func(tr *journal.Trial) bool { setMetric(tr, "rps", 100); return true },
	} {
		w := newWorld("a")
		w.edit = edit
		doc := string(render(t, "html", analyze(t, w)))
		if m := regexp.MustCompile(`(NaN|Inf)[^a-z]`).FindString(doc); m != "" {
			t.Errorf("%s: the page holds %s", name, m)
		}
	}
}
