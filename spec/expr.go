package spec

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/vm"
)

// Expect is a compiled response check, such as `status == 200`.
type Expect struct {
	Source  string
	program *vm.Program
	json    bool // it reads the body as JSON
}

// Gate is a compiled threshold expression, such as `worse > noise`.
type Gate struct {
	Source  string
	program *vm.Program
	uses    exprUses
}

// RowEnv is what a Gate sees of a row.
type RowEnv struct {
	Metric   string
	Scenario string            // its ID
	Matrix   map[string]string // its point
	Ratio    float64           // candidate / baseline
	Change   float64           // Ratio - 1
	Worse    float64           // Change, signed so that a worsening is positive
	Noise    float64           // |Change| at which the row would just be marked
	CILow    float64           // of the ratio
	CIHigh   float64
	P        float64
	Verdict  string
	Blocks   int
	Base     map[string]float64 // every metric of the baseline, in base units
	Head     map[string]float64 // every metric of the candidate
}

// exprUses is what an expression reads.
type exprUses struct {
	names   []string    // numbers of the row, such as "worse" and "ci.low"
	metrics []metricUse // base.M and head.M
	axes    []axisUse
	levels  []levelUse // numbers that the change is compared with
}

type metricUse struct {
	side, metric string
	at, size     int // bytes of the source
}

type levelUse struct {
	name     string // worse, change or ratio
	level    float64
	at, size int
}

type axisUse struct {
	axis     string
	number   bool // it is compared with a number
	json     bool // it is compared with a value of the body
	at, size int
}

// gateVars is the environment that gates are compiled against.
type gateVars struct {
	Metric   string             `expr:"metric"`
	Scenario string             `expr:"scenario"`
	Matrix   map[string]string  `expr:"matrix"`
	Numbers  map[string]float64 `expr:"axis_numbers"` // of the axes that are compared with numbers
	Ratio    float64            `expr:"ratio"`
	Change   float64            `expr:"change"`
	Worse    float64            `expr:"worse"`
	Noise    float64            `expr:"noise"`
	CI       struct {
		Low  float64 `expr:"low"`
		High float64 `expr:"high"`
	} `expr:"ci"`
	P       float64            `expr:"p"`
	Verdict string             `expr:"verdict"`
	Blocks  float64            `expr:"blocks"`
	Base    map[string]float64 `expr:"base"`
	Head    map[string]float64 `expr:"head"`
}

// expectVars is the environment that response checks are compiled against.
type expectVars struct {
	Status  float64           `expr:"status"`
	Body    string            `expr:"body"`
	Headers map[string]string `expr:"headers"` // by small-letter name
	JSON    any               `expr:"json"`    // the body, where the expression reads it
}

// CompileGate compiles a threshold expression. It accepts any metric and
// axis by name; Parse checks that they exist.
func CompileGate(source string) (*Gate, error) {
	c := checkExpr(source, gateLanguage)
	if len(c.problems) > 0 {
		return nil, c.problems[0]
	}
	p, err := compileExpr(source, gateVars{}, c)
	if err != nil {
		return nil, err
	}
	return &Gate{Source: source, program: p, uses: c.uses}, nil
}

// CompileExpect compiles a response check. It knows no matrix: Parse has put
// the values of a scenario's point in the place of its axes.
func CompileExpect(source string) (*Expect, error) {
	c := checkExpr(source, expectLanguage)
	if len(c.problems) > 0 {
		return nil, c.problems[0]
	}
	if len(c.uses.axes) > 0 {
		return nil, fmt.Errorf("matrix.%s is known only in the scenarios of a spec", c.uses.axes[0].axis)
	}
	p, err := compileExpr(source, expectVars{}, c)
	if err != nil {
		return nil, err
	}
	return &Expect{Source: source, program: p, json: c.json}, nil
}

// compileExpr compiles a source that checkExpr has accepted.
func compileExpr(source string, env any, c *exprChecker) (*vm.Program, error) {
	return expr.Compile(source,
		expr.Env(env),
		expr.AsBool(),
		expr.Patch(&patcher{numbers: c.numbers}),
		expr.Function(finiteName, finiteFunc, new(func(float64) float64), new(func(any) float64)),
		expr.Function(fieldName, fieldFunc),
		expr.Function(lengthName, lengthFunc, new(func(any) float64)),
	)
}

// finiteName is the function that the patcher puts around arithmetic. It is
// no name that a source can call: the checker knows no such function.
const finiteName = "__finite"

