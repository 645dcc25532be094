package spec

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// marks remembers where things of the spec stand, for the checks that run
// once everything is known.
type marks struct {
	hosts       []*node    // of each host, its key
	hostRefs    []hostMark // where they are named
	services    []string   // that are known where the decoder is
	armServices []string   // of any arm
	root        mapping
	arms        []*node        // of each arm, its key
	scenarios   []scenarioMark // of each scenario of the Spec
	thresholds  []thresholdMark
	judge       *node
	plan        *node
	git         []gitMark
}

// scenarioMark is where a scenario and its parts stand.
type scenarioMark struct {
	key  *node
	body *node
}

// gitMark is where an arm's revision stands.
type gitMark struct {
	node *node
	git  *Git
}

// root decodes the document.
func (d *decoder) root(n *node) *Spec {
	m, ok := d.object(value{n, ""}, rootObject)
	if !ok {
		return nil
	}
	d.marks.root = m
	s := &Spec{
		Name:  filepath.Base(d.dir),
		Judge: []string{"rps", "cpu_per_request"},
		Alpha: 0.01, Margin: 0.02,
		Pins: Pins{Server: "auto", Load: "auto"}, Generator: Generator{CPUs: 1},
	}
	d.version(m)
	m.on("name", func(v value) {
		if name, ok := d.str(v, "a name"); ok {
			s.Name = name
		}
	})
	m.on("hosts", func(v value) { s.Hosts = d.hosts(v) })
	m.on("services", func(v value) { s.Services = d.services(v) })
	d.arms(m, s)
	d.marks.services = append(d.marks.services, d.marks.armServices...)
	m.on("before", func(v value) { s.Before = d.hooks(v) })
	m.on("after", func(v value) { s.After = d.hooks(v) })
	m.on("pins", func(v value) { d.pins(v, &s.Pins) })
	m.on("generator", func(v value) { d.generator(v, &s.Generator) })
	m.on("limits", func(v value) { s.Limits = d.limits(v) })
	s.Plan = d.plan(m)
	m.on("alpha", func(v value) { d.probability(v, &s.Alpha) })
	m.on("margin", func(v value) {
		if f, ok := d.number(v, 0, 1); ok {
			s.Margin = f
		}
	})
	m.on("judge", func(v value) {
		d.marks.judge = v.node
		s.Judge = d.metricNames(v)
	})
	d.scenarios(m, s)
	m.on("thresholds", func(v value) { s.Thresholds = d.thresholds(v) })
	s.Policy = d.policy(m)
	m.on("report", func(v value) { s.Report = d.report_(v) })
	m.on("versions", func(v value) { s.Versions = d.probes(v) })
	return s
}

func (d *decoder) version(m mapping) {
	v, ok := m.get("version")
	if !ok {
		d.errorAt(m.pos, 1, kindMissingKey, `the key "version" is missing`, "add the line version: 1")
		return
	}
	if n, ok := d.integer(v, 0, 1<<31); ok && n != 1 {
		d.errorOn(v.node, kindBadValue, fmt.Sprintf("version: expected 1, found %d", n), "this release reads version 1")
	}
}

// probability reads a number above 0 and below 1.
func (d *decoder) probability(v value, into *float64) {
	f, ok := d.number(v, 0, 1)
	if !ok {
		return
	}
	if f <= 0 || f >= 1 {
		d.errorOn(v.node, kindBadValue, fmt.Sprintf("%s: expected a number above 0 and below 1, found %s", v.key, v.describe()), "0.01 is one same-code run in a hundred with a mark")
		return
	}
	*into = f
}

func (d *decoder) pins(v value, p *Pins) {
	m, ok := d.object(v, pinsObject)
	if !ok {
		return
	}
	m.on("server", func(v value) { p.Server = d.cpuList(v, p.Server) })
	m.on("load", func(v value) { p.Load = d.cpuList(v, p.Load) })
	m.on("require", func(v value) { p.Require, _ = d.boolean(v) })
}

// cpuList reads auto, none or a list such as "0,2-3".
func (d *decoder) cpuList(v value, def string) string {
	want := `auto, none or a CPU list such as "0" or "2-3"`
	if v.kind == seqKind {
		var all []string
		for _, item := range v.items {
			all = append(all, item.text)
		}
		d.typeError(v, want, fmt.Sprintf("write %s: '%s'", v.key, strings.Join(all, ",")))
		return def
	}
	s, _, ok := d.scalar(v, want)
	if !ok {
		return def
	}
	if s == "auto" || s == "none" {
		return s
	}
	if _, err := parseCPUs(s); err != nil || v.tag == tagFloat || v.tag == tagBool {
		hint := ""
		if near := Nearest(s, []string{"auto", "none"}); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		} else if err != nil {
			hint = err.Error()
		}
		d.errorOn(v.node, kindBadValue, fmt.Sprintf("%s: expected %s, found %s", v.key, want, found(v, s)), hint)
		return def
	}
	return s
}

func (d *decoder) generator(v value, g *Generator) {
	m, ok := d.object(v, generatorObject)
	if !ok {
		return
	}
	m.on("cpus", func(v value) { d.count(v, 1, 1024, &g.CPUs) })
}

// count reads a whole number into an int.
func (d *decoder) count(v value, least, most int64, into *int) {
	if n, ok := d.integer(v, least, most); ok {
		*into = int(n)
	}
}

