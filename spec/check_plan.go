package spec

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// leastTurns is how many turns a window must hold: fewer do not interleave.
const leastTurns = 5

// blockSpread is the spread of a ratio from block to block that gates are
// checked against: what METHODOLOGY measured for turns and for whole
// windows, rounded.
func blockSpread(m Interleave) float64 {
	if m == Windows {
		return 0.10
	}
	return 0.02
}

func (d *decoder) checkPlan(s *Spec) {
	for i, sc := range s.Scenarios {
		if least := leastTurns * s.Plan.Turn; sc.Interleave == Turns && sc.Window < least {
			d.errorOn(d.windowNode(i), kindPlan, fmt.Sprintf("scenario %s: a window of %s holds fewer than %d turns of %s", sc.Name, shortDuration(sc.Window), leastTurns, s.Plan.Turn),
				fmt.Sprintf("make the window %s or longer", shortDuration(max(least, 100*time.Millisecond))))
			break
		}
	}
	d.checkBudget(s)
	d.checkBlocks(s)
	d.checkLevels(s)
}

// windowNode is where the window of a scenario is said.
func (d *decoder) windowNode(i int) *node {
	mark := d.marks.scenarios[i]
	if n := mark.body.get("window"); n != nil {
		return n
	}
	if d.marks.plan != nil {
		for _, key := range []string{"window", "turn"} {
			if n := d.marks.plan.get(key); n != nil {
				return n
			}
		}
	}
	return mark.key
}

// planNode is where a key of the plan is said.
func (d *decoder) planNode(key string) *node {
	if d.marks.plan == nil {
		return d.marks.root.node
	}
	if n := d.marks.plan.get(key); n != nil {
		return n
	}
	return d.marks.plan
}

// LeastTime is the least measuring time that the plan takes: its smallest
// number of blocks, each with every scenario's warm-up and window for every
// copy, and no time for starts.
func (s *Spec) LeastTime() time.Duration {
	var block time.Duration
	for _, sc := range s.Scenarios {
		arms := 0
		for _, a := range s.Arms {
			if sc.has(a.Name) {
				arms++
			}
		}
		copies := time.Duration(arms * s.Plan.Copies)
		if sc.Interleave == Together {
			copies = 1
		}
		block += copies * (sc.Warmup + sc.Window)
	}
	return time.Duration(s.Plan.Blocks.Min) * block
}

func (d *decoder) checkBudget(s *Spec) {
	least := s.LeastTime()
	if s.Plan.Budget == 0 || s.Plan.Budget >= least {
		return
	}
	d.errorOn(d.planNode("budget"), kindPlan,
		fmt.Sprintf("budget: %s cannot hold the smallest plan: %s of %s take %s, starts not counted",
			shortDuration(s.Plan.Budget), plural(s.Plan.Blocks.Min, "block", "blocks"), plural(len(s.Scenarios), "scenario", "scenarios"), shortDuration(least.Round(time.Second))),
		fmt.Sprintf("write a budget of %s, a shorter window or warmup, or fewer scenarios", shortDuration((least+least/4).Round(time.Minute)+time.Minute)))
}

// checkBlocks warns of a plan that can mark nothing.
func (d *decoder) checkBlocks(s *Spec) {
	if d.o.Power.MinBlocks == nil {
		return
	}
	alpha := s.Alpha / float64(max(1, len(s.Arms)-1))
	least := d.o.Power.MinBlocks(s.Plan, alpha)
	if least > 0 && least <= s.Plan.Blocks.Max {
		return
	}
	fixed := s.Plan
	for fixed.Blocks.Max < s.Plan.Blocks.Max+200 && (least == 0 || least > fixed.Blocks.Max) {
		fixed.Blocks.Max++
		fixed.Blocks.Min = fixed.Blocks.Max
		least = d.o.Power.MinBlocks(fixed, alpha)
	}
	d.warnOn(d.planNode("blocks"), kindPlan,
		fmt.Sprintf("blocks: %d blocks of %s cannot mark any row at alpha %v, however large its change", s.Plan.Blocks.Max, plural(s.Plan.Copies, "copy", "copies"), s.Alpha),
		fmt.Sprintf("%s can", plural(fixed.Blocks.Max, "block", "blocks")))
}

func plural(n int, one, many string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, one)
	}
	return fmt.Sprintf("%d %s", n, many)
}

