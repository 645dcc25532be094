package remote

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// pack writes the tree at dir as an archive: files, folders and links, with
// modes and times. Sockets, pipes and devices are left out, as copies leave
// them out.
func pack(w io.Writer, dir string) error {
	out := tar.NewWriter(w)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if t := info.Mode().Type(); t != 0 && t != fs.ModeDir && t != fs.ModeSymlink {
			return nil
		}
		return packFile(out, dir, path, info)
	})
	return errors.Join(err, out.Close())
}

func packFile(out *tar.Writer, dir, path string, info fs.FileInfo) error {
	link := ""
	var err error
	if info.Mode()&fs.ModeSymlink != 0 {
		if link, err = os.Readlink(path); err != nil {
			return err
		}
	}
	h, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	rel, err := filepath.Rel(dir, path)
	if err != nil {
		return err
	}
	h.Name, h.Format = filepath.ToSlash(rel), tar.FormatPAX // long names, and times to the nanosecond
	h.Uid, h.Gid, h.Uname, h.Gname = 0, 0, "", ""           // the users here mean nothing there
	if err := out.WriteHeader(h); err != nil || !info.Mode().IsRegular() {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(out, f)
	return err
}

// unpack makes the folder dir, which must not exist, from an archive. Nothing
// is written outside of it, whatever the archive says.
func unpack(r io.Reader, dir string) (err error) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	in := tar.NewReader(r)
	var folders []*tar.Header // finished last: children first
	for {
		h, err := in.Next()
		if err == io.EOF {
			break
		}
		if err == nil {
			err = unpackFile(root, in, h)
		}
		if err != nil {
			return fmt.Errorf("unpacking to %s: %w", dir, err)
		}
		if h.Typeflag == tar.TypeDir {
			folders = append(folders, h)
		}
	}
	for i := len(folders) - 1; i >= 0; i-- {
		h := folders[i]
		if err := errors.Join(root.Chmod(h.Name, h.FileInfo().Mode().Perm()), root.Chtimes(h.Name, time.Time{}, h.ModTime)); err != nil {
			return fmt.Errorf("unpacking to %s: %w", dir, err)
		}
	}
	_, err = io.Copy(io.Discard, r) // what fills the archive's last record
	return err
}

func unpackFile(root *os.Root, in *tar.Reader, h *tar.Header) error {
	switch h.Typeflag {
	case tar.TypeDir:
		return root.Mkdir(filepath.FromSlash(h.Name), 0o700)
	case tar.TypeSymlink:
		return root.Symlink(h.Linkname, filepath.FromSlash(h.Name))
	case tar.TypeReg:
	default:
		return fmt.Errorf("%s is of the unknown kind %q", h.Name, h.Typeflag)
	}
	f, err := root.OpenFile(filepath.FromSlash(h.Name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, in)
	err = errors.Join(err, f.Chmod(h.FileInfo().Mode().Perm()), f.Close())
	return errors.Join(err, root.Chtimes(h.Name, h.ModTime, h.ModTime))
}
