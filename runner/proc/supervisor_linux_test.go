package proc

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tandem-bench/tandem/spec"
)

// ways are the means of containment; every test of it runs with both, unless
// this user can write no control groups, which makes them the same.
var ways = func() map[string]Options {
	if os.Getenv("PORT_OF_ROOT") != "" {
		return map[string]Options{"cgroup": {}}
	}
	return map[string]Options{"cgroup": {}, "nocgroup": {NoCgroup: true}}
}()

func eachWay(t *testing.T, f func(t *testing.T, r *rig)) {
	for name, o := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, newRig(t, o))
		})
	}
}

func TestRunTellsHowItEnded(t *testing.T) {
	eachWay(t, func(t *testing.T, r *rig) {
		res, err := r.Run(t.Context(), r.cmd("exit", "0"))
		if err != nil || res.Code != 0 {
			t.Errorf("exit 0: found code %d, error %v", res.Code, err)
		}
		res, err = r.Run(t.Context(), r.cmd("exit", "3"))
		var exit *ExitError
		if !errors.As(err, &exit) || exit.Code != 3 || res.Code != 3 {
			t.Errorf("exit 3: found code %d, error %v", res.Code, err)
		}
		if res.Tail != "last words" {
			t.Errorf("found tail %q, expected that of the second run alone", res.Tail)
		}
		c := r.cmd("exit")
		c.Argv = []string{"sh", "-c", "kill -9 $$"}
		res, err = r.Run(t.Context(), c)
		if !errors.As(err, &exit) || res.Code != -1 || res.Signal != "KILL" {
			t.Errorf("kill: found code %d, signal %q, error %v", res.Code, res.Signal, err)
		}
		if !strings.Contains(err.Error(), "ended by signal KILL") {
			t.Errorf("found %q, expected it to name the signal", err)
		}
	})
}

func TestRunIsCutShort(t *testing.T) {
	eachWay(t, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		_, err := r.Run(ctx, r.cmd("fork", "2", "stubborn"))
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "still running after") {
			t.Errorf("found %v, expected to be told of the deadline", err)
		}
		if left := marked(t, r.mark); len(left) > 0 {
			t.Errorf("left behind: %q", left)
		}
	})
}

func TestRunEndsWhatItLeftRunning(t *testing.T) {
	eachWay(t, func(t *testing.T, r *rig) {
		for _, kind := range []string{"orphan", "daemon"} {
			if _, err := r.Run(t.Context(), r.cmd(kind, "stubborn")); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
			if left := marked(t, r.mark); len(left) > 0 {
				t.Errorf("%s: left behind: %q", kind, left)
			}
		}
	})
}

func TestStopEndsTheWholeTree(t *testing.T) {
	for _, kind := range [][]string{
		{"sleep"}, {"stubborn"}, {"fork", "2", "sleep"}, {"fork", "2", "stubborn"},
		{"fork", "1", "fork", "2", "stubborn"}, {"orphan", "stubborn"}, {"daemon", "stubborn"},
		{"daemon-and-stay", "stubborn"},
	} {
		t.Run(strings.Join(kind, "-"), func(t *testing.T) {
			t.Parallel()
			eachWay(t, func(t *testing.T, r *rig) {
				p := r.start(kind...)
				what := kind[len(kind)-1]
				until(t, "the last process runs", func() bool {
					for _, line := range marked(t, r.mark) {
						if strings.HasSuffix(line, r.mark+" "+what) {
							return true
						}
					}
					return false
				})
				select {
				case <-p.Done():
					t.Fatalf("ended before it was stopped: %v", p.Err())
				default:
				}
				if err := p.Stop(spec.Stop{Signal: "TERM", Timeout: 200 * time.Millisecond}); err != nil {
					t.Fatal(err)
				}
				if left := marked(t, r.mark); len(left) > 0 {
					t.Errorf("left behind: %q", left)
				}
				if p.Err() != nil {
					t.Errorf("found error %v of a process that was asked to end", p.Err())
				}
			})
		})
	}
}

