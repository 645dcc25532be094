package load

import (
	"errors"
	"strings"
	"testing"
)

// More connections than the system allows are foreseen, not run into.
func TestRaiseFiles(t *testing.T) {
	if err := raiseFiles(10); err != nil {
		t.Error(err)
	}
	err := raiseFiles(1 << 40)
	var f *failure
	if !errors.As(err, &f) || f.class != FDLimit || !strings.Contains(err.Error(), "raise the limit (ulimit -n) or use fewer connections") {
		t.Errorf("found %v", err)
	}
}
