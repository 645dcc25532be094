package proc

import "time"

// Host is the machine, as far as it can be read. An empty or zero field is
// not known; Notes says what follows from what is missing.
type Host struct {
	CPU        string // model
	Cores      int    // logical CPUs that this process may use
	Physical   int    // cores among them; 0 where siblings are not known
	Kernel     string
	OS         string // "Debian GNU/Linux 12 (bookworm)", or GOOS
	Arch       string
	MemTotal   int64 // bytes
	Governor   string
	Turbo      string // "on" or "off"
	SMT        bool
	Hypervisor string
	Container  string
	CPUQuota   float64 // CPUs that the control group may use at a time; 0: no limit is known
	Notes      []string
}

// CPUTimes is what one CPU has done since the machine started. The kernel
// tells it in steps of 10 ms.
type CPUTimes struct {
	User, Nice, System, Idle, IOWait, IRQ, SoftIRQ time.Duration
	Steal                                          time.Duration // runnable, but the hypervisor ran something else
}

// Total is all of the time.
func (t CPUTimes) Total() time.Duration { return t.Busy() + t.Idle + t.IOWait + t.Steal }

// Busy is the time in which this machine worked.
func (t CPUTimes) Busy() time.Duration {
	return t.User + t.Nice + t.System + t.IRQ + t.SoftIRQ
}
