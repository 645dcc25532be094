package spec

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// requestRefs is what the requests of an HTTP scenario may refer to besides
// what every scenario knows: ${vars.NAME}, and ${data.COLUMN}, which is
// another value for each request.
type requestRefs struct {
	vars    map[string]Template
	hasData bool
	columns []string // of the data file; nil where it could not be read
}

// knownRequestRef checks ${vars.NAME} and ${data.COLUMN}. known is false for
// other names.
func (d *decoder) knownRequestRef(p part, sc *scope, fail failFunc) (known, ok bool) {
	if sc != scopeScenario && sc != scopeTool {
		return false, false
	}
	if name, isVar := strings.CutPrefix(p.name, "vars."); isVar {
		if _, ok := d.request.vars[name]; ok || d.dry {
			return true, true
		}
		names := make([]string, 0, len(d.request.vars))
		for n := range d.request.vars {
			names = append(names, n)
		}
		slices.Sort(names)
		return true, fail(refHint("vars", name, names, "add vars: { "+name+": VALUE } to the http"), "%s: there is no variable %q", p.text, name)
	}
	column, isData := strings.CutPrefix(p.name, "data.")
	switch {
	case !isData:
		return false, false
	case d.dry:
		return true, true
	case !d.request.hasData:
		return true, fail("name the file: data: users.csv", "%s: the scenario has no data file", p.text)
	case d.request.columns == nil || slices.Contains(d.request.columns, column):
		return true, true
	}
	return true, fail(refHint("data", column, d.request.columns, ""), "%s: the data file has no column %q", p.text, column)
}

func refHint(prefix, name string, names []string, none string) string {
	if near := Nearest(name, names); near != "" {
		return fmt.Sprintf("did you mean ${%s.%s}?", prefix, near)
	}
	if len(names) == 0 {
		return none
	}
	return fmt.Sprintf("there are %s", keyList(names, 8))
}

// maxDataHead is how much of a data file is read for its columns.
const maxDataHead = 64 << 10

// dataColumns are the columns of a CSV file or the fields of the first line
// of a JSON-lines file; nil where they cannot be told.
func (d *decoder) dataColumns(v value, path string) []string {
	info, err := d.o.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, maxDataHead))
	if err != nil {
		return nil
	}
	head = bytes.TrimPrefix(head, []byte(bom))
	var columns []string
	if ext := filepath.Ext(path); ext == ".json" || ext == ".jsonl" || ext == ".ndjson" {
		columns, err = jsonColumns(head)
	} else {
		columns, err = csv.NewReader(bytes.NewReader(head)).Read()
	}
	if err != nil || len(columns) == 0 {
		d.errorOn(v.node, kindPath, fmt.Sprintf("data: cannot read the columns of %s: %v", quote(v.text), err), "a CSV file names its columns in the first line; a JSON-lines file has an object in each")
		return nil
	}
	return columns
}

func jsonColumns(head []byte) ([]string, error) {
	line, _, _ := bytes.Cut(head, []byte("\n"))
	var first map[string]any
	if err := json.Unmarshal(line, &first); err != nil {
		return nil, err
	}
	columns := make([]string, 0, len(first))
	for name := range first {
		columns = append(columns, name)
	}
	slices.Sort(columns)
	return columns, nil
}
