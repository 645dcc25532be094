//go:build unix

package source

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// openRead opens a regular file, and refuses a link that took its place since
// the walk saw it.
func openRead(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
}

// setLinkTime sets the time of a link itself.
func setLinkTime(path string, t time.Time) error {
	ts, err := unix.TimeToTimespec(t)
	if err != nil {
		return err
	}
	times := []unix.Timespec{ts, ts}
	if err := unix.UtimesNanoAt(unix.AT_FDCWD, path, times, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return &os.PathError{Op: "utimensat", Path: path, Err: err}
	}
	return nil
}

// ownedByUs reports whether a file belongs to the user of this process.
func ownedByUs(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Getuid()
}