// finiteFunc passes a number on, unless it is none: a division by zero or
// an overflow must not decide a gate.
func finiteFunc(params ...any) (any, error) {
	f, ok := params[0].(float64)
	if !ok || math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, fmt.Errorf("the arithmetic came to %v, which decides nothing", params[0])
	}
	return f, nil
}

const (
	fieldName  = "__field"
	lengthName = "__len"
)

// fieldFunc follows keys and indexes into a JSON value. What is not there is
// an error: a check must not pass because a field is missing.
func fieldFunc(params ...any) (any, error) {
	v := params[0]
	for _, key := range params[1:] {
		switch k := key.(type) {
		case string:
			m, ok := v.(map[string]any)
			if !ok {
				return nil, fmt.Errorf("the body's JSON has no field %q: expected an object, found %s", k, jsonKind(v))
			}
			if v, ok = m[k]; !ok {
				return nil, fmt.Errorf("the body's JSON has no field %q", k)
			}
		case float64:
			list, ok := v.([]any)
			if i := int(k); !ok || i < 0 || i >= len(list) {
				return nil, fmt.Errorf("the body's JSON has no entry %d: found %s", i, jsonKind(v))
			} else {
				v = list[i]
			}
		}
	}
	return v, nil
}

func jsonKind(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case []any:
		return fmt.Sprintf("a list of %d", len(v))
	case map[string]any:
		return "an object"
	case string:
		return "text"
	case bool:
		return "true or false"
	}
	return "a number"
}

// lengthFunc is the length of a text in bytes, or the number of entries of
// a JSON list or object.
func lengthFunc(params ...any) (any, error) {
	switch v := params[0].(type) {
	case string:
		return float64(len(v)), nil
	case []any:
		return float64(len(v)), nil
	case map[string]any:
		return float64(len(v)), nil
	}
	return nil, fmt.Errorf("len takes text, a list or an object, found %s", jsonKind(params[0]))
}

// Eval reports whether a response satisfies the expression. Header names
// are matched without regard to case; several fields of one name are joined
// by ", ". The error is non-nil where the expression reads a field of the
// body's JSON that is not there, or where its arithmetic came to no number.
func (e *Expect) Eval(status int, body []byte, header map[string][]string) (bool, error) {
	env := expectVars{Status: float64(status), Body: string(body), Headers: make(map[string]string, len(header))}
	for name, values := range header {
		env.Headers[strings.ToLower(name)] = strings.Join(values, ", ")
	}
	if e.json {
		if err := json.Unmarshal(body, &env.JSON); err != nil {
			return false, fmt.Errorf("the body is not JSON: %w", err)
		}
	}
	return runExpr(e.program, env)
}

// Eval decides the gate for a row. A value that the expression reads and
// that the row does not have, or has as NaN or an infinity, is an error,
// and so is arithmetic that comes to one: such a row is never decided.
func (g *Gate) Eval(row RowEnv) (bool, error) {
	env := gateVars{
		Metric: row.Metric, Scenario: row.Scenario, Matrix: row.Matrix, Ratio: row.Ratio, Change: row.Change,
		Worse: row.Worse, Noise: row.Noise, P: row.P, Verdict: row.Verdict, Blocks: float64(row.Blocks),
		Base: row.Base, Head: row.Head,
	}
	env.CI.Low, env.CI.High = row.CILow, row.CIHigh
	if err := g.sound(&env); err != nil {
		return false, err
	}
	return runExpr(g.program, env)
}

// sound checks that all that the gate reads is there and is a number.
func (g *Gate) sound(env *gateVars) error {
	for _, name := range g.uses.names {
		if f := env.number(name); !isFinite(f) {
			return fmt.Errorf("%s is %v, which decides nothing", name, f)
		}
	}
	for _, m := range g.uses.metrics {
		side := env.Base
		if m.side == "head" {
			side = env.Head
		}
		f, ok := side[m.metric]
		if !ok {
			return fmt.Errorf("the row has no %s.%s", m.side, m.metric)
		}
		if !isFinite(f) {
			return fmt.Errorf("%s.%s is %v, which decides nothing", m.side, m.metric, f)
		}
	}
	for _, a := range g.uses.axes {
		s, ok := env.Matrix[a.axis]
		if !ok {
			return fmt.Errorf("the row has no axis %q", a.axis)
		}
		if !a.number {
			continue
		}
		f, ok := axisNumber(s)
		if !ok {
			return fmt.Errorf("matrix.%s is %q, which is no number", a.axis, s)
		}
		if env.Numbers == nil {
			env.Numbers = map[string]float64{}
		}
		env.Numbers[a.axis] = f
	}
	return nil
}

