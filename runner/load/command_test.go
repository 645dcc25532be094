package load

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tandem-bench/tandem/spec"
)

// rotate is a schedule order that starts one target further in each cycle.
func rotate(cycle int, order []int) {
	for i := range order {
		order[i] = (cycle + i) % len(order)
	}
}

// commandTargets are copies named by the given arms, each in its own folder.
func commandTargets(t *testing.T, arms ...string) []Target {
	t.Helper()
	var targets []Target
	for _, arm := range arms {
		targets = append(targets, Target{
			Name: arm + "#0", Dir: t.TempDir(), Vars: spec.Vars{"arm": arm, "copy": "0"},
			Env: []string{"PATH=" + os.Getenv("PATH"), "ARM=" + arm},
		})
	}
	return targets
}

// openCommand opens a load of the process for the targets.
func openCommand(t *testing.T, p spec.Process, targets []Target) Load {
	t.Helper()
	d, err := New(spec.Scenario{Name: "test", Command: &p}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := d.Open(t.Context(), targets)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// runCommand runs one window of the process.
func runCommand(t *testing.T, p spec.Process, window time.Duration, targets []Target) []Sample {
	t.Helper()
	got, err := openCommand(t, p, targets).Run(t.Context(), Schedule{Window: window, Order: rotate})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func shell(line string) spec.Command { return spec.Command{Shell: spec.Template(line)} }

func argv(args ...string) spec.Command {
	var c spec.Command
	for _, a := range args {
		c.Argv = append(c.Argv, spec.Template(a))
	}
	return c
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestCommandSample(t *testing.T) {
	p := spec.Process{Run: argv("sleep", "0.03"), Timeout: time.Minute}
	got := runCommand(t, p, 100*time.Millisecond, commandTargets(t, "base", "head"))
	for _, s := range got {
		v := s.Values()
		if s.Cycles != got[0].Cycles {
			t.Errorf("%d cycles for one target, %d for another", s.Cycles, got[0].Cycles)
		}
		if v["wall"] < 0.03 {
			t.Errorf("wall %v s of a process that sleeps 0.03 s", v["wall"])
		}
		if v["cpu"] <= 0 || v["cpu"] >= v["wall"] {
			t.Errorf("cpu %v s, expected more than nothing and less than wall %v s", v["cpu"], v["wall"])
		}
		if sum := v["cpu.user"] + v["cpu.system"]; sum-v["cpu"] > 1e-9 || v["cpu"]-sum > 1e-9 {
			t.Errorf("user and system add up to %v, cpu is %v", sum, v["cpu"])
		}
		if s.Elapsed < 100*time.Millisecond {
			t.Errorf("measured for %v, expected the window of 100ms", s.Elapsed)
		}
		if n := s.Hists["wall"].TotalCount(); n != s.OK {
			t.Errorf("%d walls recorded for %d processes", n, s.OK)
		}
		if v["overhead"] <= 0 || v["overhead"] > v["wall"] {
			t.Errorf("overhead %v s of wall %v s", v["overhead"], v["wall"])
		}
	}
}

func TestCommandRunsOnceWithoutWindow(t *testing.T) {
	got := runCommand(t, spec.Process{Run: argv("true"), Timeout: time.Minute}, 0, commandTargets(t, "a", "b", "c"))
	for _, s := range got {
		if s.OK != 1 || s.Cycles != 1 {
			t.Errorf("%d of %d processes in %d cycles, expected exactly one", s.OK, s.Started, s.Cycles)
		}
	}
}

func TestCommandFailures(t *testing.T) {
	tests := []struct {
		name   string
		p      spec.Process
		class  Class
		text   string
		status int
	}{
		{"status", spec.Process{Run: shell("echo broken >&2; exit 3")}, Status, "exit status 3, expected 0: broken", 3},
		{"expected status", spec.Process{Run: argv("true"), Exit: 1}, Status, "exit status 0, expected 1", 0},
		{"signal", spec.Process{Run: shell("kill -SEGV $$")}, Other, "ended by SIGSEGV", 0},
		{"timeout", spec.Process{Run: argv("sleep", "60"), Timeout: 50 * time.Millisecond}, Timeout, "no end after 50ms: killed", 0},
		{"timeout of a child", spec.Process{Run: shell("sleep 60; true"), Timeout: 50 * time.Millisecond}, Timeout, "no end after 50ms: killed", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.p.Timeout == 0 {
				tt.p.Timeout = time.Minute
			}
			s := runCommand(t, tt.p, 0, commandTargets(t, "base"))[0]
			if s.OK != 0 || s.Failed != 1 || s.Started != 1 {
				t.Errorf("started %d, ok %d, failed %d, expected the one process to fail", s.Started, s.OK, s.Failed)
			}
			want := []ErrorCount{{tt.class, 1, []string{tt.text}}}
			if diff := cmp.Diff(want, s.Errors); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if _, ok := s.Values()["wall"]; ok {
				t.Error("a wall time from processes that do not count")
			}
		})
	}
}

func TestCommandExpectedStatus(t *testing.T) {
	s := runCommand(t, spec.Process{Run: shell("exit 4"), Exit: 4, Timeout: time.Minute}, 0, commandTargets(t, "base"))[0]
	if s.OK != 1 {
		t.Errorf("the expected exit status was counted as %+v", s.Errors)
	}
}

func TestCommandComparesOutput(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	tests := []struct {
		name string
		line string
		want string // of the second target; empty: agrees
	}{
		{"same", "echo hello", ""},
		{"arm", "echo hello from $ARM", `stdout differs from that of base#0: at byte 11 found "head\n", expected "base\n"`},
		{"shorter", "echo a; test $ARM = head || echo b", `stdout differs from that of base#0: at byte 2 found "", expected "b\n"`},
		{"long, same", "cat long", ""},
		{"long, differs late", "cat long; echo $ARM", `stdout differs from that of base#0: 100005 bytes, expected 100005, the first 65536 the same`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			targets := commandTargets(t, "base", "head")
			for _, target := range targets {
				if err := os.WriteFile(filepath.Join(target.Dir, "long"), []byte(long), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got := runCommand(t, spec.Process{Run: shell(tt.line), Compare: true, Timeout: time.Minute}, 0, targets)
			if got[0].OK != 1 {
				t.Fatalf("the first target failed: %+v", got[0].Errors)
			}
			text := ""
			if len(got[1].Errors) > 0 {
				text = got[1].Errors[0].First[0]
			}
			if text != tt.want {
				t.Errorf("found %q\nexpected %q", text, tt.want)
			}
		})
	}
}

func TestCommandHoldsOutputToCheck(t *testing.T) {
	targets := commandTargets(t, "base")
	targets[0].Expected = &Response{Body: []byte("other\n")}
	s := runCommand(t, spec.Process{Run: argv("echo", "hello"), Compare: true, Timeout: time.Minute}, 0, targets)[0]
	if s.Failed != 1 || s.Errors[0].Class != Body {
		t.Errorf("output that differs from the check's was counted as valid: %+v", s)
	}
}

func TestCommandStdinEachTime(t *testing.T) {
	in := filepath.Join(t.TempDir(), "in")
	if err := os.WriteFile(in, []byte("13 characters"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := spec.Process{Run: shell("test $(wc -c) = 13 && sleep 0.01"), Stdin: in, Timeout: time.Minute}
	s := runCommand(t, p, 300*time.Millisecond, commandTargets(t, "base"))[0]
	if s.Failed != 0 || s.OK < 2 {
		t.Errorf("%d processes saw the whole of stdin, %d did not: %+v", s.OK, s.Failed, s.Errors)
	}
}

func TestCommandCheck(t *testing.T) {
	targets := commandTargets(t, "base")
	if err := os.Mkdir(filepath.Join(targets[0].Dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	d, err := New(spec.Scenario{Name: "test", Command: &spec.Process{
		Run: shell("pwd; echo $ARM $OWN; exit 7"), Exit: 7, Compare: true, Dir: "sub", Timeout: time.Minute,
		Env: map[string]spec.Template{"OWN": "of ${arm}"},
	}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := d.Check(t.Context(), targets[0])
	if err != nil {
		t.Fatal(err)
	}
	if want := targets[0].Dir + "/sub\nbase of base\n"; r.Status != 7 || string(r.Body) != want {
		t.Errorf("status %d and body %q, expected 7 and %q", r.Status, r.Body, want)
	}
}

func TestCommandCheckRefusesWrongStatus(t *testing.T) {
	d, err := New(spec.Scenario{Name: "test", Command: &spec.Process{Run: shell("echo no >&2; exit 1"), Timeout: time.Minute}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.Check(t.Context(), commandTargets(t, "base")[0])
	if want := "base#0: exit status 1, expected 0: no"; err == nil || err.Error() != want {
		t.Errorf("found %v, expected %s", err, want)
	}
}

func TestCommandNotFound(t *testing.T) {
	targets := commandTargets(t, "base")
	if err := os.WriteFile(filepath.Join(targets[0].Dir, "plain"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	targets[0].Env = []string{"PATH=/nowhere"}
	for name, want := range map[string]string{
		"no-such-tool": `base#0: "no-such-tool" was not found in PATH=/nowhere: install it, or name its file`,
		"./missing":    `base#0: "./missing" cannot be run: no such file or directory`,
		"./plain":      `base#0: "./plain" cannot be run: it is not executable`,
	} {
		d, err := New(spec.Scenario{Name: "test", Command: &spec.Process{Run: argv(name)}}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err = d.Open(t.Context(), targets); err == nil || err.Error() != want {
			t.Errorf("%s: found %v, expected %s", name, err, want)
		}
	}
}

func TestCommandPrepareFails(t *testing.T) {
	p := spec.Process{Run: argv("true"), Prepare: &spec.Step{Run: shell("echo cannot; exit 2"), Timeout: time.Minute}, Timeout: time.Minute}
	_, err := openCommand(t, p, commandTargets(t, "base")).Run(t.Context(), Schedule{Order: rotate})
	if err == nil || !strings.Contains(err.Error(), "base#0: prepare step") || !strings.Contains(err.Error(), "exit status 2: cannot") {
		t.Errorf("found %v, expected the failure of the prepare step", err)
	}
}

// A process and its children end with the context.
func TestCommandEndsWithContext(t *testing.T) {
	targets := commandTargets(t, "base")
	pidFile := filepath.Join(targets[0].Dir, "pid")
	l := openCommand(t, spec.Process{Run: shell("sleep 600 & echo $! > pid.tmp; mv pid.tmp pid; wait"), Timeout: time.Hour}, targets)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		for ctx.Err() == nil {
			if _, err := os.Stat(pidFile); err == nil {
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	if _, err := l.Run(ctx, Schedule{Order: rotate}); !errors.Is(err, context.Canceled) {
		t.Errorf("found %v, expected the context's error", err)
	}
	expectGone(t, strings.TrimSpace(readFile(t, pidFile)))
}

// What a process leaves behind in its group is no load on the next ones.
func TestCommandLeavesNothingBehind(t *testing.T) {
	targets := commandTargets(t, "base")
	s := runCommand(t, spec.Process{Run: shell("sleep 600 & echo $! > pid"), Timeout: time.Minute}, 0, targets)[0]
	if s.OK != 1 {
		t.Fatalf("%+v", s.Errors)
	}
	expectGone(t, strings.TrimSpace(readFile(t, filepath.Join(targets[0].Dir, "pid"))))
}

// expectGone waits until a killed process has left the process table, or is
// only still waiting to be reaped.
func expectGone(t *testing.T, pid string) {
	t.Helper()
	for range 2000 {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("process %s is still there", pid)
}

func TestDigestDifference(t *testing.T) {
	big := func(last byte) []byte { return append(make([]byte, keptOutput+10), last) }
	tests := []struct {
		a, b []byte
		want string
	}{
		{nil, nil, ""},
		{[]byte("ab"), []byte("ab"), ""},
		{[]byte("ab"), []byte("ac"), `at byte 1 found "c", expected "b"`},
		{[]byte("ab"), nil, `at byte 0 found "", expected "ab"`},
		{big('a'), big('a'), ""},
		{big('a'), big('b'), fmt.Sprintf("%d bytes, expected %[1]d, the first %d the same", keptOutput+11, keptOutput)},
	}
	for _, tt := range tests {
		if got := digestOf(tt.a).difference(digestOf(tt.b)); got != tt.want {
			t.Errorf("found %q, expected %q", got, tt.want)
		}
	}
}
