package source

import (
	"fmt"
	"os"
	"path/filepath"
)

// OpenData gives this process a folder for the files of services, as
// [OpenWork] does: below work, or, for root, whose services often run as
// another user and cannot enter root's home, in a folder that all may enter.
func OpenData(work string) (dir string, release func() error, err error) {
	if os.Getuid() != 0 {
		dir = filepath.Join(work, "data")
		return dir, func() error { return nil }, os.Mkdir(dir, 0o700) // it goes with work
	}
	parent := "/var/tmp/tandem-0" // a disk, where /tmp is often memory
	if err := os.Mkdir(parent, 0o711); err != nil && !os.IsExist(err) {
		return "", nil, fmt.Errorf("folder for the services' files: %w", err)
	}
	info, err := os.Lstat(parent)
	if err != nil {
		return "", nil, fmt.Errorf("folder for the services' files: %w", err)
	}
	if !info.IsDir() || !ownedByUs(info) {
		return "", nil, fmt.Errorf("folder for the services' files: %s is another user's, or no folder: remove it", parent)
	}
	dir, release, err = OpenWork(parent)
	if err != nil {
		return "", nil, err
	}
	return dir, release, os.Chmod(dir, 0o711)
}
