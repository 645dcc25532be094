package spec

import (
	"slices"
	"strings"
)

// Metric is a quantity that a trial can have.
type Metric struct {
	Name   string
	Unit   string // s, B, 1/s, ratio or ""; values are in this unit
	Better string // higher or lower
	Doc    string
}

// LookupMetric returns a metric by its name. Metrics that an exec scenario
// defines are not among them.
func LookupMetric(name string) (Metric, bool) {
	family, stat, dotted := strings.Cut(name, ".")
	if !dotted {
		i := slices.IndexFunc(plainMetrics, func(m Metric) bool { return m.Name == name })
		if i < 0 {
			return Metric{}, false
		}
		return plainMetrics[i], true
	}
	for _, f := range families {
		if f.name == family && slices.Contains(f.stats, stat) {
			return f.metric(stat), true
		}
	}
	return Metric{}, false
}

// MetricNames lists the names of all metrics: plain ones first, then the
// families, in the order of the documentation.
func MetricNames() []string {
	var names []string
	for _, m := range plainMetrics {
		names = append(names, m.Name)
	}
	for _, f := range families {
		for _, st := range f.stats {
			names = append(names, f.name+"."+st)
		}
	}
	return names
}

// The kinds of scenarios that have a metric.
const (
	onHTTP = 1 << iota // closed loop
	onRate             // open loop
	onWS
	onExec
	onCommand
	onServer = onHTTP | onRate | onWS | onExec
)

var plainMetrics = []Metric{
	{"rps", "1/s", "higher", "valid responses per second"},
	{"requests", "", "higher", "valid responses of the window"},
	{"cpu_per_request", "s", "lower", "CPU time of the server per valid response"},
	{"busy", "ratio", "lower", "CPU time of the server per second of the window"},
	{"bytes_in", "B", "higher", "bytes received, heads included"},
	{"bytes_out", "B", "higher", "bytes sent, heads included"},
	{"bytes_per_request", "B", "lower", "bytes received per valid response"},
	{"error_ratio", "ratio", "lower", "share of the requests that failed"},
	{"max_rss", "B", "lower", "peak memory of the process tree"},
	{"wall", "s", "lower", "time from the start of the process to its end"},
	{"cpu", "s", "lower", "CPU time of the process tree, user and system"},
	{"msgs", "1/s", "higher", "valid replies per second, over websockets"},
	{"target_rps", "1/s", "higher", "requests per second that were asked for"},
	{"rate_ratio", "ratio", "higher", "requests sent per request asked for"},
}

// plainOn says which scenarios have a plain metric, in the same order.
var plainOn = []int{
	onHTTP | onRate | onWS | onExec, onHTTP | onRate | onWS | onExec, onServer, onServer,
	onHTTP | onRate | onWS | onExec, onHTTP | onRate | onWS, onHTTP | onRate | onWS | onExec, onServer,
	onServer | onCommand, onCommand, onCommand, onWS, onRate, onRate,
}

// family is a distribution: one metric for each of its statistics.
type family struct {
	name   string
	stats  []string
	unit   string
	better string
	doc    string
	on     int
}

func (f family) metric(stat string) Metric {
	m := Metric{f.name + "." + stat, f.unit, f.better, statDoc(stat) + " of the " + f.doc}
	if stat == "stdev" {
		m.Better = "lower"
	}
	return m
}

var (
	timeStats = []string{"min", "mean", "stdev", "p2_5", "p25", "p50", "p75", "p90", "p95", "p97_5", "p99", "p99_9", "max"}
	rpsStats  = []string{"p1", "p2_5", "p50", "p97_5", "mean", "stdev", "min"}

	families = []family{
		{"latency", timeStats, "s", "lower", "time from the first byte sent to the last byte received", onHTTP | onRate | onWS | onExec},
		{"rps_interval", rpsStats, "1/s", "higher", "requests per second in one-second intervals", onHTTP | onRate | onWS | onExec},
		{"ttfb", timeStats, "s", "lower", "time from the first byte sent to the first byte received", onHTTP | onRate},
		{"response_time", timeStats, "s", "lower", "time from the intended start to the last byte received", onRate},
		{"send_lag", timeStats, "s", "lower", "time from the intended start to the first byte sent", onRate},
		{"rtt", timeStats, "s", "lower", "time from a message to its reply", onWS},
		{"handshake", timeStats, "s", "lower", "time to open a websocket", onWS},
	}
)

