//go:build !unix

package source

import (
	"os"
	"time"
)

// openRead opens a file. Links cannot be refused at opening here.
func openRead(path string) (*os.File, error) { return os.Open(path) }

// setLinkTime is not available here: a link has the time of its copying.
func setLinkTime(string, time.Time) error { return nil }

// ownedByUs cannot be told here.
func ownedByUs(os.FileInfo) bool { return true }
