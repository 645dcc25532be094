package spec

import (
	"fmt"
	"slices"
	"strings"
)

const maxScenarios = 10_000

// grid is a matrix as it was written: axes with their values, points left
// out, points added.
type grid struct {
	axes    []gridAxis
	exclude []*node
	include []*node
}

type gridAxis struct {
	name   string
	key    *node
	values []string
}

// grid decodes a matrix.
func (d *decoder) grid(v value) (g grid, ok bool) {
	hint := "write matrix: { c: [16, 64] }"
	before := len(d.diags)
	d.names(v, "a mapping of axes to their values", hint, func(name string, key *node, v value) {
		switch name {
		case "include":
			g.include = d.gridPoints(v)
			return
		case "exclude":
			g.exclude = d.gridPoints(v)
			return
		}
		if d.axisName(key) {
			g.axes = append(g.axes, gridAxis{name, key, d.axisValues(v)})
		}
	})
	return g, len(d.diags) == before
}

func (d *decoder) axisName(key *node) bool {
	if strings.ContainsAny(key.text, ".") {
		d.errorOn(key, kindName, fmt.Sprintf("axis %s: a name must not have '.' in it", quote(key.text)), "write it with _ or -")
		return false
	}
	return d.name(key, "axis", false)
}

func (d *decoder) axisValues(v value) []string {
	var out []string
	d.list(v, "a list of values", "write "+v.key+": [1, 2]", func(item value) {
		s, ok := d.axisScalar(item)
		if !ok {
			return
		}
		if slices.Contains(out, s) {
			d.errorOn(item.node, kindDuplicate, fmt.Sprintf("%s: the value %s is here twice", v.key, quote(s)), "")
			return
		}
		out = append(out, s)
	})
	return out
}

// axisScalar reads a value of an axis, as text.
func (d *decoder) axisScalar(v value) (string, bool) {
	if v.kind != scalarKind || v.isNull() {
		d.typeError(v, "text, a number, true or false", "")
		return "", false
	}
	if v.tag == tagInt {
		if _, err := parseInt(v.text); err != nil {
			d.errorOn(v.node, kindBadValue, fmt.Sprintf("%s: %s is not written as a plain number", v.key, v.text), err.Error())
			return "", false
		}
	}
	s, _, ok := d.scalar(v, "text, a number, true or false")
	return s, ok
}

// gridPoints decodes include or exclude: a list of mappings of axes to values.
func (d *decoder) gridPoints(v value) []*node {
	var out []*node
	d.list(v, "a list of points", "write "+v.key+": [{ c: 16, size: 1kB }]", func(item value) {
		good := true
		d.names(item, "a mapping of axes to one value each", "", func(name string, key *node, v value) {
			_, ok := d.axisScalar(v)
			good = good && ok && d.axisName(key)
		})
		if good && item.kind == mapKind && len(item.fields) > 0 {
			out = append(out, item.node)
		}
	})
	return out
}

// expand lists the points of a matrix: the product of its axes less what is
// excluded, then what is included. As in the matrices of GitHub workflows,
// an included point that agrees with existing ones on every axis that it
// shares with them extends these; otherwise it is a point of its own.
func (d *decoder) expand(g grid, outer []Axis, key *node) [][]Axis {
	points := [][]Axis{slices.Clone(outer)}
	for _, ax := range g.axes {
		if len(points)*len(ax.values) > maxScenarios {
			d.errorOn(ax.key, kindLimit, fmt.Sprintf("the matrix has more than %d points", maxScenarios), "")
			return nil
		}
		next := make([][]Axis, 0, len(points)*len(ax.values))
		for _, p := range points {
			for _, val := range ax.values {
				next = append(next, withAxis(p, ax.name, val))
			}
		}
		points = next
	}
	points = d.excluded(points, g)
	points = d.included(points, g, outer)
	if len(points) == 0 {
		d.errorOn(key, kindEmpty, "the matrix has no points left", "exclude removes all of them")
	}
	return points
}

// withAxis is a point with one axis more, or with another value of one.
func withAxis(p []Axis, name, val string) []Axis {
	out := slices.Clone(p)
	for i := range out {
		if out[i].Name == name {
			out[i].Value = val
			return out
		}
	}
	return append(out, Axis{name, val})
}

func (d *decoder) excluded(points [][]Axis, g grid) [][]Axis {
	for _, ex := range g.exclude {
		n := len(points)
		points = slices.DeleteFunc(points, func(p []Axis) bool { return d.agrees(p, ex, true) })
		if len(points) == n {
			d.errorOn(ex, kindSelector, "exclude: no point of the matrix is like this", d.axesHint(g, ex))
		}
	}
	return points
}

// axesHint says which axes there are, where an excluded point names another.
func (d *decoder) axesHint(g grid, ex *node) string {
	var names []string
	for _, a := range g.axes {
		names = append(names, a.name)
	}
	for _, f := range ex.fields {
		if !slices.Contains(names, f.key.text) {
			if near := Nearest(f.key.text, names); near != "" {
				return fmt.Sprintf("there is no axis %q; did you mean %q?", f.key.text, near)
			}
			return fmt.Sprintf("there is no axis %q; axes: %s", f.key.text, strings.Join(names, ", "))
		}
	}
	return "remove it"
}

func (d *decoder) included(points [][]Axis, g grid, outer []Axis) [][]Axis {
	base := len(points)
	if len(g.axes) == 0 && len(g.include) > 0 {
		base = 0
		points = nil
	}
	var added [][]Axis
	for _, in := range g.include {
		extended := false
		for i := range base {
			if d.agrees(points[i], in, false) && d.extends(in, g) {
				points[i] = d.extended(points[i], in)
				extended = true
			}
		}
		if !extended {
			added = append(added, d.extended(slices.Clone(outer), in))
		}
	}
	return append(points, added...)
}

// extends reports whether an included point names an axis of the matrix and
// another besides: then it belongs to points rather than being one.
func (d *decoder) extends(in *node, g grid) bool {
	fresh := false
	for _, f := range in.fields {
		if !slices.ContainsFunc(g.axes, func(a gridAxis) bool { return a.name == f.key.text }) {
			fresh = true
		}
	}
	return fresh
}

// agrees reports whether a point has the values of an included or excluded
// one; an axis that the point does not have agrees only where not strict.
func (d *decoder) agrees(p []Axis, n *node, strict bool) bool {
	for _, f := range n.fields {
		i := slices.IndexFunc(p, func(a Axis) bool { return a.Name == f.key.text })
		if i < 0 && strict || i >= 0 && p[i].Value != f.val.text {
			return false
		}
	}
	return true
}

func (d *decoder) extended(p []Axis, n *node) []Axis {
	for _, f := range n.fields {
		p = withAxis(p, f.key.text, f.val.text)
	}
	return p
}
