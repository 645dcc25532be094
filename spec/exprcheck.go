package spec

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
)

// maxExpr caps the source of an expression, in bytes.
const maxExpr = 1000

// exprProblem is what is wrong with an expression, and where.
type exprProblem struct {
	at, size int // bytes of the source
	msg      string
	hint     string
}

func (p *exprProblem) Error() string {
	if p.hint == "" {
		return p.msg
	}
	return p.msg + "; " + p.hint
}

// exprType is the type of a part of an expression.
type exprType int

const (
	anyExpr exprType = iota // unknown, because something is wrong with it
	numberExpr
	textExpr
	boolExpr
	metricsExpr // base or head, or a family of metrics of it
	mapExpr     // matrix or headers
	ciExpr
	listExpr
	axisExpr // an axis of the matrix: text, or a number where compared with one
	jsonExpr // a value of the body: what it is shows only then
)

func (t exprType) String() string {
	return [...]string{"something", "a number", "text", "true or false", "a group of metrics", "a mapping", "an interval", "a list", "an axis of the matrix", "a value of the body"}[t]
}

// exprLanguage is what an expression may name and call.
type exprLanguage struct {
	names   map[string]exprType
	order   []string // of the names, for hints
	calls   map[string]exprType
	example string
}

var (
	gateLanguage = &exprLanguage{
		names: map[string]exprType{
			"metric": textExpr, "scenario": textExpr, "matrix": mapExpr, "ratio": numberExpr, "change": numberExpr,
			"worse": numberExpr, "noise": numberExpr, "ci": ciExpr, "p": numberExpr, "verdict": textExpr,
			"blocks": numberExpr, "base": metricsExpr, "head": metricsExpr,
		},
		order:   []string{"metric", "scenario", "matrix", "ratio", "change", "worse", "noise", "ci", "p", "verdict", "blocks", "base", "head"},
		calls:   map[string]exprType{"abs": numberExpr, "min": numberExpr, "max": numberExpr, "round": numberExpr, "floor": numberExpr, "ceil": numberExpr},
		example: "worse > 0.05",
	}
	expectLanguage = &exprLanguage{
		names:   map[string]exprType{"status": numberExpr, "body": textExpr, "headers": mapExpr, "json": jsonExpr, "matrix": mapExpr},
		order:   []string{"status", "body", "headers", "json", "matrix"},
		calls:   map[string]exprType{"len": numberExpr, "lower": textExpr, "upper": textExpr, "trim": textExpr},
		example: "status == 200",
	}
)

// verdicts are what the name verdict can be.
var verdicts = []string{"regressed", "improved", "same", "unsure", "new", "removed", "failed", "incomparable"}

// exprChecker checks one expression: only a small, loop-free part of expr's
// language is let through, so that evaluating takes time that is linear in
// the source and the response.
type exprChecker struct {
	src      string
	lang     *exprLanguage
	problems []*exprProblem
	uses     exprUses
	numbers  map[int]bool // where axes that are numbers start, in runes
	runeAt   []int        // byte offset of each rune
	json     bool         // the body is read as JSON
}

func checkExpr(src string, lang *exprLanguage) *exprChecker {
	c := &exprChecker{src: src, lang: lang, numbers: map[int]bool{}}
	for i := range src {
		c.runeAt = append(c.runeAt, i)
	}
	c.runeAt = append(c.runeAt, len(src))
	switch {
	case strings.TrimSpace(src) == "":
		c.problem(0, 1, "write "+lang.example, "the expression is empty")
		return c
	case len(src) > maxExpr:
		c.problem(0, 1, "", "the expression has %d bytes, at most %d are accepted", len(src), maxExpr)
		return c
	}
	if c.traps(); len(c.problems) > 0 {
		return c
	}
	tree, err := parser.Parse(src)
	if err != nil {
		c.syntax(err)
		return c
	}
	t := c.node(tree.Node)
	if t != boolExpr && t != anyExpr && t != jsonExpr && len(c.problems) == 0 {
		hint := "compare it, as in " + lang.example
		c.problem(0, len(src), hint, "expected true or false, found %s", t)
	}
	slices.SortStableFunc(c.problems, func(a, b *exprProblem) int { return a.at - b.at })
	return c
}

func (c *exprChecker) problem(at, size int, hint, format string, args ...any) {
	c.problems = append(c.problems, &exprProblem{at: at, size: size, msg: fmt.Sprintf(format, args...), hint: hint})
}

// on reports a problem with a node.
func (c *exprChecker) on(n ast.Node, hint, format string, args ...any) exprType {
	from, to := c.extent(n)
	c.problem(from, to-from, hint, format, args...)
	return anyExpr
}

