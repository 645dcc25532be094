package proc

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// ReadHost reads facts of this machine. What cannot be read stays empty.
func ReadHost() Host {
	h := Host{Cores: runtime.NumCPU(), OS: "macOS", Arch: runtime.GOARCH}
	h.CPU, _ = unix.Sysctl("machdep.cpu.brand_string")
	h.Kernel, _ = unix.Sysctl("kern.osrelease")
	if v, err := unix.Sysctl("kern.osproductversion"); err == nil {
		h.OS += " " + v
	}
	if n, err := unix.SysctlUint64("hw.memsize"); err == nil {
		h.MemTotal = int64(n)
	}
	if n, err := unix.SysctlUint32("hw.physicalcpu"); err == nil {
		h.Physical = int(n)
		h.SMT = h.Cores > h.Physical
	}
	if n, err := unix.SysctlUint32("kern.hv_vmm_present"); err == nil && n == 1 {
		h.Hypervisor = "yes"
	}
	return h
}
