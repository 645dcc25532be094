package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// copyOptions says what a copy leaves out or changes.
type copyOptions struct {
	skip     func(rel string) bool // paths to leave out, with what is below them
	writable bool                  // folders and files become writable by their owner, as a build needs
}

// copyStats is what a copy found.
type copyStats struct {
	files   int
	special []string // sockets, pipes and devices, left out
}

// copyTree copies the tree at src to dst, which must not exist. Links are
// copied as links and never followed; no two paths share a file afterwards,
// hard links in src included. On an error dst is removed again.
func copyTree(ctx context.Context, src, dst string, o copyOptions) (stats *copyStats, err error) {
	info, err := os.Stat(src)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a folder", src)
	}
	if within(src, dst) && (o.skip == nil || !o.skip(slashRel(src, dst))) {
		return nil, fmt.Errorf("cannot copy %s into itself, to %s", src, dst)
	}
	if err := os.Mkdir(dst, 0o700); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, removeTree(dst))
		}
	}()
	c := &copier{src: src, dst: dst, copyOptions: o, files: make(chan copyJob, 1024)}
	if err := c.run(ctx, info); err != nil {
		return nil, err
	}
	return &c.stats, nil
}

// copyJob is one path to copy.
type copyJob struct {
	rel  string
	info fs.FileInfo
}

// copier is one copy in progress: one goroutine walks, the others copy files.
type copier struct {
	src, dst string
	copyOptions
	files   chan copyJob
	folders []copyJob // finished last, children before parents
	stats   copyStats
	noClone atomic.Bool // the filesystem cannot clone: do not ask again
}

func (c *copier) run(ctx context.Context, root fs.FileInfo) error {
	g, ctx := errgroup.WithContext(ctx)
	for range max(4, runtime.GOMAXPROCS(0)) { // more than CPUs: a file is mostly system calls and, cold, waiting
		g.Go(func() error {
			for j := range c.files {
				if err := c.file(ctx, j); err != nil {
					return fmt.Errorf("copy %s: %w", j.rel, err)
				}
			}
			return nil
		})
	}
	g.Go(func() error {
		defer close(c.files)
		return c.walk(ctx)
	})
	if err := g.Wait(); err != nil {
		return err
	}
	for i := len(c.folders) - 1; i >= 0; i-- {
		if err := c.folder(c.folders[i]); err != nil {
			return err
		}
	}
	return c.folder(copyJob{rel: ".", info: root})
}

// walk makes folders and links, and sends files to the copying goroutines.
func (c *copier) walk(ctx context.Context) error {
	return filepath.WalkDir(c.src, func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || path == c.src {
			return err
		}
		rel := slashRel(c.src, path)
		if c.skip != nil && c.skip(rel) {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		j := copyJob{rel: rel, info: info}
		switch t := d.Type(); {
		case t.IsDir():
			c.folders = append(c.folders, j)
			return os.Mkdir(c.to(rel), 0o700)
		case t&fs.ModeSymlink != 0:
			return c.link(path, j)
		case t.IsRegular():
			c.stats.files++
			select {
			case c.files <- j:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		c.stats.special = append(c.stats.special, rel)
		return nil
	})
}

func (c *copier) to(rel string) string   { return filepath.Join(c.dst, filepath.FromSlash(rel)) }
func (c *copier) from(rel string) string { return filepath.Join(c.src, filepath.FromSlash(rel)) }

func (c *copier) link(path string, j copyJob) error {
	target, err := os.Readlink(path)
	if err != nil {
		return err
	}
	if err := os.Symlink(target, c.to(j.rel)); err != nil {
		return err
	}
	return setLinkTime(c.to(j.rel), j.info.ModTime())
}

// folder gives a folder its mode and time, once nothing in it changes any more.
func (c *copier) folder(j copyJob) error {
	mode := j.info.Mode() & (fs.ModePerm | fs.ModeSetgid | fs.ModeSticky)
	if c.writable {
		mode |= 0o700
	}
	if err := os.Chmod(c.to(j.rel), mode); err != nil {
		return err
	}
	return os.Chtimes(c.to(j.rel), j.info.ModTime(), j.info.ModTime())
}

// file copies one regular file.
func (c *copier) file(ctx context.Context, j copyJob) (err error) {
	in, err := openRead(c.from(j.rel))
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(c.to(j.rel), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if err := c.content(ctx, out, in, j.info); err != nil {
		return err
	}
	mode := j.info.Mode() & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid)
	if c.writable {
		mode |= 0o200
	}
	if err := out.Chmod(mode); err != nil {
		return err
	}
	return os.Chtimes(c.to(j.rel), j.info.ModTime(), j.info.ModTime())
}

// content clones the file where that works, else copies it, holes as holes.
func (c *copier) content(ctx context.Context, out, in *os.File, info fs.FileInfo) error {
	if !c.noClone.Load() {
		if clone(out, in) {
			return nil
		}
		c.noClone.Store(true)
	}
	if isSparse(info) {
		return copySparse(ctx, out, in, info.Size())
	}
	return copyAll(ctx, out, in)
}

// removeTree removes what stands at path, folders without write permission
// included. It follows no links, and a path that is not there is no error.
func removeTree(path string) error {
	err := os.RemoveAll(path)
	if err == nil || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	walkErr := filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && err == nil {
			return os.Chmod(p, 0o700)
		}
		return nil // what could not be read shows when it cannot be removed
	})
	return errors.Join(walkErr, os.RemoveAll(path))
}
