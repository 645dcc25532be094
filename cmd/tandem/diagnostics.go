package main

import (
	"github.com/fatih/color"

	"github.com/tandem-bench/tandem/spec"
)

// printDiagnostics shows what is wrong with a spec, or worth saying.
func (a *app) printDiagnostics(diags []spec.Diagnostic) error {
	if !a.colored(a.stderr) {
		return spec.WriteText(a.stderr, diags)
	}
	return spec.WriteTextStyled(a.stderr, diags, paint)
}

// paint colours one part of a diagnostic.
func paint(role, s string) string {
	attributes := map[string][]color.Attribute{
		"error":   {color.FgRed, color.Bold},
		"warning": {color.FgYellow, color.Bold},
		"mark":    {color.FgGreen, color.Bold},
		"place":   {color.Bold},
		"hint":    {color.FgCyan},
		"gutter":  {color.Faint},
	}
	c := color.New(attributes[role]...)
	c.EnableColor()
	return c.Sprint(s)
}
