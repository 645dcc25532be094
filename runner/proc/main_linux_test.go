package proc

import (
	"strings"
	"testing"
	"time"
)

// marked lists the living processes with a mark in their arguments.
func marked(t *testing.T, mark string) []string {
	t.Helper()
	all, err := allProcesses()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, s := range all {
		if line := commandLine(s.pid); !s.ended() && strings.Contains(line, mark) {
			out = append(out, line)
		}
	}
	return out
}

// noneLeft fails the test where a marked process lives on after the patience.
func noneLeft(t *testing.T, mark string, patience time.Duration) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		left := marked(t, mark)
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("left behind: %q", left)
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}
