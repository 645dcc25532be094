//go:build !linux

package proc

// Auditor needs Linux.
type Auditor struct{}

// NewAuditor needs Linux: its error wraps [errors.ErrUnsupported].
func NewAuditor(CPUs) (*Auditor, error) {
	return nil, unsupported("audit what else the machine does")
}

// Read is not reached.
func (a *Auditor) Read() (Reading, error) { return Reading{}, unsupported("audit") }

// Notes is not reached.
func (a *Auditor) Notes() []string { return nil }

// Close does nothing.
func (a *Auditor) Close() error { return nil }

// portRange is what most systems use.
func portRange() (lo, hi int, err error) { return 32768, 65535, nil }
