package proc

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// oneCPU is a CPU that this test may use.
func oneCPU(t *testing.T) CPUs {
	t.Helper()
	avail, err := Available()
	if err != nil {
		t.Fatal(err)
	}
	return avail[len(avail)-1:]
}

func TestProcessesStartPinned(t *testing.T) {
	eachWay(t, func(t *testing.T, r *rig) {
		cpus := oneCPU(t)
		c := r.cmd("fork", "2", "daemon-and-stay", "sleep")
		c.CPUs = cpus
		p, err := r.Start(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		until(t, "all run", func() bool { return len(marked(t, r.mark)) == 5 })
		if err := p.VerifyPins(cpus); err != nil {
			t.Error(err)
		}
		// What is started unpinned afterwards does not inherit it.
		other := r.start("sleep")
		avail, err := Available()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := affinity(other.PID()); err != nil || !got.Equal(avail) {
			t.Errorf("found CPU %s, %v, expected %s", got, err, avail)
		}
	})
}

// TestVerifyPinsFindsOneThread moves a single thread of a process deep in the
// tree to another CPU.
func TestVerifyPinsFindsOneThread(t *testing.T) {
	eachWay(t, func(t *testing.T, r *rig) {
		p := r.start("fork", "1", "stubborn")
		says(t, p, "ready")
		cpus := oneCPU(t)
		err := p.VerifyPins(cpus)
		if err == nil && runtime.NumCPU() > 1 {
			t.Fatal("verified a process that is not pinned")
		}
		pids, err := p.tree.members()
		if err != nil {
			t.Fatal(err)
		}
		for _, pid := range pids {
			tids, err := numericNames("/proc/" + itoa(pid) + "/task")
			if err != nil {
				t.Fatal(err)
			}
			for _, tid := range tids {
				if err := setAffinity(tid, cpus); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := p.VerifyPins(cpus); err != nil {
			t.Fatal(err)
		}
		avail, err := Available()
		if err != nil {
			t.Fatal(err)
		}
		tids, err := numericNames("/proc/" + itoa(pids[len(pids)-1]) + "/task")
		if err != nil {
			t.Fatal(err)
		}
		strayed := tids[len(tids)-1]
		if err := setAffinity(strayed, avail); err != nil {
			t.Fatal(err)
		}
		err = p.VerifyPins(cpus)
		if len(avail) > 1 && (err == nil || !strings.Contains(err.Error(), "thread "+itoa(strayed))) {
			t.Errorf("found %v, expected thread %d named", err, strayed)
		}
	})
}

func TestVerifyPinsOfTheDead(t *testing.T) {
	r := newRig(t, Options{})
	p := r.start("exit", "0")
	<-p.Done()
	if err := p.VerifyPins(nil); err != nil {
		t.Errorf("not pinned: found %v", err)
	}
	if err := p.VerifyPins(oneCPU(t)); err == nil || !strings.Contains(err.Error(), "not running") {
		t.Errorf("found %v", err)
	}
}

// TestPinSelf pins a process whose threads multiply meanwhile: a helper, since
// pinning this one would bind the other tests.
func TestPinSelf(t *testing.T) {
	r := newRig(t, Options{})
	res, err := r.Run(t.Context(), r.cmd("pin-self", oneCPU(t).String()))
	if err != nil {
		t.Errorf("%v: %s", err, res.Tail)
	}
	if err := PinSelf(nil); err == nil {
		t.Error("pinned to nothing")
	}
}

// helperPinSelf starts threads while it pins itself and checks all of them.
func helperPinSelf(list string) string {
	c, err := ParseCPUs(list)
	if err != nil {
		return err.Error()
	}
	stop := make(chan struct{})
	for range 20 {
		go func() {
			for {
				select {
				case <-stop:
					runtime.LockOSThread() // and keep the thread
					select {}
				default:
					go func() { runtime.LockOSThread(); unix.Nanosleep(&unix.Timespec{Nsec: 1e6}, nil) }()
					unix.Nanosleep(&unix.Timespec{Nsec: 2e6}, nil)
				}
			}
		}()
	}
	if err := PinSelf(c); err != nil {
		return err.Error()
	}
	close(stop)
	unix.Nanosleep(&unix.Timespec{Nsec: 1e7}, nil)
	tids, err := numericNames("/proc/" + itoa(os.Getpid()) + "/task")
	if err != nil {
		return err.Error()
	}
	for _, tid := range tids {
		if got, err := affinity(tid); err == nil && !got.Equal(c) {
			return "thread " + itoa(tid) + " may run on CPU " + got.String()
		}
	}
	return ""
}
