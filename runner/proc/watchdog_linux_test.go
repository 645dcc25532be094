package proc

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/tandem-bench/tandem/spec"
)

// current is the living process of a watchdog.
func (d *watchdog) current() *kennel {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.cur
}

// TestWatchdogIsReplaced kills the watchdog, and then the whole Tandem: the
// successor comes by itself, and must know what was started before and after.
func TestWatchdogIsReplaced(t *testing.T) {
	r := newRig(t, Options{NoCgroup: true})
	first := r.start("stubborn")
	was := r.dog.current()
	unix.Kill(was.cmd.Process.Pid, unix.SIGKILL)
	for end := time.Now().Add(time.Minute); r.dog.current() == was; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the watchdog was not replaced")
		}
	}
	second := r.start("sleep")
	now := r.dog.current()
	for _, p := range []*Process{first, second} {
		if !r.dog.told.groups[p.PID()] {
			t.Errorf("the successor was not told of %s", p.Name())
		}
	}
	now.pipe.Close() // as the kernel does when we die
	noneLeft(t, r.mark, 5*time.Second)
}

// TestWatchdogKilledAtItsStart kills the first one before it can greet.
func TestWatchdogKilledAtItsStart(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\n[ -e %[1]s/killed ] || { : >%[1]s/killed; kill -9 $$; }\nexec %[2]s \"$@\"\n", dir, self)
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{Executable: program})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "killed")); err != nil {
		t.Error(err)
	}
}

func TestWatchdogNeedsMain(t *testing.T) {
	for program, want := range map[string]string{
		"/bin/true":  "main must call proc.WatchdogMain first",
		"/bin/echo":  "main must call proc.WatchdogMain first",
		"/no/such/x": "no such file",
	} {
		s, err := New(Options{Executable: program})
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: found %v, expected %q", program, err, want)
		}
	}
	t.Setenv("TANDEM_WATCHDOG", "1")
	if _, err := New(Options{}); err == nil || !strings.Contains(err.Error(), "did not call proc.WatchdogMain") {
		t.Errorf("found %v", err)
	}
}

func TestCharge(t *testing.T) {
	c := newCharge()
	const told = "mark A=b c\nbox /sys/fs/cgroup/x y\ngroup 12\ngroup 13\ngone 13\ngroup 1\ngroup -5\ngroup x\nnonsense\n\n"
	if c.listen(strings.NewReader(told)) {
		t.Error("dismissed without being told so")
	}
	want := charge{groups: map[int]bool{12: true}, mark: "A=b c", boxes: []string{"/sys/fs/cgroup/x y"}}
	if diff := cmp.Diff(want, c, cmp.AllowUnexported(charge{})); diff != "" {
		t.Errorf("(-expected +found):\n%s", diff)
	}
	again := newCharge()
	again.listen(strings.NewReader(c.String()))
	if diff := cmp.Diff(c, again, cmp.AllowUnexported(charge{})); diff != "" {
		t.Errorf("told again (-expected +found):\n%s", diff)
	}
	if !c.listen(strings.NewReader("dismissed\ngroup 14\n")) || c.groups[14] {
		t.Error("not dismissed")
	}
}

// TestBareDaemons escapes by every means there is: a session of its own and
// an empty environment. Only a control group holds that.
func TestBareDaemons(t *testing.T) {
	r := newRig(t, Options{})
	if r.plat.cgroup == nil {
		return // said in the notes; TestAsUser is there
	}
	c := r.cmd("daemon")
	c.Argv = []string{"sh", "-c", `setsid env -i "$@" & exec sleep 1000`, "sh"}
	c.Argv = append(c.Argv, helperArgv(r.mark, "stubborn")...)
	p, err := r.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	says(t, p, "ready")
	if err := p.Stop(spec.Stop{Signal: "TERM", Timeout: 100 * time.Millisecond}); err != nil {
		t.Error(err)
	}
	if left := marked(t, r.mark); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// TestForeignChildren looks that we take nobody else's children away.
func TestForeignChildren(t *testing.T) {
	eachWay(t, func(t *testing.T, r *rig) {
		for range 20 {
			c := exec.Command("true")
			c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
			r.reap()
			if err := c.Wait(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
