package spec

import "strings"

// MatchGlob reports whether a glob matches a whole text. * stands for any
// characters, / included, ? for one, and {a,b} for a or b. Brackets are
// plain characters, since the IDs of scenarios have them: db[c=16].
func MatchGlob(glob, text string) bool {
	for _, g := range braces(glob) {
		if matchStars([]rune(g), []rune(text)) {
			return true
		}
	}
	return false
}

const maxBraces = 256

// braces expands {a,b}; unbalanced braces are plain characters.
func braces(glob string) []string {
	done := []string{""}
	for rest := glob; rest != ""; {
		open := strings.IndexByte(rest, '{')
		size := strings.IndexByte(rest[max(open, 0):], '}')
		if open < 0 || size < 0 {
			return appendEach(done, []string{rest})
		}
		alternatives := strings.Split(rest[open+1:open+size], ",")
		if len(done)*len(alternatives) > maxBraces {
			return appendEach(done, []string{rest})
		}
		done = appendEach(appendEach(done, []string{rest[:open]}), alternatives)
		rest = rest[open+size+1:]
	}
	return done
}

func appendEach(heads, tails []string) []string {
	out := make([]string, 0, len(heads)*len(tails))
	for _, h := range heads {
		for _, t := range tails {
			out = append(out, h+t)
		}
	}
	return out
}

// matchStars matches * and ? in time that is at most the product of the two
// lengths: only the last star is ever tried again.
func matchStars(glob, text []rune) bool {
	g, t, star, mark := 0, 0, -1, 0
	for t < len(text) {
		switch {
		case g < len(glob) && glob[g] == '*':
			star, mark = g, t
			g++
		case g < len(glob) && (glob[g] == '?' || glob[g] == text[t]):
			g, t = g+1, t+1
		case star >= 0:
			mark++
			g, t = star+1, mark
		default:
			return false
		}
	}
	for g < len(glob) && glob[g] == '*' {
		g++
	}
	return g == len(glob)
}

// Selects reports whether the threshold is about the row of a metric and a
// scenario, given the scenario's ID and its name without the matrix point.
func (t Threshold) Selects(metric, id, name string) bool {
	return MatchGlob(t.Metric, metric) && (MatchGlob(t.Scenario, id) || MatchGlob(t.Scenario, name))
}
