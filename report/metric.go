package report

import (
	"strings"

	"github.com/tandem-bench/tandem/spec"
)

// metricOf looks a metric up: first among those that the scenario's own tool
// reports, then among the known ones. An unknown metric has no unit, and
// lower is taken to be better.
func metricOf(name string, sc spec.Scenario) spec.Metric {
	if sc.Exec != nil {
		for _, x := range sc.Exec.Metrics {
			if x.Metric == name {
				return spec.Metric{Name: name, Unit: x.Unit, Better: x.Better}
			}
		}
	}
	if m, ok := spec.LookupMetric(name); ok {
		return m
	}
	return spec.Metric{Name: name, Better: "lower"}
}

// throughput reports whether the metric counts what was answered in a time,
// or how long answers took: what a generator at its limit would hide.
func needsGenerator(metric string) bool {
	family, _, _ := strings.Cut(metric, ".")
	switch family {
	case "cpu_per_request", "max_rss", "cpu", "wall", "bytes_per_request":
		return false
	}
	return true
}
