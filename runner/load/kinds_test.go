package load

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tandem-bench/tandem/spec"
)

// TestPipeline holds counts and order with several requests in flight on a
// connection, refilled one by one and in batches.
func TestPipeline(t *testing.T) {
	for _, e := range engines {
		for _, mode := range []string{"sliding", "batch"} {
			t.Run(e.name+"/"+mode, func(t *testing.T) {
				s := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })
				sc := scenario(3)
				sc.HTTP.Pipeline, sc.HTTP.PipelineMode = 16, mode
				sched := brief
				sched.Window = 30 * time.Millisecond
				sample := play(t, sc, e.options, sched, s.target("a"))[0]
				if sample.Failed != 0 || sample.OK < 48 || sample.OK%48 != 0 && mode == "batch" && sample.OK%16 != 0 {
					t.Errorf("ok %d, failed %d: %v", sample.OK, sample.Failed, sample.Errors)
				}
				if served := s.served.Load() - 1; served != sample.Started {
					t.Errorf("%d started, %d served", sample.Started, served)
				}
				if sample.InUse > 48 {
					t.Errorf("%v in flight on average, on 3 connections of 16", sample.InUse)
				}
			})
		}
	}
}

// TestKeepAliveOff opens a connection for each request.
func TestKeepAliveOff(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			var opened atomic.Int64
			s := &counter{}
			s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				s.served.Add(1)
				if !r.Close {
					t.Error("a request without Connection: close")
				}
				fmt.Fprint(w, "hello")
			}))
			s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
				if state == http.StateNew {
					opened.Add(1)
				}
			}
			s.Start()
			t.Cleanup(s.Close)
			sc := scenario(4)
			sc.HTTP.KeepAlive = false
			sample := play(t, sc, e.options, brief, s.target("a"))[0]
			if sample.Failed != 0 || sample.OK < 4 {
				t.Errorf("ok %d, failed %d: %v", sample.OK, sample.Failed, sample.Errors)
			}
			if opened.Load() != sample.Started+1 || s.served.Load() != sample.Started+1 {
				t.Errorf("%d connections and %d requests at the server for %d started", opened.Load()-1, s.served.Load()-1, sample.Started)
			}
		})
	}
}

// TestTLS speaks to a server with a certificate of its own authority.
func TestTLS(t *testing.T) {
	s := &counter{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s.served.Add(1)
		fmt.Fprint(w, "hello")
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // some handshakes below are meant to fail
	s.StartTLS()
	t.Cleanup(s.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(ca, block, 0o600); err != nil {
		t.Fatal(err)
	}
	target := Target{Name: "a", Addr: s.Listener.Addr().String()}
	for name, config := range map[string]*spec.TLS{"ca": {CA: ca}, "insecure": {Insecure: true}, "name": {CA: ca, ServerName: "example.com"}} {
		t.Run(name, func(t *testing.T) {
			before := s.served.Load()
			sc := scenario(4)
			sc.HTTP.TLS = config
			sample := play(t, sc, Options{}, brief, target)[0]
			if sample.Failed != 0 || sample.OK < 4 || s.served.Load()-before != sample.Started+1 {
				t.Errorf("ok %d, failed %d, served %d: %v", sample.OK, sample.Failed, s.served.Load()-before, sample.Errors)
			}
		})
	}
	for name, config := range map[string]*spec.TLS{"unknown authority": {}, "wrong name": {CA: ca, ServerName: "example.org"}} {
		t.Run(name, func(t *testing.T) {
			sc := scenario(1)
			sc.HTTP.TLS = config
			d, err := New(sc, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := d.Check(context.Background(), target); err == nil || classify(err) != TLSError {
				t.Errorf("check: %v", err)
			}
			if _, err := d.Open(context.Background(), []Target{target}); err == nil || classify(err) != TLSError {
				t.Errorf("open: %v", err)
			}
		})
	}
}

// TestUnix goes through a socket in the file system.
func TestUnix(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s")
			l, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			var served atomic.Int64
			server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				served.Add(1)
				fmt.Fprint(w, "hello")
			})}
			go func() { _ = server.Serve(l) }()
			t.Cleanup(func() { _ = server.Close() })
			sample := play(t, scenario(4), e.options, brief, Target{Name: "a", Addr: "unix:" + path})[0]
			if sample.Failed != 0 || sample.OK < 4 || served.Load() != sample.Started+1 {
				t.Errorf("ok %d, failed %d: %v", sample.OK, sample.Failed, sample.Errors)
			}
		})
	}
}

