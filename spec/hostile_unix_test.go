//go:build unix

package spec

import (
	"path/filepath"
	"syscall"
	"testing"
)

// fifo makes a named pipe that nobody writes to: opening it would wait.
func fifo(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "pipe.yaml")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
