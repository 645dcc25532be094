package spec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// axisIsNumber notes that the axis at a node is compared with a number.
func (c *exprChecker) axisIsNumber(n ast.Node) {
	m, ok := n.(*ast.MemberNode)
	if !ok {
		return
	}
	c.numbers[m.Location().From] = true
	from, _ := c.extent(n)
	for i := range c.uses.axes {
		if c.uses.axes[i].at == from {
			c.uses.axes[i].number = true
		}
	}
}

// axisIsJSON notes that the axis at a node is compared with a value of the
// body, which may be a number or text.
func (c *exprChecker) axisIsJSON(n ast.Node) {
	from, _ := c.extent(n)
	for i := range c.uses.axes {
		if c.uses.axes[i].at == from {
			c.uses.axes[i].json = true
		}
	}
}

// number checks that a node is a number.
func (c *exprChecker) number(n ast.Node, op string) {
	switch t := c.node(n); t {
	case numberExpr, anyExpr, jsonExpr:
	case axisExpr:
		c.axisIsNumber(n)
	default:
		c.on(n, notNumberHint(n), "%s takes numbers, found %s", op, t)
	}
}

func notNumberHint(n ast.Node) string {
	if s, ok := n.(*ast.StringNode); ok {
		if f, ok := percent(s.Value); ok {
			return "write " + f + " for " + s.Value
		}
		if _, err := strconv.ParseFloat(s.Value, 64); err == nil {
			return "remove the quotes: " + s.Value
		}
	}
	return ""
}

func (c *exprChecker) unary(n *ast.UnaryNode) exprType {
	switch n.Operator {
	case "-", "+":
		c.number(n.Node, n.Operator)
		return numberExpr
	case "!", "not":
		c.condition(n.Node, n.Operator)
		return boolExpr
	}
	return c.on(n, "", "the operator %s is not in this language", n.Operator)
}

// condition checks that a node is true or false.
func (c *exprChecker) condition(n ast.Node, op string) {
	t := c.node(n)
	if t == boolExpr || t == anyExpr || t == jsonExpr {
		return
	}
	hint := "compare it, as in " + c.lang.example
	if op == "&&" || op == "||" || op == "and" || op == "or" {
		hint = "each side is a comparison of its own, as in worse > noise " + op + " worse > 0.03"
	}
	c.on(n, hint, "%s takes true or false, found %s", op, t)
}

func (c *exprChecker) binary(n *ast.BinaryNode) exprType {
	switch n.Operator {
	case "&&", "||", "and", "or":
		c.condition(n.Left, n.Operator)
		c.condition(n.Right, n.Operator)
		return boolExpr
	case "<", ">", "<=", ">=":
		c.number(n.Left, n.Operator)
		c.number(n.Right, n.Operator)
		c.level(n.Left, n.Right)
		c.level(n.Right, n.Left)
		return boolExpr
	case "==", "!=":
		c.equality(n)
		return boolExpr
	case "+", "-", "*", "/":
		c.number(n.Left, n.Operator)
		c.number(n.Right, n.Operator)
		return numberExpr
	case "contains", "startsWith", "endsWith":
		c.text(n.Left, n.Operator)
		c.text(n.Right, n.Operator)
		return boolExpr
	case "in":
		return c.in(n)
	case "matches":
		return c.on(n, "use contains, startsWith or endsWith", "matches is not in this language, since a pattern could run long")
	case "..":
		return c.on(n, "write x >= 200 && x < 300", "ranges are not in this language")
	case "??":
		return c.on(n, "", "?? is not in this language; a value that is missing fails the row by itself")
	}
	return c.on(n, "", "the operator %s is not in this language", n.Operator)
}

// level notes that a change is compared with a plain number.
func (c *exprChecker) level(name, number ast.Node) {
	id, ok := name.(*ast.IdentifierNode)
	if !ok {
		return
	}
	var f float64
	switch n := number.(type) {
	case *ast.FloatNode:
		f = n.Value
	case *ast.IntegerNode:
		f = float64(n.Value)
	default:
		return
	}
	switch id.Value {
	case "ratio":
		f -= 1
	case "worse", "change":
	default:
		return
	}
	from, to := c.extent(number)
	c.uses.levels = append(c.uses.levels, levelUse{id.Value, f, from, to - from})
}

// text checks that a node is text.
func (c *exprChecker) text(n ast.Node, op string) {
	if t := c.node(n); t != textExpr && t != anyExpr && t != axisExpr && t != jsonExpr {
		hint := ""
		if t == numberExpr {
			hint = "quote it"
		}
		c.on(n, hint, "%s takes text, found %s", op, t)
	}
}

// equality checks == and !=.
func (c *exprChecker) equality(n *ast.BinaryNode) {
	if c.bareWord(n.Left, n.Right) || c.bareWord(n.Right, n.Left) {
		return
	}
	l, r := c.node(n.Left), c.node(n.Right)
	switch {
	case l == axisExpr && r == jsonExpr:
		c.axisIsJSON(n.Left)
	case l == jsonExpr && r == axisExpr:
		c.axisIsJSON(n.Right)
	case l == anyExpr || r == anyExpr || l == jsonExpr && scalarType(r) || r == jsonExpr && scalarType(l):
	case l == axisExpr && r == numberExpr:
		c.axisIsNumber(n.Left)
	case r == axisExpr && l == numberExpr:
		c.axisIsNumber(n.Right)
	case scalarType(l) && scalarType(r) && (l == r || l == axisExpr && r == textExpr || r == axisExpr && l == textExpr):
		c.verdictWord(n.Left, n.Right)
		c.verdictWord(n.Right, n.Left)
	default:
		hint := notNumberHint(n.Right)
		if hint == "" {
			hint = notNumberHint(n.Left)
		}
		c.on(n, hint, "%s compares %s with %s", n.Operator, l, r)
	}
}

