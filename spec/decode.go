package spec

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// decoder walks the nodes of one spec and collects what it finds wrong.
type decoder struct {
	src   *source
	o     Options
	dir   string // absolute folder of the spec
	diags []Diagnostic
	seen  map[diagKey]bool

	matrix  []Axis // the point of the scenario being decoded
	axes    map[string]bool
	dry     bool // reading defaults, which need not be complete
	request requestRefs
	visited int
	compile compiler
	marks   marks
	pass    *profilePass // nil in the reading that makes the Spec
}

// diagKey identifies a diagnostic, so that a node that is read twice (by an
// alias, or for each point of a matrix) is reported once.
type diagKey struct {
	pos     pos
	kind    string
	message string
}

const maxDiagnostics = 200

func (d *decoder) report(p pos, width int, sev Severity, kind, msg, hint string) {
	p = d.src.clamp(p)
	if d.pass != nil {
		var keep bool
		if msg, keep = d.pass.keep(p.line, sev, msg); !keep {
			return
		}
	}
	key := diagKey{p, kind, msg}
	if d.seen[key] || len(d.diags) >= maxDiagnostics {
		return
	}
	if d.seen == nil {
		d.seen = map[diagKey]bool{}
	}
	d.seen[key] = true
	text := d.src.line(p.line)
	d.diags = append(d.diags, Diagnostic{
		File: d.src.name, Line: p.line, Column: p.col, EndColumn: endColumn(text, p.col, width),
		Severity: sev, Message: msg, Hint: hint, Kind: kind, Text: text,
	})
}

// endColumn keeps a mark of some width on its line.
func endColumn(text string, col, width int) int {
	return max(col+1, min(col+width, utf8.RuneCountInString(text)+1))
}

func (d *decoder) errorAt(p pos, width int, kind, msg, hint string) {
	d.report(p, width, Error, kind, msg, hint)
}

func (d *decoder) errorOn(n *node, kind, msg, hint string) {
	d.report(n.pos, d.width(n), Error, kind, msg, hint)
}

func (d *decoder) warnOn(n *node, kind, msg, hint string) {
	d.report(n.pos, d.width(n), Warning, kind, msg, hint)
}

// width is how many runes of its first line a node takes, for the mark
// under it.
func (d *decoder) width(n *node) int {
	if n.kind != scalarKind || n.style == literalStyle || n.style == foldedStyle {
		return 1
	}
	w := utf8.RuneCountInString(n.text)
	if n.style != plainStyle {
		w += 2
	}
	return max(1, w)
}

// value is a node and the key that messages name it by.
type value struct {
	*node
	key string
}

func (d *decoder) typeError(v value, want, hint string) {
	if v.isNull() {
		d.nullError(v, want, hint)
		return
	}
	d.errorOn(v.node, kindWrongType, fmt.Sprintf("%s: expected %s, found %s", v.key, want, v.describe()), hint)
}

func (d *decoder) nullError(v value, want, hint string) {
	if hint == "" {
		hint = "give it a value, or remove the key"
	}
	d.errorOn(v.node, kindEmpty, fmt.Sprintf("%s: expected %s, found nothing", v.key, want), hint)
}

// object describes a mapping whose keys are fixed.
type object struct {
	name string   // how messages name it: "plan"
	keys []string // in the order in which they are documented
}

// mapping is a mapping that was checked against its object.
type mapping struct {
	d *decoder
	value
	object *object
	meant  map[string]bool // known keys that unknown ones were taken for
}

// object checks that a value is a mapping with known keys. The mapping is
// usable where ok, even if some keys are unknown.
func (d *decoder) object(v value, o *object) (m mapping, ok bool) {
	m = mapping{d: d, value: v, object: o, meant: map[string]bool{}}
	if v.kind != mapKind {
		d.typeError(v, "a mapping ("+keyList(o.keys, 4)+")", objectHint(v, o))
		return m, false
	}
	if !d.visit(v.node, len(v.fields)) {
		return m, false
	}
	for _, f := range v.fields {
		if !slices.Contains(o.keys, f.key.text) && !strings.HasPrefix(f.key.text, "x-") {
			d.unknownKey(f, m)
		}
	}
	return m, true
}

// visit counts what is walked, since aliases let a small file hold a lot.
func (d *decoder) visit(n *node, count int) bool {
	if len(d.diags) >= maxDiagnostics {
		return false // nobody reads on
	}
	d.visited += count + 1
	if d.visited > maxVisited {
		d.errorOn(n, kindLimit, fmt.Sprintf("aliases and matrices expand this spec to more than %d entries", maxVisited), "")
		return false
	}
	return true
}

