package spec

import (
	"fmt"
	"slices"
	"strings"
)

// metricWords are other words for our metrics.
var metricWords = map[string]string{
	"throughput": "rps", "qps": "rps", "req/s": "rps", "reqs": "rps", "requests_per_second": "rps", "rate": "rps", "requests/s": "rps",
	"cpu": "cpu_per_request", "cpu_time": "cpu_per_request", "memory": "max_rss", "rss": "max_rss", "mem": "max_rss", "peak_memory": "max_rss",
	"time": "wall", "duration": "wall", "elapsed": "wall", "real": "wall", "user": "cpu", "errors": "error_ratio", "error_rate": "error_ratio", "failures": "error_ratio",
	"latency": "latency.p50", "ttfb": "ttfb.p50", "rtt": "rtt.p50", "response_time": "response_time.p50", "handshake": "handshake.p50", "utilization": "busy", "messages": "msgs",
}

// unknownMetric reports a name that is no metric of any scenario.
func (d *decoder) unknownMetric(n *node, key, name string, custom []string) {
	hint := "metrics: " + strings.Join(MetricNames()[:5], ", ") + ", latency.p99, ..."
	_, rest, _ := strings.Cut(name, "latency.")
	all := append(MetricNames(), custom...)
	switch {
	case slices.Contains(MetricNames(), "latency."+strings.ReplaceAll(name, ".", "_")):
		hint = fmt.Sprintf("did you mean %q?", "latency."+strings.ReplaceAll(name, ".", "_"))
	case rest == "average" || rest == "avg" || rest == "median" || strings.HasPrefix(rest, "p99."):
		hint = "did you mean " + map[bool]string{true: `"latency.mean"?`, false: `"latency.p50"?`}[rest == "average" || rest == "avg"]
		if strings.HasPrefix(rest, "p99.") {
			hint = `did you mean "latency.p99_9"?`
		}
	case metricWords[strings.ToLower(name)] != "":
		hint = fmt.Sprintf("did you mean %q?", metricWords[strings.ToLower(name)])
	case Nearest(name, all) != "":
		hint = fmt.Sprintf("did you mean %q?", Nearest(name, all))
	}
	d.errorOn(n, kindMetric, fmt.Sprintf("%s: there is no metric %s", key, quote(name)), hint)
}

// customMetrics are the metrics that exec scenarios define.
func customMetrics(s *Spec) []string {
	var out []string
	for _, sc := range s.Scenarios {
		if sc.Exec == nil {
			continue
		}
		for _, x := range sc.Exec.Metrics {
			if _, known := LookupMetric(x.Metric); !known && !slices.Contains(out, x.Metric) {
				out = append(out, x.Metric)
			}
		}
	}
	return out
}

// checkJudge checks the names in the lists of judged metrics.
func (d *decoder) checkJudge(s *Spec) {
	custom := customMetrics(s)
	if d.marks.judge != nil {
		for _, item := range d.marks.judge.items {
			name := item.text
			if _, known := LookupMetric(name); !known && !slices.Contains(custom, name) {
				d.unknownMetric(item, "judge", name, custom)
			} else if !slices.ContainsFunc(s.Scenarios, func(sc Scenario) bool { return sc.HasMetric(name) }) {
				d.selectorProblem(item, fmt.Sprintf("judge: no scenario has the metric %q", name), "")
			}
		}
	}
	for i, sc := range s.Scenarios {
		list := d.marks.scenarios[i].body.get("judge")
		if list == nil {
			continue
		}
		for _, item := range list.items {
			_, known := LookupMetric(item.text)
			switch {
			case sc.HasMetric(item.text):
			case known:
				d.errorOn(item, kindMetric, fmt.Sprintf("judge: scenario %s is %s and has no metric %q", sc.Name, sc.article(), item.text), metricsHint(sc))
			default:
				d.unknownMetric(item, "judge", item.text, custom)
			}
		}
	}
}

// article is the kind of a scenario with its article.
func (s Scenario) article() string {
	switch s.kindBit() {
	case onRate:
		return "http at a rate"
	case onCommand:
		return "a command"
	}
	return s.kindName()
}

func metricsHint(sc Scenario) string {
	var names []string
	for _, m := range plainMetrics {
		if sc.HasMetric(m.Name) {
			names = append(names, m.Name)
		}
	}
	return "it has " + strings.Join(names, ", ")
}

// selectorProblem is an error, or a warning where a profile may have taken
// away what was selected.
func (d *decoder) selectorProblem(n *node, msg, hint string) {
	if d.o.Profile != "" {
		d.warnOn(n, kindSelector, msg+" under the profile "+d.o.Profile, hint)
		return
	}
	d.errorOn(n, kindSelector, msg, hint)
}

// checkThresholds checks what thresholds select, and that their expressions
// find what they name in all of it.
func (d *decoder) checkThresholds(s *Spec) {
	if len(d.marks.thresholds) != len(s.Thresholds) {
		return
	}
	x := &selection{d: d, s: s, custom: customMetrics(s), cache: map[selectKey]bool{}}
	for i, t := range s.Thresholds {
		x.threshold(t, d.marks.thresholds[i])
	}
}

// selection finds what thresholds select.
type selection struct {
	d      *decoder
	s      *Spec
	custom []string
	cache  map[selectKey]bool
}

