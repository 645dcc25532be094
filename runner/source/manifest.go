package source

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sync/errgroup"
)

// kind is what stands at a path.
type kind byte

const (
	folder kind = 'd'
	file   kind = 'f'
	link   kind = 'l'
)

// entry is what a manifest says of one path: what git would track of it, and
// no more. Times and the mode bits beyond "executable" differ between two
// checkouts of one revision.
type entry struct {
	path   string // relative, with slashes
	kind   kind
	exec   bool
	sum    [sha256.Size]byte // of a file's content
	target string            // of a link; one to an absolute path in the tree counts as the relative one
	size   int64             // of a file, bytes

	pointer     bool   // a git LFS pointer in place of the file
	interpreter string // of a script, the path behind "#!"
}

// manifest is the content of a tree, in the order of a walk.
type manifest struct{ entries []entry }

// scan reads the tree at root, but for the paths that skip refuses.
func scan(ctx context.Context, root string, skip func(rel string) bool) (*manifest, error) {
	m := &manifest{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || path == root {
			return err
		}
		rel := slashRel(root, path)
		if skip != nil && skip(rel) {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		return m.add(root, path, d)
	})
	if err != nil {
		return nil, fmt.Errorf("read the tree: %w", err)
	}
	return m, m.hashFiles(ctx, root)
}

// add notes one path, without its content.
func (m *manifest) add(root, path string, d fs.DirEntry) error {
	e := entry{path: slashRel(root, path)}
	switch t := d.Type(); {
	case t.IsDir():
		e.kind = folder
	case t&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		if err != nil {
			return err
		}
		if e.target, err = inTree(root, path, target); err != nil {
			return err
		}
		e.kind = link
	case t.IsRegular():
		info, err := d.Info()
		if err != nil {
			return err
		}
		e.kind, e.exec, e.size = file, info.Mode()&0o100 != 0, info.Size()
	default:
		return nil // sockets and pipes are of a running program, not of a tree
	}
	m.entries = append(m.entries, e)
	return nil
}

// hashFiles fills in the sums, on all CPUs.
func (m *manifest) hashFiles(ctx context.Context, root string) error {
	g, ctx := errgroup.WithContext(ctx)
	n := runtime.GOMAXPROCS(0)
	for w := range n {
		g.Go(func() error {
			buf := make([]byte, 256<<10)
			for i := w; i < len(m.entries); i += n {
				if err := ctx.Err(); err != nil {
					return err
				}
				if e := &m.entries[i]; e.kind == file {
					if err := e.hash(filepath.Join(root, filepath.FromSlash(e.path)), buf); err != nil {
						return fmt.Errorf("read the tree: %w", err)
					}
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// lfsPointer opens every git LFS pointer file (git-lfs, docs/spec.md).
var lfsPointer = []byte("version https://git-lfs.github.com/spec/")

func (e *entry) hash(path string, buf []byte) error {
	f, err := openRead(path)
	if err != nil {
		return err
	}
	defer f.Close()
	h, first := sha256.New(), true
	for {
		n, err := f.Read(buf)
		if first && n > 0 {
			e.sniff(buf[:n])
			first = false
		}
		h.Write(buf[:n])
		if err == io.EOF {
			h.Sum(e.sum[:0])
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// sniff looks at the start of a file for what deserves a warning.
func (e *entry) sniff(head []byte) {
	e.pointer = len(head) < 1024 && bytes.HasPrefix(head, lfsPointer)
	if bytes.HasPrefix(head, []byte("#!")) {
		line, _, _ := bytes.Cut(head[2:min(len(head), 512)], []byte("\n"))
		if words := strings.Fields(string(line)); len(words) > 0 {
			e.interpreter = words[0]
		}
	}
}

// write feeds an entry to a digest, in a form that no two entries share.
func (e *entry) write(h hash.Hash) {
	for _, s := range []string{e.path, e.target} {
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(s))))
		io.WriteString(h, s)
	}
	exec := byte(0)
	if e.exec {
		exec = 1
	}
	h.Write([]byte{byte(e.kind), exec})
	h.Write(e.sum[:])
}

// digest is the SHA-256 of the entries that skip does not refuse, in hex.
func (m *manifest) digest(skip func(rel string) bool) string {
	h := sha256.New()
	for i := range m.entries {
		if skip == nil || !skip(m.entries[i].path) {
			m.entries[i].write(h)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// size is the bytes of all files.
func (m *manifest) size() int64 {
	total := int64(0)
	for i := range m.entries {
		total += m.entries[i].size
	}
	return total
}

// changedSince is the digest of what m has and before has not, folders apart;
// empty where that is nothing.
func (m *manifest) changedSince(before *manifest) string {
	old := make(map[string]*entry, len(before.entries))
	for i := range before.entries {
		old[before.entries[i].path] = &before.entries[i]
	}
	h, any := sha256.New(), false
	for i := range m.entries {
		e := &m.entries[i]
		if o := old[e.path]; e.kind == folder || o != nil && *o == *e {
			continue
		}
		e.write(h)
		any = true
	}
	if !any {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))
}

// warnings says what is odd about a tree that was built at dir.
func (m *manifest) warnings(dir string) []string {
	var pointers, scripts []string
	for i := range m.entries {
		e := &m.entries[i]
		if e.pointer {
			pointers = append(pointers, e.path)
		}
		if within(dir, e.interpreter) {
			scripts = append(scripts, e.path)
		}
	}
	var out []string
	if len(pointers) > 0 {
		out = append(out, fmt.Sprintf("%s: a git LFS pointer in place of the file; install git-lfs and run git lfs pull",
			andMore(pointers)))
	}
	if len(scripts) > 0 {
		out = append(out, fmt.Sprintf("%s: a script whose #! line names the folder it was built in, which copies do not have; "+
			"start it through its interpreter, or build it in server.command", andMore(scripts)))
	}
	return out
}

// andMore is the first of some paths, and how many others there are.
func andMore(paths []string) string {
	if len(paths) == 1 {
		return paths[0]
	}
	return fmt.Sprintf("%s and %d more", paths[0], len(paths)-1)
}

// slashRel is path relative to root, with slashes.
func slashRel(root, path string) string {
	rel, err := filepath.Rel(root, path)
	if err != nil { // never for a path that a walk of root gave
		return filepath.ToSlash(path)
	}
	return filepath.ToSlash(rel)
}

// within reports whether path is dir or lies below it. Both are absolute.
func within(dir, path string) bool {
	if path == "" {
		return false
	}
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}
