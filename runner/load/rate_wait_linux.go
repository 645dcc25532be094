package load

import (
	"time"

	"golang.org/x/sys/unix"
)

// exactTimers takes from the current thread the slack of 50 us by which the
// kernel may delay the end of its sleeps.
func exactTimers() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) }

// nap sleeps for about d, in the kernel: the runtime's own timers are rounded
// to milliseconds where its poller waits for them.
func nap(d time.Duration) {
	ts := unix.NsecToTimespec(d.Nanoseconds())
	_ = unix.Nanosleep(&ts, nil)
}
