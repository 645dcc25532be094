package load

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tandem-bench/tandem/spec"
)

// requestCommands are the tools that take a request by arguments, as a spec
// would start them.
var requestCommands = map[string]spec.Command{
	"ab":         shell("ab -q -k -t ${window} -n 10000000 -c ${connections} ${request}"),
	"autocannon": shell("autocannon -j -n -c ${connections} -d ${window} ${request}"),
	"bombardier": {Argv: []spec.Template{"bombardier", "-l", "-p", "r", "-o", "json", "-c", "${connections}", "-d", "${window}", "${request}"}},
	"h2load":     shell("h2load --h1 -t1 -c ${connections} -D ${window} ${request}"),
	"hey":        shell("hey -c ${connections} -z ${window} ${request}"),
	"vegeta":     shell("vegeta attack -rate 0 -max-workers ${connections} -duration ${window} ${request} | vegeta report -type json"),
	"wrk":        {Argv: []spec.Template{"wrk", "-t1", "-c${connections}", "-d${window}", "--latency", "${request}"}},
}

// seen is the first request of each kind that a server got which was not the
// expected one.
type seen struct {
	mu    sync.Mutex
	count int
	wrong string
}

// record compares a request with what was asked for.
func (s *seen) record(want expanded) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		got := expanded{method: r.Method, path: r.URL.RequestURI(), body: body}
		for _, f := range want.fields {
			got.fields = append(got.fields, fieldLine{f.name, r.Header.Get(f.name)})
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.count++
		diff := cmp.Diff(fmt.Sprintf("%q", want), fmt.Sprintf("%q", got))
		if s.wrong == "" && (err != nil || diff != "") {
			s.wrong = fmt.Sprintf("%v\n%s", err, diff)
		}
		_, _ = io.WriteString(w, "thanks")
	}
}

// Each tool sends the request that the scenario says, to the byte, and the
// check has sent the same before.
func TestToolsSendTheRequest(t *testing.T) {
	file := filepath.Join(t.TempDir(), "body.json")
	body := "{\"text\": \"it's \\\"quoted\\\", $HOME `id` %s é\",\n\t\"n\": 1}\n"
	if err := os.WriteFile(file, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	accept := fieldLine{"Accept", "text/html; q='0.9', */*"}
	json := fieldLine{"Content-Type", "application/json"}
	sign := &spec.Sign{Header: "X-Signature", HMAC: "sha256", Key: "${env.KEY}", Prefix: "sha256="}
	mac, _ := signature(sign, []byte(body), nil, keyEnv)
	signed := fieldLine{"X-Signature", mac}
	cases := []struct {
		request spec.Request
		want    expanded
	}{
		{spec.Request{Method: "GET", Path: "/a?b=c&d"}, expanded{"GET", "/a?b=c&d", []fieldLine{accept}, nil}},
		{spec.Request{Method: "POST", Path: "/hooks", BodyFile: file, Sign: sign}, expanded{"POST", "/hooks", []fieldLine{accept, json, signed}, []byte(body)}},
		{spec.Request{Method: "PUT", Path: "/x", Body: "${env.KEY}"}, expanded{"PUT", "/x", []fieldLine{accept, json}, []byte("Jefe")}},
	}
	var all sync.WaitGroup
	for _, tool := range sortedKeys(requestCommands) {
		for _, c := range cases {
			for _, f := range c.want.fields {
				if f.name != "X-Signature" {
					c.request.Headers = append(c.request.Headers, spec.Header{Name: f.name, Value: spec.Template(f.value)})
				}
			}
			c.want.body = append([]byte{}, c.want.body...) // never nil, as what was read
			all.Go(func() { sendBy(t, tool, c.request, c.want) })
		}
	}
	all.Wait()
}

func keyEnv(name string) (string, bool) { return "Jefe", name == "KEY" }

// sendBy lets a tool send a request for its shortest window.
func sendBy(t *testing.T, tool string, r spec.Request, want expanded) {
	var s seen
	server := httptest.NewServer(s.record(want))
	defer server.Close()
	temp := t.TempDir()
	x := spec.Exec{Command: requestCommands[tool], Preset: tool, Connections: 2, Timeout: time.Minute, Request: &r}
	driver, err := newExec(spec.Scenario{Name: "x", Exec: &x}, Options{Env: keyEnv, Temp: temp})
	if err != nil {
		t.Error(err)
		return
	}
	sample, err := driver.(*execDriver).runAgainst(t.Context(), server.Listener.Addr().String(), temp)
	s.mu.Lock() // a request whose tool has gone may still be answered
	defer s.mu.Unlock()
	switch {
	case err != nil:
		t.Errorf("%s, %s: %v", tool, r.Method, err)
	case s.wrong != "":
		t.Errorf("%s, %s: the server got another request (-want +got): %s", tool, r.Method, s.wrong)
	case sample.OK == 0 || sample.Failed > 0 || s.count < 3:
		t.Errorf("%s, %s: ok %d, failed %d, the server counts %d: %+v", tool, r.Method, sample.OK, sample.Failed, s.count, sample.Errors)
	}
	if left, _ := os.ReadDir(temp); len(left) > 0 {
		t.Errorf("%s left %v behind", tool, left)
	}
}

// A request that cannot be rendered is said before anything is started.
func TestRequestErrors(t *testing.T) {
	for preset, want := range map[string]string{
		"k6":  "cannot be given a request",
		"wrk": "the environment variable KEY is not set",
	} {
		x := spec.Exec{Command: shell("true ${request}"), Preset: preset, Request: &spec.Request{Method: "POST", Body: "${env.KEY}"}}
		if preset == "k6" {
			x.Request.Body = ""
		}
		d, err := newExec(spec.Scenario{Exec: &x}, Options{Env: func(string) (string, bool) { return "", false }, Temp: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Open(t.Context(), []Target{{Name: "base#0", Dir: "."}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", preset, err, want)
		}
	}
}

// wrk's script holds any byte.
func TestLuaString(t *testing.T) {
	if got, want := luaString([]byte("a\"\\\n\x00é1")), `"a\034\092\010\000\195\1691"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