// extent is where a node stands, in bytes. expr gives a binary node the
// place of its operator, and a member that of its dot.
func (c *exprChecker) extent(n ast.Node) (from, to int) {
	loc := n.Location()
	from, to = c.byteAt(loc.From), c.byteAt(loc.To)
	switch n := n.(type) {
	case *ast.MemberNode:
		from, _ = c.extent(n.Node)
		_, end := c.extent(n.Property)
		to = max(to, end)
	case *ast.ChainNode:
		return c.extent(n.Node)
	}
	return from, max(to, from+1)
}

func (c *exprChecker) byteAt(r int) int {
	return c.runeAt[min(max(r, 0), len(c.runeAt)-1)]
}

const endsEarly = "the expression ends too early"

// syntax reports an error of expr's parser.
func (c *exprChecker) syntax(err error) {
	at, msg := 0, err.Error()
	var fe *file.Error
	if errors.As(err, &fe) {
		at, msg = c.byteAt(fe.From), fe.Message
	}
	switch {
	case strings.Contains(msg, "unexpected token EOF"):
		c.problem(len(strings.TrimRight(c.src, " \t\n")), 1, "", "%s", endsEarly)
		return
	case strings.HasPrefix(msg, "unexpected token "):
		tok := strings.TrimPrefix(msg, "unexpected token ")
		if i, j := strings.IndexByte(tok, '('), strings.LastIndexByte(tok, ')'); i >= 0 && j > i {
			tok = tok[i+1 : j]
		}
		c.problem(at, max(1, len(strings.Trim(tok, `"`))), "", "did not expect %s here", tok)
		return
	}
	_, size := utf8.DecodeRuneInString(c.src[min(at, len(c.src)):])
	c.problem(at, max(size, 1), "", "%s", msg)
}

// node checks a node and returns its type.
func (c *exprChecker) node(n ast.Node) exprType {
	switch n := n.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		return numberExpr
	case *ast.BoolNode:
		return boolExpr
	case *ast.StringNode:
		return textExpr
	case *ast.IdentifierNode:
		return c.identifier(n)
	case *ast.MemberNode:
		return c.member(n)
	case *ast.ChainNode:
		return c.on(n, "write . for ?.", "?. is not in this language")
	case *ast.UnaryNode:
		return c.unary(n)
	case *ast.BinaryNode:
		return c.binary(n)
	case *ast.ConditionalNode:
		return c.conditional(n)
	case *ast.BuiltinNode:
		return c.call(n, n.Name, n.Arguments)
	case *ast.CallNode:
		switch callee := n.Callee.(type) {
		case *ast.IdentifierNode:
			return c.call(n, callee.Value, n.Arguments)
		case *ast.MemberNode:
			return c.method(callee)
		}
	case *ast.ArrayNode:
		return c.on(n, "lists go with in, as in status in [200, 204]", "a list is not expected here")
	case *ast.NilNode:
		return c.on(n, "", "nil is not in this language; a value that is missing fails the row by itself")
	}
	return c.on(n, "an expression compares values, as in "+c.lang.example, "this is not in the language of expressions")
}

func (c *exprChecker) identifier(n *ast.IdentifierNode) exprType {
	t, ok := c.lang.names[n.Value]
	if !ok {
		return c.unknownName(n)
	}
	c.json = c.json || t == jsonExpr
	if t == numberExpr && c.lang == gateLanguage {
		c.uses.names = append(c.uses.names, n.Value)
	}
	return t
}

func (c *exprChecker) unknownName(n *ast.IdentifierNode) exprType {
	hint := "names: " + strings.Join(c.lang.order, ", ")
	_, isMetric := LookupMetric(n.Value)
	isFamily := slices.ContainsFunc(families, func(f family) bool { return f.name == n.Value })
	word := exprSynonyms[strings.ToLower(n.Value)]
	switch {
	case slices.Contains(verdicts, n.Value) && c.lang == gateLanguage:
		hint = fmt.Sprintf("text needs quotes: verdict == %q", n.Value)
	case word != "" && c.lang.names[firstName(word)] != anyExpr:
		hint = fmt.Sprintf("did you mean %s?", word)
	case c.lang == gateLanguage && isMetric:
		hint = fmt.Sprintf("write head.%s or base.%s", n.Value, n.Value)
	case c.lang == gateLanguage && isFamily:
		hint = fmt.Sprintf("write head.%s.p99, say, or base.%s.p99", n.Value, n.Value)
	case Nearest(n.Value, c.lang.order) != "":
		hint = fmt.Sprintf("did you mean %q?", Nearest(n.Value, c.lang.order))
	}
	return c.on(n, hint, "unknown name %q", n.Value)
}

func firstName(s string) string {
	name, _, _ := strings.Cut(s, ".")
	return name
}

