//go:build !linux

package proc

import "runtime"

// ReadNoise says that nothing is looked at on this system.
func ReadNoise() []Finding {
	return []Finding{{
		What: "this machine", Found: "not looked at on " + runtime.GOOS,
		Means: "frequency, steal and other load are unknown here",
		Do:    "measure on Linux where you can",
	}}
}
