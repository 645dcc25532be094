//go:build !linux

package load

import "context"

// CanOpen is nil: what this system allows shows when the connections are
// opened.
func CanOpen(int) error { return nil }

// Open connects to the targets over the net package: the fast loop is for
// Linux only.
func (d *httpDriver) Open(ctx context.Context, targets []Target) (Load, error) {
	dests, _, err := d.prepareAll(targets)
	if err != nil {
		return nil, err
	}
	return openNet(ctx, d, dests)
}
