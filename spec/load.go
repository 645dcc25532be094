package spec

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// FileName is the name of a spec.
const FileName = "bench.yaml"

// Options says how a spec is read.
type Options struct {
	Profile string // of the spec's profiles; "": none
	Env     Env    // the environment; nil: ${env.NAME} is not checked, and is unset where it is needed at once

	// CPUs are the CPUs that this machine has; empty: pins are not checked
	// against it.
	CPUs []int
	// Stat looks at a file that the spec names; nil: os.Stat.
	Stat func(path string) (fs.FileInfo, error)
	// Resolve checks that an arm's revision can be found; nil: not checked.
	Resolve func(Git) error
	// Power knows what a plan can tell; its zero value checks nothing.
	Power Power
}

// Power answers what a plan can tell. The answers belong to package stats,
// which this one cannot import, so the caller brings them.
type Power struct {
	// MinBlocks is the number of blocks below which no row of the plan can
	// be marked, for an alpha of one candidate; 0: the plan can mark none.
	MinBlocks func(p Plan, alpha float64) int
	// Resolvable is the smallest change (as a fraction) that the plan marks
	// in four of five runs where ratios spread by sd from block to block,
	// in a table of so many judged rows of each candidate.
	Resolvable func(p Plan, sd, alpha float64, rows int) float64
}

// Load reads and checks the spec in a file. The error is non-nil only where
// the file cannot be read; the Spec is nil where any diagnostic is an error.
func Load(path string, o Options) (*Spec, []Diagnostic, error) {
	src, err := readSpec(path)
	if err != nil {
		return nil, nil, err
	}
	s, diags := Parse(path, src, o)
	return s, diags, nil
}

// readSpec reads a regular file, and of a large one no more than shows that
// it is too large.
func readSpec(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("no spec at %s; run tandem init to write one, or name another file with -f", path)
	case err != nil:
		return nil, fmt.Errorf("cannot read the spec: %w", err)
	case info.IsDir():
		return nil, fmt.Errorf("expected a file at %s, found a folder; name the file in it, such as %s", path, filepath.Join(path, FileName))
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("expected a regular file at %s, found %s", path, fileKind(info.Mode()))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the spec: %w", err)
	}
	defer f.Close()
	src, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read the spec: %w", err)
	}
	return src, nil
}

func fileKind(m fs.FileMode) string {
	switch {
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "something else"
}

// Find returns the bench.yaml of a folder or of the nearest one above it.
func Find(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for at := abs; ; at = filepath.Dir(at) {
		path := filepath.Join(at, FileName)
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			return path, nil
		}
		if other := filepath.Join(at, "bench.yml"); at == abs {
			if _, err := os.Stat(other); err == nil {
				return "", fmt.Errorf("found %s, expected the name %s; rename it, or name it with -f", other, FileName)
			}
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("no %s in %s or any folder above it; run tandem init to write one, or name a file with -f", FileName, abs)
		}
	}
}

// Parse reads and checks a spec. name is how diagnostics name it, and the
// folder of name is where the spec's relative paths start. The Spec is nil
// where any diagnostic is an error; otherwise it holds the diagnostics as
// its Warnings.
func Parse(name string, src []byte, o Options) (*Spec, []Diagnostic) {
	dir, err := filepath.Abs(filepath.Dir(name))
	if err != nil {
		dir = filepath.Dir(name)
	}
	if o.Stat == nil {
		o.Stat = os.Stat
	}
	text := string(src)
	d := &decoder{src: newSource(name, text), o: o, dir: dir}
	s := d.decode()
	SortDiagnostics(d.diags)
	if HasErrors(d.diags) || s == nil {
		return nil, d.diags
	}
	s.Path, s.Dir, s.Source, s.Profile = name, dir, text, o.Profile
	s.Digest = digest(text, o.Profile)
	s.Warnings = d.diags
	return s, d.diags
}

// digest identifies a spec as it was read.
func digest(text, profile string) string {
	h := sha256.New()
	fmt.Fprintf(h, "%d\n%s%s", len(text), text, profile)
	return hex.EncodeToString(h.Sum(nil))
}

// decode reads the document into a Spec.
func (d *decoder) decode() *Spec {
	root := d.parseYAML()
	if root == nil {
		return nil
	}
	if root.isNull() {
		d.errorOn(root, kindEmpty, "the file is empty", "run tandem init to write a first bench.yaml")
		return nil
	}
	if root.kind != mapKind {
		d.errorOn(root, kindWrongType, "expected a mapping with version, arms and scenarios, found "+root.describe(), "run tandem init to write a first bench.yaml")
		return nil
	}
	names := d.profiles(root)
	chosen, ok := d.applyProfile(root, names)
	if !ok {
		return nil
	}
	s := d.root(chosen)
	if s != nil {
		d.check(s)
	}
	d.checkProfiles(root, names)
	return s
}
