package source

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// relink makes the links of the tree at root fit to be copied: an absolute
// link to a place inside of the tree, which stood (or stands) at was, becomes
// a relative one, so that a copy's links lead to the copy and not to where it
// came from. It returns a warning where links lead out of the tree by a
// relative path, which leads elsewhere from every copy.
func relink(root, was string) (warnings []string, err error) {
	var out []string
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink == 0 {
			return err
		}
		target, err := os.Readlink(path)
		if err != nil {
			return err
		}
		rel := slashRel(root, path)
		inner, err := inTree(was, filepath.Join(was, rel), target)
		if err != nil {
			return err
		}
		if !filepath.IsAbs(inner) && !within(root, filepath.Join(filepath.Dir(path), inner)) {
			out = append(out, rel)
		}
		if inner == target {
			return nil
		}
		return replaceLink(path, inner, d)
	})
	if len(out) > 0 {
		warnings = append(warnings, fmt.Sprintf("%s: a link that leads out of the tree; it leads nowhere, or elsewhere, from a copy", andMore(out)))
	}
	return warnings, err
}

// inTree is the target of the link at path, made relative where it is an
// absolute path inside of root.
func inTree(root, path, target string) (string, error) {
	if !filepath.IsAbs(target) || !within(root, target) {
		return target, nil
	}
	return filepath.Rel(filepath.Dir(path), target)
}

// replaceLink makes path a link to target, with the time that it had.
func replaceLink(path, target string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil {
		return err
	}
	if err := os.Symlink(target, path); err != nil {
		return err
	}
	return setLinkTime(path, info.ModTime())
}
