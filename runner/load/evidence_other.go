//go:build !linux

package load

// newEvidence has nothing to read: steal time is known on Linux only, so no
// cycle is discarded for it elsewhere.
func newEvidence([]int) (e evidence, close func()) { return evidence{}, func() {} }
