//go:build !unix && !windows

package source

import (
	"errors"
	"os"
)

// tryLock is not available here.
func tryLock(f *os.File) error {
	return &os.PathError{Op: "lock", Path: f.Name(), Err: errors.ErrUnsupported}
}
