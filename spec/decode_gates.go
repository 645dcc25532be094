package spec

import (
	"fmt"
	"slices"
)

// thresholdMark is where the parts of a threshold stand.
type thresholdMark struct {
	entry, metric, scenario *node
	gates                   []gateMark
}

type gateMark struct {
	node *node
	gate *Gate
}

// metricNames decodes a list of names of metrics. Whether a metric exists
// is checked later, when the scenarios are known.
func (d *decoder) metricNames(v value) []string {
	out := []string{}
	d.list(v, "a list of metrics", "write "+v.key+": [rps, cpu_per_request]", func(item value) {
		name, ok := d.str(item, "the name of a metric")
		if !ok {
			return
		}
		if slices.Contains(out, name) {
			d.errorOn(item.node, kindDuplicate, fmt.Sprintf("%s: %q is here twice", v.key, name), "")
			return
		}
		out = append(out, name)
	})
	return out
}

func (d *decoder) thresholds(v value) []Threshold {
	var out []Threshold
	if len(v.items) > maxThresholds {
		d.errorOn(v.node, kindLimit, fmt.Sprintf("thresholds: at most %d are accepted, found %d", maxThresholds, len(v.items)), "a glob selects many rows at once")
		return nil
	}
	d.list(v, "a list of thresholds", "write thresholds: [{ metric: rps, fail: worse > 0.05 }]", func(item value) {
		if t, ok := d.threshold(item); ok {
			out = append(out, t)
		}
	})
	return out
}

const (
	maxThresholds = 1000
	maxGlob       = 200 // bytes
)

// glob reads a glob.
func (d *decoder) glob(v value, want string) (string, bool) {
	s, ok := d.str(v, want)
	if ok && len(s) > maxGlob {
		d.errorOn(v.node, kindLimit, fmt.Sprintf("%s: a glob has at most %d bytes, this has %d", v.key, maxGlob, len(s)), "")
		return "", false
	}
	return s, ok
}

func (d *decoder) threshold(v value) (Threshold, bool) {
	t := Threshold{Scenario: "*", Line: v.pos.line}
	if v.kind == mapKind && len(v.fields) > 0 {
		t.Line = v.fields[0].key.pos.line
	}
	m, ok := d.object(value{v.node, "threshold"}, thresholdObject)
	if !ok || !m.require("metric", "metric: names the rows that the threshold is about, such as rps or latency.*") {
		return t, false
	}
	mark := thresholdMark{entry: m.node}
	m.on("metric", func(v value) {
		t.Metric, ok = d.glob(v, "the name of a metric")
		mark.metric = v.node
	})
	m.on("scenario", func(v value) {
		var good bool
		if t.Scenario, good = d.glob(v, "the name of a scenario"); !good {
			ok = false
		}
		mark.scenario = v.node
	})
	for key, into := range map[string]**Gate{"mark": &t.Mark, "warn": &t.Warn, "fail": &t.Fail} {
		m.on(key, func(v value) {
			if *into = d.gate(v); *into != nil {
				mark.gates = append(mark.gates, gateMark{v.node, *into})
			} else {
				ok = false
			}
		})
	}
	m.on("message", func(v value) { t.Message, _ = d.str(v, "text") })
	if !m.has("mark") && !m.has("warn") && !m.has("fail") && !m.meant["fail"] && !m.meant["warn"] {
		d.errorOn(m.node, kindMissingKey, "threshold: expected mark, warn or fail, found none", "write fail: worse > 0.05")
	}
	if ok {
		d.marks.thresholds = append(d.marks.thresholds, mark)
	}
	return t, ok
}
