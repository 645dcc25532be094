package load

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tandem-bench/tandem/spec"
)

// tools are real load tools: the command of each, and where to get it.
var tools = map[string]struct{ command, install string }{
	"ab":         {"ab -q -k -t ${window} -n 10000000 -c ${connections} ${url}/", "apt-get install apache2-utils"},
	"autocannon": {"autocannon -j -n -c ${connections} -d ${window} ${url}/", "npm install -g autocannon"},
	"bombardier": {"bombardier -l -p r -o json -c ${connections} -d ${window} ${url}/", "go install github.com/codesenberg/bombardier@latest"},
	"h2load":     {"h2load --h1 -t1 -c ${connections} -D ${window} ${url}/", "apt-get install nghttp2-client"},
	"hey":        {"hey -c ${connections} -z ${window} ${url}/", "go install github.com/rakyll/hey@latest"},
	"vegeta": {
		"echo GET ${url}/ | vegeta attack -rate 0 -max-workers ${connections} -duration ${window} | vegeta report -type json",
		"go install github.com/tsenart/vegeta/v12@latest",
	},
	"wrk": {"wrk -t1 -c${connections} -d${window} --latency ${url}/", "apt-get install wrk"},
}

const toolConnections = 4

// toolDriver is the driver of a real tool, which has to be there.
func toolDriver(t *testing.T, tool string) *execDriver {
	t.Helper()
	known := tools[tool]
	if _, err := exec.LookPath(tool); err != nil {
		t.Fatalf("%s is needed for this test: %s", tool, known.install)
	}
	return newTestExec(t, spec.Exec{Command: shell(known.command), Preset: tool, Connections: toolConnections, Timeout: time.Minute})
}

// runAgainst runs a real tool against a server for a second.
func (d *execDriver) runAgainst(ctx context.Context, addr, dir string) (Sample, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return Sample{}, err
	}
	target := Target{
		Name: "base#0", Addr: addr, Dir: dir, Env: os.Environ(),
		Vars: spec.Vars{"url": "http://" + addr, "host": host, "port": port},
	}
	if _, err := d.Check(ctx, target); err != nil {
		return Sample{}, err
	}
	l, err := d.Open(ctx, []Target{target})
	if err != nil {
		return Sample{}, err
	}
	got, err := l.Run(ctx, Schedule{Window: time.Second, Order: rotate})
	if err != nil {
		return Sample{}, err
	}
	return got[0], l.Close()
}

// serverCase is a server that answers in one way, and counts.
func serverCase(t *testing.T, kind string) (*httptest.Server, *atomic.Int64) {
	var served atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := served.Add(1)
		switch {
		case kind == "failing", kind == "mixed" && n%4 == 0:
			w.WriteHeader(http.StatusInternalServerError)
		case kind == "closing":
			if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
				c.Close()
			}
			return
		}
		_, _ = io.WriteString(w, "hello, world!")
	}))
	t.Cleanup(s.Close)
	return s, &served
}

// Each preset reads the real tool, and what it counts is what the server saw.
// The tools run side by side, since most of them take whole seconds only.
func TestToolsReal(t *testing.T) {
	type outcome struct {
		tool, kind string
		served     *atomic.Int64
		sample     Sample
		err        error
	}
	var outcomes []*outcome
	var all sync.WaitGroup
	for _, tool := range sortedKeys(tools) {
		for _, kind := range []string{"good", "mixed", "failing", "closing"} {
			d, dir := toolDriver(t, tool), t.TempDir()
			s, served := serverCase(t, kind)
			o := &outcome{tool: tool, kind: kind, served: served}
			outcomes = append(outcomes, o)
			all.Go(func() { o.sample, o.err = d.runAgainst(t.Context(), s.Listener.Addr().String(), dir) })
		}
	}
	all.Wait()
	for _, o := range outcomes {
		t.Run(o.tool+" "+o.kind, func(t *testing.T) {
			if o.err != nil {
				t.Fatal(o.err)
			}
			if got := o.sample; got.Started != got.OK+got.Failed+got.InFlight {
				t.Errorf("started %d, ok %d, failed %d, in flight %d", got.Started, got.OK, got.Failed, got.InFlight)
			}
			expectKind(t, o.kind, o.sample, o.served.Load())
		})
	}
}

// expectKind checks a sample against what the server did. A tool stops with
// up to one request in flight on each connection, which the server may have
// counted, and may have asked once before it began.
func expectKind(t *testing.T, kind string, got Sample, served int64) {
	t.Helper()
	const slack = 2*toolConnections + 1
	v := got.Values()
	switch kind {
	case "good":
		if got.Failed != 0 || v["rps"] <= 0 || got.OK == 0 {
			t.Fatalf("a good run: %+v %v", got.Errors, v)
		}
		if got.OK > served || served-got.OK > slack {
			t.Errorf("the tool counts %d responses, the server %d", got.OK, served)
		}
	case "mixed":
		if total := got.OK + got.Failed; total > served || served-total > slack {
			t.Errorf("the tool counts %d and %d responses, the server %d", got.OK, got.Failed, served)
		}
		if n := served / 4; got.Failed > n || n-got.Failed > slack {
			t.Errorf("%d of the responses failed, the server failed a quarter of %d: %+v", got.Failed, served, got.Errors)
		}
	default:
		if got.OK != 0 || got.Failed == 0 {
			t.Errorf("a server that only fails passes: ok %d, failed %d, %+v", got.OK, got.Failed, got.Errors)
		}
		if _, ok := v["rps"]; ok {
			t.Errorf("there is a rate of failures: %v", v)
		}
	}
}

// The system's own program for endless output stands for the tools of
// uSockets, which no registry has: block-buffered into a pipe, and never ending.
func TestToolsLineBuffering(t *testing.T) {
	script := filepath.Join(t.TempDir(), "tool.sh")
	text := "#!/bin/sh\nwhile :; do echo Req/sec: 20721.75; sleep 0.02; done | grep --no-messages sec\n"
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	s := runExec(t, spec.Exec{Command: argv(script), Preset: "http_load_test", Timeout: time.Minute}, 100*time.Millisecond)
	if s.Failed != 0 || s.Metrics["rps"] != 20721.75 {
		t.Errorf("%+v", s)
	}
}
