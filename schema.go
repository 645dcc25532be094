// Package tandem holds what the repository's root has: the JSON Schema of
// bench.yaml, which tandem schema prints and editors read.
package tandem

import _ "embed"

// Schema is the JSON Schema (2020-12) of a bench.yaml. It accepts the same
// files as package spec, as far as a schema can tell.
//
//go:embed schema.json
var Schema []byte
