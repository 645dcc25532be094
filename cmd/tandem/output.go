package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tandem-bench/tandem/report"
)

// outputs are the formats that a verb writes, and their files.
type outputs struct {
	known   []string
	formats []string
	files   []string
}

// flags adds --format and -o, which repeat in pairs.
func (o *outputs) flags(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&o.formats, "format", nil, "format: "+strings.Join(o.known, ", ")+" (default text)")
	cmd.Flags().StringArrayVarP(&o.files, "output", "o", nil, "file for the format in the same place (default: standard output)")
}

// check refuses what the flags cannot mean, before anything is read.
func (o *outputs) check() error {
	if len(o.formats) == 0 {
		o.formats = []string{"text"}
	}
	if len(o.files) > len(o.formats) {
		return usageErrorf("found %d -o for %d --format: each file needs a format", len(o.files), len(o.formats))
	}
	for _, f := range o.formats {
		if !slices.Contains(o.known, f) {
			return usageErrorf("--format: found %q, expected one of %s", f, strings.Join(o.known, ", "))
		}
	}
	return nil
}

// renderFunc writes a report in a format.
type renderFunc func(w io.Writer, format string, o report.RenderOptions) error

// write writes each format to its file, or to standard output.
func (o *outputs) write(a *app, render renderFunc) error {
	for i, f := range o.formats {
		var err error
		if i < len(o.files) {
			err = writeWhole(o.files[i], f, func(w io.Writer) error { return render(w, f, report.RenderOptions{}) })
		} else {
			err = render(a.product(f), f, a.renderOptions(f))
		}
		if err != nil {
			return notMeasured(err)
		}
	}
	return nil
}

// renderOptions say for whom standard output is written.
func (a *app) renderOptions(format string) report.RenderOptions {
	return report.RenderOptions{
		Color: format == "text" && a.colored(a.stdout),
		Width: a.width(a.stdout),
		ASCII: a.asciiOnly(),
	}
}

// writeWhole writes a file whole or not at all.
func writeWhole(path, format string, render func(io.Writer) error) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("writing the %s report: %w", format, err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("writing the %s report: %w", format, err)
	}
	defer os.Remove(f.Name())
	err = render(f)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("writing the %s report: %w", format, err)
	}
	return nil
}
