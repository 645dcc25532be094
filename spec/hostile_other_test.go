//go:build !unix

package spec

import "testing"

// fifo stands in for a named pipe, which this system has none of: a name
// that does not exist is refused, too, and the test says which words it
// expects.
func fifo(t *testing.T, dir string) string {
	t.Helper()
	t.Fatal("this test needs named pipes, which this system does not have")
	return ""
}
