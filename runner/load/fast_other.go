//go:build !linux

package load

import "context"

// Open connects to the targets over the net package: the fast loop is for
// Linux only.
func (d *httpDriver) Open(ctx context.Context, targets []Target) (Load, error) {
	dests := make([]*destination, len(targets))
	for i, t := range targets {
		dest, err := d.prepare(t)
		if err != nil {
			return nil, err
		}
		dests[i] = dest
	}
	return openNet(ctx, d, dests)
}
