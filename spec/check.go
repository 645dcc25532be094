package spec

// check is the second pass: what can be said only when the whole spec is
// known.
func (d *decoder) check(s *Spec) {
	d.checkMetrics(s)
}
