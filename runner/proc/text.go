package proc

import (
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// clip shortens a text for an error message.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "..."
}

// maxTail bounds how much of a log is read for its last lines, in bytes.
const maxTail = 64 << 10

// tailFile is the last lines of a file from offset on. What cannot be read
// gives an empty tail: it only decorates an error that matters more.
func tailFile(path string, offset int64, lines int) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil || size <= offset {
		return ""
	}
	offset = max(offset, size-maxTail)
	b := make([]byte, size-offset)
	n, err := f.ReadAt(b, offset)
	if err != nil && err != io.EOF {
		return ""
	}
	return lastLines(strings.ToValidUTF8(string(b[:n]), "\uFFFD"), lines)
}

// lastLines is the end of a text, without its final line break.
func lastLines(s string, lines int) string {
	s = strings.TrimRight(s, "\n")
	i := len(s)
	for range lines {
		i = strings.LastIndexByte(s[:i], '\n')
		if i < 0 {
			return s
		}
	}
	return s[i+1:]
}
