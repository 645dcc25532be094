// Package stats judges a table of paired measurements: pure numbers in,
// numbers out.
//
// report calls it with the logs of one metric for each copy of each arm in
// each block; it answers with effects, noise, p values and intervals. It
// knows no names, units or clocks. report/METHODOLOGY.md tells the method,
// and the calibration test of this package proves it.
package stats

// Row is one scenario and metric of one candidate against the baseline, as
// natural logarithms.
type Row struct {
	Base [][]float64 // by block, then by copy of the baseline
	Head [][]float64 // by block, then by copy of the candidate; the same blocks
	// Blocks are the block numbers of the entries of Base and Head, so that
	// one relabelling can be applied to all rows of a table even where some
	// rows lack some blocks.
	Blocks []int
	// Group is the candidate that the row belongs to, from 0: rows of one
	// candidate share its copies, and so its relabelling.
	Group int
	// Margin is the log ratio below which the row counts as the same.
	Margin float64
}

// Options fixes how a table is judged.
type Options struct {
	Alpha float64 // error rate of the whole table, two-sided
	Seed  uint64  // of the Monte-Carlo relabellings, where they are too many to enumerate
	Looks []int   // numbers of blocks at which the table is looked at, in order; the last is the end
	Look  int     // which look this is, from 0
}

// Result is one row, judged.
type Result struct {
	Effect   float64    // mean log ratio, candidate over baseline
	SE       float64    // its standard error over blocks
	CI       [2]float64 // of the effect, at Confidence
	P        float64    // adjusted for the table
	Critical float64    // |effect| above which the row is marked at this look; +Inf where no number of blocks so far can mark it
	Marked   bool       // |Effect| > Critical
	Same     bool       // CI within ±Margin
	PerBlock []float64  // log ratio of each block
	More     int        // further blocks that would settle it, estimated; 0: settled or unknown
}

// Table is a judged table.
type Table struct {
	Results      []Result // in the order of the rows
	Permutations int
	Exact        bool
	Alpha        float64 // spent at this look
	Confidence   float64 // of the intervals
}
