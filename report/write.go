package report

import (
	"fmt"
	"io"
	"strings"
)

// RenderOptions say for whom a report is written.
type RenderOptions struct {
	Width  int  // columns of the terminal; 0: no limit. text only
	Color  bool // text only; the caller knows the terminal and NO_COLOR
	ASCII  bool // no character beyond ASCII of the renderer's own. text only
	Detail bool // the latency and request statistics of every arm, too. text only
	Limit  int  // bytes that the report may have; 0: the format's own limit. markdown only
}

// renderer writes an analysis in one format.
type renderer func(w io.Writer, a *Analysis, o RenderOptions) error

func renderers() map[string]renderer {
	return map[string]renderer{
		"text":        writeText,
		"markdown":    writeMarkdown,
		"json":        writeJSON,
		"html":        writeHTML,
		"autocannon":  writeAutocannon,
		"csv":         writeCSV,
		"junit":       writeJUnit,
		"benchfmt":    writeBenchfmt,
		"openmetrics": writeOpenMetrics,
		"github":      writeGitHub,
		"summary":     writeSummary,
	}
}

// Formats lists the formats that [Write] knows.
func Formats() []string { return sortedKeys(renderers()) }

// Write writes the analysis in the format. It returns an error where the
// format is unknown or w fails.
func Write(w io.Writer, format string, a *Analysis, o RenderOptions) error {
	f, ok := renderers()[format]
	if !ok {
		return fmt.Errorf("unknown report format %q: expected one of %s", format, strings.Join(Formats(), ", "))
	}
	return f(w, a, o)
}
