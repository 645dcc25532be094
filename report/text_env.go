package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/tandem-bench/tandem/runner/journal"
)

// lowerFirst undoes the capital of an arm's name in the middle of a head.
func lowerFirst(title, label string) string {
	if label != "" {
		return title
	}
	rs := []rune(title)
	if len(rs) > 0 {
		rs[0] = unicode.ToLower(rs[0])
	}
	return string(rs)
}

func (t *textWriter) warnings() {
	all := t.a.allWarnings()
	if len(all) == 0 {
		return
	}
	t.title("Warnings")
	for _, w := range all {
		t.line(t.doubt, "  ", "    ", w)
	}
}

// maxNamed is how many rows a warning names before it counts the rest.
const maxNamed = 4

// allWarnings are the run's warnings and then those of its rows, each text
// once, with the rows that it qualifies.
func (a *Analysis) allWarnings() []string {
	var out, order []string
	for _, w := range a.Warnings {
		out = append(out, brief(w))
	}
	scenarios, metrics := map[string][]string{}, map[string][]string{}
	add := func(to map[string][]string, key, value string) {
		if !slices.Contains(to[key], value) {
			to[key] = append(to[key], value)
		}
	}
	for _, r := range a.Rows {
		if !r.Judged {
			continue
		}
		for _, w := range r.Warnings {
			if scenarios[w] == nil {
				order = append(order, w)
			}
			add(scenarios, w, plain(r.Scenario))
			add(metrics, w, metricTitle(r.Metric))
		}
	}
	for _, w := range order {
		names := scenarios[w]
		if over := len(names) - maxNamed; over > 0 {
			names = append(names[:maxNamed:maxNamed], fmt.Sprintf("%d more", over))
		}
		out = append(out, fmt.Sprintf("%s (%s): %s", strings.Join(names, ", "), strings.Join(metrics[w], ", "), brief(w)))
	}
	return out
}

func (t *textWriter) environment() {
	t.title("Run")
	for _, l := range t.a.environmentLines() {
		t.line(nil, "  ", "    ", l)
	}
}

// environmentLines say on what, of what and how the run was made, and what
// its marks mean.
func (a *Analysis) environmentLines() []string {
	var out []string
	for _, arm := range a.Arms {
		out = append(out, armLine(arm))
	}
	for _, s := range a.Services {
		out = append(out, serviceLine(s))
	}
	out = append(out, hostLine(a.Header, a.Audit))
	out = append(out, remoteLines(a.Header)...)
	out = append(out, a.planLine(), a.promiseLine())
	if l := a.absoluteLine(); l != "" {
		out = append(out, l)
	}
	return out
}

func armLine(arm journal.Arm) string {
	s := plain(arm.Name) + ": " + plain(arm.Source)
	if arm.Label != "" {
		s = plain(arm.Name) + " (" + plain(arm.Label) + "): " + plain(arm.Source)
	}
	if arm.Revision != "" {
		s += " at " + shortRevision(plain(arm.Revision))
	}
	if arm.Dirty {
		s += ", with uncommitted changes"
	}
	for _, k := range sortedKeys(arm.Versions) {
		s += ", " + plain(k) + " " + plain(arm.Versions[k])
	}
	return s
}

func shortRevision(r string) string {
	if len(r) > 12 {
		return r[:12]
	}
	return r
}

func hostLine(h *journal.Header, audit AuditSummary) string {
	host := h.Host
	parts := []string{plain(host.CPU), count(host.Cores, "CPU"), plain(host.OS + " " + host.Kernel + " " + host.Arch)}
	switch host.Hypervisor {
	case "":
	case "yes": // known to be there, and no more
		parts = append(parts, "virtual")
	default:
		parts = append(parts, "virtual ("+plain(host.Hypervisor)+")")
	}
	if host.Container != "" {
		parts = append(parts, "in a container ("+plain(host.Container)+")")
	}
	if host.Governor != "" {
		parts = append(parts, "governor "+plain(host.Governor))
	}
	if h.Pins.Server != "" || h.Pins.Load != "" {
		parts = append(parts, fmt.Sprintf("servers on CPU %s, load on CPU %s", orNone(h.Pins.Server), orNone(h.Pins.Load)))
	} else {
		parts = append(parts, "nothing pinned")
	}
	parts = append(parts, fmt.Sprintf("CPU time stolen %s, at most %s in a window", percent(audit.StealMean), percent(audit.StealMax)))
	return strings.Join(parts, "; ")
}

