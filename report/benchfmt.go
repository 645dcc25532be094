package report

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/tandem-bench/tandem/spec"
)

// writeBenchfmt writes the trials that count in Go's benchmark format, one
// line for each window, so that
//
//	benchstat -col arm FILE
//
// compares the arms. benchstat takes the windows as independent, which they
// are not: its p values claim more than these figures hold.
func writeBenchfmt(w io.Writer, a *Analysis, _ RenderOptions) error {
	if a.run == nil {
		return errNoTrials
	}
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "goos: %s\ngoarch: %s\ncpu: %s\nbench: %s\nrun: %s\n", goos(a.Header.Host.OS), plain(a.Header.Host.Arch),
		plain(a.Header.Host.CPU), plain(a.Spec.Name), plain(a.Header.ID))
	points, _ := a.matrixPoints()
	units := map[string]string{}
	for _, r := range a.Rows {
		units[benchUnit(r.Metric, metricOf(r.Metric, points[r.Scenario]))] = r.Better
	}
	for _, u := range sortedKeys(units) {
		fmt.Fprintf(b, "Unit %s better=%s\n", u, units[u])
	}
	for _, arm := range a.Arms {
		// A key of its own for the revision would set the arms apart in tables
		// of their own, so that stands in a comment.
		fmt.Fprintf(b, "\n# %s\narm: %s\n", armLine(arm), plain(arm.Name))
		for _, scenario := range a.scenarios() {
			a.benchLines(b, points[scenario], scenario, arm.Name)
		}
	}
	return b.Flush()
}

// goos is the name that Go has for a system. Only on Linux does a journal hold
// the name of a distribution.
func goos(name string) string {
	switch {
	case strings.HasPrefix(name, "macOS"):
		return "darwin"
	case slices.Contains([]string{"windows", "freebsd", "netbsd", "openbsd"}, name):
		return name
	}
	return "linux"
}

// benchLines writes a line for each window of one arm in one scenario, with
// the metrics that the table judges or shows.
func (a *Analysis) benchLines(b *bufio.Writer, sc spec.Scenario, scenario, arm string) {
	var metrics []string
	for _, r := range a.Rows {
		if r.Scenario == scenario && !slices.Contains(metrics, r.Metric) {
			metrics = append(metrics, r.Metric)
		}
	}
	for _, t := range a.trialsOf(scenario) {
		if t.Arm != arm {
			continue
		}
		line := ""
		for _, m := range metrics {
			if v, ok := t.Metrics.Get(m); ok {
				line += fmt.Sprintf(" %s %s", float(v), benchUnit(m, metricOf(m, sc)))
			}
		}
		if line != "" {
			fmt.Fprintf(b, "Benchmark%s %d%s\n", benchName(sc, scenario), max(int64(t.Metrics.Value("requests")), 1), line)
		}
	}
}

// benchUnit is the metric as a unit of the benchmark format, which knows a
// measurement by its unit alone: "req/s", "latency.p99-sec".
func benchUnit(name string, m spec.Metric) string {
	switch name {
	case "rps":
		return "req/s"
	case "msgs":
		return "msg/s"
	case "cpu_per_request":
		return "cpu-sec/req"
	}
	name = benchWord(name)
	switch m.Unit {
	case "s":
		return name + "-sec"
	case "B":
		return name + "-B"
	case "1/s":
		return name + "/s"
	}
	return name
}

// benchName is a scenario in the form of a Go benchmark: "Http/hello/c=16".
func benchName(sc spec.Scenario, id string) string {
	name := sc.Name
	if name == "" {
		name = id
	}
	rs := []rune(benchWord(name))
	if len(rs) == 0 || !(unicode.IsLetter(rs[0]) || unicode.IsDigit(rs[0])) {
		rs = append([]rune("X"), rs...)
	}
	rs[0] = unicode.ToUpper(rs[0])
	out := string(rs)
	for _, x := range sc.Matrix {
		out += "/" + benchWord(x.Name) + "=" + strings.ReplaceAll(benchWord(x.Value), "/", "_")
	}
	return out
}

// benchWord keeps a text in one field of the format.
func benchWord(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, s)
}
