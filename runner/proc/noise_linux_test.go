package proc

import (
	"testing"
	"testing/fstest"
	"time"
)

func TestOtherLoadAndSteal(t *testing.T) {
	idle := map[int]CPUTimes{0: {Idle: time.Second}, 1: {Idle: time.Second}}
	later := map[int]CPUTimes{
		0: {Idle: 2 * time.Second},
		1: {Idle: 1500 * time.Millisecond, User: 300 * time.Millisecond, Steal: 200 * time.Millisecond},
	}
	if f := otherLoad(CPUs{0, 1}, idle, later); f.OK || f.Found != "CPU 1 30% busy" {
		t.Errorf("other load: %+v", f)
	}
	if f := otherLoad(CPUs{0}, idle, later); !f.OK {
		t.Errorf("other load on CPU 0: %+v", f)
	}
	if f := stolen(CPUs{0, 1}, idle, later); f.OK || f.Found != "10.0% of this second" {
		t.Errorf("steal: %+v", f)
	}
	if f := stolen(CPUs{0}, idle, later); !f.OK {
		t.Errorf("steal on CPU 0: %+v", f)
	}
}

func TestKernelFindings(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	noisy := kernelFindings(fstest.MapFS{
		"proc/sys/kernel/randomize_va_space":         file("0\n"),
		"proc/meminfo":                               file("SwapTotal:  4096 kB\nSwapFree:  1024 kB\n"),
		"sys/kernel/mm/transparent_hugepage/enabled": file("[always] madvise never\n"),
	})
	calm := kernelFindings(fstest.MapFS{
		"proc/sys/kernel/randomize_va_space":           file("2\n"),
		"proc/meminfo":                                 file("SwapTotal:  4096 kB\nSwapFree:  4096 kB\n"),
		"sys/kernel/mm/transparent_hugepage/enabled":   file("always [madvise] never\n"),
		"sys/bus/event_source/devices/cpu/events/inst": file(""),
	})
	if len(noisy) != 4 || len(calm) != 4 {
		t.Fatalf("%d and %d findings, want 4 of each", len(noisy), len(calm))
	}
	for i := range noisy {
		if noisy[i].OK || noisy[i].Means == "" {
			t.Errorf("should warn: %+v", noisy[i])
		}
		if !calm[i].OK {
			t.Errorf("should be calm: %+v", calm[i])
		}
	}
	if noisy[1].Found != "3 MiB in use" {
		t.Errorf("swap: %+v", noisy[1])
	}
}
