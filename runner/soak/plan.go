//go:build linux

package main

import (
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// The plan: small enough for a run of two seconds, with every kind of process
// that Tandem starts.
const (
	copies      = 2
	roundBlocks = 5
	bench       = `version: 1
name: soak
arms: { base: { git: HEAD~1, merge_base: false }, head: { dir: . } }
build: [ "sleep 0.2 && cp source.txt built.txt" ]
server:
  command: [ %[1]q, serve, -port, "${port}" ]
  ready: { http: /, timeout: 20s }
  stop: { timeout: 300ms }
plan: { blocks: %[2]d, copies: %[3]d, window: 60ms, warmup: 20ms }
scenarios:
  closed: { http: { path: /, connections: 4, timeout: 1s } }
  open: { http: { path: /, rate: 500/s, connections: 4, timeout: 1s } }
  tool:
    exec:
      command: [ %[1]q, load, -url, "${url}", -for, "${window}" ]
      metrics: { rps: { regex: 'rps: ([0-9.]+)' } }
      timeout: 10s
judge: [rps]
`
)

// arms and scenarios are the plan's, for the count of trials.
var (
	arms      = [...]string{"base", "head"}
	scenarios = [...]string{"closed", "open", "tool"}
)

// layOut makes the repository that the runs work on, with a plan of so many
// blocks.
func (s *soak) layOut(blocks int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for _, dir := range []string{s.repo(), s.temp(), filepath.Join(s.dir, "home")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	spec := fmt.Sprintf(bench, self, blocks, copies)
	if err := os.WriteFile(filepath.Join(s.repo(), "bench.yaml"), []byte(spec), 0o644); err != nil {
		return err
	}
	if err := s.edit("0"); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"}, {"add", "."}, {"commit", "-q", "-m", "one"}, {"commit", "-q", "--allow-empty", "-m", "two"},
	} {
		if out, err := s.git(args...); err != nil {
			return fmt.Errorf("git %s: %w: %s", args[0], err, out)
		}
	}
	return nil
}

// edit changes the working tree, so that the next run has something to build.
func (s *soak) edit(text string) error {
	return os.WriteFile(filepath.Join(s.repo(), "source.txt"), []byte(text+"\n"), 0o644)
}

func (s *soak) git(args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-C", s.repo()}, args...)...)
	cmd.Env = s.environ
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// part is this program as the plan's server, its daemon or its load tool.
func part(name string, args []string, out io.Writer) (code int) {
	fs := flag.NewFlagSet(name, flag.ExitOnError)
	port := fs.Int("port", 0, "port to listen on")
	url := fs.String("url", "", "what to load")
	last := fs.Duration("for", 0, "how long")
	fs.Parse(args)
	switch name {
	case "serve":
		return serve(*port, out)
	case "load":
		return load(*url, *last, out)
	}
	time.Sleep(time.Hour) // the daemon
	return 0
}

// serve answers hello, with a daemon beside it that has left its session, as
// servers with helpers have them.
func serve(port int, out io.Writer) (code int) {
	daemon := exec.Command("/proc/self/exe", "idle")
	daemon.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := daemon.Start(); err != nil {
		fmt.Fprintln(out, err)
		return 1
	}
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		fmt.Fprintln(out, err)
		return 1
	}
	fmt.Fprintln(out, http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "hello")
	})))
	return 1
}

// load sends one request after the other and prints how many a second.
func load(url string, last time.Duration, out io.Writer) (code int) {
	began, n := time.Now(), 0
	client := &http.Client{Timeout: time.Second}
	for ; time.Since(began) < last; n++ {
		resp, err := client.Get(url)
		if err != nil {
			fmt.Fprintln(out, err)
			return 1
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	fmt.Fprintf(out, "rps: %.1f\n", float64(n)/time.Since(began).Seconds())
	return 0
}