// bareWord reports a word without quotes that a text is compared with, as
// in metric == rps.
func (c *exprChecker) bareWord(text, word ast.Node) bool {
	id, ok := text.(*ast.IdentifierNode)
	p := path(word)
	if !ok || p == nil || c.lang.names[id.Value] != textExpr || c.lang.names[p[0]] != anyExpr {
		return false
	}
	s := strings.Join(p, ".")
	c.on(word, fmt.Sprintf("text needs quotes: %q", s), "unknown name %q", s)
	return true
}

func scalarType(t exprType) bool {
	return t == numberExpr || t == textExpr || t == boolExpr || t == axisExpr || t == jsonExpr
}

// verdictWord checks that a text which verdict is compared with is one that
// it can be.
func (c *exprChecker) verdictWord(name, word ast.Node) {
	id, ok := name.(*ast.IdentifierNode)
	s, isText := word.(*ast.StringNode)
	if !ok || !isText || id.Value != "verdict" || slices.Contains(verdicts, s.Value) {
		return
	}
	hint := "verdicts: " + strings.Join(verdicts, ", ")
	if near := Nearest(s.Value, verdicts); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	c.on(word, hint, "verdict is never %q", s.Value)
}

// in checks x in [a, b].
func (c *exprChecker) in(n *ast.BinaryNode) exprType {
	l := c.node(n.Left)
	arr, ok := n.Right.(*ast.ArrayNode)
	if !ok {
		if b, isRange := n.Right.(*ast.BinaryNode); isRange && b.Operator == ".." {
			return c.on(n.Right, "write x >= 200 && x < 300", "ranges are not in this language")
		}
		return c.on(n.Right, "write x in [a, b]", "in takes a list")
	}
	for _, item := range arr.Nodes {
		t := c.node(item)
		if t == anyExpr || l == anyExpr || l == jsonExpr {
			continue
		}
		if l == axisExpr && t == numberExpr {
			c.axisIsNumber(n.Left)
		} else if t != l && !(l == axisExpr && t == textExpr) {
			c.on(item, "", "in looks for %s, found %s", l, t)
		}
		c.verdictWord(n.Left, item)
	}
	return boolExpr
}

func (c *exprChecker) conditional(n *ast.ConditionalNode) exprType {
	c.condition(n.Cond, "?")
	a, b := c.node(n.Exp1), c.node(n.Exp2)
	if a != b && a != anyExpr && b != anyExpr {
		return c.on(n, "", "both results of ? must be of one type, found %s and %s", a, b)
	}
	return a
}

func (c *exprChecker) call(n ast.Node, name string, args []ast.Node) exprType {
	t, ok := c.lang.calls[name]
	if !ok {
		var known []string
		for k := range c.lang.calls {
			known = append(known, k)
		}
		slices.Sort(known)
		hint := "functions: " + strings.Join(known, ", ")
		if near := Nearest(name, known); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		return c.on(n, hint, "there is no function %q in this language", name)
	}
	many := name == "min" || name == "max"
	if len(args) == 0 || len(args) > 1 && !many {
		return c.on(n, "", "%s takes %s, found %d", name, map[bool]string{true: "one or more values", false: "one value"}[many], len(args))
	}
	for _, a := range args {
		if c.lang == expectLanguage {
			c.text(a, name)
		} else {
			c.number(a, name)
		}
	}
	return t
}

// patcher rewrites an accepted expression before expr compiles it: whole
// numbers become real ones (there is then no overflow), base.latency.p99
// becomes a look-up by name, an axis that is compared with a number becomes
// one, names of headers lose their case, and arithmetic is guarded.
type patcher struct {
	numbers map[int]bool
}

// Visit is called for every node, children first.
func (p *patcher) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IntegerNode:
		ast.Patch(node, &ast.FloatNode{Value: float64(n.Value)})
	case *ast.BinaryNode:
		switch n.Operator {
		case "+", "-", "*", "/":
			ast.Patch(node, &ast.CallNode{Callee: &ast.IdentifierNode{Value: finiteName}, Arguments: []ast.Node{n}})
		}
	case *ast.BuiltinNode:
		if n.Name == "len" {
			ast.Patch(node, &ast.CallNode{Callee: &ast.IdentifierNode{Value: lengthName}, Arguments: n.Arguments})
		}
	case *ast.MemberNode:
		p.member(node, n)
	}
}

func (p *patcher) member(node *ast.Node, n *ast.MemberNode) {
	if call, ok := n.Node.(*ast.CallNode); ok { // an inner part of a path into the body, rewritten already
		if id, ok := call.Callee.(*ast.IdentifierNode); ok && id.Value == fieldName {
			ast.Patch(node, &ast.CallNode{Callee: id, Arguments: append(call.Arguments, n.Property)})
		}
		return
	}
	if id, ok := n.Node.(*ast.IdentifierNode); ok && id.Value == "json" {
		ast.Patch(node, &ast.CallNode{Callee: &ast.IdentifierNode{Value: fieldName}, Arguments: []ast.Node{id, n.Property}})
		return
	}
	names := path(n)
	if names == nil {
		return
	}
	look := func(in, key string) {
		ast.Patch(node, &ast.MemberNode{Node: &ast.IdentifierNode{Value: in}, Property: &ast.StringNode{Value: key}})
	}
	switch {
	case names[0] == "base" || names[0] == "head":
		look(names[0], strings.Join(names[1:], "."))
	case names[0] == "headers":
		look("headers", strings.ToLower(names[1]))
	case names[0] == "matrix" && p.numbers[n.Location().From]:
		look("axis_numbers", names[1])
	}
}

func axisNumber(s string) (float64, bool) {
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil && isFinite(f)
}
