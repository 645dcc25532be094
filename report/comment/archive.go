// Package comment makes the comment of a pull request from a result that
// anybody may have written. A trusted job, which never runs the code under
// test, hands it the artifact of the job that did: bytes come in, and a
// comment's text goes out. It neither writes files nor talks to anyone; cmd
// finds the pull request and posts.
package comment

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"strings"

	"github.com/tandem-bench/tandem/report"
)

// ResultName is the one file of an artifact that is read.
const ResultName = "result.json"

const (
	maxDirectory = 4 << 20  // bytes of an archive's table of contents
	maxResult    = 32 << 20 // bytes of the unpacked result
	maxName      = 512
)

// ErrNoResult says that an artifact is whole and holds no result: the run
// ended before it had any.
var ErrNoResult = errors.New("the artifact holds no " + ResultName + " (the run ended before it had a result)")

// ReadArchive reads the result of a zipped run folder. Nothing is unpacked to
// disk, and only [ResultName] is unpacked at all; but an archive with any
// entry that an unpacking tool could be tricked by is refused whole, since no
// run of Tandem makes one.
func ReadArchive(r io.ReaderAt, size int64) (*report.Analysis, error) {
	// The table of contents may claim any length: what it may cost is capped
	// by what is read of it.
	directory := &budget{ReaderAt: r, left: maxDirectory}
	z, err := zip.NewReader(directory, size)
	switch {
	case directory.left < 0:
		return nil, fmt.Errorf("the artifact's table of contents is longer than %d MiB", maxDirectory>>20)
	case err != nil && !errors.Is(err, zip.ErrInsecurePath):
		return nil, fmt.Errorf("the artifact is not a zip archive: %w", err)
	}
	directory.left = math.MaxInt64
	var result *zip.File
	seen := map[string]bool{}
	for _, f := range z.File {
		if err := checkEntry(f); err != nil {
			return nil, fmt.Errorf("the artifact is refused: %w", err)
		}
		// Some file systems do not tell names by case, so tools differ in
		// which of two entries they take.
		folded := strings.ToLower(strings.TrimSuffix(f.Name, "/"))
		if seen[folded] {
			return nil, fmt.Errorf("the artifact is refused: it holds %s twice", quote(f.Name))
		}
		seen[folded] = true
		if f.Name == ResultName {
			result = f
		}
	}
	if result == nil {
		return nil, ErrNoResult
	}
	return unpack(result)
}

// checkEntry refuses every entry that is not a plain file or folder below the
// archive's root.
func checkEntry(f *zip.File) error {
	name := strings.TrimSuffix(f.Name, "/")
	switch {
	case len(name) == 0 || len(name) > maxName:
		return fmt.Errorf("an entry's name has %d bytes, expected 1 to %d", len(name), maxName)
	case strings.ContainsAny(name, "\\:\x00"), strings.HasPrefix(name, "/"), path.Clean(name) != name, name == "..", strings.HasPrefix(name, "../"):
		return fmt.Errorf("the entry %s does not lie plainly below the archive's root", quote(f.Name))
	case !f.Mode().IsRegular() && !f.Mode().IsDir():
		return fmt.Errorf("the entry %s is a link or a device, expected plain files", quote(f.Name))
	case f.Flags&1 != 0:
		return fmt.Errorf("the entry %s is encrypted", quote(f.Name))
	}
	return nil
}

func unpack(f *zip.File) (*report.Analysis, error) {
	if f.Mode().IsDir() {
		return nil, fmt.Errorf("the artifact is refused: %s is a folder", ResultName)
	}
	if f.UncompressedSize64 > maxResult {
		return nil, fmt.Errorf("the artifact is refused: %s would unpack to %d bytes, at most %d are read", ResultName, f.UncompressedSize64, maxResult)
	}
	rc, err := f.Open()
	if err != nil {
		return nil, fmt.Errorf("unpacking %s: %w", ResultName, err)
	}
	defer rc.Close()
	// The size above is a claim as well.
	data, err := io.ReadAll(io.LimitReader(rc, maxResult+1))
	if err != nil {
		return nil, fmt.Errorf("unpacking %s: %w", ResultName, err)
	}
	return report.ReadUntrusted(bytes.NewReader(data))
}

// budget is a ReaderAt that fails once a number of bytes is read.
type budget struct {
	io.ReaderAt
	left int64
}

func (b *budget) ReadAt(p []byte, off int64) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, errors.New("too much to read")
	}
	return b.ReaderAt.ReadAt(p, off)
}

// quote shows a name from an archive in a message.
func quote(name string) string {
	const most = 60
	if len(name) > most {
		name = name[:most] + "..."
	}
	return fmt.Sprintf("%+q", name)
}