// TestRotation sends several requests by their weights and holds each
// response to the one of its own request.
func TestRotation(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			var mu sync.Mutex
			seen := map[string]int64{}
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				key := r.Method + " " + r.URL.Path + " " + r.Header.Get("X-All") + " " + r.Header.Get("X-Own") + " " + string(body)
				mu.Lock()
				seen[key]++
				mu.Unlock()
				fmt.Fprint(w, "answer to ", r.Method, r.URL.Path)
			})
			sc := scenario(4)
			sc.HTTP.Headers = []spec.Header{{Name: "X-All", Value: "yes"}}
			sc.HTTP.Requests = []spec.WeightedRequest{
				{Method: "GET", Path: "/a", Weight: 3},
				{Method: "POST", Path: "/b", Weight: 1, Body: "data", Headers: []spec.Header{{Name: "X-Own", Value: "1"}}},
				{Method: "HEAD", Path: "/c", Weight: 1},
			}
			sc.HTTP.Pipeline = 4
			sample := play(t, sc, e.options, brief, s.target("a"))[0]
			if sample.Failed != 0 || sample.OK < 16 {
				t.Errorf("ok %d, failed %d: %v", sample.OK, sample.Failed, sample.Errors)
			}
			mu.Lock()
			defer mu.Unlock()
			a, b, c := seen["GET /a yes  "]-1, seen["POST /b yes 1 data"]-1, seen["HEAD /c yes  "]-1 // less the check
			if a+b+c != sample.Started {
				t.Errorf("%d started, seen %v", sample.Started, seen)
			}
			// Each loop, or connection, goes around on its own, so that each
			// may be in the middle of a round.
			if d := a - 3*b; d < -12 || d > 12 {
				t.Errorf("%d and %d requests at weights of 3 and 1", a, b)
			}
		})
	}
}

// TestSign computes a header from the body with a key from the environment.
func TestSign(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mac := hmac.New(sha256.New, []byte("hush"))
		mac.Write(body)
		if want := "sha256=" + hex.EncodeToString(mac.Sum(nil)); r.Header.Get("X-Hub-Signature-256") != want {
			w.WriteHeader(http.StatusForbidden)
		}
	})
	sc := scenario(2)
	sc.HTTP.Method, sc.HTTP.Body = "POST", `{"n":1}`
	sc.HTTP.Sign = &spec.Sign{Header: "X-Hub-Signature-256", HMAC: "sha256", Key: "${env.SECRET}", Prefix: "sha256="}
	env := func(name string) (string, bool) { return "hush", name == "SECRET" }
	sample := play(t, sc, Options{Env: env}, brief, s.target("a"))[0]
	if sample.Failed != 0 || sample.OK < 2 {
		t.Errorf("ok %d, failed %d: %v", sample.OK, sample.Failed, sample.Errors)
	}
	d, err := New(sc, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Check(context.Background(), s.target("a")); err == nil || strings.Contains(err.Error(), "hush") {
		t.Errorf("without the key: %v", err)
	}
}

