package report

import (
	"strings"

	"github.com/tandem-bench/tandem/spec"
)

// metricOf looks a metric up: first among those of the scenario, then among
// all. An unknown metric has no unit, and lower is taken to be better.
func metricOf(name string, sc spec.Scenario) spec.Metric {
	if m, ok := sc.LookupMetric(name); ok {
		return m
	}
	if m, ok := spec.LookupMetric(name); ok {
		return m
	}
	return spec.Metric{Name: name, Better: "lower"}
}

// needsGenerator reports whether the metric counts what was answered in a time,
// or how long answers took: what a generator at its limit would hide.
func needsGenerator(metric string) bool {
	family, _, _ := strings.Cut(metric, ".")
	switch family {
	case "cpu_per_request", "max_rss", "cpu", "wall", "bytes_per_request":
		return false
	}
	return true
}
