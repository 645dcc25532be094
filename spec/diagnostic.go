package spec

// Severity ranks a diagnostic.
type Severity string

const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// Diagnostic is one thing that is wrong, or worth saying, at one place of a
// bench.yaml.
type Diagnostic struct {
	File     string   `json:"file"`
	Line     int      `json:"line"`   // from 1; 0 where no line applies
	Column   int      `json:"column"` // from 1, in runes
	Severity Severity `json:"severity"`
	Message  string   `json:"message"`        // lower case, no full stop
	Hint     string   `json:"hint,omitempty"` // what to do next
	Kind     string   `json:"kind"`           // the rule, such as "unknown-key"
}
