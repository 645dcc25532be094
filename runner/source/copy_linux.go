package source

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// clone makes out share the blocks of in until either is written (btrfs, xfs,
// bcachefs and others). It reports false where the filesystem cannot.
func clone(out, in *os.File) bool {
	return unix.IoctlFileClone(int(out.Fd()), int(in.Fd())) == nil
}

// isSparse reports whether a file has holes.
func isSparse(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Blocks*512 < st.Size
}

// copySparse copies the parts of a file that hold data and leaves the rest
// as holes.
func copySparse(ctx context.Context, out, in *os.File, size int64) error {
	if err := out.Truncate(size); err != nil {
		return err
	}
	for at := int64(0); at < size; {
		if err := ctx.Err(); err != nil {
			return err
		}
		start, err := unix.Seek(int(in.Fd()), at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return nil // only a hole is left
		}
		if err != nil {
			return err
		}
		end, err := unix.Seek(int(in.Fd()), start, unix.SEEK_HOLE)
		if err != nil {
			return err
		}
		end = min(end, start+chunk)
		if _, err := in.Seek(start, io.SeekStart); err != nil {
			return err
		}
		if _, err := out.Seek(start, io.SeekStart); err != nil {
			return err
		}
		if _, err := io.CopyN(out, in, end-start); err != nil {
			return err
		}
		at = end
	}
	return nil
}
