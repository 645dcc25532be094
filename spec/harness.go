package spec

import (
	"path/filepath"
	"slices"
	"strings"
)

// Harness lists the files that the spec measures by, beside itself: bodies,
// data, certificates and input, and what the commands of load tools, services
// and hooks name. The program under test is not among them: what a build, a
// server or a measured command runs is what a change is meant to change.
//
// Paths are relative where the spec writes them so: to its own folder, or to
// the top of an arm's tree. A word that only looks like a path may be among
// them.
func (s *Spec) Harness() []string {
	h := harness{dir: s.Dir}
	for _, part := range []Part{RunPart, BlockPart, ScenarioPart, WindowPart} {
		h.steps(s.Before.Of(part))
		h.steps(s.After.Of(part))
	}
	for _, sc := range s.Scenarios {
		h.steps(sc.Before)
		h.steps(sc.After)
		for _, v := range sc.Verify {
			h.step(v.Run)
		}
		switch {
		case sc.HTTP != nil:
			h.file(sc.HTTP.BodyFile)
			h.file(sc.HTTP.Data)
			if sc.HTTP.TLS != nil {
				h.file(sc.HTTP.TLS.CA)
			}
		case sc.WS != nil && sc.WS.TLS != nil:
			h.file(sc.WS.TLS.CA)
		case sc.Exec != nil:
			h.command(sc.Exec.Command)
		case sc.Command != nil:
			h.file(sc.Command.Stdin)
			h.step(sc.Command.Prepare)
			h.step(sc.Command.Cleanup)
		}
	}
	h.services(s.Services)
	for _, a := range s.Arms {
		h.services(a.Services)
	}
	slices.Sort(h.paths)
	return slices.Compact(h.paths)
}

type harness struct {
	dir   string
	paths []string
}

// file adds a path that the spec names as one.
func (h *harness) file(path string) {
	if path == "" {
		return
	}
	if rel, err := filepath.Rel(h.dir, path); err == nil && filepath.IsAbs(path) {
		path = filepath.ToSlash(rel)
	}
	h.paths = append(h.paths, path)
}

func (h *harness) services(all []Service) {
	for _, s := range all {
		h.steps(s.Setup)
		h.command(s.Command)
		if s.Reset != nil {
			h.steps(s.Reset.Steps)
		}
		if s.Ready.Exec != nil {
			h.command(*s.Ready.Exec)
		}
	}
}

func (h *harness) steps(all []Step) {
	for i := range all {
		h.step(&all[i])
	}
}

func (h *harness) step(s *Step) {
	if s != nil {
		h.command(s.Run)
	}
}

// command adds the words of a command that can be paths.
func (h *harness) command(c Command) {
	words := strings.FieldsFunc(string(c.Shell), func(r rune) bool { return strings.ContainsRune(" \t\n'\"`;|&()<>=", r) })
	for _, a := range c.Argv {
		words = append(words, string(a))
	}
	for _, w := range words {
		w = filepath.ToSlash(filepath.Clean(strings.TrimPrefix(w, "@"))) // @FILE, as curl and k6 write it
		if strings.ContainsAny(w, "./") && !strings.ContainsAny(w, "${}*:") && !strings.HasPrefix(w, "-") && !filepath.IsAbs(w) && w != "." {
			h.paths = append(h.paths, w)
		}
	}
}
