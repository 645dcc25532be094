package report

import _ "embed"

//go:embed result.schema.json
var resultSchema string

// ResultSchema is the JSON Schema of result.json.
func ResultSchema() string { return resultSchema }
