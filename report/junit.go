package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tandem-bench/tandem/spec"
)

// The wire form of a JUnit file, as far as CI systems read it.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Skipped  int          `xml:"skipped,attr"`
		Time     string       `xml:"time,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name       string          `xml:"name,attr"`
		Tests      int             `xml:"tests,attr"`
		Failures   int             `xml:"failures,attr"`
		Errors     int             `xml:"errors,attr"`
		Skipped    int             `xml:"skipped,attr"`
		Time       string          `xml:"time,attr"`
		Timestamp  string          `xml:"timestamp,attr"`
		Hostname   string          `xml:"hostname,attr"`
		Properties []junitProperty `xml:"properties>property"`
		Cases      []junitCase     `xml:"testcase"`
		Out        string          `xml:"system-out,omitempty"`
	}
	junitProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitCase struct {
		Name      string        `xml:"name,attr"`
		Classname string        `xml:"classname,attr"`
		Time      string        `xml:"time,attr"`
		Failure   *junitProblem `xml:"failure,omitempty"`
		Error     *junitProblem `xml:"error,omitempty"`
		Skipped   *junitProblem `xml:"skipped,omitempty"`
		Out       string        `xml:"system-out,omitempty"`
	}
	junitProblem struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
)

// writeJUnit writes a test suite for each scenario, with a test case for each
// gate, and for each judged row that has none. A failed gate is a failure, a
// row that could not be measured an error, an unsure row without a gate is
// skipped.
func writeJUnit(w io.Writer, a *Analysis, _ RenderOptions) error {
	doc := junitSuites{Name: plain(a.Spec.Name), Time: seconds(a.Finished.Sub(a.Header.Started))}
	suites := a.scenarios()
	if slices.ContainsFunc(a.Gates, func(g GateResult) bool { return g.Scenario == "" }) {
		suites = append(suites, "") // gates of the whole run
	}
	for _, scenario := range suites {
		s := a.junitSuite(scenario)
		doc.Tests, doc.Failures = doc.Tests+s.Tests, doc.Failures+s.Failures
		doc.Errors, doc.Skipped = doc.Errors+s.Errors, doc.Skipped+s.Skipped
		doc.Suites = append(doc.Suites, s)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(doc); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (a *Analysis) junitSuite(scenario string) junitSuite {
	name := plain(scenario)
	if name == "" {
		name = "the benchmark"
	}
	s := junitSuite{
		Name: name, Time: "0", Hostname: plain(a.Header.Host.CPU), Timestamp: a.Header.Started.UTC().Format("2006-01-02T15:04:05"),
		Properties: []junitProperty{
			{"baseline", plain(a.Baseline.Name)}, {"seed", fmt.Sprint(a.Header.Seed)}, {"alpha", float(a.Spec.Alpha)}, {"run", plain(a.Header.ID)},
		},
	}
	gated := map[rowKey]bool{}
	for _, g := range a.Gates {
		if g.Scenario == scenario {
			gated[rowKey{g.Scenario, g.Arm, g.Metric}] = true
			s.add(a.gateCase(g))
		}
	}
	for i := range a.Rows {
		r := &a.Rows[i]
		if r.Scenario == scenario && r.Judged && !gated[rowKey{r.Scenario, r.Head.Arm, r.Metric}] {
			s.add(r.junitCase())
		}
	}
	return s
}

func (s *junitSuite) add(c junitCase) {
	s.Tests++
	switch {
	case c.Failure != nil:
		s.Failures++
	case c.Error != nil:
		s.Errors++
	case c.Skipped != nil:
		s.Skipped++
	}
	s.Cases = append(s.Cases, c)
}

func (a *Analysis) gateCase(g GateResult) junitCase {
	what := g.Source
	if what == "" {
		what = "policy " + g.Policy
	}
	c := junitCase{Name: plain(fmt.Sprintf("%s of %s: %s", g.Metric, g.Arm, what)), Classname: plain(g.Scenario), Time: "0"}
	if g.Scenario == "" {
		c.Name, c.Classname = plain(what), "the benchmark"
	}
	p := &junitProblem{Message: a.gateText(g), Type: g.Policy, Text: strings.Join(append([]string{a.gateText(g)}, newOutput(g.Reason).lines...), "\n")}
	if p.Type == "" {
		p.Type = "threshold"
	}
	switch {
	case g.Level == spec.Fail && (g.Undecided || g.Policy == string(Failed) || g.Policy == string(Incomparable)):
		c.Error = p
	case g.Level == spec.Fail:
		c.Failure = p
	default:
		c.Out = string(g.Level) + ": " + a.gateText(g)
	}
	return c
}

func (r *Row) junitCase() junitCase {
	c := junitCase{Name: plain(r.Metric + " of " + r.Head.Arm), Classname: plain(r.Scenario), Time: "0"}
	switch {
	case !r.Verdict.measured():
		c.Skipped = &junitProblem{Message: join(string(r.Verdict), brief(r.Reason)), Type: string(r.Verdict)}
	case r.Verdict == Unsure:
		c.Skipped = &junitProblem{Message: r.sentence(true), Type: string(r.Verdict)}
	default:
		c.Out = string(r.Verdict) + ": " + r.sentence(true)
	}
	return c
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