func statDoc(stat string) string {
	switch stat {
	case "min":
		return "smallest"
	case "max":
		return "largest"
	case "mean":
		return "mean"
	case "stdev":
		return "standard deviation"
	case "p50":
		return "median"
	}
	return strings.Replace(strings.TrimPrefix(stat, "p"), "_", ".", 1) + "th percentile"
}

// kindBit is the kind of a scenario, as the metrics know it.
func (s Scenario) kindBit() int {
	switch {
	case s.HTTP != nil && (s.HTTP.Rate > 0 || s.HTTP.Pacer != nil):
		return onRate
	case s.HTTP != nil:
		return onHTTP
	case s.WS != nil:
		return onWS
	case s.Exec != nil:
		return onExec
	case s.Command != nil:
		return onCommand
	}
	return 0
}

// HasMetric reports whether trials of this scenario can have a metric.
func (s Scenario) HasMetric(name string) bool {
	if s.Exec != nil {
		for _, x := range s.Exec.Metrics {
			if x.Metric == name {
				return true
			}
		}
		if s.Exec.Preset == "" && !s.Exec.derives(name) {
			return false
		}
	}
	bit := s.kindBit()
	family, stat, dotted := strings.Cut(name, ".")
	if !dotted {
		i := slices.IndexFunc(plainMetrics, func(m Metric) bool { return m.Name == name })
		return i >= 0 && plainOn[i]&bit != 0
	}
	for _, f := range families {
		if f.name == family {
			return f.on&bit != 0 && slices.Contains(f.stats, stat)
		}
	}
	return false
}

// derives reports whether a metric follows without anything that the tool
// says: from the server's processes, and from its count where that is read.
func (e *Exec) derives(name string) bool {
	switch name {
	case "busy", "max_rss":
		return true
	case "rps", "requests", "cpu_per_request", "error_ratio":
		return e.Counter != nil
	}
	return false
}

// LookupMetric returns a metric that trials of this scenario can have,
// those that an exec scenario defines included.
func (s Scenario) LookupMetric(name string) (Metric, bool) {
	if s.Exec != nil {
		for _, x := range s.Exec.Metrics {
			if x.Metric == name {
				return Metric{Name: name, Unit: baseUnit(x.Unit), Better: x.Better, Doc: "read from the output of " + s.Name}, true
			}
		}
	}
	if !s.HasMetric(name) {
		return Metric{}, false
	}
	return LookupMetric(name)
}

// baseUnit is the unit that values of a unit are kept in: tools print
// milliseconds and kilobytes, and trials hold seconds and bytes.
func baseUnit(unit string) string {
	switch strings.TrimSpace(unit) {
	case "ns", "us", "µs", "μs", "ms", "sec", "secs", "m", "min", "h":
		return "s"
	case "kB", "KB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB":
		return "B"
	case "/s", "1/ms", "1/min", "req/s", "reqs/s", "msg/s", "msgs/s", "k", "K", "M", "G":
		if len(unit) == 1 {
			return ""
		}
		return "1/s"
	case "kB/s", "KB/s", "MB/s", "GB/s", "KiB/s", "MiB/s", "GiB/s":
		return "B/s"
	case "%":
		return "ratio"
	}
	return unit
}

// JudgeOf lists the metrics of a scenario that get verdicts: its own list
// or the spec's, less what its kind does not have.
func (s *Spec) JudgeOf(sc Scenario) []string {
	list := sc.Judge
	if list == nil {
		list = s.Judge
	}
	var out []string
	for _, name := range list {
		if sc.HasMetric(name) {
			out = append(out, name)
		}
	}
	return out
}
