package spec

import (
	"cmp"
	"slices"
)

// Severity ranks a diagnostic.
type Severity string

const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// Diagnostic is one thing that is wrong, or worth saying, at one place of a
// bench.yaml.
type Diagnostic struct {
	File      string   `json:"file"`
	Line      int      `json:"line"`                 // from 1; 0 where no line applies
	Column    int      `json:"column"`               // from 1, in runes
	EndColumn int      `json:"end_column,omitempty"` // the column after the marked text, on the same line
	Severity  Severity `json:"severity"`
	Message   string   `json:"message"`        // lower case, no full stop
	Hint      string   `json:"hint,omitempty"` // what to do next
	Kind      string   `json:"kind"`           // the rule, such as "unknown-key"
	Text      string   `json:"text,omitempty"` // the source line, without its line break
}

// The kinds of diagnostics. The first group is what a JSON Schema can see,
// too; the second is meaning.
const (
	kindUnknownKey = "unknown-key" // a key that its mapping does not know
	kindMissingKey = "missing-key"
	kindWrongType  = "wrong-type" // a list where text is due, and the like
	kindBadValue   = "bad-value"  // the right type, but not a value that is allowed
	kindEmpty      = "empty"      // a list or mapping without entries, a key without a value
	kindConflict   = "conflict"   // keys that exclude each other
	kindUnit       = "unit"       // a duration, size or rate that is not one
	kindName       = "name"       // a name that breaks the rule for names
	kindSyntax     = "syntax"     // not YAML, or YAML that is not accepted
	kindDuplicate  = "duplicate"  // the same key twice
	kindLimit      = "limit"      // larger than what is accepted
	kindReference  = "reference"  // ${...} that names nothing
	kindExpression = "expression" // an expression that does not compile
	kindMetric     = "metric"     // a metric that does not exist
	kindSelector   = "selector"   // a glob that selects nothing
	kindUndefined  = "undefined"  // a name that refers to nothing, such as a baseline
	kindPath       = "path"       // a file or folder that is not there, or outside
	kindPlan       = "plan"       // a plan that cannot measure what is asked
	kindPins       = "pins"       // CPUs that contradict each other or do not exist
	kindGit        = "git"        // a revision that does not exist
)

// KindFile is the kind of a diagnostic that a caller makes of Load's error.
const KindFile = "file"

// HasErrors reports whether any of the diagnostics is an error.
func HasErrors(diags []Diagnostic) bool {
	return slices.ContainsFunc(diags, func(d Diagnostic) bool { return d.Severity == Error })
}

// SortDiagnostics sorts by file, line, column, severity and message.
func SortDiagnostics(diags []Diagnostic) {
	slices.SortStableFunc(diags, func(a, b Diagnostic) int {
		return cmp.Or(
			cmp.Compare(a.File, b.File),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Severity, b.Severity),
			cmp.Compare(a.Message, b.Message),
		)
	})
}
