package spec

import (
	"encoding/json"
	"fmt"
	"io"
)

// DiagnosticFormats are the formats that WriteDiagnostics knows.
func DiagnosticFormats() []string { return []string{"text", "json", "github", "sarif"} }

// WriteDiagnostics writes diagnostics in one of the formats: text for
// people, json for programs, github for annotations of a workflow, sarif for
// code scanning. tool is the version of tandem, for sarif.
func WriteDiagnostics(w io.Writer, format, tool string, diags []Diagnostic) error {
	switch format {
	case "text":
		return WriteText(w, diags)
	case "json":
		return writeJSON(w, diags)
	case "github":
		return writeGitHub(w, diags)
	case "sarif":
		return writeSARIF(w, tool, diags)
	}
	return fmt.Errorf("there is no format %q; formats are text, json, github and sarif", format)
}

// diagnosticList is the json format.
type diagnosticList struct {
	Errors      int          `json:"errors"`
	Warnings    int          `json:"warnings"`
	Diagnostics []Diagnostic `json:"diagnostics"`
}

func writeJSON(w io.Writer, diags []Diagnostic) error {
	list := diagnosticList{Diagnostics: diags}
	if diags == nil {
		list.Diagnostics = []Diagnostic{}
	}
	list.Errors, list.Warnings = CountDiagnostics(diags)
	return indented(w, list)
}

// CountDiagnostics counts errors and warnings.
func CountDiagnostics(diags []Diagnostic) (errors, warnings int) {
	for _, d := range diags {
		if d.Severity == Error {
			errors++
		} else {
			warnings++
		}
	}
	return errors, warnings
}

func indented(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
