package spec

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestExpand(t *testing.T) {
	vars := Vars{"port": "8080", "url": "http://127.0.0.1:8080", "services.db.port": "5432", "data.id": "7"}
	env := func(name string) (string, bool) {
		v, ok := map[string]string{"HOME": "/root", "EMPTY": ""}[name]
		return v, ok
	}
	for in, want := range map[string]string{
		"":                            "",
		"plain":                       "plain",
		"$port $$ ${port}":            "$port $$ 8080",
		"${port}${port}":              "80808080",
		"-p ${port} -u ${url}/x":      "-p 8080 -u http://127.0.0.1:8080/x",
		"$${port}":                    "${port}",
		"$${port} ${port}":            "${port} 8080",
		"${services.db.port}":         "5432",
		"/${data.id}":                 "/7",
		"${env.HOME}":                 "/root",
		"${env.HOME:-x}":              "/root",
		"${env.NONE:-a b}":            "a b",
		"${env.EMPTY:-a:-b}":          "a:-b",
		"${env.EMPTY}":                "",
		"${env.NONE:-}":               "",
		"größe ${port} 日本":            "größe 8080 日本",
		"{port} }${port}{":            "{port} }8080{",
		"${env.NONE:?x}":              "error: the environment variable NONE is not set: x",
		"${env.EMPTY:?no key}":        "error: the environment variable EMPTY is not set: no key",
		"${env.NONE}":                 "error: the environment variable NONE is not set",
		"${nope}":                     "error: ${nope} is not known here",
		"${matrix.c}":                 "error: ${matrix.c} is not known here",
		"${":                          "error: ${ has no closing }",
		"${}":                         "error: ${} names nothing",
		"${ port }":                   "error: spaces are not allowed",
		"${port:-1}":                  "error: only ${env.NAME} takes a default",
		"${a b}":                      "error: ' ' is not allowed",
		"${env.A:-${env.B}}":          "error: references do not nest",
		"${port/2}":                   "error: '/' is not allowed",
		"x ${env.NONE:-y} ${nope} ${": "error: ${ has no closing }",
	} {
		got, err := Template(in).Expand(vars, env)
		if wantErr, isErr := strings.CutPrefix(want, "error: "); isErr {
			if err == nil || !strings.Contains(err.Error(), wantErr) {
				t.Errorf("%q: got %q, %v, want an error with %q", in, got, err, wantErr)
			}
		} else if err != nil || got != want {
			t.Errorf("%q: got %q, %v, want %q", in, got, err, want)
		}
	}
}

// TestExpandNamesNoValue demands that an error never shows a secret.
func TestExpandNamesNoValue(t *testing.T) {
	env := func(string) (string, bool) { return "hunter2", true }
	_, err := Template("${env.TOKEN} ${nope}").Expand(nil, env)
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
}

func TestEscapeTemplate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOf(rapid.SampledFrom([]rune("ab$${}{port} é"))).Draw(t, "s")
		got, err := Template(escapeTemplate(s)).Expand(nil, nil)
		if err != nil || got != s {
			t.Fatalf("%q escapes to %q, which expands to %q, %v", s, escapeTemplate(s), got, err)
		}
	})
}

func TestCommand(t *testing.T) {
	vars := Vars{"port": "80"}
	for _, c := range []struct {
		in   Command
		argv []string
		text string
	}{
		{Command{Shell: "./s -p ${port} | cat"}, []string{"sh", "-c", "./s -p 80 | cat"}, "./s -p ${port} | cat"},
		{Command{Argv: []Template{"./s", "-p", "${port}", "a b", ""}}, []string{"./s", "-p", "80", "a b", ""}, "./s -p ${port} 'a b' ''"},
		{Command{Argv: []Template{"it's", "$HOME", "a;b"}}, []string{"it's", "$HOME", "a;b"}, `'it'\''s' $HOME 'a;b'`},
	} {
		argv, err := c.in.Resolve(vars, nil)
		if err != nil || !slices.Equal(argv, c.argv) || c.in.String() != c.text {
			t.Errorf("got %q (%v), %q", argv, err, c.in.String())
		}
	}
	for _, c := range []Command{{}, {Argv: []Template{""}}, {Argv: []Template{"${nope}"}}, {Shell: "${nope}"}} {
		if argv, err := c.Resolve(vars, nil); err == nil {
			t.Errorf("%v resolves to %q", c, argv)
		}
	}
}

func TestMatchGlob(t *testing.T) {
	for _, c := range []struct {
		glob, text string
		want       bool
	}{
		{"*", "", true}, {"*", "a/b", true}, {"a/*", "a/b/c", true}, {"a/*", "a", false}, {"?", "é", true}, {"??", "é", false}, {"", "", true}, {"", "a", false},
		{"db[c=16]", "db[c=16]", true}, {"db[c=16]", "dbc", false}, {"db[*]", "db[c=16,s=1]", true}, {"*[c=1*", "db[c=16]", true},
		{"latency.{p50,p99}", "latency.p99", true}, {"latency.{p50,p99}", "latency.p9", false}, {"{a,b}{1,2}", "b1", true}, {"{a,b}{1,2}", "ab", false}, {"{a,}x", "x", true},
		{"{a", "{a", true}, {"a}", "a}", true}, {"}{", "}{", true}, {"{}", "", true}, {"*a*b*c*", "xxaxxbxxcxx", true}, {"*a*b*c*", "xxaxxcxxbxx", false}, {"latency.*", "latency", false},
	} {
		if got := MatchGlob(c.glob, c.text); got != c.want {
			t.Errorf("%q on %q: got %v", c.glob, c.text, got)
		}
	}
	th := Threshold{Metric: "rps", Scenario: "db"}
	if !th.Selects("rps", "db[c=16]", "db") || th.Selects("busy", "db", "db") || th.Selects("rps", "dbx", "dbx") {
		t.Error("a threshold selects by metric, and by ID or name")
	}
}

// TestMatchGlobAgrees compares with a plain recursive matcher.
func TestMatchGlobAgrees(t *testing.T) {
	var slow func(g, s []rune) bool
	slow = func(g, s []rune) bool {
		switch {
		case len(g) == 0:
			return len(s) == 0
		case g[0] == '*':
			return slow(g[1:], s) || len(s) > 0 && slow(g, s[1:])
		}
		return len(s) > 0 && (g[0] == '?' || g[0] == s[0]) && slow(g[1:], s[1:])
	}
	rapid.Check(t, func(t *rapid.T) {
		g := rapid.StringOfN(rapid.SampledFrom([]rune("ab*?é")), 0, 8, -1).Draw(t, "glob")
		s := rapid.StringOfN(rapid.SampledFrom([]rune("abé")), 0, 8, -1).Draw(t, "text")
		if got, want := MatchGlob(g, s), slow([]rune(g), []rune(s)); got != want {
			t.Fatalf("%q on %q: got %v, want %v", g, s, got, want)
		}
	})
}
