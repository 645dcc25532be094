package spec

// Template is a string of the spec that may still hold ${...} references
// which only the run can resolve (${port}, ${url}, ${env.NAME}, ...).
// References to a matrix axis are already resolved.
type Template string

// Vars are the values that a Template may name, without "${" and "}":
// "port", "host", "url", "arm", "copy", "cpu", "window", "connections".
type Vars map[string]string
