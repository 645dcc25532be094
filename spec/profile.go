package spec

import (
	"fmt"
	"slices"
	"strings"
)

// applyProfile lays the chosen profile over the document.
func (d *decoder) applyProfile(root *node) (*node, bool) {
	if root.kind != mapKind {
		d.errorOn(root, kindWrongType, "expected a mapping with version, arms and scenarios, found "+root.describe(), "run tandem init to write a first bench.yaml")
		return nil, false
	}
	profiles := root.get("profiles")
	var names []string
	if profiles != nil {
		d.names(value{profiles, "profiles"}, "a mapping of names to overrides", "write profiles: { quick: { plan: { blocks: 4 } } }", func(name string, key *node, v value) {
			names = append(names, name)
			d.name(key, "profile", false)
			d.checkProfile(v)
		})
	}
	if d.o.Profile == "" {
		return root, true
	}
	if !slices.Contains(names, d.o.Profile) {
		hint := "the spec has no profiles"
		if len(names) > 0 {
			hint = "profiles: " + strings.Join(names, ", ")
		}
		if near := nearest(d.o.Profile, names); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		at := root
		if k := root.keyNode("profiles"); k != nil {
			at = k
		}
		d.errorOn(at, kindUndefined, fmt.Sprintf("there is no profile %q", d.o.Profile), hint)
		return nil, false
	}
	p := profiles.get(d.o.Profile)
	if p.kind != mapKind {
		return nil, false
	}
	return override(root, p, ""), true
}

// checkProfile checks the keys of a profile, chosen or not.
func (d *decoder) checkProfile(v value) {
	m, ok := d.object(v, rootObject)
	if !ok {
		return
	}
	for _, key := range []string{"profiles", "version"} {
		if m.has(key) {
			d.errorOn(m.node.keyNode(key), kindConflict, "a profile cannot change "+key, "")
		}
	}
}
