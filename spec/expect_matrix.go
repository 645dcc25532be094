package spec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// expectAt compiles a response check that names axes of the matrix: at each
// point, their values stand in their places. So what is compiled, kept in
// journals and shown where a response fails is the check of that point.
func (d *decoder) expectAt(v value, src string, uses []axisUse) *Expect {
	if d.dry { // defaults, whose scenarios have the axes
		return nil
	}
	slices.SortFunc(uses, func(a, b axisUse) int { return a.at - b.at })
	var b strings.Builder
	done := 0
	for _, u := range uses {
		text, ok := d.axisLiteral(v, u)
		if !ok {
			return nil
		}
		b.WriteString(src[done:u.at] + text)
		done = u.at + u.size
	}
	b.WriteString(src[done:])
	e, err := CompileExpect(b.String())
	if err != nil {
		d.errorOn(v.node, kindExpression, fmt.Sprintf("%s: with the values of the matrix it is %s: %v", v.key, b.String(), err), "")
		return nil
	}
	return e
}

// axisLiteral is the value of an axis as an expression writes it.
func (d *decoder) axisLiteral(v value, u axisUse) (string, bool) {
	i := slices.IndexFunc(d.matrix, func(a Axis) bool { return a.Name == u.axis })
	if i < 0 {
		var axes []string
		for _, a := range d.matrix {
			axes = append(axes, a.Name)
		}
		hint := "the scenario has no matrix"
		if len(axes) > 0 {
			hint = "its axes are " + strings.Join(axes, ", ")
		}
		d.errorIn(v.node, u.at, u.size, kindReference, fmt.Sprintf("%s: the matrix has no axis %q", v.key, u.axis), hint)
		return "", false
	}
	text := d.matrix[i].Value
	f, isNumber := axisNumber(text)
	switch {
	case u.number && !isNumber:
		d.errorIn(v.node, u.at, u.size, kindReference, fmt.Sprintf("%s: matrix.%s is %q, expected a number", v.key, u.axis, text), "")
		return "", false
	case u.number, u.json && isNumber:
		return strconv.FormatFloat(f, 'f', -1, 64), true
	}
	return strconv.Quote(text), true
}
