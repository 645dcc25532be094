package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tandem-bench/tandem/cmd/tandem/internal/github/githubtest"
	"github.com/tandem-bench/tandem/runner/proc"
	"github.com/tandem-bench/tandem/runner/remote"
)

func TestMain(m *testing.M) {
	if handled, code := proc.WatchdogMain(os.Args, os.Stdin); handled {
		os.Exit(code)
	}
	if handled, code := remote.AgentMain(os.Args, os.Stdin, os.Stdout, os.Stderr); handled {
		os.Exit(code)
	}
	testscript.Main(m, map[string]func(){
		"tandem": func() {
			a := newApp(os.Stdin, os.Stdout, os.Stderr)
			a.maxSteal = 1 // the scripts are about Tandem, whatever the machine does meanwhile
			os.Exit(a.execute(os.Args[1:]))
		},
		"server": func() { os.Exit(serve(os.Args[1:])) },
	})
}

// TestScripts runs the command as a user does, one shell session a file.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script", Cmds: scriptCommands(), Setup: scriptSetup})
}

// scriptCommands are what scripts may say beyond what testscript knows.
func scriptCommands() map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		"waitfor":   waitFor,
		"noprocess": noProcess,
		"signal":    signalCommand,
		"exits":     exits,
		"github":    githubCommand,
		"job":       runJob,
		"gitlabjob": runGitLabJob,
		"nothing":   nothingLeft,
	}
}

// scriptSetup gives a script its environment.
func scriptSetup(e *testscript.Env) error {
	e.Values[githubKey{}] = new(*githubtest.Server)
	// Each script's servers carry its folder in their arguments.
	e.Setenv("MARK", "mark-"+filepath.Base(e.WorkDir)+"-"+strconv.Itoa(os.Getpid()))
	e.Setenv("XDG_CACHE_HOME", filepath.Join(e.WorkDir, "cache"))
	repo, err := filepath.Abs("../..")
	if err != nil {
		return err
	}
	e.Setenv("REPO", repo)
	// Builds in scripts share the caches of whoever runs the tests.
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOFLAGS", "GOPROXY"} {
		out, err := exec.Command("go", "env", name).Output()
		if err != nil {
			return err
		}
		e.Setenv(name, strings.TrimSpace(string(out)))
	}
	e.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	e.Setenv("GIT_AUTHOR_NAME", "T")
	e.Setenv("GIT_AUTHOR_EMAIL", "t@example.com")
	e.Setenv("GIT_COMMITTER_NAME", "T")
	e.Setenv("GIT_COMMITTER_EMAIL", "t@example.com")
	return nil
}

// patience is how long a script waits for something that must come.
const patience = 60 * time.Second

// waitFor waits until a file holds a text: waitfor FILE TEXT.
func waitFor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: waitfor FILE TEXT")
	}
	path := ts.MkAbs(args[0])
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		files, _ := filepath.Glob(path)
		for _, f := range files {
			if data, err := os.ReadFile(f); err == nil && strings.Contains(string(data), args[1]) {
				return
			}
		}
	}
	data, _ := os.ReadFile(path)
	ts.Fatalf("%s does not hold %q after %v; it holds:\n%s", args[0], args[1], patience, data)
}

// processes returns the process IDs whose command line holds a text.
func processes(text string) []int {
	var pids []int
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		data, err := os.ReadFile(f)
		line := string(bytes.ReplaceAll(data, []byte{0}, []byte{' '}))
		if err != nil || !strings.Contains(line, text) {
			continue
		}
		if pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f))); pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

// noProcess asserts that no process is left whose command line holds a text:
// noprocess TEXT. The kernel may need a moment to take away what was killed.
func noProcess(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: noprocess TEXT")
	}
	var left []int
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if left = processes(args[0]); len(left) == 0 {
			return
		}
	}
	for _, pid := range left {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		syscall.Kill(pid, syscall.SIGKILL)
		ts.Logf("left: %d %s", pid, bytes.ReplaceAll(line, []byte{0}, []byte{' '}))
	}
	ts.Fatalf("%d processes are left", len(left))
}

// nothingLeft asserts that a run left no process and no folder to work in.
func nothingLeft(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 || args[0] != "left" {
		ts.Fatalf("usage: nothing left")
	}
	noProcess(ts, false, []string{ts.Getenv("MARK")})
	folders, err := filepath.Glob(filepath.Join(ts.Getenv("XDG_CACHE_HOME"), "tandem", "work", "w[0-9][0-9]"))
	ts.Check(err)
	if len(folders) > 0 {
		ts.Fatalf("folders are left: %v", folders)
	}
}

// signalCommand sends a signal to one process of a program whose arguments
// hold a text: signal KILL PROGRAM TEXT. INT,INT is two, one after the other.
func signalCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: signal NAME PROGRAM TEXT")
	}
	signals := map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "KILL": syscall.SIGKILL}
	name, twice := strings.CutSuffix(args[0], ",INT")
	sig, ok := signals[name]
	if !ok {
		ts.Fatalf("unknown signal %q", args[0])
	}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		for _, pid := range processes(args[2]) {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			program, _, _ := strings.Cut(string(line), "\x00")
			cwd, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
			// Another script, or another checkout's, may run the same line.
			if filepath.Base(program) == args[1] && strings.HasPrefix(cwd, ts.Getenv("WORK")) {
				ts.Check(syscall.Kill(pid, sig))
				if twice { // it may have ended by then
					time.Sleep(5 * time.Millisecond)
					syscall.Kill(pid, syscall.SIGINT)
				}
				return
			}
		}
	}
	ts.Fatalf("no process of %s holds %q", args[1], args[2])
}

// exits runs a command and asserts its exit code: exits CODE COMMAND...
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	if err != nil {
		exit, ok := err.(interface{ ExitCode() int })
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if fmt.Sprint(got) != args[0] {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
}