func (d *decoder) limits(v value) Limits {
	var l Limits
	m, ok := d.object(v, limitsObject)
	if !ok {
		return l
	}
	m.on("memory", func(v value) { l.Memory, _ = d.size(v, 1<<20, 1<<50) })
	m.on("nofile", func(v value) { d.count(v, 16, 1<<30, &l.NoFile) })
	m.on("processes", func(v value) { d.count(v, 1, 1<<22, &l.Processes) })
	return l
}

func (d *decoder) plan(root mapping) Plan {
	p := Plan{
		Blocks: Blocks{Min: 4, Max: 20}, Window: time.Second, Warmup: time.Second, Turn: 2 * time.Millisecond,
		Interleave: Turns, Copies: 2,
	}
	v, ok := root.get("plan")
	if !ok {
		return p
	}
	d.marks.plan = v.node
	m, ok := d.object(v, planObject)
	if !ok {
		return p
	}
	m.on("blocks", func(v value) { d.blocks(v, &p.Blocks) })
	m.on("window", func(v value) { d.span(v, time.Millisecond, &p.Window) })
	m.on("warmup", func(v value) { d.span(v, 0, &p.Warmup) })
	m.on("turn", func(v value) {
		if t, ok := d.duration(v, 100*time.Microsecond, 10*time.Second); ok {
			p.Turn = t
		}
	})
	m.on("interleave", func(v value) { d.interleave(v, &p.Interleave) })
	m.on("copies", func(v value) { d.count(v, 1, 16, &p.Copies) })
	m.on("budget", func(v value) { d.span(v, time.Second, &p.Budget) })
	m.on("seed", func(v value) {
		if n, ok := d.integer(v, 0, 1<<53); ok {
			p.Seed, p.SeedFixed = uint64(n), true
		}
	})
	return p
}

// span reads a duration of at most a day.
func (d *decoder) span(v value, least time.Duration, into *time.Duration) {
	if t, ok := d.duration(v, least, day); ok {
		*into = t
	}
}

func (d *decoder) interleave(v value, into *Interleave) {
	if s, ok := d.choice(v, string(Turns), string(Together), string(Windows)); ok {
		*into = Interleave(s)
	}
}

const maxBlocks = 10_000

func (d *decoder) blocks(v value, b *Blocks) {
	if v.kind != mapKind {
		if v.kind != scalarKind || v.isNull() {
			d.typeError(v, "a number or { min: 4, max: 20 }", "")
			return
		}
		if n, ok := d.integer(v, 1, maxBlocks); ok {
			b.Min, b.Max = int(n), int(n)
		}
		return
	}
	m, ok := d.object(v, blocksObject)
	if !ok {
		return
	}
	m.on("min", func(v value) { d.count(v, 1, maxBlocks, &b.Min) })
	m.on("max", func(v value) { d.count(v, 1, maxBlocks, &b.Max) })
	if b.Min > b.Max {
		at := m.node.get("max")
		if at == nil {
			at = m.node.get("min")
		}
		d.errorOn(at, kindConflict, fmt.Sprintf("blocks: the smallest number, %d, is above the largest, %d", b.Min, b.Max), "")
	}
}

func (d *decoder) policy(root mapping) Policy {
	p := Policy{Unsure: Pass, New: Pass, Removed: Fail, Failed: Fail, Incomparable: Fail}
	v, ok := root.get("policy")
	if !ok {
		return p
	}
	m, ok := d.object(v, policyObject)
	if !ok {
		return p
	}
	into := map[string]*Action{
		"unsure": &p.Unsure, "new": &p.New, "removed": &p.Removed, "failed": &p.Failed,
		"incomparable": &p.Incomparable, "spec_changed": &p.SpecChanged,
	}
	for _, key := range policyObject.keys {
		m.on(key, func(v value) {
			if into[key] == nil {
				p.SpecChangedLabel, _ = d.str(v, "the name of a label")
			} else if s, ok := d.choice(v, string(Pass), string(Warn), string(Fail)); ok {
				*into[key] = Action(s)
			}
		})
	}
	if p.SpecChangedLabel != "" && p.SpecChanged == "" {
		p.SpecChanged = Fail // what the label allows
	}
	return p
}

func (d *decoder) report_(v value) []Output {
	m, ok := d.object(v, reportObject)
	if !ok {
		return nil
	}
	var outs []Output
	for _, f := range m.fields {
		if !slices.Contains(reportObject.keys, f.key.text) {
			continue
		}
		if path, ok := d.str(value{f.val, f.key.text}, "a file name"); ok {
			d.outputPath(f.val, f.key.text, path)
			outs = append(outs, Output{Format: f.key.text, Path: path})
		}
	}
	if len(m.fields) == 0 {
		d.errorOn(v.node, kindEmpty, "report: expected formats with their files, found an empty mapping", "write report: { markdown: bench.md }")
	}
	return outs
}

func (d *decoder) probes(v value) []Probe {
	var out []Probe
	d.names(v, "a mapping of names to commands", "write versions: { node: node --version }", func(name string, key *node, v value) {
		if !d.name(key, "version", false) {
			return
		}
		if c, ok := d.command(v, scopeProbe); ok {
			out = append(out, Probe{Name: name, Run: c})
		}
	})
	return out
}
