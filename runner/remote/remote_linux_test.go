package remote

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tandem-bench/tandem/runner/proc"
	"github.com/tandem-bench/tandem/spec"
)

func TestMain(m *testing.M) {
	if handled, code := proc.WatchdogMain(os.Args, os.Stdin); handled {
		os.Exit(code)
	}
	if handled, code := AgentMain(os.Args, os.Stdin, os.Stdout, os.Stderr); handled {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// fakeSSH is an ssh that reaches this machine: it runs its last argument, or
// answers -G. A login that prints something of its own comes before it.
const fakeSSH = `#!/bin/sh
echo "$@" >>"$SSH_LOG"
for a; do
	[ "$a" != -G ] || { echo user me; echo hostname 127.0.0.1; exit; }
done
[ -z "$SSH_FAILS" ] || { echo "kex: no"; echo "$SSH_FAILS" >&2; exit 255; }
echo "Welcome to the test"
for line; do :; done
cd "$SSH_HOME" && exec sh -c "$line"
`

// testHost is a host that is this machine.
type testHost struct {
	*Host
	home string // of the login
	log  string // the arguments of each ssh
	lost chan error
	sup  *proc.Supervisor
}

// options prepares for a dial.
func options(t *testing.T, more ...string) (Options, *testHost) {
	t.Helper()
	sup, err := proc.New(proc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sup.Close(); err != nil {
			t.Error(err)
		}
	})
	dir := t.TempDir()
	th := &testHost{home: t.TempDir(), log: filepath.Join(dir, "log"), lost: make(chan error, 1), sup: sup}
	if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte(fakeSSH), 0o755); err != nil {
		t.Fatal(err)
	}
	return Options{
		Host: spec.Host{Name: "box", SSH: "me@box", Dir: "it's here"}, Supervisor: sup, LogDir: t.TempDir(),
		Environ: append([]string{"PATH=" + dir + ":" + os.Getenv("PATH"), "SSH_LOG=" + th.log, "SSH_HOME=" + th.home}, more...),
		Lost:    func(err error) { th.lost <- err },
	}, th
}

// dial connects to a host that is this machine.
func dial(t *testing.T) *testHost {
	t.Helper()
	o, th := options(t)
	var err error
	if th.Host, err = Dial(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { th.Close() })
	return th
}

// empty demands that nothing of a run is left on the host.
func (th *testHost) empty(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(th.home, "*", "work", "*"))
	if err != nil || len(files) != 1 || !strings.HasSuffix(files[0], ".lock") {
		t.Errorf("found %v (%v) on the host, expected nothing but the lock of the work folder", files, err)
	}
}

// alive reports whether a process runs; one that nobody has waited for does not.
func alive(pid int) bool {
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return len(line) > 0
}

