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
	rows := make([]sample, len(of))
	z := make([]float64, len(of))
	for k, i := range of {
		rows[k] = all[i]
		z[k] = rows[k].z()
	}
	share := o.share(rows, groups)
	t.Alpha = max(t.Alpha, o.Alpha*share)
	alpha := o.Alpha * share / float64(groups)
	limit, drawn := o.effort(alpha)
	g, err := newRelabelling(rows, limit, drawn, o.Seed+uint64(group))
	if err != nil {
		return err
	}
	if t.Permutations == 0 || g.count < t.Permutations {
		t.Permutations = g.count
	}
	t.Exact = t.Exact && g.exact

	low, high, scratch := make([]float64, g.count), make([]float64, g.count), make([]float64, g.count)
	known := map[string]weights{}
	verdicts := stepDown(z, g.count, alpha, func(k int, out []float64) {
		s := rows[k]
		g.effects(s, out)
		r := &t.Results[of[k]]
		r.CI = [2]float64{math.Inf(-1), math.Inf(1)}
		if len(s.per) > 0 {
			r.CI = interval(s.effect, out, g.weightsOf(s, known), t.Confidence, low, high, scratch)
		}
		for m, v := range out {
			if out[m] = 0; s.scale > 0 {
				out[m] = math.Abs(v) / s.scale
			}
		}
	})
	for k, i := range of {
		v := verdicts[k]
		if share > 0 {
			v.p = min(1, v.p*float64(groups)/share)
		} else {
			v.p = 1
		}
		t.Results[i].fill(rows[k], v)
	}
	for k, i := range of {
		t.Results[i].More = o.more(rows[k], t.Results[i], len(of), groups)
	}
	return nil
}

// weightsOf computes the weights of a row once for all rows with its blocks.
func (g *relabelling) weightsOf(s sample, known map[string]weights) weights {
	key := fmt.Sprint(s.row.Blocks)
	w, ok := known[key]
	if !ok {
		shares := make([]float64, g.count)
		g.shares(s, shares)
		w = newWeights(shares)
		known[key] = w
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
