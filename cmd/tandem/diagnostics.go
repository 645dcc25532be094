package main

import (
	"fmt"

	"github.com/tandem-bench/tandem/spec"
)

// printDiagnostics shows what is wrong with a spec, or worth saying.
func (a *app) printDiagnostics(diags []spec.Diagnostic) error {
	for _, d := range diags {
		if _, err := fmt.Fprintf(a.stderr, "%s:%d:%d: %s\n", d.File, d.Line, d.Column, d.Message); err != nil {
			return err
		}
	}
	return nil
}