func TestStopWaitsForThePolite(t *testing.T) {
	eachWay(t, func(t *testing.T, r *rig) {
		file := filepath.Join(r.dir, "bye")
		// The shell dies of the signal at once; its child does not.
		c := r.cmd("polite", file)
		c.Argv = append([]string{"sh", "-c", `"$@"; true`, "sh"}, c.Argv...)
		p, err := r.Start(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		says(t, p, "ready")
		if err := p.Stop(stopTerm); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(file); err != nil || string(b) != "done" {
			t.Errorf("found %q, %v: the process was not left the time to end", b, err)
		}
	})
}

func TestDeathIsTold(t *testing.T) {
	eachWay(t, func(t *testing.T, r *rig) {
		p := r.start("fork", "1", "sleep")
		says(t, p, "forked")
		unix.Kill(p.PID(), unix.SIGKILL)
		<-p.Done()
		var exit *ExitError
		if !errors.As(p.Err(), &exit) || exit.Signal != "KILL" {
			t.Errorf("found %v, expected to be told of the signal", p.Err())
		}
		if left := marked(t, r.mark); len(left) > 0 {
			t.Errorf("left behind: %q", left)
		}
		if err := p.Stop(stopTerm); err != nil {
			t.Errorf("stop after the end: %v", err)
		}
	})
}

func TestStartErrorsSayWhat(t *testing.T) {
	r := newRig(t, Options{})
	script := filepath.Join(r.dir, "script")
	if err := os.WriteFile(script, []byte("#!/no/such/interpreter\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	text := filepath.Join(r.dir, "text")
	if err := os.WriteFile(text, []byte("echo hello\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		cmd  Cmd
		want string
	}{
		{Cmd{}, "the command is empty"},
		{Cmd{Argv: []string{"no-such-program"}, Env: []string{"PATH=/bin"}}, `program "no-such-program" was not found in PATH (/bin)`},
		{Cmd{Argv: []string{"/no/such"}}, "no such file or directory"},
		{Cmd{Argv: []string{"/bin/true"}, Dir: "/no/such"}, "working folder /no/such does not exist"},
		{Cmd{Argv: []string{script}}, "the interpreter in its first line"},
		{Cmd{Argv: []string{text}}, "a script without a #! line"},
		{Cmd{Argv: []string{"/bin/true"}, Log: "/no/such/log"}, "/no/such/log"},
		{Cmd{Argv: []string{"/bin/true"}, Stdin: "/no/such/in"}, "/no/such/in"},
		{Cmd{Argv: []string{"/bin/true"}, CPUs: CPUs{4000}}, "pin to CPU 4000"},
	} {
		c.cmd.Name = "it"
		for _, files := range []int{0, 100} { // without and with a launcher
			c.cmd.Limits.NoFile = files
			_, err := r.Start(t.Context(), c.cmd)
			if err == nil || !strings.HasPrefix(err.Error(), "start it: ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v: found %v, expected %q", c.cmd.Argv, err, c.want)
			}
		}
	}
}

// TestProgramJustWritten starts a program that is open for writing still, as
// it is in every child that is forked while a build or a copy is under way.
func TestProgramJustWritten(t *testing.T) {
	r := newRig(t, Options{})
	for _, files := range []int{0, 100} {
		name := filepath.Join(r.dir, "true"+itoa(files))
		b, err := os.ReadFile("/bin/true")
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o755)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(b); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(5*time.Millisecond, func() { f.Close() })
		if _, err := r.Run(t.Context(), Cmd{Name: "it", Argv: []string{name}, Limits: spec.Limits{NoFile: files}}); err != nil {
			t.Error(err)
		}
	}
}

func TestCloseEndsEverything(t *testing.T) {
	eachWay(t, func(t *testing.T, r *rig) {
		a, b := r.start("fork", "2", "stubborn"), r.start("daemon", "sleep")
		says(t, a, "forked")
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		<-a.Done()
		<-b.Done()
		noneLeft(t, r.mark, 0)
		if _, err := r.Start(t.Context(), r.cmd("sleep")); err == nil {
			t.Error("started a process after Close")
		}
	})
}

// TestNothingOutlivesUs kills a whole Tandem in every way there is.
func TestNothingOutlivesUs(t *testing.T) {
	for way := range ways {
		for _, death := range []string{"KILL", "HUP", "INT", "TERM", "QUIT", "panic", "exit", "close"} {
			t.Run(death+"-"+way, func(t *testing.T) {
				t.Parallel()
				mark := uniqueMark(t)
				c := helperCmd(mark, "tandem", death, way)
				out := &lockedBuffer{}
				c.Stdout, c.Stderr = out, out
				c.SysProcAttr = nil
				if err := c.Start(); err != nil {
					t.Fatal(err)
				}
				until(t, "it is up", func() bool { return strings.Contains(out.String(), "up") })
				// 1 Tandem, sleep, stubborn, 3 of fork, daemon, 2 of daemon-and-stay
				until(t, "everything runs", func() bool {
					return len(marked(t, mark)) >= 9 || death == "panic" || death == "exit" || death == "close"
				})
				if sig := unix.SignalNum("SIG" + death); sig != 0 {
					if ignored(t, c.Process.Pid, sig) {
						sig = unix.SIGKILL // nohup and sh's & make it so, for good
					}
					unix.Kill(c.Process.Pid, sig)
				}
				err := c.Wait()
				if death == "close" && err != nil {
					t.Errorf("%v: %s", err, out)
				}
				noneLeft(t, mark, 5*time.Second)
				noCgroupLeft(t, strings.Fields(out.String())[1])
			})
		}
	}
}

// ignored reports whether a process ignores a signal.
func ignored(t *testing.T, pid int, sig unix.Signal) bool {
	t.Helper()
	b, err := os.ReadFile("/proc/" + itoa(pid) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	mask, _ := statusField(b, "SigIgn")
	bits, err := strconv.ParseUint(mask, 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return bits&(1<<(sig-1)) != 0
}

// TestKilledAtAnyMoment kills a Tandem while it starts its children, when a
// process may exist that it has told nobody of yet.
func TestKilledAtAnyMoment(t *testing.T) {
	for way := range ways {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			for i := range 12 {
				mark := uniqueMark(t)
				c := helperCmd(mark, "tandem", "KILL", way)
				if err := c.Start(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Duration(i) * 5 * time.Millisecond)
				c.Process.Kill()
				c.Wait()
				noneLeft(t, mark, 5*time.Second)
			}
		})
	}
}

// noCgroupLeft looks that a supervisor has left no control group behind.
func noCgroupLeft(t *testing.T, id string) {
	t.Helper()
	until(t, "control groups are removed", func() bool {
		left := false
		err := filepath.WalkDir("/sys/fs/cgroup", func(path string, d os.DirEntry, err error) error {
			left = left || strings.HasSuffix(path, "tandem-"+id)
			return nil
		})
		return err == nil && !left
	})
}
