package runner

import "time"

// The limits that decide what is discarded, fixed before any run. They look
// at outside evidence only, never at the metric that is judged, and what
// they discard is discarded for all copies of the block alike.
const (
	// maxSteal is Options.MaxSteal where that is 0: beyond it the machine was
	// not one on which to measure.
	maxSteal = 0.25
	// manyDiscarded is the share of a window's cycles that the driver's guard
	// may discard before the trial says so. Such a window is as long as any
	// other and its ratios are as fair; it only took longer and is noisier.
	manyDiscarded = 0.4
	// littleTolerance is how far an honest closed-loop driver may be from
	// Little's law: a few percent.
	littleTolerance = 0.05
	// lateness is how long the generator may be off its CPU within a group
	// of cycles: twice the length of a turn is a scheduling hiccup that both
	// neighbours in the cycle may not have shared.
	lateness = 4 * time.Millisecond
	// maxBlockFailures in a row end a run: a server that dies in two fresh
	// starts one after the other will die in the third.
	maxBlockFailures = 2
	// recopyWithin is how long the copying of all trees may take for every
	// block to get fresh copies. Larger trees are copied once for a run.
	recopyWithin = 3 * time.Second
	// reportTime is what a deadline leaves for stopping everything and for
	// the reports; of a short one, a tenth.
	reportTime = 10 * time.Second
	// windowPatience is how many times its length a warm-up and window may
	// take, and windowGrace what they may take on top: cycles that are
	// discarded are run again, and slow responses are waited for, but not
	// for ever.
	windowPatience = 20
	windowGrace    = 2 * time.Minute
	// soloShare and settleShare split a warm-up: its last parts are a solo
	// window, from which the absolute figures are compared, and a spell of
	// turns, so that the window begins in the state it continues in.
	soloShare   = 0.25
	settleShare = 0.25
)
