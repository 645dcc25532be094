//go:build !linux

package source

import (
	"context"
	"io/fs"
	"os"
)

// clone is not available here: every copy is a full one.
func clone(_, _ *os.File) bool { return false }

// isSparse is not known here: holes are copied as zeros.
func isSparse(fs.FileInfo) bool { return false }

func copySparse(ctx context.Context, out, in *os.File, _ int64) error {
	return copyAll(ctx, out, in)
}
