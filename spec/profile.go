package spec

import (
	"fmt"
	"slices"
	"strings"
)

// profilePass is a second reading of the document with a profile laid over
// it, for what is wrong with the profile.
type profilePass struct {
	name     string
	from, to int  // the lines of the profile
	broken   bool // the document without it has errors
}

// keep reports whether a diagnostic of the pass is about the profile, and
// how it is to be worded. What stands elsewhere is an error only together
// with the profile, and is told only where the document itself has none.
func (p *profilePass) keep(line int, sev Severity, msg string) (string, bool) {
	switch {
	case line >= p.from && line <= p.to:
		return msg, true
	case p.broken || sev == Warning:
		return "", false
	}
	return fmt.Sprintf("under the profile %s: %s", p.name, msg), true
}

const maxProfiles = 32

// profiles lists the profiles of the document.
func (d *decoder) profiles(root *node) []string {
	profiles := root.get("profiles")
	if profiles == nil {
		return nil
	}
	var names []string
	if len(profiles.fields) > maxProfiles {
		d.errorOn(root.keyNode("profiles"), kindLimit, fmt.Sprintf("profiles: at most %d are accepted, found %d", maxProfiles, len(profiles.fields)), "")
		return nil
	}
	d.names(value{profiles, "profiles"}, "a mapping of names to overrides", "write profiles: { quick: { plan: { blocks: 4 } } }", func(name string, key *node, v value) {
		if !d.name(key, "profile", false) {
			return
		}
		m, ok := d.object(v, rootObject)
		if !ok {
			return
		}
		for _, k := range []string{"profiles", "version"} {
			if m.has(k) {
				d.errorOn(m.node.keyNode(k), kindConflict, "a profile cannot change "+k, "")
				ok = false
			}
		}
		if ok {
			names = append(names, name)
		}
	})
	return names
}

// applyProfile lays the chosen profile over the document.
func (d *decoder) applyProfile(root *node, names []string) (*node, bool) {
	if d.o.Profile == "" {
		return root, true
	}
	profiles := root.get("profiles")
	if slices.Contains(names, d.o.Profile) {
		return override(root, profiles.get(d.o.Profile), ""), true
	}
	at, hint := root, "the spec has no profiles"
	if profiles != nil {
		at = root.keyNode("profiles")
	}
	if len(names) > 0 {
		hint = "profiles: " + strings.Join(names, ", ")
	}
	if near := Nearest(d.o.Profile, names); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	if profiles == nil || profiles.get(d.o.Profile) == nil {
		d.errorOn(at, kindUndefined, fmt.Sprintf("there is no profile %q", d.o.Profile), hint)
	}
	return nil, false
}

// checkProfiles reads the document once more for each profile, so that a
// mistake in one is found before somebody asks for it.
func (d *decoder) checkProfiles(root *node, names []string) {
	if d.o.Profile != "" {
		return
	}
	profiles := root.get("profiles")
	for _, name := range names {
		from, to := d.extentOf(root, profiles, name)
		pass := *d
		pass.marks = marks{}
		pass.o.Profile = name
		pass.pass = &profilePass{name: name, from: from, to: to, broken: HasErrors(d.diags)}
		if s := pass.root(override(root, profiles.get(name), "")); s != nil {
			pass.check(s)
		}
		d.diags, d.visited = pass.diags, pass.visited
	}
}

// extentOf is the first and the last line of a profile.
func (d *decoder) extentOf(root, profiles *node, name string) (from, to int) {
	from, to = profiles.keyNode(name).pos.line, len(d.src.lines)
	for _, fields := range [][]field{root.fields, profiles.fields} {
		for _, f := range fields {
			if line := f.key.pos.line; line > from {
				to = min(to, line-1)
			}
		}
	}
	return from, to
}
