package source

import (
	"context"
	"errors"
	"time"

	"github.com/gofrs/flock"
)

// errLocked says that another process holds a lock.
var errLocked = errors.New("locked by another process")

// lockFile waits for the lock of a file, which is made where it is missing
// and stays when the lock is released: a lock file that is removed could be
// locked by two. The kernel releases it when the process ends in any way.
// waiting, where not nil, is called once if another process holds it.
func lockFile(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	unlock, err = tryLockFile(path)
	if !errors.Is(err, errLocked) {
		return unlock, err
	}
	if waiting != nil {
		waiting()
	}
	l := flock.New(path)
	if _, err := l.TryLockContext(ctx, 50*time.Millisecond); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return func() { _ = l.Close() }, nil
}

// tryLockFile is lockFile without waiting: errLocked where it is held.
func tryLockFile(path string) (unlock func(), err error) {
	l := flock.New(path)
	ok, err := l.TryLock()
	if err == nil && !ok {
		err = errLocked
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return func() { _ = l.Close() }, nil
}
