package stats

import (
	"fmt"
	"math"
	"slices"
)

const (
	// enumerable is the number of relabellings up to which all are tried.
	enumerable = 50_000

	fewest = 10_000 // drawn relabellings, at least
	most   = 30_000 // and at most
	finest = 50     // aimed at: drawn relabellings beyond the critical value
)

// Judge judges a table. The chance that a table of unchanged code has any
// mark, over all rows, candidates and looks, is at most Options.Alpha; rows
// of unchanged code keep that beside rows that changed.
//
// Each candidate is judged against the baseline by itself, at an equal share
// of alpha: its copies and the baseline's are alike if its code is, whatever
// the other candidates do. Looks share alpha as planned beforehand (see
// [Looks]). It fails on input that no verdict can be given for: a value that
// is not finite, a block that lacks a copy, options out of range.
func Judge(rows []Row, o Options) (Table, error) {
	groups, err := o.check(rows)
	if err != nil {
		return Table{}, err
	}
	samples := make([]sample, len(rows))
	members := make([][]int, groups)
	for i, r := range rows {
		if samples[i], err = newSample(r); err != nil {
			return Table{}, fmt.Errorf("row %d: %w", i, err)
		}
		members[r.Group] = append(members[r.Group], i)
	}
	t := Table{
		Results:    make([]Result, len(rows)),
		Confidence: o.Confidence,
		Exact:      true,
	}
	if t.Confidence == 0 {
		t.Confidence = 1 - o.Alpha
	}
	for group, of := range members {
		if len(of) > 0 {
			if err := t.judge(samples, of, group, groups, o); err != nil {
				return Table{}, fmt.Errorf("candidate %d: %w", group, err)
			}
		}
	}
	return t, nil
}

// judge fills in the results of one candidate's rows.
func (t *Table) judge(all []sample, of []int, group, groups int, o Options) error {
	c := candidate{rows: make([]sample, len(of)), confidence: t.Confidence}
	z := make([]float64, len(of))
	for k, i := range of {
		c.rows[k] = all[i]
		z[k] = all[i].z()
	}
	share := o.share(c.rows, groups)
	alpha := o.Alpha * share / float64(groups)
	limit, drawn := o.effort(alpha)
	if err := c.relabel(limit, drawn, o.Seed+uint64(group)); err != nil {
		return err
	}
	t.Alpha = max(t.Alpha, o.Alpha*share)
	t.Exact = t.Exact && c.g.exact
	if t.Permutations == 0 || c.g.count < t.Permutations {
		t.Permutations = c.g.count
	}
	verdicts := stepDown(z, c.g.count, alpha, c.each)
	for k, i := range of {
		v := verdicts[k]
		v.p = min(1, v.p*float64(groups)/share) // a look without a share has no p below 1
		t.Results[i].CI = c.ci[k]
		t.Results[i].fill(c.rows[k], v)
		t.Results[i].More = o.more(c.rows[k], t.Results[i], len(of), groups)
	}
	return nil
}

// candidate is the rows of one candidate, and what they share.
type candidate struct {
	rows       []sample
	g          *relabelling
	confidence float64
	ci         [][2]float64 // by row, once each has seen it

	known              map[string]weights // by the blocks of a row
	low, high, scratch []float64          // by relabelling, used again for each row
}

func (c *candidate) relabel(limit, drawn int, seed uint64) (err error) {
	if c.g, err = newRelabelling(c.rows, limit, drawn, seed); err != nil {
		return err
	}
	c.ci = make([][2]float64, len(c.rows))
	c.known = map[string]weights{}
	c.low, c.high, c.scratch = make([]float64, c.g.count), make([]float64, c.g.count), make([]float64, c.g.count)
	return nil
}

// each computes row k's |z| under all relabellings, and its interval, which
// comes from the same effects.
func (c *candidate) each(k int, out []float64) {
	s := c.rows[k]
	c.g.effects(s, out)
	c.ci[k] = [2]float64{math.Inf(-1), math.Inf(1)}
	if len(s.per) > 0 {
		c.ci[k] = interval(s.effect, out, c.weights(s), c.confidence, c.low, c.high, c.scratch)
	}
	for m, v := range out {
		if out[m] = 0; s.scale > 0 {
			out[m] = math.Abs(v) / s.scale
		}
	}
}

// weights computes the weights of a row once for all rows with its blocks.
func (c *candidate) weights(s sample) weights {
	key := fmt.Sprint(s.row.Blocks)
	w, ok := c.known[key]
	if !ok {
		shares := make([]float64, c.g.count)
		c.g.shares(s, shares)
		w = newWeights(shares)
		c.known[key] = w
	}
	return w
}

// fill states a row's result.
func (r *Result) fill(s sample, v judged) {
	r.Effect, r.SE, r.PerBlock = s.effect, s.se(), s.per
	r.P, r.Critical = v.p, math.Inf(1)
	if len(s.per) == 0 {
		r.P = 1
		return
	}
	r.Critical = s.critical(v.critical)
	r.Marked = math.Abs(r.Effect) > r.Critical
	r.Same = r.CI[0] >= -s.row.Margin && r.CI[1] <= s.row.Margin
}

// effort is the number of relabellings up to which all are tried, and the
// number that is drawn otherwise, for a look at this alpha.
func (o Options) effort(alpha float64) (all, drawn int) {
	if o.Relabellings > 0 {
		return o.Relabellings, o.Relabellings
	}
	if alpha <= 0 {
		return enumerable, fewest
	}
	return enumerable, int(math.Min(most, math.Max(fewest, math.Ceil(finest/alpha))))
}

// check refuses options out of range and returns the number of candidates.
func (o Options) check(rows []Row) (int, error) {
	if !(o.Alpha > 0 && o.Alpha < 0.5) {
		return 0, fmt.Errorf("found an alpha of %v, expected one above 0 and below 0.5", o.Alpha)
	}
	if c := o.Confidence; c != 0 && !(c >= 0.5 && c <= 1-o.Alpha) {
		return 0, fmt.Errorf("found a confidence of %v, expected one from 0.5 to %v, so that the interval of a marked row excludes no change", c, 1-o.Alpha)
	}
	if o.Relabellings < 0 || o.Groups < 0 {
		return 0, fmt.Errorf("found %d relabellings and %d candidates, expected none below 0", o.Relabellings, o.Groups)
	}
	if err := checkLooks(o.Looks, o.Look); err != nil {
		return 0, err
	}
	groups := max(o.Groups, 1)
	for i, r := range rows {
		if r.Group < 0 {
			return 0, fmt.Errorf("row %d: found candidate number %d, expected 0 or more", i, r.Group)
		}
		groups = max(groups, r.Group+1)
		if len(o.Looks) > 0 && len(r.Blocks) > o.Looks[o.Look] {
			return 0, fmt.Errorf("row %d: found %d blocks at look %d, expected at most %d as planned", i, len(r.Blocks), o.Look, o.Looks[o.Look])
		}
	}
	return groups, nil
}

func checkLooks(looks []int, look int) error {
	if len(looks) == 0 {
		if look != 0 {
			return fmt.Errorf("found look %d of a plan without looks, expected 0", look)
		}
		return nil
	}
	if look < 0 || look >= len(looks) {
		return fmt.Errorf("found look %d, expected one of the %d looks from 0", look, len(looks))
	}
	if looks[0] < 1 || !slices.IsSortedFunc(looks, func(a, b int) int {
		if a == b {
			return -1 // twice the same is out of order, too
		}
		return a - b
	}) {
		return fmt.Errorf("found looks after %v blocks, expected growing numbers from 1", looks)
	}
	return nil
}
