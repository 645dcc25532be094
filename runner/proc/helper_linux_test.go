package proc

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tandem-bench/tandem/spec"
)

// helperArg makes the test binary one of the programs below. The arguments
// after it are a mark that is unique to a test, the program's name, and its
// own arguments.
const helperArg = "__helper"

func TestMain(m *testing.M) {
	if handled, code := WatchdogMain(os.Args, os.Stdin); handled {
		os.Exit(code)
	}
	if len(os.Args) > 3 && os.Args[1] == helperArg {
		os.Exit(helper(os.Args[2], os.Args[3], os.Args[4:]))
	}
	// With -race, every program would sleep for a second before it ends.
	os.Setenv("GORACE", "atexit_sleep_ms=0")
	os.Exit(m.Run())
}

// helper is the programs that tests start.
func helper(mark, name string, args []string) int {
	switch name {
	case "exit":
		code, _ := strconv.Atoi(args[0])
		fmt.Println("last words")
		return code
	case "sleep":
		time.Sleep(time.Hour)
	case "serve": // serve ADDR [DELAY]: HTTP on the address; 503 until the delay is over
		return helperServe(args)
	case "stubborn": // ignores what one can ignore
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		fmt.Println("ready")
		time.Sleep(time.Hour)
	case "polite": // polite FILE: takes its time to end, then leaves a file
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		fmt.Println("ready")
		<-c
		time.Sleep(100 * time.Millisecond)
		os.WriteFile(args[0], []byte("done"), 0o600)
	case "fork": // fork N PROGRAM...: N children, and waits for them
		n, _ := strconv.Atoi(args[0])
		return helperFork(mark, n, args[1:])
	case "orphan": // orphan PROGRAM...: leaves it behind in the same group and ends
		if err := helperCmd(mark, args...).Start(); err != nil {
			return 1
		}
		fmt.Println("ready")
		return 0
	case "daemon": // daemon PROGRAM...: leaves it behind in a session of its own and ends
		c := helperCmd(mark, append([]string{"orphan-session"}, args...)...)
		if err := c.Run(); err != nil {
			return 1
		}
		return 0
	case "orphan-session":
		c := helperCmd(mark, args...)
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := c.Start(); err != nil {
			return 1
		}
		return 0
	case "daemon-and-stay": // the same, but lives on itself
		if err := helperCmd(mark, append([]string{"daemon"}, args...)...).Run(); err != nil {
			return 1
		}
		fmt.Println("ready")
		time.Sleep(time.Hour)
	case "burn": // burn TIME: uses so much CPU time
		d, _ := time.ParseDuration(args[0])
		burn(d)
	case "burn-and-stay":
		d, _ := time.ParseDuration(args[0])
		burn(d)
		fmt.Println("burnt")
		time.Sleep(time.Hour)
	case "eat": // eat BYTES: makes so much memory resident
		n, _ := strconv.Atoi(args[0])
		b := bytes.Repeat([]byte{1}, n)
		fmt.Println("ready", len(b))
		if len(args) > 1 {
			return 0
		}
		time.Sleep(time.Hour)
		return int(b[len(b)-1])
	case "many": // many N: tries to have N children at a time
		return helperMany(mark, args[0])
	case "pin-self": // pin-self CPUS
		if complaint := helperPinSelf(args[0]); complaint != "" {
			fmt.Println(complaint)
			return 1
		}
	case "tandem":
		return helperTandem(mark, args)
	}
	return 0
}

// burn uses CPU time, by its own clock.
func burn(d time.Duration) {
	for {
		var ru syscall.Rusage
		syscall.Getrusage(syscall.RUSAGE_SELF, &ru)
		if time.Duration(ru.Utime.Nano()+ru.Stime.Nano()) >= d {
			return
		}
		for i := range 100000 {
			_ = i * i
		}
	}
}

