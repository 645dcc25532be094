// Package stats judges a table of paired measurements: pure numbers in,
// numbers out.
//
// report calls it with the logs of one metric for each copy of each arm in
// each block; it answers with effects, noise, p values and intervals. It
// knows no names, units or clocks. report/METHODOLOGY.md tells the method,
// and the calibration test of this package proves it.
//
// The order inside: [Judge] takes the table apart by candidate (judge.go),
// prepares each row (sample.go), relabels copies within blocks (relabel.go),
// turns the relabelled effects into adjusted p values and critical values
// (maxt.go) and into intervals (interval.go). What can be known before a run,
// such as when to look and what can be found, is in plan.go.
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

// Options fixes how a table is judged. All of it is known before a run,
// except Look and Last.
type Options struct {
	Alpha float64 // error rate of the whole table, two-sided
	Seed  uint64  // of the Monte-Carlo relabellings, where they are too many to enumerate
	Looks []int   // numbers of blocks at which the table is looked at, in order; the last is the end. Empty: one look
	Look  int     // which look this is, from 0
	// Last says that there will be no further look although the plan has
	// some, for a reason that does not lie in the measured values (the time
	// was up): what is left of alpha is spent.
	Last bool
	// Groups is the planned number of candidates. Each gets an equal share
	// of Alpha, also where another one has no rows. Zero: as many as the
	// rows name.
	Groups int
	// Confidence is that of the intervals, each for itself; between 0.5 and
	// 1 - Alpha. Zero: 1 - Alpha.
	Confidence float64
	// Relabellings is how many to draw where there are more of them; the
	// verdicts are valid at any number, and sharper with more. Zero: up to
	// 50,000 are all tried, and else as many are drawn as the look needs.
	Relabellings int
}

// Result is one row, judged.
type Result struct {
	Effect float64 // mean log ratio, candidate over baseline; NaN for a row without blocks
	// SE is the standard error of Effect, from the spread of all copies
	// within their blocks once the effect is taken out; NaN where there are
	// too few copies for one.
	SE       float64
	CI       [2]float64 // of the effect, at the table's Confidence, for this row alone; infinite where there are too few blocks
	P        float64    // adjusted for the rows, candidates and looks: marked iff P <= Options.Alpha
	Critical float64    // |effect| above which the row is marked at this look; +Inf where no effect could be
	Marked   bool       // |Effect| > Critical
	Same     bool       // CI within ±Margin; a marked row can be the same, too, where it moved by little
	PerBlock []float64  // log ratio of each block
	More     int        // further blocks that would settle it, estimated; 0: settled or unknown
}

// Table is a judged table.
type Table struct {
	Results      []Result // in the order of the rows
	Permutations int      // relabellings of each candidate, the smallest number
	Exact        bool     // every relabelling was tried, mirror images once
	Alpha        float64  // spent at this look
	Confidence   float64  // of the intervals
}
