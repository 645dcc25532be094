package spec

import (
	"regexp"
	"strings"
)

// trap is a slip that people make in an expression, looked for before it is
// parsed, since the parser's own message would not name it.
type trap struct {
	re   *regexp.Regexp
	msg  string // %s stands for what was found
	hint func(found []string) string
}

func fixed(s string) func([]string) string { return func([]string) string { return s } }

var exprTraps = []trap{
	{regexp.MustCompile(`([0-9.]+)\s*%`), "%s is not a number here", func(m []string) string {
		f, _ := percent(m[1] + "%")
		return "write " + f + " for " + m[0]
	}},
	{regexp.MustCompile(`\b([0-9]+(?:\.[0-9]+)?)\s*(ns|us|µs|ms|s|m|h|min|sec)\b`), "%s has a unit; expressions have base units", func(m []string) string {
		return "times are in seconds: write " + inSeconds(m[1], m[2])
	}},
	{regexp.MustCompile(`\b([0-9]+(?:\.[0-9]+)?)\s*(B|kB|KB|KiB|MB|MiB|GB|GiB)\b`), "%s has a unit; expressions have base units", func(m []string) string {
		return "sizes are in bytes: write " + inBytes(m[1], m[2])
	}},
	{regexp.MustCompile(`≤|⩽`), "%s is not an operator", fixed("write <=")},
	{regexp.MustCompile(`≥|⩾`), "%s is not an operator", fixed("write >=")},
	{regexp.MustCompile(`≠`), "%s is not an operator", fixed("write !=")},
	{regexp.MustCompile(`[×·]`), "%s is not an operator", fixed("write *")},
	{regexp.MustCompile(`[–−]`), "%s is not an operator", fixed("write -, the plain minus")},
	{regexp.MustCompile(`[“”„‘’]`), "%s is not a quote here", fixed(`write plain quotes: "`)},
	{regexp.MustCompile(`===`), "%s is not an operator", fixed("write ==")},
	{regexp.MustCompile(`!==`), "%s is not an operator", fixed("write !=")},
	{regexp.MustCompile(`<>`), "%s is not an operator", fixed("write !=")},
	{regexp.MustCompile(`=<|=>`), "%s is not an operator", func(m []string) string { return "write " + m[0][1:] + "=" }},
	{regexp.MustCompile(`(?:^|[^=!<>])(=)(?:[^=<>]|$)`), "%s compares nothing", fixed("write ==")},
	{regexp.MustCompile(`(?:^|[^&])(&)(?:[^&]|$)`), "%s is not an operator", fixed("write &&")},
	{regexp.MustCompile(`(?:^|[^|])(\|)(?:[^|]|$)`), "%s is not an operator", fixed("write ||")},
	{regexp.MustCompile(`\b(AND|And)\b`), "%s is not an operator", fixed("write && or and")},
	{regexp.MustCompile(`\b(OR|Or)\b`), "%s is not an operator", fixed("write || or or")},
	{regexp.MustCompile(`\b(NOT|Not)\b`), "%s is not an operator", fixed("write ! or not")},
	{regexp.MustCompile(`\?\?`), "%s is not in this language", fixed("a value that is missing fails the row by itself")},
	{regexp.MustCompile(`\$\{[^}]*\}?`), "%s: an expression has names, not ${...}", fixed("write the name alone, such as matrix.c or head.rps")},
	{regexp.MustCompile(`\b0,[0-9]+`), "%s is not a number", func(m []string) string { return "write " + strings.Replace(m[0], ",", ".", 1) }},
	{regexp.MustCompile(`\b(p[0-9]+)\.([0-9]+)\b`), "%s is not a name", func(m []string) string { return "write " + m[1] + "_" + m[2] }},
}

// traps reports the slips of an expression.
func (c *exprChecker) traps() {
	bare := blankStrings(c.src)
	for _, t := range exprTraps {
		for _, loc := range t.re.FindAllStringSubmatchIndex(bare, -1) {
			groups := make([]string, len(loc)/2)
			for i := range groups {
				if loc[2*i] >= 0 {
					groups[i] = bare[loc[2*i]:loc[2*i+1]]
				}
			}
			from, to := loc[0], loc[1]
			if strings.HasPrefix(t.re.String(), "(?:^|") { // the slip is the group
				from, to = loc[2], loc[3]
			}
			c.problem(from, to-from, t.hint(groups), t.msg, c.src[from:to])
		}
	}
}

// blankStrings replaces what is inside quotes by spaces, byte for byte.
func blankStrings(s string) string {
	out := []byte(s)
	var quote byte
	for i := 0; i < len(out); i++ {
		switch {
		case quote == 0 && (out[i] == '"' || out[i] == '\'' || out[i] == '`'):
			quote = out[i]
		case quote != 0 && out[i] == '\\' && quote != '`' && i+1 < len(out):
			out[i], out[i+1] = ' ', ' '
			i++
		case quote != 0 && out[i] == quote:
			quote = 0
		case quote != 0:
			out[i] = ' '
		}
	}
	return string(out)
}

func inSeconds(num, unit string) string {
	switch unit {
	case "sec":
		unit = "s"
	case "min":
		unit = "m"
	}
	d, err := parseDuration(num + unit)
	if err != nil {
		return num
	}
	return trimFloat(d.Seconds())
}

func inBytes(num, unit string) string {
	n, err := parseSize(num + strings.Replace(unit, "KB", "kB", 1))
	if err != nil {
		return num
	}
	return trimFloat(float64(n))
}