func TestProcesses(t *testing.T) {
	h, ctx := dial(t), t.Context()
	facts := h.Facts()
	if h.Address() != "127.0.0.1" || facts.Host.Kernel == "" || len(facts.CPUs) == 0 || !filepath.IsAbs(facts.Work) {
		t.Errorf("found the address %s and the facts %+v", h.Address(), facts)
	}
	log := filepath.Join(t.TempDir(), "sleep.log")
	p, err := h.Start(ctx, proc.Cmd{Name: "sleeper", Argv: []string{"sh", "-c", "pwd; echo ready; exec sleep 1000"}, Env: facts.Environ, CPUs: facts.CPUs[:1], Log: log})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.WaitReady(ctx, proc.Probe{Exec: &proc.Cmd{Name: "probe", Argv: []string{"grep", "-q", "ready", "log-sleep.log"}, Env: facts.Environ}, Timeout: time.Minute}); err != nil {
		t.Fatal(err)
	}
	if err := p.VerifyPins(facts.CPUs[:1]); err != nil {
		t.Error(err)
	}
	if u, err := p.Usage(); err != nil || u.MaxRSS == 0 || u.Processes != 1 {
		t.Errorf("found the usage %+v (%v)", u, err)
	}
	if tail := p.Tail(1); tail != "ready" {
		t.Errorf("found the tail %q", tail)
	}
	if err := p.Stop(spec.Stop{}); err != nil || p.Err() != nil {
		t.Errorf("found %v and %v, expected an end on demand", err, p.Err())
	}
	if data, _ := os.ReadFile(log); string(data) != facts.Work+"\nready\n" {
		t.Errorf("found the log %q", data)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	h.empty(t)
}

// TestEnds tells what is said of processes that end by themselves, and of
// those that never start.
func TestEnds(t *testing.T) {
	h, ctx := dial(t), t.Context()
	p, err := h.Start(ctx, proc.Cmd{Name: "dying", Argv: []string{"sh", "-c", "seq 100; exit 7"}, Env: h.Facts().Environ, Log: filepath.Join(t.TempDir(), "x")})
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if err := p.Err(); err == nil || !strings.Contains(err.Error(), "exit status 7") || p.Tail(2) != "99\n100" {
		t.Errorf("found %v and %q", err, p.Tail(2))
	}
	if _, err := h.Start(ctx, proc.Cmd{Name: "nothing", Argv: []string{"nosuchprogram"}}); err == nil || !strings.Contains(err.Error(), "was not found in PATH") || !strings.HasSuffix(err.Error(), "on box") {
		t.Errorf("found %v", err)
	}
	res, err := h.Run(ctx, proc.Cmd{Name: "v", Argv: []string{"sh", "-c", "echo 1.2; exit 3"}, Env: h.Facts().Environ, Log: filepath.Join(t.TempDir(), "v")}, time.Minute)
	if err != nil || res.Code != 3 || res.Tail != "1.2" {
		t.Errorf("found %+v (%v)", res, err)
	}
	canceled, cancel := context.WithCancelCause(ctx)
	cancel(errors.New("enough"))
	if _, err := h.FreePort(canceled); err == nil || err.Error() != "enough" {
		t.Errorf("found %v, expected the cause of the context's end", err)
	}
}

func TestReady(t *testing.T) {
	h, ctx := dial(t), t.Context()
	port, err := h.FreePort(ctx)
	if err != nil {
		t.Fatal(err)
	}
	p, err := h.Start(ctx, proc.Cmd{Name: "web", Argv: []string{"sleep", "1000"}, Env: h.Facts().Environ, Log: filepath.Join(t.TempDir(), "web")})
	if err != nil {
		t.Fatal(err)
	}
	err = p.WaitReady(ctx, proc.Probe{TCP: fmt.Sprintf("127.0.0.1:%d", port), Port: port, Timeout: 50 * time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "web was not ready") || !strings.Contains(err.Error(), "it listens on no TCP port") {
		t.Errorf("found %v", err)
	}
	server := http.Server{Addr: fmt.Sprintf("127.0.0.1:%d", port)}
	go server.ListenAndServe()
	defer server.Close()
	err = p.WaitReady(ctx, proc.Probe{HTTP: fmt.Sprintf("http://127.0.0.1:%d/", port), Timeout: 10 * time.Second})
	if err == nil || !strings.Contains(err.Error(), "is taken by") {
		t.Errorf("found %v, expected to be told of a stranger", err)
	}
}

// TestSend brings a tree there, and makes copies of it.
func TestSend(t *testing.T) {
	h, ctx := dial(t), t.Context()
	tree := t.TempDir()
	big := strings.Repeat("tandem\n", 100_000) // some parts
	for name, text := range map[string]string{"big": big, "a b/ü\n": "odd", "run": "#!/bin/sh\necho ran\n"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(tree, name)), 0o755), os.WriteFile(filepath.Join(tree, name), []byte(text), 0o640)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink("big", filepath.Join(tree, "link")), os.Chmod(filepath.Join(tree, "run"), 0o755), os.Mkdir(filepath.Join(tree, "empty"), 0o500), syscall.Mkfifo(filepath.Join(tree, "pipe"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := h.Send(ctx, tree, "tree0000"); err != nil {
		t.Fatal(err)
	}
	if err := h.Copy(ctx, "tree0000", "copy0000"); err != nil {
		t.Fatal(err)
	}
	if err := h.Send(ctx, tree, "tree0000"); err == nil {
		t.Error("a tree was sent to where one is")
	}
	script := `test -x copy0000/run && test "$(readlink copy0000/link)" = big && test "$(wc -c <copy0000/link)" = 700000 && ls copy0000/a* && stat -c %a copy0000/empty copy0000/big && ls copy0000/pipe`
	res, err := h.Run(ctx, proc.Cmd{Name: "look", Argv: []string{"sh", "-c", script}, Env: h.Facts().Environ, Log: filepath.Join(t.TempDir(), "l")}, time.Minute)
	if err != nil || !strings.Contains(res.Tail, "500\n640\n") || !strings.Contains(res.Tail, "No such file") {
		t.Errorf("found %+v (%v)", res, err)
	}
	if err := h.Remove(ctx, "copy0000"); err != nil {
		t.Error(err)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	h.empty(t)
}

// TestUnpackStaysInside feeds archives that want out of their folder.
func TestUnpackStaysInside(t *testing.T) {
	outside := t.TempDir()
	for _, archive := range [][]tar.Header{
		{{Name: "../evil", Typeflag: tar.TypeReg}},
		{{Name: outside + "/evil", Typeflag: tar.TypeReg}},
		{{Name: "a", Typeflag: tar.TypeSymlink, Linkname: outside}, {Name: "a/evil", Typeflag: tar.TypeReg}},
		{{Name: "a", Typeflag: tar.TypeSymlink, Linkname: ".."}, {Name: "a/evil", Typeflag: tar.TypeReg}},
		{{Name: "dev", Typeflag: tar.TypeChar}},
	} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, h := range archive {
			if err := w.WriteHeader(&h); err != nil {
				t.Fatal(err)
			}
		}
		dir := t.TempDir()
		if err := errors.Join(w.Close(), os.Mkdir(filepath.Join(dir, "in"), 0o755)); err != nil {
			t.Fatal(err)
		}
		if err := unpack(&b, filepath.Join(dir, "in", "tree")); err == nil {
			t.Errorf("%v was unpacked", archive)
		}
		for _, at := range []string{outside, dir, filepath.Join(dir, "in")} {
			if _, err := os.Lstat(filepath.Join(at, "evil")); err == nil {
				t.Errorf("%v was unpacked to %s", archive, at)
			}
		}
	}
}

// TestAudit reads what else happens there.
func TestAudit(t *testing.T) {
	h, ctx := dial(t), t.Context()
	if _, err := h.ReadAudit(); err == nil {
		t.Error("CPUs were read that nobody had named")
	}
	if _, err := h.Audit(ctx, h.Facts().CPUs); err != nil {
		t.Fatal(err)
	}
	before, err1 := h.ReadAudit()
	time.Sleep(20 * time.Millisecond)
	after, err2 := h.ReadAudit()
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	if seen := after.Since(before, 0); seen.Elapsed <= 0 || seen.Steal < 0 || after.CPUs != len(h.Facts().CPUs) {
		t.Errorf("found %+v between %+v and %+v", seen, before, after)
	}
}

// TestLost kills ssh: the run is told, nothing is left, and whoever waits for
// a process waits no more.
func TestLost(t *testing.T) {
	h, ctx := dial(t), t.Context()
	p, err := h.Start(ctx, proc.Cmd{Name: "sleeper", Argv: []string{"sleep", "1000"}, Env: h.Facts().Environ, Log: filepath.Join(t.TempDir(), "s")})
	if err != nil {
		t.Fatal(err)
	}
	pid := p.pid
	if err := syscall.Kill(h.ssh.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	var lost *LostError
	if err := <-h.lost; !errors.As(err, &lost) || !strings.Contains(err.Error(), "the connection to host box (ssh me@box) was lost") {
		t.Errorf("found %v", err)
	}
	<-p.Done()
	if !errors.As(p.Err(), &lost) {
		t.Errorf("found %v", p.Err())
	}
	if err := errors.Join(p.Stop(spec.Stop{}), h.Close()); err != nil {
		t.Errorf("after the end: %v", err)
	}
	for end := time.Now().Add(time.Minute); alive(pid); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the process there is still alive")
		}
	}
}

// TestDialFails tells what is said of hosts that cannot be had.
func TestDialFails(t *testing.T) {
	o, _ := options(t, "SSH_FAILS=me@box: Permission denied (publickey).")
	_, err := Dial(t.Context(), o)
	if want := "host box (ssh me@box): me@box: Permission denied (publickey). (see that this works without a question: ssh -o BatchMode=yes me@box true)"; err == nil || err.Error() != want {
		t.Errorf("found %v, expected %s", err, want)
	}
	o, _ = options(t)
	o.Environ = nil
	if _, err := Dial(t.Context(), o); err == nil || !strings.Contains(err.Error(), `program "ssh" was not found`) {
		t.Errorf("found %v", err)
	}
	o, _ = options(t)
	o.Host.Address = "nowhere.invalid"
	if _, err := Dial(t.Context(), o); err == nil || !strings.Contains(err.Error(), "hosts.box.address") {
		t.Errorf("found %v", err)
	}
}

// TestOneRunAtATime holds a host for one run.
func TestOneRunAtATime(t *testing.T) {
	first := dial(t)
	o, _ := options(t)
	for i, e := range o.Environ {
		if strings.HasPrefix(e, "SSH_HOME=") {
			o.Environ[i] = "SSH_HOME=" + first.home
		}
	}
	waited := make(chan error, 1)
	go func() {
		h, err := Dial(t.Context(), o)
		if err == nil {
			err = h.Close()
		}
		waited <- err
	}()
	select {
	case err := <-waited:
		t.Fatalf("two runs had the host at once (%v)", err)
	case <-time.After(300 * time.Millisecond):
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	if err := <-waited; err != nil {
		t.Errorf("the second run: %v", err)
	}
	// The program was brought there once.
	if programs, _ := filepath.Glob(filepath.Join(first.home, "*", "tandem-*")); len(programs) != 1 {
		t.Errorf("found %v", programs)
	}
}

func TestSameKind(t *testing.T) {
	for _, there := range []string{"Linux sparc64", "FreeBSD amd64", "Darwin arm64", ""} {
		if err := sameKind(there); err == nil || !strings.Contains(err.Error(), "both must be the same") {
			t.Errorf("%q: found %v", there, err)
		}
	}
	var name syscall.Utsname
	if err := syscall.Uname(&name); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, c := range name.Machine {
		if c == 0 {
			break
		}
		b.WriteByte(byte(c))
	}
	if err := sameKind("Linux " + b.String()); err != nil {
		t.Error(err)
	}
}