// exprSynonyms are other words for our names.
var exprSynonyms = map[string]string{
	"candidate": "head", "new": "head", "current": "head", "after": "head", "baseline": "base", "old": "base", "before": "base",
	"delta": "change", "diff": "change", "regression": "worse", "slower": "worse", "worsening": "worse", "threshold": "noise", "critical": "noise",
	"pvalue": "p", "p_value": "p", "low": "ci.low", "high": "ci.high", "result": "verdict", "n": "blocks", "name": "scenario", "code": "status",
	"statuscode": "status", "status_code": "status", "response": "body", "text": "body", "header": "headers", "res": "status", "r": "status",
}

// path flattens base.latency.p99 into its names; nil where it is another
// kind of member.
func path(n ast.Node) []string {
	switch n := n.(type) {
	case *ast.IdentifierNode:
		return []string{n.Value}
	case *ast.MemberNode:
		p := path(n.Node)
		s, ok := n.Property.(*ast.StringNode)
		if p == nil || !ok || n.Optional {
			return nil
		}
		return append(p, s.Value)
	}
	return nil
}

func (c *exprChecker) member(n *ast.MemberNode) exprType {
	if keys := jsonPath(n); keys != nil && c.lang.names["json"] == jsonExpr {
		c.json = true
		return jsonExpr
	}
	p := path(n)
	if p == nil {
		return c.on(n, "write NAME.FIELD, or json.LIST[0] with a plain number", "this is not in the language of expressions")
	}
	t, ok := c.lang.names[p[0]]
	if !ok {
		return c.unknownMember(n, p)
	}
	switch t {
	case metricsExpr:
		return c.sideMetric(n, p)
	case ciExpr:
		if len(p) == 2 && (p[1] == "low" || p[1] == "high") {
			c.uses.names = append(c.uses.names, "ci."+p[1])
			return numberExpr
		}
		return c.on(n, "write ci.low or ci.high", "the interval has no %q", strings.Join(p[1:], "."))
	case mapExpr:
		return c.mapMember(n, p)
	}
	hint := ""
	if p[0] == "body" {
		hint = fmt.Sprintf(`write json.%s for a field of a JSON body, or body contains "TEXT"`, strings.Join(p[1:], "."))
	}
	return c.on(n, hint, "%s is %s and has no fields, found .%s", p[0], t, strings.Join(p[1:], "."))
}

// method refuses body.contains("x") and the like.
func (c *exprChecker) method(n *ast.MemberNode) exprType {
	hint := "an expression compares values, as in " + c.lang.example
	p := path(n)
	words := map[string]string{"contains": "contains", "includes": "contains", "startsWith": "startsWith", "hasPrefix": "startsWith", "endsWith": "endsWith", "hasSuffix": "endsWith"}
	if len(p) == 2 && words[p[1]] != "" {
		hint = fmt.Sprintf(`write %s %s "TEXT"`, p[0], words[p[1]])
	}
	return c.on(n, hint, "there are no methods in this language")
}

// jsonPath lists the keys and indexes of json.items[0].name; nil where a
// member is not of the body's JSON.
func jsonPath(n ast.Node) []ast.Node {
	switch n := n.(type) {
	case *ast.IdentifierNode:
		if n.Value == "json" {
			return []ast.Node{}
		}
	case *ast.MemberNode:
		head := jsonPath(n.Node)
		if head == nil || n.Optional {
			return nil
		}
		switch p := n.Property.(type) {
		case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode:
			return append(head, p)
		}
	}
	return nil
}

func (c *exprChecker) unknownMember(n *ast.MemberNode, p []string) exprType {
	id := n.Node
	for {
		m, ok := id.(*ast.MemberNode)
		if !ok {
			break
		}
		id = m.Node
	}
	full := strings.Join(p, ".")
	if _, ok := LookupMetric(full); ok && c.lang == gateLanguage {
		return c.on(n, fmt.Sprintf("write head.%s or base.%s", full, full), "unknown name %q", full)
	}
	return c.unknownName(id.(*ast.IdentifierNode))
}

// sideMetric checks head.latency.p99 and the like. Whether the metric
// exists in the scenarios that are selected is checked by Parse.
func (c *exprChecker) sideMetric(n *ast.MemberNode, p []string) exprType {
	name := strings.Join(p[1:], ".")
	if slices.ContainsFunc(families, func(f family) bool { return f.name == name }) {
		return c.on(n, fmt.Sprintf("write %s.%s.p99, say", p[0], name), "%s.%s is a group of metrics, expected one of them", p[0], name)
	}
	from, to := c.extent(n)
	c.uses.metrics = append(c.uses.metrics, metricUse{side: p[0], metric: name, at: from, size: to - from})
	return numberExpr
}

func (c *exprChecker) mapMember(n *ast.MemberNode, p []string) exprType {
	if len(p) != 2 {
		return c.on(n, "", "%s.%s has no fields", p[0], p[1])
	}
	if p[0] != "matrix" {
		return textExpr
	}
	from, to := c.extent(n)
	c.uses.axes = append(c.uses.axes, axisUse{axis: p[1], at: from, size: to - from})
	return axisExpr
}
