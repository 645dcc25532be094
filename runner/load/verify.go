package load

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"

	"github.com/tandem-bench/tandem/spec"
)

// hold tells a variant which response to hold the answers to, and by which
// expression.
func (v *variant) hold(expected *Response, expect *spec.Expect) {
	v.expect = expect
	if expect != nil {
		v.byHeader = strings.Contains(expect.Source, "header")
		v.asked.keep = true
	}
	if expected != nil {
		v.status = expected.Status
		v.asked.compare, v.asked.want = true, expected.Body
	}
}

// verify judges a complete response. It returns nil for a valid one. The
// expression is evaluated only for a response whose bytes were not judged
// before.
func (v *variant) verify(p *parser) *failure {
	if p.frames != nil {
		return p.frames.failed
	}
	status := p.head.status
	same := v.asked.compare && !p.differs && status == v.status
	if same && !v.byHeader {
		return nil
	}
	if v.expect == nil {
		return v.verdict(p)
	}
	body := p.body
	if !p.kept {
		body = v.asked.want
	}
	if status == v.passCode && bytes.Equal(body, v.passed) && (!v.byHeader || bytes.Equal(p.raw, v.passHead)) {
		return nil
	}
	ok, err := v.expect.Eval(status, body, headerMap(p.raw))
	switch {
	case err != nil:
		return &failure{Body, fmt.Errorf("expect %q: %w", v.expect.Source, err)}
	case !ok && v.asked.compare && status != v.status, !ok && !success(status):
		return &failure{Status, fmt.Errorf("status %d does not satisfy %q", status, v.expect.Source)}
	case !ok:
		return &failure{Body, fmt.Errorf("status %d with body %q does not satisfy %q", status, clip(body), v.expect.Source)}
	}
	v.passCode = status
	v.passed = append(v.passed[:0], body...)
	v.passHead = append(v.passHead[:0], p.raw...)
	return nil
}

// verdict judges by status and body alone.
func (v *variant) verdict(p *parser) *failure {
	switch {
	case v.status == 0 && !success(p.head.status):
		return &failure{Status, fmt.Errorf("status %d %s: expected one from 200 to 399", p.head.status, http.StatusText(p.head.status))}
	case v.status != 0 && p.head.status != v.status:
		return &failure{Status, fmt.Errorf("status %d %s: expected %d as in the check", p.head.status, http.StatusText(p.head.status), v.status)}
	case v.asked.compare && p.differs:
		return &failure{Body, fmt.Errorf("a body of %d bytes is not the one of %d bytes that the check got", p.seen, len(v.asked.want))}
	}
	return nil
}

func success(status int) bool { return status >= 200 && status < 400 }
