package stats

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
)

const (
	// maxCopies bounds the copies of both arms in one block, and with them
	// the ways of labelling it (12,870 for eight and eight).
	maxCopies = 16
	// chunkWays bounds the ways of labelling a chunk of blocks. The effects
	// of all ways are tabled, chunk by chunk, so that a relabelling of a
	// row costs one addition a chunk.
	chunkWays = 1024
)

// relabelling is a list of ways to hand out the labels of all blocks of one
// candidate again; the measured labelling, or its mirror image, is one of them. It
// serves all rows of the candidate, since the same copies served all scenarios.
type relabelling struct {
	ways   []uint32    // the sets of a block's copies that can be called the smaller arm, as bits
	size   int         // copies in each of them
	sign   float64     // 1 where the smaller arm is the candidate, or both are as large; else -1
	chunks []chunk     // the blocks, a few at a time
	column map[int]int // place of a block number among the blocks
	order  [][]int     // by block: the copies (baseline first) in the order that bits of ways number them
	count  int
	exact  bool
}

// chunk is a few blocks whose labels are coded in one number.
type chunk struct {
	first, blocks int
	ways          int
	codes         []uint16 // by relabelling
}

// newRelabelling prepares the relabellings of the rows of one candidate:
// all of them where there are no more than limit, or else as many as drawn.
func newRelabelling(rows []sample, limit, drawn int, seed uint64) (*relabelling, error) {
	g := &relabelling{column: map[int]int{}}
	var numbers []int
	nb, nh := 0, 0
	for _, r := range rows {
		for b, n := range r.row.Blocks {
			base, head := len(r.row.Base[b]), len(r.row.Head[b])
			if nb+nh == 0 {
				nb, nh = base, head
			}
			if base != nb || head != nh {
				return nil, fmt.Errorf("found %d and %d copies in block %d but %d and %d elsewhere, expected the same in all rows of a candidate", base, head, n, nb, nh)
			}
			if _, ok := g.column[n]; !ok {
				g.column[n] = 0
				numbers = append(numbers, n)
			}
		}
	}
	if len(numbers) == 0 {
		return g, nil
	}
	slices.Sort(numbers)
	for i, n := range numbers {
		g.column[n] = i
	}
	g.size, g.sign = nh, 1
	if nb < nh {
		g.size, g.sign = nb, -1
	}
	g.ways = subsets(nb+nh, g.size)
	g.order = g.standing(rows, len(numbers), nb+nh)
	g.cut(len(numbers))
	if total := labellings(nb, nh, len(numbers)); total <= float64(limit) {
		g.enumerate(int(total))
	} else {
		g.draw(drawn, g.measured(nb, nb+nh), seed)
	}
	return g, nil
}

// subsets lists the sets of k of n things, as bits. Where the two arms have
// as many copies, a set and its complement stand at mirrored places, so that
// the first half of the list holds one of each pair.
func subsets(n, k int) []uint32 {
	var sets []uint32
	for s := uint32(0); s < 1<<n; s++ {
		if bits.OnesCount32(s) == k {
			sets = append(sets, s)
		}
	}
	return sets
}

// labellings counts the ways to label so many blocks. With as many copies on
// both sides, a labelling and its mirror image give opposite effects, which
// count as one. It is +Inf, rather than wrong, where it overflows.
func labellings(base, head, blocks int) float64 {
	total := math.Pow(choose(base+head, head), float64(blocks))
	if base == head {
		total /= 2
	}
	return total
}

func choose(n, k int) float64 {
	ways := 1.0
	for i := range k {
		ways = ways * float64(n-i) / float64(i+1)
	}
	return math.Round(ways)
}

// standing orders the copies of each block by what was measured, whatever
// their labels, so that drawn relabellings, too, do not depend on which arm
// is called the baseline, nor on the order of rows. Ties are copies that do
// not differ, or nearly so.
func (g *relabelling) standing(rows []sample, blocks, copies int) [][]int {
	parts := make([][][]float64, blocks)
	for b := range parts {
		parts[b] = make([][]float64, copies)
	}
	for _, r := range rows {
		if r.scale == 0 {
			continue
		}
		for b, n := range r.row.Blocks {
			for i, d := range r.dev[b] {
				u := d / r.scale
				at := &parts[g.column[n]][i]
				*at = append(*at, u+0.3*u*math.Abs(u))
			}
		}
	}
	order := make([][]int, blocks)
	for b, copiesOf := range parts {
		key := make([]float64, copies)
		order[b] = make([]int, copies)
		for i, p := range copiesOf {
			order[b][i] = i
			slices.Sort(p)
			for _, u := range p {
				key[i] += u
			}
		}
		slices.SortStableFunc(order[b], func(i, j int) int {
			switch {
			case key[i] < key[j]:
				return -1
			case key[i] > key[j]:
				return 1
			}
			return 0
		})
	}
	return order
}

