//go:build linux

package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// kind is a kind of server to load.
type kind struct {
	name string
	argv func(dir, port, option string) []string
	env  []string
}

// kinds are the servers that the tables are about.
var kinds = []kind{
	{"echo", func(dir, port, _ string) []string { return []string{filepath.Join(dir, "echo"), port} }, nil},
	{"c", func(dir, port, _ string) []string { return []string{filepath.Join(dir, "server"), port} }, nil},
	{"node", func(dir, port, rounds string) []string {
		return []string{"node", filepath.Join(dir, "server.js"), port, rounds}
	}, nil},
	{"nethttp", func(dir, port, rounds string) []string {
		return []string{filepath.Join(dir, "nethttp"), port, rounds}
	}, []string{"GOMAXPROCS=1"}},
	{"gorilla", func(dir, port, _ string) []string {
		return []string{filepath.Join(dir, "peers"), "serve", port}
	}, []string{"GOMAXPROCS=1"}},
	{"nethttp2", func(dir, port, rounds string) []string {
		return []string{filepath.Join(dir, "nethttp"), port, rounds}
	}, []string{"GOMAXPROCS=2"}},
}

// findKind finds a kind of server by its name.
func findKind(name string) (kind, error) {
	for _, k := range kinds {
		if k.name == name {
			return k, nil
		}
	}
	return kind{}, fmt.Errorf("server %q: expected c, node, nethttp, nethttp2, echo or gorilla", name)
}

// sources is where the servers and the clients are.
const sources = "runner/load/bench/"

// build puts what a measurement needs into a folder.
func build(dir string, needs ...string) error {
	if _, err := os.Stat(sources); err != nil {
		return fmt.Errorf("run this command from the root of the repository: %w", err)
	}
	for _, name := range needs {
		to := filepath.Join(dir, name)
		argv := map[string][]string{
			"server":    {"gcc", "-O2", "-o", to, sources + "servers/server.c"},
			"echo":      {"gcc", "-O2", "-o", to, sources + "servers/echo.c"},
			"server.js": {"cp", sources + "servers/server.js", to},
			"nethttp":   {"go", "build", "-o", to, "./" + sources + "servers/nethttp"},
			"stall":     {"go", "build", "-o", to, "./" + sources + "servers/stall"},
			"peers":     {"go", "build", "-C", sources + "peers", "-o", to, "."},
		}[name]
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w: %s", argv, err, out)
		}
	}
	return nil
}

// server is a running server.
type server struct {
	cmd  *exec.Cmd
	addr string
}

// start starts a server on a CPU and waits until it accepts connections.
func (k kind) start(ctx context.Context, dir, cpu, option string) (*server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	argv := append([]string{"taskset", "-c", cpu}, k.argv(dir, port, option)...)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), k.env...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &server{cmd: cmd, addr: net.JoinHostPort("127.0.0.1", port)}
	for range 500 {
		c, err := net.Dial("tcp", s.addr)
		if err == nil {
			return s, c.Close()
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.stop()
	return nil, fmt.Errorf("%s does not listen on %s", k.name, s.addr)
}

// stop ends the server.
func (s *server) stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// cpu is the CPU time that the server's process has used so far.
func (s *server) cpu() time.Duration {
	// The clock id of another process, as clock_getcpuclockid makes it.
	id := int32(^s.cmd.Process.Pid<<3 | 2)
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// ownCPU is the CPU time that this process has used so far.
func ownCPU() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// maxRSS is the largest resident set of this process so far, in bytes.
func maxRSS() int64 {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return r.Maxrss << 10
}

// freePort finds a port that nothing listens on.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return "", err
	}
	return port, l.Close()
}
