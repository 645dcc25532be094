package load

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/tandem-bench/tandem/spec"
)

// Bounds of the requests that are made from a data file.
const (
	maxVariants = 100_000 // requests, rendered beforehand so that none is while they are sent
	maxChecked  = 100     // of them that the check sends; the answers to the others are held to status or expression
)

// row is a line of a data file by the names of its columns.
type row map[string]string

// readData reads a scenario's data file: CSV whose first line names the
// columns, or JSON lines of one object each (.jsonl, .ndjson, .json).
func readData(path string) ([]row, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("data of the scenario: %w", err)
	}
	var rows []row
	switch filepath.Ext(path) {
	case ".jsonl", ".ndjson", ".json":
		rows, err = jsonRows(b)
	default:
		rows, err = csvRows(b)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("data of the scenario: %s: %w", path, err)
	case len(rows) == 0:
		return nil, fmt.Errorf("data of the scenario: %s has no rows", path)
	}
	return rows, nil
}

// csvRows reads CSV with a line of names.
func csvRows(b []byte) ([]row, error) {
	r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))))
	names, err := r.Read()
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var rows []row
	for {
		fields, err := r.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
		one := row{}
		for i, name := range names {
			one[name] = fields[i]
		}
		rows = append(rows, one)
	}
}

// jsonRows reads one object a line. Strings are taken as they are; other
// values as JSON writes them.
func jsonRows(b []byte) ([]row, error) {
	var rows []row
	lines := bufio.NewScanner(bytes.NewReader(b))
	lines.Buffer(nil, len(b)+1)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var object map[string]json.RawMessage
		if err := json.Unmarshal(lines.Bytes(), &object); err != nil {
			return nil, fmt.Errorf("line %d: expected an object: %w", n, err)
		}
		one := row{}
		for name, value := range object {
			text := string(value)
			if len(value) > 0 && value[0] == '"' {
				if err := json.Unmarshal(value, &text); err != nil {
					return nil, fmt.Errorf("line %d: %s: %w", n, name, err)
				}
			}
			one[name] = text
		}
		rows = append(rows, one)
	}
	return rows, lines.Err()
}

// values are the variables of a scenario's templates: those of the target,
// ${vars.NAME} and ${data.COLUMN}.
func values(h *spec.HTTP, target spec.Vars, data row, env spec.Env) (spec.Vars, error) {
	if len(h.Vars) == 0 && len(data) == 0 {
		return target, nil
	}
	all := spec.Vars{}
	for name, value := range target {
		all[name] = value
	}
	for name, t := range h.Vars {
		value, err := t.Expand(target, env)
		if err != nil {
			return nil, fmt.Errorf("vars.%s: %w", name, err)
		}
		all["vars."+name] = value
	}
	for name, value := range data {
		all["data."+name] = value
	}
	return all, nil
}
