package stats

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// everyLabelling calls f with each way to label the copies of all blocks:
// for each block, which of its copies (baseline first) are the candidate.
func everyLabelling(blocks, nb, nh int, f func(heads []uint)) {
	heads := make([]uint, blocks)
	var walk func(int)
	walk = func(b int) {
		if b == blocks {
			f(heads)
			return
		}
		for s := uint(0); s < 1<<(nb+nh); s++ {
			if bits.OnesCount(s) == nh {
				heads[b] = s
				walk(b + 1)
			}
		}
	}
	walk(0)
}

// naiveEffect is the mean over blocks of candidate minus baseline, by other
// labels, with shift taken out of the copies that were the candidate's.
func naiveEffect(r Row, heads []uint, shift float64) float64 {
	var sum float64
	for b := range r.Base {
		var head, base []float64
		for i, x := range slices.Concat(r.Base[b], r.Head[b]) {
			if i >= len(r.Base[b]) {
				x -= shift
			}
			if heads[r.Blocks[b]]>>i&1 == 1 {
				head = append(head, x)
			} else {
				base = append(base, x)
			}
		}
		sum += mean(head) - mean(base)
	}
	return sum / float64(len(r.Base))
}

// naiveP is the step-down adjusted p of each row, from the definition: the
// effects in units of their spread over all labellings.
func naiveP(rows []Row, blocks, nb, nh int) []float64 {
	spread := make([]float64, len(rows))
	z := make([]float64, len(rows))
	truth := uint(1<<nh-1) << nb
	var relabelled [][]float64
	everyLabelling(blocks, nb, nh, func(heads []uint) {
		one := make([]float64, len(rows))
		for i, r := range rows {
			d := naiveEffect(r, heads, 0)
			one[i] = math.Abs(d)
			spread[i] += d * d
		}
		relabelled = append(relabelled, one)
	})
	for i, r := range rows {
		spread[i] = math.Sqrt(spread[i] / float64(len(relabelled)))
		heads := make([]uint, blocks)
		for b := range heads {
			heads[b] = truth
		}
		z[i] = math.Abs(naiveEffect(r, heads, 0)) / spread[i]
	}
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return compare(z[j], z[i]) })
	p := make([]float64, len(rows))
	for at, i := range order {
		reached := 0
		for _, one := range relabelled {
			for _, j := range order[at:] {
				if one[j]/spread[j] >= z[i]*(1-1e-9) {
					reached++
					break
				}
			}
		}
		p[i] = float64(reached) / float64(len(relabelled))
		if at > 0 {
			p[i] = max(p[i], p[order[at-1]])
		}
	}
	return p
}

// rowsOf makes rows of given copies with a true effect of each row.
func rowsOf(r *rand.Rand, effects []float64, blocks, nb, nh int) []Row {
	shared := make([][]float64, blocks) // what is common to the rows of a copy
	for b := range shared {
		shared[b] = make([]float64, nb+nh)
		for i := range shared[b] {
			shared[b][i] = r.NormFloat64()
		}
	}
	rows := make([]Row, len(effects))
	for k, effect := range effects {
		for b := range blocks {
			all := make([]float64, nb+nh)
			for i := range all {
				all[i] = 3 + 0.01*(shared[b][i]+r.NormFloat64())
				if i >= nb {
					all[i] += effect
				}
			}
			rows[k].Base = append(rows[k].Base, all[:nb])
			rows[k].Head = append(rows[k].Head, all[nb:])
			rows[k].Blocks = append(rows[k].Blocks, b)
		}
	}
	return rows
}