func keyList(keys []string, most int) string {
	if len(keys) > most {
		return strings.Join(keys[:most], ", ") + ", ..."
	}
	return strings.Join(keys, ", ")
}

// get returns a key's value, if the key is there.
func (m mapping) get(key string) (value, bool) {
	if n := m.node.get(key); n != nil {
		return value{n, key}, true
	}
	return value{}, false
}

// has reports whether a key is there.
func (m mapping) has(key string) bool { return m.node.get(key) != nil }

// on calls f with a key's value, if the key is there.
func (m mapping) on(key string, f func(value)) {
	if v, ok := m.get(key); ok {
		f(v)
	}
}

// require reports a key that is not there.
func (m mapping) require(key, hint string) bool {
	if m.has(key) || m.d.dry {
		return true
	}
	if !m.meant[key] {
		m.d.errorOn(m.node, kindMissingKey, fmt.Sprintf("%sthe key %q is missing", m.what(), key), hint)
	}
	return false
}

// what names the mapping at the start of messages: "arm base: ", or nothing
// for the document.
func (m mapping) what() string {
	switch m.key {
	case "":
		return ""
	case m.object.name:
		return m.object.name + ": "
	}
	return m.object.name + " " + m.key + ": "
}

// one reports keys that exclude each other, and returns the one that is
// there ("" for none).
func (m mapping) one(keys ...string) string {
	found := ""
	for _, f := range m.fields {
		if !slices.Contains(keys, f.key.text) {
			continue
		}
		if found != "" {
			m.d.errorOn(f.key, kindConflict, fmt.Sprintf("%s%q and %q exclude each other", m.what(), found, f.key.text), "keep one of them")
			return found
		}
		found = f.key.text
	}
	return found
}

// names walks a mapping whose keys are names that the user chose.
func (d *decoder) names(v value, want, hint string, f func(name string, key *node, val value)) {
	if v.kind != mapKind {
		d.typeError(v, want, hint)
		return
	}
	if len(v.fields) == 0 {
		d.errorOn(v.node, kindEmpty, v.key+": expected "+want+", found an empty mapping", hint)
		return
	}
	if !d.visit(v.node, len(v.fields)) {
		return
	}
	for _, fl := range v.fields {
		if len(d.diags) >= maxDiagnostics {
			return
		}
		f(fl.key.text, fl.key, value{fl.val, fl.key.text})
	}
}

// list walks a list, which must have an entry.
func (d *decoder) list(v value, want, hint string, f func(item value)) {
	if v.kind != seqKind {
		d.typeError(v, want, hint)
		return
	}
	if len(v.items) == 0 {
		d.errorOn(v.node, kindEmpty, v.key+": expected "+want+", found an empty list", hint)
		return
	}
	if !d.visit(v.node, len(v.items)) {
		return
	}
	for _, it := range v.items {
		if len(d.diags) >= maxDiagnostics {
			return
		}
		f(value{it, v.key})
	}
}

// name checks a name that the user chose, by the rule for names.
func (d *decoder) name(n *node, what string, slash bool) bool {
	msg := nameProblem(n.text, slash)
	if msg == "" {
		return true
	}
	allowed := "letters, digits and . _ -"
	if slash {
		allowed = "letters, digits and . _ / -"
	}
	d.errorOn(n, kindName, fmt.Sprintf("%s %s: %s", what, quote(n.text), msg), "names have "+allowed+", start with a letter or digit, and are at most 64 long")
	return false
}

const maxName = 64

func nameProblem(s string, slash bool) string {
	if s == "" {
		return "a name must not be empty"
	}
	if n := utf8.RuneCountInString(s); n > maxName {
		return fmt.Sprintf("a name has at most %d characters, this has %d", maxName, n)
	}
	for i, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		switch {
		case letter:
		case i == 0:
			return fmt.Sprintf("a name must not start with %q", r)
		case r == '/' && slash, r == '.', r == '_', r == '-':
		default:
			return fmt.Sprintf("a name must not have %q in it", r)
		}
	}
	for seg := range strings.SplitSeq(s, "/") {
		if seg == "" || seg == "." || seg == ".." {
			return fmt.Sprintf("%q is not allowed between slashes", seg)
		}
	}
	return ""
}