func (v *gateVars) number(name string) float64 {
	switch name {
	case "ratio":
		return v.Ratio
	case "change":
		return v.Change
	case "worse":
		return v.Worse
	case "noise":
		return v.Noise
	case "ci.low":
		return v.CI.Low
	case "ci.high":
		return v.CI.High
	case "p":
		return v.P
	case "blocks":
		return v.Blocks
	}
	return math.NaN()
}

func isFinite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

func runExpr(p *vm.Program, env any) (bool, error) {
	if p == nil {
		return false, fmt.Errorf("the expression was never compiled")
	}
	out, err := expr.Run(p, env)
	if err != nil {
		return false, evalError(err)
	}
	b, ok := out.(bool)
	if !ok {
		return false, fmt.Errorf("the expression came to %v, expected true or false", out)
	}
	return b, nil
}

// evalError keeps the first line of expr's error, which goes on with an
// excerpt of the source.
func evalError(err error) error {
	msg, _, _ := strings.Cut(err.Error(), "\n")
	msg, _, _ = strings.Cut(msg, " (1:")
	return fmt.Errorf("%s", msg)
}

// compiler keeps what was compiled, since many scenarios share a check.
type compiler struct {
	expects map[string]*Expect
}

// expect compiles a response check of the spec.
func (d *decoder) expect(v value) *Expect {
	src, ok := d.exprSource(v)
	if !ok {
		return nil
	}
	if e := d.compile.expects[src]; e != nil {
		return e
	}
	c := checkExpr(src, expectLanguage)
	if !d.exprProblems(v, c.problems) {
		return nil
	}
	if len(c.uses.axes) > 0 {
		return d.expectAt(v, src, c.uses.axes)
	}
	p, err := compileExpr(src, expectVars{}, c)
	if err != nil {
		d.exprProblems(v, []*exprProblem{compileProblem(err)})
		return nil
	}
	e := &Expect{Source: src, program: p, json: c.json}
	if d.compile.expects == nil {
		d.compile.expects = map[string]*Expect{}
	}
	d.compile.expects[src] = e
	return e
}

// gate compiles a threshold expression of the spec.
func (d *decoder) gate(v value) *Gate {
	src, ok := d.exprSource(v)
	if !ok {
		return nil
	}
	c := checkExpr(src, gateLanguage)
	if !d.exprProblems(v, c.problems) {
		return nil
	}
	p, err := compileExpr(src, gateVars{}, c)
	if err != nil {
		d.exprProblems(v, []*exprProblem{compileProblem(err)})
		return nil
	}
	return &Gate{Source: src, program: p, uses: c.uses}
}

// exprSource reads the source of an expression. It is no template: ${ is
// not in the language.
func (d *decoder) exprSource(v value) (string, bool) {
	want := "an expression such as worse > 0.05"
	if v.key == "expect" {
		want = "an expression such as status == 200"
	}
	if v.kind == scalarKind && v.isNumber() {
		hint := "write worse > " + v.text
		if v.key == "expect" {
			hint = "write status == " + v.text
		}
		d.typeError(v, want, hint)
		return "", false
	}
	if v.kind != scalarKind || v.tag != tagStr {
		d.typeError(v, want, "")
		return "", false
	}
	return v.text, true
}

func (d *decoder) exprProblems(v value, problems []*exprProblem) bool {
	for _, p := range problems {
		if p.msg == endsEarly && v.style == plainStyle && strings.Contains(d.src.line(v.pos.line), " #") {
			p.hint = "YAML reads \" #\" as the start of a comment; put the whole value in quotes"
		}
		if p.msg == endsEarly && v.style == plainStyle && strings.HasPrefix(d.src.text[d.src.offset(v.pos):], v.text+",") {
			p.hint = commaHint
		}
		d.errorIn(v.node, p.at, p.size, kindExpression, v.key+": "+p.msg, p.hint)
	}
	return len(problems) == 0
}

// compileProblem carries an error of expr's own checks, which comes only
// where ours let something pass.
func compileProblem(err error) *exprProblem {
	return &exprProblem{size: 1, msg: evalError(err).Error()}
}
