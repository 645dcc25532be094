package source

import (
	"os"
	"path/filepath"
	"strings"
)

// skipper knows what of a user's folder is no part of an arm: git's data, our
// own folders, and the reports that a run writes.
type skipper struct {
	paths []string // absolute
	spec  string   // the spec file itself
}

func newSkipper(o Options) *skipper {
	s := &skipper{paths: []string{o.CacheDir, o.WorkDir, o.LogDir}}
	for _, out := range o.Spec.Report {
		s.paths = append(s.paths, joinAbs(o.Spec.Dir, out.Path))
	}
	s.spec = joinAbs(o.Spec.Dir, filepath.Base(o.Spec.Path))
	return s
}

// refuses reports whether rel, below root, is left out of a copy of root.
func (s *skipper) refuses(root, rel string) bool {
	for part := range strings.SplitSeq(rel, "/") {
		if part == ".git" || part == ".tandem" {
			return true
		}
	}
	path := filepath.Join(root, filepath.FromSlash(rel))
	for _, p := range s.paths {
		if p != "" && (within(p, path) || within(path, p) && s.holdsNothingElse(root, rel)) {
			return true
		}
	}
	return false
}

// holdsNothingElse reports whether a folder is there only for what is left
// out: a run that made it for its report must not change the next one's tree.
func (s *skipper) holdsNothingElse(root, rel string) bool {
	if rel == "." || rel == "" {
		return false
	}
	entries, err := os.ReadDir(filepath.Join(root, filepath.FromSlash(rel)))
	if err != nil || len(entries) == 0 {
		return false
	}
	for _, e := range entries {
		if !s.refuses(root, rel+"/"+e.Name()) {
			return false
		}
	}
	return true
}

// isSpec reports whether rel is the spec file. It is copied like any other
// file, but does not decide what is built: a longer window is no reason to
// build again.
func (s *skipper) isSpec(root, rel string) bool {
	return s.spec == filepath.Join(root, filepath.FromSlash(rel))
}

// joinAbs is path, below dir unless it is absolute.
func joinAbs(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}