// TestExpect holds responses that differ to an expression, and counts those
// that do not satisfy it.
func TestExpect(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			expect, err := spec.CompileExpect(`status == 200 && body contains "ok"`)
			if err != nil {
				t.Fatal(err)
			}
			server := script(t, func(c *net.TCPConn, n int64) bool {
				switch {
				case n == 0 || n%10 != 0:
					body := fmt.Sprintf("ok %d", n%3)
					write(c, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
				default:
					write(c, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad")
				}
				return true
			})
			sc := scenario(2)
			sc.Expect = expect
			sample := play(t, sc, e.options, brief, server.target())[0]
			if want := sample.Started / 10; sample.Failed != want || sample.OK == 0 {
				t.Errorf("ok %d, failed %d, expected %d: %v", sample.OK, sample.Failed, want, sample.Errors)
			}
		})
	}
}

// TestThink waits between the requests of a connection.
func TestThink(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			var mu sync.Mutex
			last := map[string]time.Time{}
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				if at, ok := last[r.RemoteAddr]; ok && time.Since(at) < 5*time.Millisecond {
					t.Errorf("a request %v after the one before", time.Since(at))
				}
				last[r.RemoteAddr] = time.Now()
			})
			sc := scenario(4)
			sc.HTTP.Think = 5 * time.Millisecond
			sched := Schedule{Mode: spec.Windows, Window: 100 * time.Millisecond, Order: forward}
			sample := play(t, sc, e.options, sched, s.target("a"))[0]
			if sample.Failed != 0 || sample.OK < 4 || sample.OK > 4*20 {
				t.Errorf("ok %d, failed %d: %v", sample.OK, sample.Failed, sample.Errors)
			}
		})
	}
}

// TestLargeBodies sends and receives more than the sockets can hold.
func TestLargeBodies(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				_, _ = w.Write(body)
			})
			path := filepath.Join(t.TempDir(), "body")
			if err := os.WriteFile(path, []byte(strings.Repeat("0123456789abcdef", 1<<16)), 0o600); err != nil {
				t.Fatal(err)
			}
			sc := scenario(2)
			sc.HTTP.Method, sc.HTTP.BodyFile = "POST", path
			sample := play(t, sc, e.options, brief, s.target("a"))[0]
			if sample.Failed != 0 || sample.OK < 2 {
				t.Errorf("ok %d, failed %d: %v", sample.OK, sample.Failed, sample.Errors)
			}
			if sample.BytesIn < sample.OK<<20 || sample.BytesOut < sample.OK<<20 {
				t.Errorf("%d bytes in, %d bytes out for %d requests", sample.BytesIn, sample.BytesOut, sample.OK)
			}
		})
	}
}

// TestCheck returns the response whole, with canonical names.
func TestCheck(t *testing.T) {
	server := script(t, func(c *net.TCPConn, _ int64) bool {
		write(c, "HTTP/1.1 418 Teapot\r\nx-a: 1\r\nX-A: 2\r\ncontent-length: 3\r\n\r\npot")
		return true
	})
	d, err := New(scenario(1), Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := d.Check(context.Background(), server.target())
	if err != nil {
		t.Fatal(err)
	}
	if r.Status != 418 || string(r.Body) != "pot" || fmt.Sprint(r.Header["X-A"]) != "[1 2]" || r.Elapsed <= 0 {
		t.Errorf("%+v", r)
	}
}

// TestURL sends requests to a URL of the scenario's own, and says what is
// wrong with others.
func TestURL(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Host, r.URL) })
	sc := scenario(1)
	sc.HTTP.URL, sc.HTTP.Path = spec.Template(s.URL+"/base?q=1"), "/"
	d, err := New(sc, Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := d.Check(context.Background(), Target{Name: "a", Addr: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.TrimPrefix(s.URL, "http://") + "/base?q=1"; string(r.Body) != want {
		t.Errorf("got %q, expected %q", r.Body, want)
	}
	for _, url := range []string{"ftp://x/", "http://", ":"} {
		sc.HTTP.URL = spec.Template(url)
		d, err := New(sc, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Check(context.Background(), Target{Name: "a"}); err == nil {
			t.Errorf("url %q was accepted", url)
		}
	}
}