// cut divides the blocks into chunks.
func (g *relabelling) cut(blocks int) {
	for at := 0; at < blocks; {
		c := chunk{first: at, blocks: 1, ways: len(g.ways)}
		for at+c.blocks < blocks && c.ways*len(g.ways) <= chunkWays {
			c.ways *= len(g.ways)
			c.blocks++
		}
		at += c.blocks
		g.chunks = append(g.chunks, c)
	}
}

// measured is the code of each chunk that stands for the labels as they were.
func (g *relabelling) measured(base, copies int) []int {
	codes := make([]int, len(g.chunks))
	for k, c := range g.chunks {
		radix := 1
		for b := c.first; b < c.first+c.blocks; b++ {
			var set uint32
			for bit, i := range g.order[b] {
				if (i >= base) == (g.sign > 0) {
					set |= 1 << bit
				}
			}
			way, _ := slices.BinarySearch(g.ways, set)
			codes[k] += way * radix
			radix *= len(g.ways)
		}
	}
	return codes
}

// enumerate lists all relabellings. Where mirror images count once, the last
// block goes through the first half of its ways only.
func (g *relabelling) enumerate(total int) {
	g.exact, g.count = true, total
	for k := range g.chunks {
		g.chunks[k].codes = make([]uint16, total)
	}
	for m := range total {
		rest := m
		for k := range g.chunks {
			g.chunks[k].codes[m] = uint16(rest % g.chunks[k].ways)
			rest /= g.chunks[k].ways
		}
	}
}

// draw lists the measured labelling and want-1 random ones, with replacement:
// the measured one is then one of want that are exchangeable under same code,
// which makes the p value valid at any number (Phipson and Smyth 2010).
func (g *relabelling) draw(want int, truth []int, seed uint64) {
	g.count = want
	random := rand.New(rand.NewPCG(seed, 0x7461_6e64_656d))
	for k := range g.chunks {
		c := &g.chunks[k]
		c.codes = make([]uint16, want)
		c.codes[0] = uint16(truth[k])
		for m := 1; m < want; m++ {
			c.codes[m] = uint16(random.IntN(c.ways))
		}
	}
}

// effects computes the row's effect under each relabelling into out.
func (g *relabelling) effects(s sample, out []float64) {
	columns := make([][]float64, len(g.order))
	for b, n := range s.row.Blocks {
		columns[g.column[n]] = s.dev[b]
	}
	g.sum(columns, len(s.row.Blocks), out)
}

// shares computes for each relabelling how much of a shift of the
// candidate's copies its effect would hold: 1 for the measured one, -1 for
// its mirror image, 0 where labels are mixed evenly.
func (g *relabelling) shares(s sample, out []float64) {
	columns := make([][]float64, len(g.order))
	for b, n := range s.row.Blocks {
		nb := len(s.row.Base[b])
		at := make([]float64, len(s.dev[b]))
		for i := nb; i < len(at); i++ {
			at[i] = 1
		}
		columns[g.column[n]] = at
	}
	g.sum(columns, len(s.row.Blocks), out)
}

// sum adds up, for each relabelling, the differences of means of each block's
// copies, over the number of blocks. A nil column is a block that is missing.
// Each CPU takes some of the relabellings, so that the result is the same on
// any number of them.
func (g *relabelling) sum(columns [][]float64, blocks int, out []float64) {
	const worthwhile = 1 << 20 // additions for each CPU
	parts := max(1, min(runtime.GOMAXPROCS(0), g.count*len(g.chunks)/worthwhile))
	var wg sync.WaitGroup
	for p := range parts {
		wg.Go(func() { g.sumPart(columns, blocks, out, p*g.count/parts, (p+1)*g.count/parts) })
	}
	wg.Wait()
}

// sumPart does so for the relabellings from first to before last.
func (g *relabelling) sumPart(columns [][]float64, blocks int, out []float64, first, last int) {
	out = out[first:last]
	clear(out)
	table := make([]float64, 0, chunkWays)
	for _, c := range g.chunks {
		table = g.tabulate(c, columns, blocks, table[:0])
		for m, code := range c.codes[first:last] {
			out[m] += table[code]
		}
	}
}

// tabulate lists the effects of a chunk by its code.
func (g *relabelling) tabulate(c chunk, columns [][]float64, blocks int, table []float64) []float64 {
	table = append(table, 0)
	for b := c.first; b < c.first+c.blocks; b++ {
		known := len(table)
		table = append(table, make([]float64, known*(len(g.ways)-1))...)
		// From the last way down, so that the first part is overwritten last.
		for w := len(g.ways) - 1; w >= 0; w-- {
			d := g.difference(columns[b], g.order[b], g.ways[w]) / float64(blocks)
			for i := range known {
				table[w*known+i] = table[i] + d
			}
		}
	}
	return table
}

// difference is the mean of the candidate's copies less that of the
// baseline's, where set is the smaller arm.
func (g *relabelling) difference(column []float64, order []int, set uint32) float64 {
	var in, out float64
	for bit, i := range order {
		if i >= len(column) {
			return 0
		}
		if set>>bit&1 == 1 {
			in += column[i]
		} else {
			out += column[i]
		}
	}
	return g.sign * (in/float64(g.size) - out/float64(len(order)-g.size))
}
