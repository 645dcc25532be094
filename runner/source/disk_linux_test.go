package source

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// inNamespace runs a test again in a mount namespace of its own, where it may
// mount; it reports whether the caller is that inner test.
func inNamespace(t *testing.T) bool {
	t.Helper()
	const inner = "TANDEM_TEST_NAMESPACE"
	if os.Getenv(inner) != "" {
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), inner+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) {
		t.Fatalf("this test mounts a small filesystem: run it as root, or allow user namespaces (%v)", err)
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("in its own namespace: %v\n%s", err, out)
	}
	return false
}

func mount(t *testing.T, source, dir, kind string, flags uintptr, data string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount(source, dir, kind, flags, data); err != nil {
		t.Fatalf("mount %s: %v", dir, err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, 0) })
}

func TestFullDisk(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	w := newWorld(t)
	w.write(w.repo, map[string]string{"big": strings.Repeat("x", 3<<20)})
	arm := dirArm("head", w.repo, "cp big made")
	work := w.options(arm)
	work.WorkDir = filepath.Join(w.root, "small")
	mount(t, "small", work.WorkDir, "tmpfs", 0, "size=4m")
	_, err := Prepare(t.Context(), work)
	var b *BuildError
	if !errors.As(err, &b) || !strings.Contains(b.Tail, "No space left") {
		t.Errorf("a build on a full disk: %v", err)
	}
	work.Spec.Arms[0] = dirArm("head", w.repo)
	w.write(w.repo, map[string]string{"big2": strings.Repeat("x", 3<<20)})
	if _, err := Prepare(t.Context(), work); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a copy on a full disk: %v", err)
	}
	if got := listing(t, work.WorkDir); got != "" {
		t.Errorf("left on the full disk: %s", got)
	}

	cache := w.options(arm)
	cache.CacheDir = filepath.Join(w.root, "small", "cache")
	tr := w.prepare(cache)[0]
	if all := strings.Join(tr.Warnings, "\n"); !strings.Contains(all, "not kept for the next run") || !strings.Contains(all, "no space left") {
		t.Errorf("a full cache: warnings %q", all)
	}
	if got := listing(t, filepath.Join(cache.CacheDir, "builds")); got != "" {
		t.Errorf("left in the full cache: %s", got)
	}
}

func TestReadOnlyRepository(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	w := newWorld(t)
	w.submodule("lib", "lib")
	mount(t, w.repo, w.repo, "", syscall.MS_BIND, "")
	mount(t, w.repo, w.repo, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, "")
	if err := os.WriteFile(filepath.Join(w.repo, "x"), nil, 0o644); !errors.Is(err, syscall.EROFS) {
		t.Fatalf("the repository is not read-only: %v", err)
	}
	for _, tr := range w.prepare(w.options(gitArm("base", "main", "touch made"), dirArm("head", w.repo, "touch made"))) {
		if got, want := listing(t, tr.Dir), ".gitmodules bin/run.sh lib/lib.txt made server.txt"; got != want {
			t.Errorf("%s holds %q, want %q", tr.Arm.Name, got, want)
		}
	}
}

// A run that is killed in the middle of a build is no trouble for the next
// one, in the same folders.
func TestKilledRun(t *testing.T) {
	const inner = "TANDEM_TEST_KILLED"
	if root := os.Getenv(inner); root != "" {
		w := &world{t: t, root: root, repo: filepath.Join(root, "repo"), vars: map[string]string{"PATH": os.Getenv("PATH"), "HOME": root}}
		w.prepare(w.options(gitArm("base", "main", "touch half; touch ../begun; sleep 100")))
		return
	}
	w := newWorld(t)
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledRun$")
	cmd.Env = append(os.Environ(), inner+"="+w.root)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	begun := filepath.Join(w.root, "work", "begun")
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(begun); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the build did not begin")
		}
	}
	killTree(t, cmd.Process.Pid)
	cmd.Wait()
	arm := gitArm("base", "main", "cp server.txt out.txt")
	tr := w.prepare(w.options(arm))[0]
	if got := listing(t, tr.Dir); got != "bin/run.sh out.txt server.txt" {
		t.Errorf("the tree holds %q", got)
	}
	if out := w.git(w.repo, "worktree", "list"); strings.Contains(out, "\n") {
		t.Errorf("worktrees of the user's repository: %s", out)
	}
	if err := tr.Close(); err != nil {
		t.Error(err)
	}
}

// killTree kills a process and then the build that it had running, as the
// watchdog of a real run does.
func killTree(t *testing.T, pid int) {
	t.Helper()
	task := fmt.Sprintf("/proc/%d/task", pid)
	threads, err := os.ReadDir(task)
	if err != nil {
		t.Fatal(err)
	}
	var children []string
	for _, th := range threads {
		data, err := os.ReadFile(filepath.Join(task, th.Name(), "children"))
		if err != nil {
			t.Fatal(err)
		}
		children = append(children, strings.Fields(string(data))...)
	}
	syscall.Kill(pid, syscall.SIGKILL)
	for _, c := range children {
		if n, err := strconv.Atoi(c); err == nil {
			syscall.Kill(-n, syscall.SIGKILL)
		}
	}
}
