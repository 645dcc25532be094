package proc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tandem-bench/tandem/spec"
)

func TestLimitMemory(t *testing.T) {
	eachWay(t, func(t *testing.T, r *rig) {
		for _, args := range [][]string{{"eat", "300000000"}, {"fork", "1", "eat", "300000000"}} {
			c := r.cmd(args...)
			c.Limits.Memory = 100 << 20
			p, err := r.Start(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			select {
			case <-p.Done():
			case <-time.After(30 * time.Second):
				t.Fatalf("%v lives on with %s", args, p.Tail(10))
			}
			if err := p.Err(); err == nil || !strings.Contains(err.Error(), "limits.memory, 104857600 bytes") {
				t.Errorf("%v: found %v, expected the limit named", args, err)
			}
			noneLeft(t, r.mark, 0)
		}
		c := r.cmd("eat", "1000000")
		c.Limits.Memory = 200 << 20
		p, err := r.Start(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		says(t, p, "ready")
		if err := p.Stop(stopTerm); err != nil || p.Err() != nil {
			t.Errorf("within its limit: found %v, %v", err, p.Err())
		}
	})
}

func TestLimitFiles(t *testing.T) {
	eachWay(t, func(t *testing.T, r *rig) {
		c := r.cmd("exit")
		c.Argv = []string{"sh", "-c", "ulimit -n; ulimit -Hn; echo pid $$"}
		c.Limits.NoFile = 77
		res, err := r.Run(t.Context(), c)
		if err != nil || !strings.HasPrefix(res.Tail, "77\n77\npid ") {
			t.Errorf("found %q, %v", res.Tail, err)
		}
		c.Argv = []string{"/no/such"}
		if _, err := r.Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "no such file") {
			t.Errorf("found %v, expected the error of a program that does not exist", err)
		}
	})
}

func TestLimitProcesses(t *testing.T) {
	eachWay(t, func(t *testing.T, r *rig) {
		// Without root's powers, whatever other tests start meanwhile has a
		// part in the limit.
		all := map[bool]string{true: "60", false: "600"}[os.Getuid() == 0]
		c := r.cmd("many", all)
		c.Limits.Processes = 40
		res, err := r.Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		notes := strings.Join(r.Notes(), "\n")
		if res.Tail == "children: "+all && !strings.Contains(notes, "limits.processes: it is not held") {
			t.Errorf("found %q with notes %q", res.Tail, notes)
		}
		if !r.opt.NoCgroup && os.Getuid() == 0 && dirExists("/sys/fs/cgroup/pids") && res.Tail == "children: "+all {
			t.Errorf("found %q, expected fewer: the pids controller can be written here", res.Tail)
		}
	})
}

// TestLimitsKeepTheRest looks that the way through the launcher changes
// nothing else: pins, the death of the parent, group, environment.
func TestLimitsKeepTheRest(t *testing.T) {
	eachWay(t, func(t *testing.T, r *rig) {
		c := r.cmd("fork", "1", "sleep")
		c.Limits = spec.Limits{Memory: 1 << 30, NoFile: 500, Processes: 1000}
		c.CPUs = oneCPU(t)
		p, err := r.Start(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		says(t, p, "forked")
		if err := p.VerifyPins(c.CPUs); err != nil {
			t.Error(err)
		}
		s, err := readStat(p.PID())
		if err != nil || s.pgrp != p.PID() || s.ppid != os.Getpid() {
			t.Errorf("found %+v, %v", s, err)
		}
		if u, err := p.Usage(); err != nil || u.Processes != 2 {
			t.Errorf("found %+v, %v", u, err)
		}
	})
}

func TestV2Settings(t *testing.T) {
	r := newRig(t, Options{})
	root := t.TempDir()
	own := filepath.Join(root, "user.slice", "run.scope")
	if err := os.MkdirAll(own, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(name, content string) {
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mounts := "31 23 0:28 / " + root + " rw shared:4 - cgroup2 cgroup2 rw\n"
	self := "0::/user.slice/run.scope\n"
	l := spec.Limits{Memory: 1000, Processes: 7}
	write("user.slice/cgroup.subtree_control", "cpu pids")
	write("user.slice/run.scope/cgroup.subtree_control", "")
	err := r.limitV2(&limiter{}, l, "x", mounts, self)
	if err == nil || !strings.Contains(err.Error(), "does not hand down") {
		t.Fatalf("found %v", err)
	}
	write("user.slice/cgroup.subtree_control", "cpu memory pids\n")
	m := &limiter{memory: l.Memory}
	if err := r.limitV2(m, l, "x", mounts, self); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"memory.max": "1000", "memory.swap.max": "0", "memory.oom.group": "1", "pids.max": "7"} {
		if b, err := os.ReadFile(filepath.Join(root, "user.slice/x", name)); string(b) != want {
			t.Errorf("%s: found %q, %v, expected %q", name, b, err, want)
		}
	}
	if len(m.order.join) != 1 || m.order.join[0] != filepath.Join(root, "user.slice/x/cgroup.procs") {
		t.Errorf("found %q", m.order.join)
	}
	if m.reason() != "" {
		t.Errorf("found %q before any kill", m.reason())
	}
	write("user.slice/x/memory.events", "low 0\noom 1\noom_kill 2\n")
	if !strings.Contains(m.reason(), "limits.memory, 1000 bytes") {
		t.Errorf("found %q", m.reason())
	}
}
