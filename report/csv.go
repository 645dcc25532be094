package report

import (
	"encoding/csv"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tandem-bench/tandem/runner/journal"
	"github.com/tandem-bench/tandem/spec"
)

// writeCSV writes the raw trials in long form: one line for each trial and
// metric, invalid trials included, in the order in which they were taken. A
// text that a spreadsheet would take for a formula gets an apostrophe.
func writeCSV(w io.Writer, a *Analysis, _ RenderOptions) error {
	if a.run == nil {
		return errNoTrials
	}
	points, axes := a.matrixPoints()
	head := []string{"run", "block", "scenario"}
	for _, x := range axes {
		head = append(head, "matrix."+x)
	}
	head = append(head, "arm", "revision", "copy", "slot", "started", "elapsed", "turns", "steal", "generator_busy", "invalid", "metric", "value", "unit")
	c := csv.NewWriter(w)
	if err := c.Write(cells(head)); err != nil {
		return err
	}
	for i := range a.run.Trials {
		t := &a.run.Trials[i]
		line := []string{a.Header.ID, strconv.Itoa(t.Block), t.Scenario}
		for _, x := range axes {
			line = append(line, valueOn(points[t.Scenario].Matrix, x))
		}
		line = append(line, t.Arm, a.arm(t.Arm).Revision, strconv.Itoa(t.Copy), strconv.Itoa(t.Slot), t.Started.UTC().Format(time.RFC3339Nano),
			float(t.Elapsed), strconv.Itoa(t.Turns), float(t.Audit.Steal), float(t.Audit.GeneratorBusy), t.Invalid)
		if err := writeMetrics(c, cells(line), t, points[t.Scenario]); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

func writeMetrics(c *csv.Writer, line []string, t *journal.Trial, sc spec.Scenario) error {
	for name, v := range t.Metrics.All() {
		rest := []string{cell1(name), float(v), cell1(metricOf(name, sc).Unit)}
		if err := c.Write(append(slices.Clip(line), rest...)); err != nil {
			return err
		}
	}
	return nil
}

// matrixPoints finds the scenarios of the run by ID, and all axes by name.
func (a *Analysis) matrixPoints() (map[string]spec.Scenario, []string) {
	run, err := headerSpec(a.Header)
	if err != nil {
		run = a.Spec
	}
	points := byID(run)
	var axes []string
	for _, sc := range run.Scenarios {
		for _, x := range sc.Matrix {
			if !slices.Contains(axes, x.Name) {
				axes = append(axes, x.Name)
			}
		}
	}
	return points, axes
}

func valueOn(point []spec.Axis, axis string) string {
	for _, x := range point {
		if x.Name == axis {
			return x.Value
		}
	}
	return ""
}

func float(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

func cells(texts []string) []string {
	for i := range texts {
		texts[i] = cell1(texts[i])
	}
	return texts
}

// cell1 keeps a text on one line, and from being run by a spreadsheet.
func cell1(s string) string {
	s = plain(s)
	if s == "" || !strings.ContainsRune("=+-@", rune(s[0])) {
		return s
	}
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return s
	}
	return "'" + s
}
