package report

import (
	"fmt"
	"strings"

	"github.com/tandem-bench/tandem/runner/journal"
)

// remoteLines say what ran on which other machine.
func remoteLines(h *journal.Header) []string {
	var out []string
	for _, r := range h.Hosts {
		var runs []string
		if r.Servers {
			runs = append(runs, "the servers")
		}
		for _, s := range r.Services {
			runs = append(runs, "service "+plain(s))
		}
		parts := []string{plain(r.Host.CPU), count(r.Host.Cores, "CPU"), plain(r.Host.OS + " " + r.Host.Kernel + " " + r.Host.Arch)}
		out = append(out, fmt.Sprintf("%s: %s at %s, with %s", plain(r.Name), strings.Join(runs, " and "), plain(r.Address), strings.Join(parts, ", ")))
	}
	return out
}
