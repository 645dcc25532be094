package report

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Pages open in a real browser, in light and dark, wide and on a phone: no
// accessibility finding of axe-core, no script error, no request, no sideways
// scrolling, and the table can be searched and sorted.
func TestHTMLInABrowser(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, doc []byte) {
		check(t, os.WriteFile(filepath.Join(dir, name+".html"), doc, 0o644))
	}
	for _, name := range []string{"failed", "crashed", "hostile", "sweep"} {
		write(name, render(t, "html", analyses()[name]))
	}
	write("hundred", hundredRows(t))
	trend, err := History(drifting(t, 20, 12))
	check(t, err)
	f, err := os.Create(filepath.Join(dir, "history.html"))
	check(t, err)
	check(t, WriteHistory(f, "html", trend, RenderOptions{}))
	check(t, f.Close())
	args := []string{"html/check/check.mjs", dir}
	if *htmlOut != "" {
		args = append(args, *htmlOut)
	}
	out, err := exec.Command("node", args...).CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatalf("%v (.ci/setup installs what the check needs)", err)
	}
}
