package proc

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

const nobody = 65534

// TestAsUser runs the tests of containment again without root's powers:
// control groups cannot be written then, and other users' processes not read.
// Without root, all tests run so anyway, and this one has nothing to add.
func TestAsUser(t *testing.T) {
	if !canBeNobody(t) {
		return
	}
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") // of root, for TestStrangerOfAnotherUser
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dir := nobodysDir(t)
	c := exec.Command(copyOfSelf(t, dir), "-test.v", "-test.run",
		"^(TestRun|TestStop|TestDeath|TestNothingOutlivesUs|TestUsage|TestReadyOfOthers|TestStranger|TestProcessesStartPinned|TestLimit|TestPinSelf|TestAudit)")
	c.Env = append(withoutEnv(os.Environ(), "TMPDIR"), "TMPDIR="+dir, "HOME="+dir, "PORT_OF_ROOT="+strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
	c.Dir = dir
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
	if n := strings.Count(string(out), "--- PASS"); n < 15 {
		t.Errorf("found %d tests passed, expected more:\n%s", n, out)
	}
}

// canBeNobody reports whether we may change to another user: root may, but
// not in a name space of users that has no others.
func canBeNobody(t *testing.T) bool {
	t.Helper()
	return os.Getuid() == 0 && os.Chown(t.TempDir(), nobody, nobody) == nil
}

// nobodysDir is a folder that nobody may use.
func nobodysDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "proc-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	return dir
}

// copyOfSelf copies the test binary to where nobody can execute it.
func copyOfSelf(t *testing.T, dir string) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "proc.test")
	// Not in this process: what other tests fork at that moment would hold
	// the file open for writing, and it could not be executed.
	if out, err := exec.Command("cp", exe, name).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.Chmod(name, 0o755); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestStrangerOfAnotherUser has a listener that belongs to root, whose files
// an ordinary user cannot look into. TestAsUser sets it up.
func TestStrangerOfAnotherUser(t *testing.T) {
	port, err := strconv.Atoi(os.Getenv("PORT_OF_ROOT"))
	if err != nil {
		return
	}
	r := newRig(t, Options{})
	p := r.start("sleep")
	err = WaitReady(t.Context(), p, Probe{TCP: "127.0.0.1:" + strconv.Itoa(port)})
	if err == nil || !strings.Contains(err.Error(), "is taken by a process of another user") {
		t.Errorf("found %v", err)
	}
	if notes := strings.Join(r.Notes(), "\n"); !strings.Contains(notes, "control groups cannot be used") {
		t.Errorf("found notes %q, expected to be told that control groups cannot be written", notes)
	}
}

// TestServerOfAnotherUser has root start a server as an ordinary user, by a
// program that changes the user or by ourselves. Its socket is known to be
// ours all the same.
func TestServerOfAnotherUser(t *testing.T) {
	if !canBeNobody(t) {
		return
	}
	eachWay(t, func(t *testing.T, r *rig) {
		exe := copyOfSelf(t, nobodysDir(t))
		for _, through := range [][]string{{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}, nil} {
			addr, _ := freeAddr(t)
			c := r.cmd("serve", addr)
			c.Argv = slices.Concat(through, []string{exe}, c.Argv[1:])
			if through == nil {
				c.User = &User{UID: nobody, GID: nobody}
			}
			p, err := r.Start(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if err := WaitReady(t.Context(), p, Probe{TCP: addr}); err != nil {
				t.Error(err)
			}
			if _, err := p.Usage(); err != nil {
				t.Error(err)
			}
			status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.os.Pid))
			if err != nil || !strings.Contains(string(status), "\nUid:\t65534\t65534") || !strings.Contains(string(status), "\nGroups:\t \n") {
				t.Errorf("the server runs as somebody else (%v):\n%s", err, status)
			}
		}
	})
}

// TestForRoot finds users by name where we are root, and changes none
// otherwise.
func TestForRoot(t *testing.T) {
	u, err := ForRoot("nobody")
	if root := os.Geteuid() == 0; err != nil || root != (u != nil) || root && u.UID != nobody {
		t.Errorf("found %+v, %v", u, err)
	}
	if u, err := ForRoot(""); u != nil || err != nil {
		t.Errorf("without a name: %+v, %v", u, err)
	}
	if _, err := ForRoot("no-such-user"); os.Geteuid() == 0 && (err == nil || !strings.Contains(err.Error(), "no-such-user")) {
		t.Errorf("an unknown user: %v", err)
	}
}
