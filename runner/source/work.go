package source

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tandem-bench/tandem/spec"
)

// WorkParent is where work folders belong: the user's cache folder, which is
// on a disk (a temporary folder is often memory), and outside of every
// repository. Tools look upwards from where they run, for node_modules,
// go.work, a workspace's Cargo.toml or .git: in a folder below the user's
// repository they would find the user's, and an arm would run another arm's
// dependencies.
func WorkParent(env spec.Env) string {
	if dir, ok := env("XDG_CACHE_HOME"); ok && filepath.IsAbs(dir) {
		return filepath.Join(dir, "tandem", "work")
	}
	if dir, ok := env("HOME"); ok && filepath.IsAbs(dir) {
		return filepath.Join(dir, ".cache", "tandem", "work")
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("tandem-%d", os.Getuid()), "work")
}

// OpenWork gives this process a work folder below parent, empty, until it
// calls release, which removes what is in it. Folders that killed runs left
// are taken over or removed. The first free number is taken, so that one run
// after the other works at the same path: products that hold the path that
// they were built at then come out the same.
func OpenWork(parent string) (dir string, release func() error, err error) {
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return "", nil, fmt.Errorf("work folder: %w", err)
	}
	const most = 100 // two digits: see CopyDir on lengths
	for i := range most {
		path := filepath.Join(parent, fmt.Sprintf("w%02d", i))
		unlock, err := tryLockFile(path + ".lock")
		if errors.Is(err, errLocked) {
			continue
		}
		if err != nil {
			return "", nil, fmt.Errorf("work folder: %w", err)
		}
		if dir != "" { // ours is found: only clean up
			_ = removeTree(path) // a later run tries again
			unlock()
			if _, err := os.Stat(filepath.Join(parent, fmt.Sprintf("w%02d.lock", i+1))); err != nil {
				break
			}
			continue
		}
		if err := errors.Join(removeTree(path), os.Mkdir(path, 0o700)); err != nil {
			unlock()
			return "", nil, fmt.Errorf("work folder: %w", err)
		}
		dir = path
		release = func() error {
			defer unlock()
			return removeTree(path)
		}
		if _, err := os.Stat(filepath.Join(parent, fmt.Sprintf("w%02d.lock", i+1))); err != nil {
			break // no run ever got further
		}
	}
	if dir == "" {
		return "", nil, fmt.Errorf("work folder: all %d below %s are in use", most, parent)
	}
	return dir, release, nil
}
