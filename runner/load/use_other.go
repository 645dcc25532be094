//go:build !unix

package load

// processUse is not available here: the generator's own use is reported as
// nothing, and a generator that was the bottleneck cannot be told.
func processUse() GeneratorUse { return GeneratorUse{} }