func TestJudgeAgainstBruteForce(t *testing.T) {
	for _, c := range []struct{ blocks, nb, nh, rows int }{
		{4, 2, 2, 1}, {4, 2, 2, 3}, {3, 2, 2, 2}, {4, 1, 2, 2}, {4, 2, 1, 2}, {3, 3, 2, 2}, {8, 1, 1, 3}, {2, 3, 3, 2}, {5, 2, 2, 2},
	} {
		for seed := range uint64(8) {
			r := rand.New(rand.NewPCG(seed, 7))
			effects := make([]float64, c.rows)
			effects[0] = 0.01 * float64(seed)
			rows := rowsOf(r, effects, c.blocks, c.nb, c.nh)
			if c.rows > 2 { // a row that lacks a block
				last := &rows[c.rows-1]
				last.Base, last.Head, last.Blocks = last.Base[1:], last.Head[1:], last.Blocks[1:]
			}
			got, err := Judge(rows, Options{Alpha: 0.02})
			if err != nil {
				t.Fatal(err)
			}
			if !got.Exact {
				t.Fatalf("%+v: drew relabellings, expected all", c)
			}
			want := naiveP(rows, c.blocks, c.nb, c.nh)
			for i, res := range got.Results {
				if math.Abs(res.P-want[i]) > 1e-12 {
					t.Errorf("%+v seed %d row %d: p = %v, by brute force %v", c, seed, i, res.P, want[i])
				}
				if res.Marked != (want[i] <= 0.02) {
					t.Errorf("%+v seed %d row %d: marked %v at p = %v", c, seed, i, res.Marked, want[i])
				}
			}
		}
	}
}

// The interval ends where the relabelling test of the shifted row turns.
func TestIntervalAgainstBruteForce(t *testing.T) {
	for _, c := range []struct{ blocks, nb, nh int }{{4, 2, 2}, {4, 1, 2}, {8, 1, 1}, {3, 2, 3}} {
		for seed := range uint64(6) {
			r := rand.New(rand.NewPCG(seed, 8))
			row := rowsOf(r, []float64{0.02 * float64(seed)}, c.blocks, c.nb, c.nh)[0]
			got, err := Judge([]Row{row}, Options{Alpha: 0.02})
			if err != nil {
				t.Fatal(err)
			}
			ci := got.Results[0].CI
			width := ci[1] - ci[0]
			for _, e := range []struct {
				at float64
				in bool
			}{{ci[0] + width/1e6, true}, {ci[0] - width/1e6, false}, {ci[1] - width/1e6, true}, {ci[1] + width/1e6, false}} {
				if in := naiveAccepts(row, c.blocks, c.nb, c.nh, e.at, 0.02); in != e.in {
					t.Errorf("%+v seed %d: effect %v accepted %v, interval %v says %v", c, seed, e.at, in, ci, e.in)
				}
			}
		}
	}
}

func naiveAccepts(row Row, blocks, nb, nh int, shift, alpha float64) bool {
	truth := make([]uint, blocks)
	for b := range truth {
		truth[b] = uint(1<<nh-1) << nb
	}
	at := math.Abs(naiveEffect(row, truth, shift))
	reached, total := 0, 0
	everyLabelling(blocks, nb, nh, func(heads []uint) {
		total++
		if math.Abs(naiveEffect(row, heads, shift)) >= at*(1-1e-9) {
			reached++
		}
	})
	return float64(reached)/float64(total) > alpha
}

// Drawn relabellings come close to all of them.
func TestDrawnAgainstEnumerated(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 9))
	rows := make([]sample, 2)
	for i, row := range rowsOf(r, []float64{0.012, 0}, 5, 2, 2) {
		s, err := newSample(row)
		if err != nil {
			t.Fatal(err)
		}
		rows[i] = s
	}
	all, err := newRelabelling(rows, enumerable, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	some := *all
	some.chunks, some.exact = slices.Clone(all.chunks), false
	some.draw(200_000, some.measured(2, 4), 1)
	p := func(g *relabelling) []judged {
		return stepDown([]float64{rows[0].z(), rows[1].z()}, g.count, 0.01, func(k int, out []float64) {
			g.effects(rows[k], out)
			for m, v := range out {
				out[m] = math.Abs(v) / rows[k].scale
			}
		})
	}
	exact, drawn := p(all), p(&some)
	for i := range exact {
		if math.Abs(exact[i].p-drawn[i].p) > 5*math.Sqrt(exact[i].p/200_000) {
			t.Errorf("row %d: drawn p = %v, exact %v", i, drawn[i].p, exact[i].p)
		}
		if math.Abs(exact[i].critical-drawn[i].critical) > 0.05 {
			t.Errorf("row %d: drawn critical z = %v, exact %v", i, drawn[i].critical, exact[i].critical)
		}
	}
}
