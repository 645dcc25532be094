//go:build !linux

package load

import "time"

// exactTimers has nothing to set here.
func exactTimers() {}

// nap sleeps for about d.
func nap(d time.Duration) { time.Sleep(d) }
