package spec

import (
	"io"
	"net/url"
	"path/filepath"
	"slices"
)

// The parts of SARIF 2.1.0 (OASIS, 2020) that code scanning reads.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool       sarifTool     `json:"tool"`
		ColumnKind string        `json:"columnKind"`
		Results    []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version,omitempty"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               string    `json:"id"`
		ShortDescription sarifText `json:"shortDescription"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		RuleIndex int             `json:"ruleIndex"`
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifLocation struct {
		Physical sarifPhysical `json:"physicalLocation"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine   int        `json:"startLine"`
		StartColumn int        `json:"startColumn"`
		EndColumn   int        `json:"endColumn,omitempty"`
		Snippet     *sarifText `json:"snippet,omitempty"`
	}
)

// kindDocs says what each kind of diagnostic is about.
var kindDocs = map[string]string{
	kindUnknownKey: "A key that its mapping does not know",
	kindMissingKey: "A key that is required and is not there",
	kindWrongType:  "A value of the wrong type",
	kindBadValue:   "A value that is not allowed",
	kindEmpty:      "A value, list or mapping that is empty",
	kindConflict:   "Keys that exclude each other",
	kindUnit:       "A duration, size or rate without its unit",
	kindName:       "A name that breaks the rule for names",
	kindSyntax:     "A file that is not the YAML that a spec is written in",
	kindDuplicate:  "The same thing twice",
	kindLimit:      "A file that is larger than what is accepted",
	kindReference:  "A reference that names nothing",
	kindExpression: "An expression that does not compile",
	kindMetric:     "A metric that does not exist",
	kindSelector:   "A glob that selects nothing",
	kindUndefined:  "A name that refers to nothing",
	kindPath:       "A file or folder that is not there, or outside",
	kindPlan:       "A plan that cannot measure what is asked",
	kindPins:       "CPUs that contradict each other or do not exist",
	kindGit:        "A revision that does not exist",
	KindFile:       "A file that cannot be read",
}

func writeSARIF(w io.Writer, tool string, diags []Diagnostic) error {
	run := sarifRun{ColumnKind: "unicodeCodePoints", Results: []sarifResult{}}
	run.Tool.Driver = sarifDriver{Name: "tandem", Version: tool, Rules: []sarifRule{}}
	var rules []string
	for _, d := range diags {
		if !slices.Contains(rules, d.Kind) {
			rules = append(rules, d.Kind)
			run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{d.Kind, sarifText{kindDocs[d.Kind]}})
		}
		msg := d.Message
		if d.Hint != "" {
			msg += " (" + d.Hint + ")"
		}
		at := sarifPhysical{Artifact: sarifArtifact{URI: fileURI(d.File)}}
		if d.Line > 0 {
			at.Region = &sarifRegion{StartLine: d.Line, StartColumn: d.Column, EndColumn: d.EndColumn, Snippet: &sarifText{d.Text}}
		}
		run.Results = append(run.Results, sarifResult{
			RuleID: d.Kind, RuleIndex: slices.Index(rules, d.Kind), Level: string(d.Severity),
			Message: sarifText{msg}, Locations: []sarifLocation{{at}},
		})
	}
	return indented(w, sarifLog{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run}})
}

// fileURI is a path as the URI reference that SARIF wants.
func fileURI(path string) string {
	u := url.URL{Path: filepath.ToSlash(path)}
	if filepath.IsAbs(path) {
		u.Scheme = "file"
	}
	return u.String()
}