// selectKey: metrics depend on the kind alone, so the many scenarios of a
// matrix are answered once.
type selectKey struct {
	glob string
	bit  int
}

func (x *selection) threshold(t Threshold, mark thresholdMark) {
	names := append(MetricNames(), x.custom...)
	if !slices.ContainsFunc(names, func(n string) bool { return MatchGlob(t.Metric, n) }) {
		x.d.unknownMetric(mark.metric, "metric", t.Metric, x.custom)
		return
	}
	var selected []Scenario
	anyScenario := false
	for _, sc := range x.s.Scenarios {
		if !MatchGlob(t.Scenario, sc.Name) && !MatchGlob(t.Scenario, sc.ID()) {
			continue
		}
		anyScenario = true
		if x.hasMetric(t.Metric, sc) {
			selected = append(selected, sc)
		}
	}
	switch {
	case !anyScenario:
		x.d.selectorProblem(mark.scenario, fmt.Sprintf("scenario: %s selects no scenario", quote(t.Scenario)), x.scenarioHint(t.Scenario))
		return
	case len(selected) == 0:
		x.d.selectorProblem(mark.metric, fmt.Sprintf("metric: no scenario that is selected has the metric %s", quote(t.Metric)), "")
		return
	}
	for _, g := range mark.gates {
		x.gate(g, t, selected)
	}
}

// hasMetric reports whether a scenario has a metric that a glob matches.
func (x *selection) hasMetric(glob string, sc Scenario) bool {
	if sc.Exec != nil {
		for _, m := range sc.Exec.Metrics {
			if MatchGlob(glob, m.Metric) {
				return true
			}
		}
	}
	key := selectKey{glob, sc.kindBit()}
	has, known := x.cache[key]
	if !known {
		has = slices.ContainsFunc(MetricNames(), func(n string) bool { return MatchGlob(glob, n) && sc.HasMetric(n) })
		x.cache[key] = has
	}
	return has
}

func (x *selection) scenarioHint(glob string) string {
	var names []string
	for _, sc := range x.s.Scenarios {
		if !slices.Contains(names, sc.Name) {
			names = append(names, sc.Name)
		}
		if len(names) > 200 {
			break
		}
	}
	if near := Nearest(strings.Trim(glob, "*"), names); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "scenarios: " + keyList(names, 6)
}

// gate checks a threshold's expression against each scenario that is
// selected: the metrics and axes that it names must be there.
func (x *selection) gate(g gateMark, t Threshold, selected []Scenario) {
	seen := map[string]bool{}
	for _, sc := range selected {
		for _, u := range g.gate.uses.metrics {
			if key := fmt.Sprint(u.at, sc.kindBit()); !seen[key] && !sc.HasMetric(u.metric) {
				seen[key] = true
				x.missingMetric(g.node, u, sc)
			}
		}
		for _, u := range g.gate.uses.axes {
			if !seen[fmt.Sprint("axis", u.at)] {
				seen[fmt.Sprint("axis", u.at)] = x.axis(g.node, u, sc, t)
			}
		}
	}
}

func (x *selection) missingMetric(n *node, u metricUse, sc Scenario) {
	full := u.side + "." + u.metric
	if _, known := LookupMetric(u.metric); known || slices.Contains(x.custom, u.metric) {
		x.d.errorIn(n, u.at, u.size, kindMetric, fmt.Sprintf("%s: scenario %s is %s and has no metric %q", full, sc.Name, sc.article(), u.metric),
			"narrow the threshold with scenario:, since a row without the metric always fails")
		return
	}
	hint := "metrics: rps, cpu_per_request, latency.p99, ..."
	if near := Nearest(u.metric, append(MetricNames(), x.custom...)); near != "" {
		hint = fmt.Sprintf("did you mean %s.%s?", u.side, near)
	} else if word := metricWords[u.metric]; word != "" {
		hint = fmt.Sprintf("did you mean %s.%s?", u.side, word)
	} else if _, ok := LookupMetric("latency." + u.metric); ok {
		hint = fmt.Sprintf("did you mean %s.latency.%s?", u.side, u.metric)
	}
	x.d.errorIn(n, u.at, u.size, kindMetric, fmt.Sprintf("there is no metric %q", u.metric), hint)
}

// axis reports an axis that a selected scenario does not have, or whose
// value is no number where the expression takes one.
func (x *selection) axis(n *node, u axisUse, sc Scenario, t Threshold) bool {
	i := slices.IndexFunc(sc.Matrix, func(a Axis) bool { return a.Name == u.axis })
	if i < 0 {
		hint := "narrow the threshold with scenario:, since a row without the axis always fails"
		var names []string
		for _, a := range sc.Matrix {
			names = append(names, a.Name)
		}
		if near := Nearest(u.axis, names); near != "" {
			hint = fmt.Sprintf("did you mean matrix.%s?", near)
		}
		x.d.errorIn(n, u.at, u.size, kindReference, fmt.Sprintf("matrix.%s: scenario %s has no axis %q", u.axis, sc.Name, u.axis), hint)
		return true
	}
	if _, ok := axisNumber(sc.Matrix[i].Value); !ok && u.number {
		x.d.errorIn(n, u.at, u.size, kindReference, fmt.Sprintf("matrix.%s is compared with a number, and %s is none", u.axis, quote(sc.Matrix[i].Value)), "")
		return true
	}
	return false
}
