package load

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tandem-bench/tandem/spec"
)

// Processes write their name into a log, so that the order of everything
// that was run can be asserted exactly.
func TestCommandOrder(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	step := func(word string) *spec.Step {
		return &spec.Step{Run: shell("echo " + word + " ${arm} >> " + log), Timeout: time.Minute}
	}
	p := spec.Process{
		Run:     shell("echo run $ARM >> " + log + "; sleep 0.02"),
		Prepare: step("prepare"), Cleanup: step("cleanup"), Timeout: time.Minute,
	}
	l := openCommand(t, p, commandTargets(t, "base", "head"))
	got, err := l.Run(t.Context(), Schedule{Window: 30 * time.Millisecond, Order: rotate})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	want := ""
	for cycle := range got[0].Cycles {
		arms := []string{"base", "head"}
		for i := range arms {
			arm := arms[(cycle+i)%2]
			want += "prepare " + arm + "\nrun " + arm + "\n"
		}
	}
	// One more process of each shows its peak memory, being smaller than this one.
	want += "prepare base\nrun base\nprepare head\nrun head\n"
	want += "cleanup base\ncleanup head\n"
	if diff := cmp.Diff(want, readFile(t, log)); diff != "" {
		t.Errorf("what ran, in order (-want +got):\n%s", diff)
	}
	for _, s := range got {
		if s.Cycles < 1 || s.Started != int64(s.Cycles) || s.OK != s.Started || s.Turns != s.Cycles {
			t.Errorf("counts do not add up: %+v", s)
		}
	}
}

// grow makes this process larger than the processes that the tests measure,
// as a generator with many connections is.
func grow(t *testing.T) {
	ballast := make([]byte, 48<<20)
	for i := 0; i < len(ballast); i += 4096 {
		ballast[i] = 1
	}
	t.Cleanup(func() { runtime.KeepAlive(ballast) })
}

func TestCommandPeakMemory(t *testing.T) {
	grow(t)
	own := selfMaxRSS()
	tests := []struct {
		name      string
		run       spec.Command
		low, high float64 // MiB
	}{
		{"far below our own", argv("true"), 0.1, 8},
		{"below our own, in a child", shell("dd if=/dev/zero of=/dev/null bs=16M count=1 2>/dev/null; true"), 16, 24},
		{"above our own", argv("dd", "if=/dev/zero", "of=/dev/null", "bs=512M", "count=1"), 512, 530},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := runCommand(t, spec.Process{Run: tt.run, Timeout: time.Minute}, 0, commandTargets(t, "base"))[0]
			if s.Failed > 0 {
				t.Fatal(s.Errors)
			}
			peak, ok := s.Values()["max_rss"]
			if mib := peak / (1 << 20); !ok || mib < tt.low || mib > tt.high {
				t.Errorf("%v MiB, expected %v to %v; this process has %v", mib, tt.low, tt.high, own>>20)
			}
			if s.Started != 1 {
				t.Errorf("%d processes counted, expected that finding the peak adds none", s.Started)
			}
		})
	}
}

func TestCommandPinned(t *testing.T) {
	targets := commandTargets(t, "base", "head", "other")
	targets[0].CPUs, targets[1].CPUs = []int{0}, []int{1}
	p := spec.Process{Run: shell("grep Cpus_allowed_list /proc/self/status > cpus"), Timeout: time.Minute}
	before := readFile(t, "/proc/thread-self/status")
	for _, s := range runCommand(t, p, 0, targets) {
		if s.Failed > 0 {
			t.Fatal(s.Errors)
		}
	}
	allowed := func(status string) string {
		_, list, _ := strings.Cut(status, "Cpus_allowed_list:")
		list, _, _ = strings.Cut(list, "\n")
		return strings.TrimSpace(list)
	}
	for i, want := range []string{"0", "1", allowed(before)} {
		if got := allowed(readFile(t, targets[i].Dir+"/cpus")); got != want {
			t.Errorf("%s ran on CPUs %q, expected %q", targets[i].Name, got, want)
		}
	}
}

// A process that is traced for its peak behaves as it does otherwise.
func TestTracePeakDeliversSignals(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	dir := t.TempDir()
	env := []string{"PATH=" + os.Getenv("PATH")}
	line := "trap 'echo usr1 >> log' USR1; kill -USR1 $$; (exit 3); echo $? >> log; sh -c 'kill -KILL $$'; echo $? >> log"
	path, err := lookPath([]string{"sh"}, dir, env)
	if err != nil {
		t.Fatal(err)
	}
	c := child{path: path, argv: []string{"sh", "-c", line}, dir: dir, env: env, files: [3]*os.File{null, null, null}, timeout: time.Minute}
	peak, err := tracePeak(t.Context(), c)
	if err != nil || peak <= 0 {
		t.Errorf("peak %d, error %v", peak, err)
	}
	if got, want := readFile(t, dir+"/log"), "usr1\n3\n137\n"; got != want {
		t.Errorf("the traced script logged %q, expected %q", got, want)
	}
}

// BenchmarkCommandProcess is what a process that does nothing costs as this
// driver measures it; compare with the mean of hyperfine -N true.
func BenchmarkCommandProcess(b *testing.B) {
	env := []string{"PATH=" + os.Getenv("PATH")}
	path, err := lookPath([]string{"true"}, "", env)
	if err != nil {
		b.Fatal(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer null.Close()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var th thread
	c := child{path: path, argv: []string{"true"}, env: os.Environ(), files: [3]*os.File{null, null, null}, timeout: time.Minute}
	var wall time.Duration
	n := 0
	for b.Loop() {
		u, err := c.run(b.Context(), &th)
		if err != nil || u.code != 0 {
			b.Fatal(u, err)
		}
		wall += u.wall
		n++
	}
	b.ReportMetric(float64(wall.Nanoseconds())/float64(n), "wall-ns/op")
}
