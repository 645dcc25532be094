//go:build unix

package source

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestSpecialFilesAreLeftOutAndSaid(t *testing.T) {
	w := newWorld(t)
	if err := syscall.Mkfifo(filepath.Join(w.repo, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	tr := w.prepare(w.options(dirArm("head", w.repo, "true")))[0]
	if all := strings.Join(tr.Warnings, "\n"); !strings.Contains(all, "pipe: neither file, folder nor link") {
		t.Errorf("warnings %q", all)
	}
	if got := listing(t, tr.Dir); got != "bin/run.sh server.txt" {
		t.Errorf("the tree holds %q", got)
	}
}
