package spec

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Template is a string of the spec that may still hold ${...} references
// which only the run can resolve (${port}, ${url}, ${env.NAME}, ...).
// References to a matrix axis are already resolved.
type Template string

// Vars are the values that a Template may name, without "${" and "}":
// "port", "host", "url", "arm", "copy", "cpu", "window", "connections",
// and "services.NAME.port", "services.NAME.host" and "services.NAME.url"
// for each service.
type Vars map[string]string

// Env looks up an environment variable, as os.LookupEnv does.
type Env func(name string) (string, bool)

// Expand replaces every reference of the template: ${env.NAME} from env,
// all others from v. $${ becomes a literal ${. It fails where a reference
// cannot be parsed, names nothing, or is ${env.NAME:?message} without a
// value; the error names the reference, never a value.
func (t Template) Expand(v Vars, env Env) (string, error) {
	if !strings.Contains(string(t), "${") {
		return string(t), nil
	}
	parts, err := parseTemplate(string(t))
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, p := range parts {
		if p.name == "" {
			b.WriteString(p.text)
			continue
		}
		s, err := p.resolve(v, env)
		if err != nil {
			return "", err
		}
		b.WriteString(s)
	}
	return b.String(), nil
}

// Refs returns the names that the template refers to, in order:
// "port", "env.NAME". It returns nothing for a template that is malformed.
func (t Template) Refs() []string {
	parts, err := parseTemplate(string(t))
	if err != nil {
		return nil
	}
	var names []string
	for _, p := range parts {
		if p.name != "" {
			names = append(names, p.name)
		}
	}
	return names
}

// part is a piece of a template: literal text, or a reference.
type part struct {
	text string // of a literal, unescaped; of a reference, as it was written
	name string // "" for a literal
	op   string // "", ":-" or ":?"
	arg  string // what follows op
	at   int    // byte offset in the template
}

// envName is the variable that a reference to the environment names.
func (p part) envName() (string, bool) { return strings.CutPrefix(p.name, "env.") }

func (p part) resolve(v Vars, env Env) (string, error) {
	name, isEnv := p.envName()
	if !isEnv {
		s, ok := v[p.name]
		if !ok {
			return "", fmt.Errorf("%s is not known here", p.text)
		}
		return s, nil
	}
	var s string
	var ok bool
	if env != nil {
		s, ok = env(name)
	}
	switch {
	case p.op == ":-" && s == "":
		return p.arg, nil
	case p.op == ":?" && s == "":
		return "", fmt.Errorf("the environment variable %s is not set: %s", name, p.arg)
	case !ok:
		return "", fmt.Errorf("the environment variable %s is not set; set it, or write ${env.%s:-DEFAULT}", name, name)
	}
	return s, nil
}

// templateError is a malformed reference.
type templateError struct {
	at   int // byte offset in the template
	size int // bytes
	msg  string
	hint string
}

func (e *templateError) Error() string { return e.msg }

// parseTemplate splits a template into literals and references.
func parseTemplate(s string) ([]part, error) {
	var parts []part
	var lit strings.Builder
	flush := func() {
		if lit.Len() > 0 {
			parts = append(parts, part{text: lit.String()})
			lit.Reset()
		}
	}
	for i := 0; i < len(s); {
		next := strings.Index(s[i:], "${")
		if next < 0 {
			lit.WriteString(s[i:])
			break
		}
		at := i + next
		if at > i && s[at-1] == '$' { // $${ is a literal ${
			lit.WriteString(s[i : at-1])
			lit.WriteString("${")
			i = at + 2
			continue
		}
		lit.WriteString(s[i:at])
		p, size, err := parseRef(s[at:])
		if err != nil {
			err.at += at
			return nil, err
		}
		flush()
		p.at = at
		parts = append(parts, p)
		i = at + size
	}
	flush()
	return parts, nil
}

// parseRef parses the reference that s starts with.
func parseRef(s string) (part, int, *templateError) {
	end := strings.IndexByte(s, '}')
	if end < 0 {
		return part{}, 0, &templateError{size: 2, msg: "${ has no closing }", hint: "write $${ for a literal ${"}
	}
	body := s[2:end]
	p := part{text: s[:end+1], name: body}
	if i := strings.Index(body, ":"); i >= 0 && i+1 < len(body) && (body[i+1] == '-' || body[i+1] == '?') {
		p.name, p.op, p.arg = body[:i], body[i:i+2], body[i+2:]
	}
	fail := func(hint, format string, args ...any) (part, int, *templateError) {
		return part{}, 0, &templateError{size: end + 1, msg: fmt.Sprintf(format, args...), hint: hint}
	}
	if p.name == "" {
		return fail("write $${ for a literal ${", "${} names nothing")
	}
	if trimmed := strings.TrimSpace(p.name); trimmed != p.name {
		return fail("write ${"+trimmed+"}", "spaces are not allowed in %s", p.text)
	}
	for _, r := range p.name {
		if !refRune(r) {
			return fail("write $${ for a literal ${", "%q is not allowed in %s", r, p.text)
		}
	}
	if p.op != "" && !strings.HasPrefix(p.name, "env.") {
		return fail("", "only ${env.NAME} takes a default, found %s", p.text)
	}
	if strings.Contains(p.arg, "${") {
		return fail("", "references do not nest, found %s", p.text)
	}
	return p, end + 1, nil
}

func refRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-'
}

// escapeTemplate makes text a template that expands to it.
func escapeTemplate(s string) string { return strings.ReplaceAll(s, "${", "$${") }

func runes(s string) int { return utf8.RuneCountInString(s) }
