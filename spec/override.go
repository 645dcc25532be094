package spec

import "slices"

// exclusive are the keys of which a mapping has one: an override that
// brings one of them replaces the others.
var exclusive = map[string][][]string{
	"ready":    {{"http", "tcp", "log", "exec"}},
	"arm":      {{"git", "dir"}},
	"http":     {{"rate", "pacer"}},
	"ws":       {{"size", "message"}},
	"exec":     {{"command", "preset"}},
	"scenario": {{"http", "ws", "exec", "command"}},
}

// removable are the mappings of which a profile removes entries by naming
// them null: the document itself, and mappings of names.
var removable = []string{"", "arms", "scenarios", "hosts", "services", "versions"}

// override lays one node over another: mappings key by key, all else whole.
// what is the kind of mapping, as in exclusive and removable.
func override(base, over *node, what string) *node {
	switch {
	case base == nil || base.kind != mapKind || over.kind != mapKind:
		return over
	case len(over.fields) == 0:
		return base
	}
	removes := func(n *node) bool { return n.isNull() && slices.Contains(removable, what) }
	out := *over // the position of what was written last
	out.fields = nil
	for _, f := range base.fields {
		o := over.get(f.key.text)
		switch {
		case o == nil && !replaced(f.key.text, over, what):
			out.fields = append(out.fields, f)
		case o != nil && !removes(o):
			out.fields = append(out.fields, field{key: over.keyNode(f.key.text), val: override(f.val, o, childOf(what, f.key.text)), merged: f.merged})
		}
	}
	for _, f := range over.fields {
		if base.get(f.key.text) == nil && !removes(f.val) {
			out.fields = append(out.fields, f)
		}
	}
	return &out
}

// replaced reports whether an override brings a key that excludes this one.
func replaced(key string, over *node, what string) bool {
	for _, group := range exclusive[what] {
		if !slices.Contains(group, key) {
			continue
		}
		for _, k := range group {
			if n := over.get(k); k != key && n != nil && !n.isNull() {
				return true
			}
		}
	}
	return false
}

// childOf names the kind of mapping under a key.
func childOf(what, key string) string {
	switch what {
	case "arms":
		return "arm"
	case "scenarios":
		return "scenario"
	}
	switch key {
	case "defaults":
		return "scenario"
	case "build", "setup", "body", "judge":
		return "" // replaced whole
	}
	return key
}
