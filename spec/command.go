package spec

import (
	"fmt"
	"strings"
)

// Command is either a line for sh -c or an argument vector run directly.
type Command struct {
	Shell Template   `json:"shell,omitempty"`
	Argv  []Template `json:"argv,omitempty"`
}

// Resolve expands the command into an argument vector: sh -c with the line
// for a shell command, the arguments one by one otherwise.
func (c Command) Resolve(v Vars, env Env) ([]string, error) {
	if c.Shell != "" {
		line, err := c.Shell.Expand(v, env)
		if err != nil {
			return nil, err
		}
		return []string{"sh", "-c", line}, nil
	}
	argv := make([]string, len(c.Argv))
	for i, a := range c.Argv {
		s, err := a.Expand(v, env)
		if err != nil {
			return nil, err
		}
		argv[i] = s
	}
	if len(argv) == 0 || argv[0] == "" {
		return nil, fmt.Errorf("the command %s names no program", c)
	}
	return argv, nil
}

// String is the command as the user wrote it, for logs: the line, or the
// arguments quoted for a shell where they need it.
func (c Command) String() string {
	if c.Shell != "" || len(c.Argv) == 0 {
		return string(c.Shell)
	}
	words := make([]string, len(c.Argv))
	for i, a := range c.Argv {
		words[i] = shellQuote(string(a))
	}
	return strings.Join(words, " ")
}

// IsZero reports whether there is no command at all.
func (c Command) IsZero() bool { return c.Shell == "" && len(c.Argv) == 0 }

func shellQuote(s string) string {
	if s != "" && strings.IndexFunc(s, func(r rune) bool {
		return !refRune(r) && !strings.ContainsRune("/${}=:,@%+", r)
	}) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
