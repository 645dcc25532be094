package report

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strings"
)

// writeOpenMetrics writes the table as OpenMetrics text, one sample of each
// figure for each row. All are gauges, and the end is a comment, so that it is
// also in the older text format, which the textfile collector reads.
func writeOpenMetrics(w io.Writer, a *Analysis, _ RenderOptions) error {
	o := &openMetrics{b: bufio.NewWriter(w)}
	host := a.Header.Host
	o.family("tandem_run_info", "gauge", "The run that the other samples belong to.")
	o.sample("tandem_run_info", 1, "name", a.Spec.Name, "run", a.Header.ID, "tool", a.Header.Tool, "cpu", host.CPU, "kernel", host.Kernel, "outcome", string(a.Outcome))
	o.family("tandem_arm_info", "gauge", "An arm of the run.")
	for _, arm := range a.Arms {
		o.sample("tandem_arm_info", 1, "arm", arm.Name, "label", arm.Label, "source", arm.Source, "revision", arm.Revision)
	}
	o.family("tandem_run_finished_timestamp_seconds", "gauge", "When the run ended.")
	o.sample("tandem_run_finished_timestamp_seconds", float64(a.Finished.UnixMilli())/1000)
	o.values(a)
	o.rows(a, "tandem_ratio", "Candidate over baseline.", func(r *Row) float64 { return r.Ratio })
	o.rows(a, "tandem_ratio_low", "Lower end of the ratio's interval.", func(r *Row) float64 { return r.CI[0] })
	o.rows(a, "tandem_ratio_high", "Upper end of the ratio's interval.", func(r *Row) float64 { return r.CI[1] })
	o.rows(a, "tandem_noise", "Change above which the row is marked, at the table's error rate.", func(r *Row) float64 { return r.Noise })
	o.rows(a, "tandem_p_value", "Adjusted for the whole table.", func(r *Row) float64 { return r.P })
	o.rows(a, "tandem_blocks", "Blocks that count.", func(r *Row) float64 { return float64(r.Blocks) })
	o.verdicts(a)
	o.b.WriteString("# EOF\n")
	return o.b.Flush()
}

type openMetrics struct{ b *bufio.Writer }

func (o *openMetrics) family(name, kind, help string) {
	fmt.Fprintf(o.b, "# TYPE %s %s\n# HELP %s %s\n", name, kind, name, help)
}

// sample writes one sample; labels alternate names and values.
func (o *openMetrics) sample(name string, v float64, labels ...string) {
	o.b.WriteString(name)
	for i := 0; i+1 < len(labels); i += 2 {
		sep := ","
		if i == 0 {
			sep = "{"
		}
		fmt.Fprintf(o.b, `%s%s="%s"`, sep, labels[i], labelEscape(labels[i+1]))
	}
	if len(labels) > 0 {
		o.b.WriteByte('}')
	}
	text := float(v)
	switch {
	case math.IsNaN(v):
		text = "NaN"
	case math.IsInf(v, 1):
		text = "+Inf"
	case math.IsInf(v, -1):
		text = "-Inf"
	}
	fmt.Fprintf(o.b, " %s\n", text)
}

func labelEscape(s string) string {
	s = strings.ToValidUTF8(plain(s), "\uFFFD")
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s)
}

func rowLabels(r *Row) []string {
	return []string{"scenario", r.Scenario, "metric", r.Metric, "arm", r.Head.Arm, "baseline", r.Base.Arm}
}

// rows writes one figure of every row that has it.
func (o *openMetrics) rows(a *Analysis, name, help string, of func(*Row) float64) {
	o.family(name, "gauge", help)
	for i := range a.Rows {
		if r := &a.Rows[i]; !math.IsNaN(of(r)) {
			o.sample(name, of(r), rowLabels(r)...)
		}
	}
}

// values writes the value of each scenario, metric and arm once.
func (o *openMetrics) values(a *Analysis) {
	o.family("tandem_value", "gauge", "Geometric mean of the metric over blocks and copies, in base units.")
	seen := map[rowKey]bool{}
	for _, r := range a.Rows {
		for _, s := range []Side{r.Base, r.Head} {
			k := rowKey{r.Scenario, s.Arm, r.Metric}
			if !seen[k] && !math.IsNaN(s.Value) {
				seen[k] = true
				o.sample("tandem_value", s.Value, "scenario", r.Scenario, "metric", r.Metric, "arm", s.Arm, "unit", r.Unit)
			}
		}
	}
}

// verdicts writes 1 for the verdict of each judged row, and 0 for the others,
// so that a query sees a verdict end.
func (o *openMetrics) verdicts(a *Analysis) {
	o.family("tandem_verdict", "gauge", "What the row came to.")
	all := []Verdict{Regressed, Improved, Same, Unsure, New, Removed, Failed, Incomparable}
	for i := range a.Rows {
		r := &a.Rows[i]
		if !r.Judged {
			continue
		}
		for _, v := range all {
			on := 0.0
			if r.Verdict == v {
				on = 1
			}
			o.sample("tandem_verdict", on, append(rowLabels(r), "verdict", string(v))...)
		}
	}
}