func orNone(s string) string {
	if s == "" {
		return "any"
	}
	return plain(s)
}

func (a *Analysis) planLine() string {
	p := a.Spec.Plan
	copies := "one fresh copy"
	if a.Header.Copies != 1 {
		copies = fmt.Sprintf("%d fresh copies", a.Header.Copies)
	}
	s := fmt.Sprintf("%s of %s of each arm, %v windows, interleaved by %s", count(len(a.blocks()), "block"), copies, p.Window, p.Interleave)
	if a.Audit.Discarded > 0 {
		s += fmt.Sprintf("; %d of %d cycles discarded for all copies alike", a.Audit.Discarded, a.Audit.Cycles)
	}
	if a.Audit.Invalid > 0 {
		s += fmt.Sprintf("; %d of %d windows invalid", a.Audit.Invalid, a.Audit.Trials)
	}
	if a.Audit.BlocksDropped > 0 {
		s += fmt.Sprintf("; %s left out, counted for each scenario", count(a.Audit.BlocksDropped, "block"))
	}
	if a.TimeUp != "" {
		s += "; " + plain(a.TimeUp)
	}
	return fmt.Sprintf("%s; seed %d", s, a.Header.Seed)
}

// blocks are the blocks that count for any row.
func (a *Analysis) blocks() map[int]bool {
	seen := map[int]bool{}
	for _, r := range a.Rows {
		for _, b := range r.BlockIDs {
			seen[b] = true
		}
	}
	return seen
}

// promiseLine says what the error rate promises, in one sentence.
func (a *Analysis) promiseLine() string {
	p := a.Promise
	if p.Rows == 0 {
		return "nothing could be judged"
	}
	arms := "both arms"
	if len(a.Arms) > 2 {
		arms = "all arms"
	}
	of := fmt.Sprintf("%d sampled", p.Permutations)
	if p.Exact {
		of = fmt.Sprintf("all %d", p.Permutations)
	}
	looks := ""
	if len(p.Looks) > 1 {
		looks = fmt.Sprintf("; looks after %s blocks share that chance", ints(p.Looks))
	}
	return fmt.Sprintf("if %s were the same code, at most %s would mark any of the %s (permutation of the copies within blocks, %s relabellings%s)",
		arms, oneIn(p.Alpha), count(p.Rows, "judged row"), of, looks)
}

func oneIn(alpha float64) string {
	if n := 1 / alpha; n >= 1 && math.Abs(n-math.Round(n)) < 1e-6 {
		return fmt.Sprintf("1 run in %.0f", n)
	}
	return fmt.Sprintf("%.3g%% of runs", 100*alpha)
}

func ints(vs []int) string {
	var parts []string
	for _, v := range vs {
		parts = append(parts, fmt.Sprint(v))
	}
	return strings.Join(parts, ", ")
}

// absoluteLine says what the absolute figures are worth.
func (a *Analysis) absoluteLine() string {
	if a.Audit.SoloRatio == 0 || a.Spec.Plan.Interleave != "turns" {
		return ""
	}
	diff := a.Audit.SoloRatio - 1
	word := "more"
	if diff < 0 {
		word = "fewer"
	}
	return fmt.Sprintf("absolute figures are taken in turns of %v; in windows of their own the same copies did %s %s requests", a.Spec.Plan.Turn, percent(math.Abs(diff)), word)
}
