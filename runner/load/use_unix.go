//go:build unix

package load

import (
	"syscall"
	"time"
)

// processUse reads what this process has used so far.
func processUse() GeneratorUse {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return GeneratorUse{}
	}
	return GeneratorUse{
		CPU:         time.Duration(r.Utime.Nano() + r.Stime.Nano()),
		Involuntary: int64(r.Nivcsw),
	}
}
