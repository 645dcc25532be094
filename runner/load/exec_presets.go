package load

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// preset knows one tool: how it takes its window, how it prints what it
// measured, and where it hides its failures.
type preset struct {
	name    string
	window  func(time.Duration) string              // nil: as Go writes durations
	endless bool                                    // the tool does not end by itself
	line    func([]byte) bool                       // whether a line of an endless tool carries a metric
	read    func(out *toolOutput, r *reading) error // an error: the output is not the tool's
}

// presets are the tools that are known, in the order of their names.
func presets() []preset {
	return []preset{
		{name: "ab", window: bareSeconds, read: readAB},
		{name: "autocannon", window: bareSeconds, read: readAutocannon},
		{name: "bombardier", read: readBombardier},
		{name: "h2load", window: bareSeconds, read: readH2load},
		{name: "hey", read: readHey},
		{name: "http_load_test", endless: true, line: hasRate, read: readPeriodic("Req/sec:", "rps")},
		{name: "k6", read: readK6},
		{name: "load_test", endless: true, line: hasRate, read: readPeriodic("Msg/sec:", "msgs")},
		{name: "oha", read: readOha},
		{name: "vegeta", read: readVegeta},
		{name: "wrk", window: wholeSeconds, read: readWrk},
		{name: "wrk2", window: wholeSeconds, read: readWrk2},
	}
}

func findPreset(name string) (*preset, error) {
	all := presets()
	i := slices.IndexFunc(all, func(p preset) bool { return p.name == name })
	if i < 0 {
		return nil, fmt.Errorf("preset %q is not known: expected one of %s", name, strings.Join(presetNames(), ", "))
	}
	return &all[i], nil
}

func presetNames() []string {
	var names []string
	for _, p := range presets() {
		names = append(names, p.name)
	}
	return names
}

// seconds is a duration in whole seconds, at least one: what a tool without
// fractions can be asked for.
func seconds(d time.Duration) int64 {
	return max(1, int64((d+time.Second-1)/time.Second))
}

func bareSeconds(d time.Duration) string  { return fmt.Sprint(seconds(d)) }
func wholeSeconds(d time.Duration) string { return fmt.Sprint(seconds(d), "s") }

// percentileName is the metric's part of a percentile: 99.9 is p99_9. It is
// empty for a percentile that Tandem does not name.
func percentileName(percent float64) string {
	for _, q := range quantiles {
		if q.percent == percent {
			return q.name
		}
	}
	return ""
}