func helperServe(args []string) int {
	l, err := net.Listen("tcp", args[0])
	if err != nil {
		fmt.Println(err)
		return 1
	}
	var delay time.Duration
	if len(args) > 1 {
		delay, _ = time.ParseDuration(args[1])
	}
	ready := time.Now().Add(delay)
	fmt.Println("listening on", l.Addr())
	http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if time.Now().Before(ready) {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	return 0
}

func helperFork(mark string, n int, args []string) int {
	var kids []*exec.Cmd
	for range n {
		c := helperCmd(mark, args...)
		if err := c.Start(); err != nil {
			return 1
		}
		kids = append(kids, c)
	}
	fmt.Println("forked")
	for _, c := range kids {
		c.Wait()
	}
	fmt.Println("joined")
	time.Sleep(time.Hour)
	return 0
}

// helperTandem is a whole Tandem with children of every kind; then it dies in
// the way that its first argument names.
func helperTandem(mark string, args []string) int {
	s, err := New(Options{NoCgroup: args[1] == "nocgroup", Grace: 200 * time.Millisecond})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	for _, kind := range [][]string{{"sleep"}, {"stubborn"}, {"fork", "2", "stubborn"}, {"daemon", "stubborn"}, {"daemon-and-stay", "stubborn"}} {
		c := Cmd{Name: kind[0], Argv: helperArgv(mark, kind...), Env: os.Environ()}
		if _, err := s.Start(context.Background(), c); err != nil {
			fmt.Println(err)
			return 1
		}
	}
	fmt.Println("up", s.id)
	switch args[0] {
	case "panic":
		time.Sleep(300 * time.Millisecond)
		go func() { panic("on purpose") }()
	case "exit":
		time.Sleep(300 * time.Millisecond)
		return 7
	case "close":
		time.Sleep(300 * time.Millisecond)
		if err := s.Close(); err != nil {
			fmt.Println(err)
			return 1
		}
		return 0
	}
	time.Sleep(time.Hour)
	return 0
}

func helperArgv(mark string, args ...string) []string {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return append([]string{exe, helperArg, mark}, args...)
}

func helperCmd(mark string, args ...string) *exec.Cmd {
	argv := helperArgv(mark, args...)
	c := exec.Command(argv[0], argv[1:]...)
	c.Stdout = os.Stdout
	return c
}

// rig is a supervisor with what a test needs around it.
type rig struct {
	*Supervisor
	t    *testing.T
	mark string
	dir  string
}

// newRig makes a supervisor, closes it when the test ends, and then looks
// that nothing is left.
func newRig(t *testing.T, o Options) *rig {
	t.Helper()
	o.Grace = 200 * time.Millisecond
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{s, t, uniqueMark(t), t.TempDir()}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		noneLeft(t, r.mark, time.Second)
	})
	return r
}

func uniqueMark(t *testing.T) string {
	return fmt.Sprintf("mark-%s-%d-%d", strings.ReplaceAll(t.Name(), "/", "-"), os.Getpid(), time.Now().UnixNano())
}

// cmd is a command that runs a helper.
func (r *rig) cmd(args ...string) Cmd {
	return Cmd{Name: args[0], Argv: helperArgv(r.mark, args...), Env: os.Environ(), Log: filepath.Join(r.dir, args[0]+".log")}
}

// start starts a helper.
func (r *rig) start(args ...string) *Process {
	r.t.Helper()
	p, err := r.Start(r.t.Context(), r.cmd(args...))
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

// until waits for a condition, which must come true.
func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !f() {
		if time.Now().After(deadline) {
			t.Fatalf("waited 30 s for this in vain: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// says waits for a text in the output of a process.
func says(t *testing.T, p *Process, text string) {
	t.Helper()
	until(t, p.Name()+" says "+text, func() bool { return strings.Contains(p.Tail(100), text) })
}

var stopTerm = spec.Stop{Signal: "TERM", Timeout: 5 * time.Second}

// lockedBuffer takes the output of a process that is still running.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// marked lists the living processes with a mark in their arguments.
func marked(t *testing.T, mark string) []string {
	t.Helper()
	all, err := allProcesses()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, s := range all {
		if line := commandLine(s.pid); !s.ended() && strings.Contains(line, mark) {
			out = append(out, line)
		}
	}
	return out
}

// noneLeft fails the test where a marked process lives on after the patience.
func noneLeft(t *testing.T, mark string, patience time.Duration) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		left := marked(t, mark)
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("left behind: %q", left)
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func itoa(n int) string { return strconv.Itoa(n) }

// helperMany says how many children it could start.
func helperMany(mark, number string) int {
	n, _ := strconv.Atoi(number)
	var kids []*exec.Cmd
	for range n {
		c := exec.Command("sleep", "1000")
		if err := c.Start(); err != nil {
			break
		}
		kids = append(kids, c)
	}
	fmt.Println("children:", len(kids))
	for _, c := range kids {
		c.Process.Kill()
		c.Wait()
	}
	return 0
}
