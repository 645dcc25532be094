package runner

import (
	"errors"
	"strings"
	"testing"

	"github.com/tandem-bench/tandem/runner/journal"
	"github.com/tandem-bench/tandem/runner/load"
	"github.com/tandem-bench/tandem/spec"
)

func reply(status int, body string, headers ...string) *load.Response {
	h := map[string][]string{"Content-Length": {"5"}}
	for _, name := range headers {
		h[name] = []string{"x"}
	}
	return &load.Response{Status: status, Body: []byte(body), Header: h}
}

func TestCompare(t *testing.T) {
	both := func(base, head *load.Response) []answer {
		return []answer{
			{arm: "base", copy: "base#0", response: base}, {arm: "base", copy: "base#1", response: base},
			{arm: "head", copy: "head#0", response: head}, {arm: "head", copy: "head#1", response: head},
		}
	}
	changing := both(reply(200, "at 1"), reply(200, "at 1"))
	changing[2].again = reply(200, "at 2")
	dead := both(reply(200, "hello"), reply(200, "hello"))
	dead[3].err = errors.New("connection refused")
	tests := []struct {
		name    string
		answers []answer
		outcome string
		reason  string
	}{
		{"alike", both(reply(200, "hello"), reply(200, "hello")), journal.CheckOK, ""},
		{"another body", both(reply(200, "hello"), reply(200, "help!")), journal.CheckIncomparable, `at byte 3: "lo", and "p!"`},
		{"a shorter body", both(reply(200, "hello"), reply(200, "hel")), journal.CheckIncomparable, `at byte 3: "lo", and the end`},
		{"another status", both(reply(200, "hello"), reply(302, "hello")), journal.CheckIncomparable, "head#0 answered status 302"},
		{"a header more", both(reply(200, "hello"), reply(200, "hello", "X-New")), journal.CheckIncomparable, "added X-New"},
		{"a header less", both(reply(200, "hello", "Etag"), reply(200, "hello")), journal.CheckIncomparable, "missing Etag"},
		{"errors on both sides", both(reply(500, "oops"), reply(500, "oops")), journal.CheckFailed, "expect: status == 500"},
		{"an error in the candidate", both(reply(200, "hello"), reply(500, "oops")), journal.CheckIncomparable, "status 500 with 4 bytes"},
		{"only the candidate has it", both(reply(404, "no"), reply(200, "hello")), journal.CheckNew, "the baseline base answered status 404"},
		{"only the baseline has it", both(reply(200, "hello"), reply(404, "no")), journal.CheckRemoved, "head answered status 404"},
		{"neither has it", both(reply(404, "no"), reply(404, "no")), journal.CheckFailed, "expect: status == 404"},
		{"a body that changes", changing, journal.CheckIncomparable, "changes from request to request"},
		{"no answer", dead, journal.CheckFailed, "head#1 did not answer the check: connection refused"},
	}
	sc := spec.Scenario{Name: "s", HTTP: &spec.HTTP{}}
	for _, tt := range tests {
		got := compare(sc, tt.answers)
		if got.Outcome != tt.outcome || !strings.Contains(got.Reason, tt.reason) {
			t.Errorf("%s: %s (%s), want %s (%s)", tt.name, got.Outcome, got.Reason, tt.outcome, tt.reason)
		}
	}
}
