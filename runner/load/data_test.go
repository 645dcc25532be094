package load

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tandem-bench/tandem/spec"
)

// file writes a file of a test.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadData(t *testing.T) {
	want := []row{{"id": "1", "name": `a "b"`}, {"id": "2", "name": "c"}}
	for name, text := range map[string]string{
		"x.csv":    "id,name\n1,\"a \"\"b\"\"\"\n2,c\n",
		"bom.csv":  "\xef\xbb\xbfid,name\r\n1,\"a \"\"b\"\"\"\r\n2,c\r\n",
		"x.jsonl":  "{\"id\":1,\"name\":\"a \\\"b\\\"\"}\n\n{\"id\":2,\"name\":\"c\"}",
		"x.ndjson": "{\"id\":\"1\",\"name\":\"a \\\"b\\\"\"}\n{\"id\":\"2\",\"name\":\"c\"}\n",
	} {
		got, err := readData(file(t, name, text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for name, text := range map[string]string{
		"empty.csv": "", "names.csv": "a,b\n", "ragged.csv": "a,b\n1\n",
		"empty.jsonl": "\n", "list.jsonl": "[1]\n", "broken.jsonl": "{\"a\":1}\n{\n",
	} {
		if got, err := readData(file(t, name, text)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v, error %v", name, got, err)
		}
	}
	if _, err := readData(filepath.Join(t.TempDir(), "none.csv")); err == nil {
		t.Error("a file that is not there was read")
	}
}

// TestData sends a request for each row in turn and holds each answer to the
// one of its own row.
func TestData(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			var mu sync.Mutex
			seen := map[string]int64{}
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				key := r.URL.Path + " " + string(body) + " " + r.Header.Get("X-Name")
				mu.Lock()
				seen[key]++
				mu.Unlock()
				fmt.Fprint(w, "answer to ", key)
			})
			sc := scenario(4)
			sc.HTTP.Method, sc.HTTP.Path, sc.HTTP.Body = "PUT", "/item/${data.id}", "${vars.greeting} ${data.name}"
			sc.HTTP.Headers = []spec.Header{{Name: "X-Name", Value: "${arm}"}}
			sc.HTTP.Vars = map[string]spec.Template{"greeting": "hello from ${arm},"}
			sc.HTTP.Data = file(t, "rows.csv", "id,name\n1,a\n2,b\n3,c\n")
			target := s.target("a")
			target.Vars = spec.Vars{"arm": "base"}
			sample := play(t, sc, e.options, brief, target)[0]
			if sample.Failed != 0 || sample.OK < 4 {
				t.Errorf("ok %d, failed %d: %v", sample.OK, sample.Failed, sample.Errors)
			}
			mu.Lock()
			defer mu.Unlock()
			total := int64(0)
			for _, key := range []string{"/item/1 hello from base, a base", "/item/2 hello from base, b base", "/item/3 hello from base, c base"} {
				total += seen[key] - 1 // less the check
			}
			if total != sample.Started || len(seen) != 3 {
				t.Errorf("%d started, seen %v", sample.Started, seen)
			}
		})
	}
}
