package source

import (
	"context"
	"errors"
	"os"
	"time"
)

// errLocked says that another process holds a lock.
var errLocked = errors.New("locked by another process")

// lockFile takes the lock of a file, which is made where it is missing and
// stays when the lock is released: a lock file that is removed could be
// locked by two. The kernel releases it when the process ends in any way.
// waiting, where not nil, is called once if another process holds it.
func lockFile(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	for first := true; ; first = false {
		err := tryLock(f)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if err != errLocked {
			f.Close()
			return nil, err
		}
		if first && waiting != nil {
			waiting()
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// tryLockFile is lockFile without waiting: errLocked where it is held.
func tryLockFile(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := tryLock(f); err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}
