package spec

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

// abs makes a path of the spec absolute.
func (d *decoder) abs(p string) string {
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(d.dir, p)
}

// repository is the folder of the repository that the spec is in, or the
// spec's own folder where it is in none.
func (d *decoder) repository() string {
	for at := d.dir; ; at = filepath.Dir(at) {
		if _, err := d.o.Stat(filepath.Join(at, ".git")); err == nil {
			return at
		}
		if at == filepath.Dir(at) {
			return d.dir
		}
	}
}

// folder reads the path of a folder that must exist.
func (d *decoder) folder(v value, p string) string {
	abs := d.abs(p)
	info, err := d.o.Stat(abs)
	switch {
	case err != nil:
		d.errorOn(v.node, kindPath, fmt.Sprintf("%s: there is no folder %s", v.key, quote(p)), "paths start at the folder of the spec")
	case !info.IsDir():
		d.errorOn(v.node, kindPath, fmt.Sprintf("%s: expected a folder, found the file %s", v.key, quote(p)), "")
	}
	return abs
}

func (d *decoder) isFolder(path string) bool {
	info, err := d.o.Stat(path)
	return err == nil && info.IsDir()
}

// file reads the path of a file that must exist.
func (d *decoder) file(v value, what string) string {
	p, ok := d.str(v, what)
	if !ok {
		return ""
	}
	abs := d.abs(p)
	info, err := d.o.Stat(abs)
	switch {
	case err != nil:
		d.errorOn(v.node, kindPath, fmt.Sprintf("%s: there is no file %s", v.key, quote(p)), "paths start at the folder of the spec")
	case info.IsDir():
		d.errorOn(v.node, kindPath, fmt.Sprintf("%s: expected a file, found the folder %s", v.key, quote(p)), "")
	case !within(d.repository(), abs):
		d.warnOn(v.node, kindPath, fmt.Sprintf("%s: %s is outside the repository", v.key, quote(p)), "another machine may not have it")
	}
	return abs
}

// outputPath checks the path of a file that a run writes.
func (d *decoder) outputPath(n *node, key, p string) {
	if !within(d.repository(), d.abs(p)) {
		d.errorOn(n, kindPath, fmt.Sprintf("%s: %s is outside the repository", key, quote(p)), "reports are written below it; tandem report -o writes anywhere")
	}
}

func within(root, p string) bool {
	rel, err := filepath.Rel(root, p)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// regex reads a regular expression.
func (d *decoder) regex(v value) string {
	s, ok := d.str(v, "a regular expression")
	if !ok {
		return ""
	}
	if _, err := regexp.Compile(s); err != nil {
		msg := strings.TrimPrefix(err.Error(), "error parsing regexp: ")
		d.errorOn(v.node, kindBadValue, fmt.Sprintf("%s: not a regular expression: %s", v.key, msg), "the syntax is RE2; single quotes keep backslashes as they are")
		return ""
	}
	return s
}
