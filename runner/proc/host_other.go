//go:build !linux && !darwin

package proc

import "runtime"

// ReadHost knows only what the Go runtime knows on this system.
func ReadHost() Host {
	return Host{Cores: runtime.NumCPU(), OS: runtime.GOOS, Arch: runtime.GOARCH,
		Notes: []string{"the CPU model, the kernel and the memory are not read on " + runtime.GOOS}}
}
