package runner

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tandem-bench/tandem/runner/journal"
	"github.com/tandem-bench/tandem/runner/load"
	"github.com/tandem-bench/tandem/spec"
)

// answer is what one copy answered to a scenario's request before any load.
type answer struct {
	arm      string
	copy     string // "base#0", for messages
	response *load.Response
	again    *load.Response // a second answer of the same copy, which tells whether its body changes
	err      error
	rank     int // place of the copy in plan order, the baseline's first
}

// checkAll sends the scenario's request to every target, twice to tell a
// body that changes, and judges the answers.
func checkAll(ctx context.Context, d load.Driver, sc spec.Scenario, instances []*instance) ([]answer, journal.Check) {
	answers := make([]answer, len(instances))
	for i, in := range instances {
		t := in.target
		a := answer{arm: t.Vars["arm"], copy: t.Name, rank: in.rank()}
		a.response, a.err = d.Check(ctx, t)
		if a.err == nil && asks(sc) && sc.Expect == nil {
			a.again, a.err = d.Check(ctx, t)
		}
		answers[i] = a
	}
	// The targets come in the order of their starts; the baseline's answer
	// is what the others are compared with.
	inOrder := slices.Clone(answers)
	slices.SortStableFunc(inOrder, func(a, b answer) int { return a.rank - b.rank })
	return answers, compare(sc, inOrder)
}

// asks reports whether the scenario's own request was sent, so that its
// answer tells whether the copies do the same work.
func asks(sc spec.Scenario) bool {
	return sc.HTTP != nil || sc.Exec != nil && sc.Exec.Request != nil
}

// compare decides whether a scenario can be loaded on all copies: whether
// they do the same work. It is pure.
func compare(sc spec.Scenario, answers []answer) journal.Check {
	c := journal.Check{Scenario: sc.ID(), Outcome: journal.CheckOK}
	for _, a := range answers {
		if a.err != nil {
			c.Outcome, c.Arm = journal.CheckFailed, a.arm
			c.Reason = fmt.Sprintf("%s did not answer the check: %v", a.copy, a.err)
			return c
		}
	}
	if answers[0].response == nil {
		return c // a kind of scenario whose driver has nothing to compare
	}
	if sc.Expect != nil {
		return expected(c, sc.Expect, answers)
	}
	if asks(sc) {
		if done := absent(&c, answers); done {
			return c
		}
	}
	return agree(c, sc, answers)
}

// expected checks every answer against the scenario's expression.
func expected(c journal.Check, expect *spec.Expect, answers []answer) journal.Check {
	for _, a := range answers {
		ok, err := expect.Eval(a.response.Status, a.response.Body, a.response.Header)
		if err == nil && ok {
			continue
		}
		c.Outcome, c.Arm = journal.CheckIncomparable, a.arm
		c.Reason = fmt.Sprintf("%s answered %s, which is not what the scenario expects: %s", a.copy, describe(a.response), expect.Source)
		if err != nil {
			c.Reason += fmt.Sprintf(" (%v)", err)
		}
		return c
	}
	return c
}

// absent recognises a route that only one side has.
func absent(c *journal.Check, answers []answer) bool {
	base := answers[0].arm
	baseLacks, baseHas := false, false
	lacks, has := "", false
	for _, a := range answers {
		missing := a.response.Status == 404 || a.response.Status == 405 || a.response.Status == 501
		fine := a.response.Status < 400
		switch {
		case a.arm == base && missing:
			baseLacks = true
		case a.arm == base && fine:
			baseHas = true
		case missing:
			lacks = a.arm
		case fine:
			has = true
		}
	}
	switch {
	case baseLacks && !baseHas && lacks == "" && has:
		c.Outcome, c.Arm = journal.CheckNew, base
		c.Reason = fmt.Sprintf("the baseline %s answered %s: it does not have this scenario", base, describe(answers[0].response))
	case baseHas && !baseLacks && lacks != "" && !has:
		c.Outcome, c.Arm = journal.CheckRemoved, lacks
		c.Reason = fmt.Sprintf("%s answered %s: it no longer has this scenario", lacks, describe(find(answers, lacks).response))
	default:
		return false
	}
	return true
}

func find(answers []answer, arm string) answer {
	for _, a := range answers {
		if a.arm == arm {
			return a
		}
	}
	return answers[0]
}

// agree requires the same status, body and header names of every copy.
func agree(c journal.Check, sc spec.Scenario, answers []answer) journal.Check {
	first := answers[0]
	differ := func(a answer, format string, args ...any) journal.Check {
		c.Outcome, c.Arm = journal.CheckIncomparable, a.arm
		c.Reason = fmt.Sprintf(format, args...)
		return c
	}
	if asks(sc) && first.response.Status >= 400 {
		c.Outcome, c.Arm = journal.CheckFailed, first.arm
		c.Reason = fmt.Sprintf("%s answered %s: if that is meant, say so with `expect: status == %d`", first.copy, describe(first.response), first.response.Status)
		return c
	}
	for _, a := range answers {
		if a.again != nil && !bytes.Equal(a.response.Body, a.again.Body) {
			return differ(a, "the body that %s answers changes from request to request (%s): say what a valid one is, for example `expect: status == %d`",
				a.copy, firstDifference(a.response.Body, a.again.Body), a.response.Status)
		}
	}
	for _, a := range answers[1:] {
		if a.response.Status != first.response.Status {
			return differ(a, "%s answered %s, and %s answered %s", first.copy, describe(first.response), a.copy, describe(a.response))
		}
		if !bytes.Equal(a.response.Body, first.response.Body) {
			return differ(a, "the bodies of %s and %s differ (%s): if both are right, say what a valid one is with `expect:`",
				first.copy, a.copy, firstDifference(first.response.Body, a.response.Body))
		}
		if missing, extra := headerNames(first.response, a.response); missing != "" || extra != "" {
			return differ(a, "the header names of %s and %s differ (%s): if both are right, say what a valid answer is with `expect:`",
				first.copy, a.copy, strings.TrimSuffix(strings.TrimPrefix(missing+"; "+extra, "; "), "; "))
		}
	}
	return c
}

func headerNames(base, other *load.Response) (missing, extra string) {
	list := func(have, lack map[string][]string) string {
		var names []string
		for name := range have {
			if _, ok := lack[name]; !ok {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return strings.Join(names, ", ")
	}
	if m := list(base.Header, other.Header); m != "" {
		missing = "missing " + m
	}
	if e := list(other.Header, base.Header); e != "" {
		extra = "added " + e
	}
	return missing, extra
}

// describe is a response in a few words.
func describe(r *load.Response) string {
	return fmt.Sprintf("status %d with %d bytes%s", r.Status, len(r.Body), quoteStart(r.Body))
}

func quoteStart(body []byte) string {
	if len(body) == 0 {
		return ""
	}
	const most = 40
	if len(body) <= most {
		return fmt.Sprintf(" (%q)", body)
	}
	return fmt.Sprintf(" (%q...)", body[:most])
}

// firstDifference shows where two bodies part.
func firstDifference(a, b []byte) string {
	at := 0
	for at < len(a) && at < len(b) && a[at] == b[at] {
		at++
	}
	part := func(s []byte) string {
		end := min(len(s), at+24)
		if at >= end {
			return "the end"
		}
		return fmt.Sprintf("%q", s[at:end])
	}
	return fmt.Sprintf("at byte %d: %s, and %s", at, part(a), part(b))
}