// checkLevels warns of gates on changes that the plan cannot tell from
// noise. A gate that names noise itself is sound at any level.
func (d *decoder) checkLevels(s *Spec) {
	if d.o.Power.Resolvable == nil {
		return
	}
	rows := 0
	for _, sc := range s.Scenarios {
		rows += len(s.JudgeOf(sc))
	}
	for i, t := range s.Thresholds {
		spread := d.spreadOf(s, t)
		least := d.o.Power.Resolvable(s.Plan, spread, s.Alpha, rows)
		if math.IsInf(least, 0) || math.IsNaN(least) {
			continue // checkBlocks says that it can mark nothing
		}
		for _, g := range d.marks.thresholds[i].gates {
			if slices.Contains(g.gate.uses.names, "noise") || slices.Contains(g.gate.uses.names, "p") {
				continue
			}
			for _, l := range g.gate.uses.levels {
				if math.Abs(l.level) >= least/2 || l.level == 0 {
					continue
				}
				d.report(d.inexact(g.node, l.at), max(1, l.size), Warning, kindPlan,
					fmt.Sprintf("this plan cannot tell a change of %s from noise: it finds changes of %s and more where ratios spread by %s from block to block", percentText(l.level), percentText(least), percentText(spread)),
					fmt.Sprintf("compare with noise, as in worse > max(noise, %v), or raise plan.blocks", math.Abs(l.level)))
			}
		}
	}
}

// inexact is the place of a byte of a scalar, or of the scalar.
func (d *decoder) inexact(n *node, at int) pos {
	p, ok := d.inside(n, at)
	if !ok {
		return n.pos
	}
	return p
}

// spreadOf is the smallest spread among what a threshold selects.
func (d *decoder) spreadOf(s *Spec, t Threshold) float64 {
	least := math.Inf(1)
	for _, sc := range s.Scenarios {
		if MatchGlob(t.Scenario, sc.Name) || MatchGlob(t.Scenario, sc.ID()) {
			least = min(least, blockSpread(sc.Interleave))
		}
	}
	if math.IsInf(least, 1) {
		return blockSpread(s.Plan.Interleave)
	}
	return least
}

func percentText(f float64) string {
	return fmt.Sprintf("%.2g%%", 100*math.Abs(f))
}

// checkPins checks that the CPU lists agree with each other and with the
// machine.
func (d *decoder) checkPins(s *Spec) {
	root := d.marks.root.node.get("pins")
	server, load := explicitCPUs(s.Pins.Server), explicitCPUs(s.Pins.Load)
	elsewhere := slices.ContainsFunc(s.Arms, func(a Arm) bool { return a.Server != nil && a.Server.Host != "" })
	if both := common(server, load); len(both) > 0 && !elsewhere {
		d.errorOn(root.get("load"), kindPins, fmt.Sprintf("load: CPU %d is among the server's, too", both[0]), "the generator needs CPUs of its own, or it takes time from the server")
	}
	if s.Pins.Require && s.Pins.Server == "none" && s.Pins.Load == "none" {
		d.errorOn(root.get("require"), kindPins, "require: pins are required, and both are none", "")
	}
	if len(load) > 0 && len(load) < s.Generator.CPUs {
		d.errorOn(root.get("load"), kindPins, fmt.Sprintf("load: the generator has %d CPUs (generator.cpus), and the list has %d", s.Generator.CPUs, len(load)), "")
	}
	if len(d.o.CPUs) == 0 {
		return
	}
	for _, p := range []struct {
		key  string
		cpus []int
	}{{"server", server}, {"load", load}} {
		if p.key == "server" && elsewhere {
			continue // what that machine has is known when it is reached
		}
		for _, c := range p.cpus {
			if !slices.Contains(d.o.CPUs, c) {
				d.warnOn(root.get(p.key), kindPins, fmt.Sprintf("%s: this machine has no CPU %d", p.key, c), "another machine may have it; auto fits any")
				break
			}
		}
	}
}

// explicitCPUs are the CPUs of a list; none for auto and none.
func explicitCPUs(s string) []int {
	cpus, err := parseCPUs(s)
	if err != nil {
		return nil
	}
	return cpus
}

func common(a, b []int) []int {
	var out []int
	for _, c := range a {
		if slices.Contains(b, c) {
			out = append(out, c)
		}
	}
	return out
}
