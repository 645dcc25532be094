package spec

// checkMetrics checks the names of metrics against the scenarios.
func (d *decoder) checkMetrics(s *Spec) {
}
