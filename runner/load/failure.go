package load

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
)

// keptFailures is how many failures of each class are kept verbatim.
const keptFailures = 3

// failure is why a request is no valid response.
type failure struct {
	class Class
	err   error
}

// Error is the reason without its class.
func (f *failure) Error() string { return f.err.Error() }

// Unwrap gives the cause.
func (f *failure) Unwrap() error { return f.err }

// failf makes a failure of a class.
func failf(c Class, format string, args ...any) *failure {
	return &failure{class: c, err: fmt.Errorf(format, args...)}
}

// classify sorts an error of a connection or a parser into its class.
func classify(err error) Class {
	var f *failure
	var timeout net.Error
	switch {
	case errors.As(err, &f):
		return f.class
	case errors.Is(err, syscall.ECONNREFUSED):
		return ConnectRefused
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return AddrUnavailable
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return FDLimit
	case isTLS(err):
		return TLSError
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNABORTED):
		return ReadReset
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return EOF
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, syscall.ETIMEDOUT):
		return Timeout
	case errors.As(err, &timeout) && timeout.Timeout():
		return Timeout
	default:
		return Other
	}
}

// classifyConnect is classify for an error of connecting.
func classifyConnect(err error) Class {
	if c := classify(err); c != Timeout {
		return c
	}
	return ConnectTimeout
}

// isTLS reports whether err came from the TLS handshake or record layer.
func isTLS(err error) bool {
	var (
		record tls.RecordHeaderError
		alert  tls.AlertError
		verify *tls.CertificateVerificationError
		author x509.UnknownAuthorityError
		name   x509.HostnameError
		cert   x509.CertificateInvalidError
	)
	return errors.As(err, &record) || errors.As(err, &alert) || errors.As(err, &verify) ||
		errors.As(err, &author) || errors.As(err, &name) || errors.As(err, &cert)
}

// tally counts failures by class and keeps the first few of each. The zero
// value is ready.
type tally struct {
	counts []ErrorCount
}

// add counts n failures of one class. The text of err is taken only while it
// is still going to be kept, so that a flood of failures costs no memory.
func (t *tally) add(c Class, n int64, err error) {
	for i := range t.counts {
		if t.counts[i].Class == c {
			t.counts[i].Count += n
			t.counts[i].keep(err)
			return
		}
	}
	t.counts = append(t.counts, ErrorCount{Class: c, Count: n})
	t.counts[len(t.counts)-1].keep(err)
}

// merge adds the counts of another tally.
func (t *tally) merge(o *tally) {
	for _, e := range o.counts {
		t.add(e.Class, e.Count, nil)
		for i := range t.counts {
			if t.counts[i].Class == e.Class {
				first := append(t.counts[i].First, e.First...)
				t.counts[i].First = first[:min(len(first), keptFailures)]
			}
		}
	}
}

// keep keeps the text of err if it is among the first.
func (e *ErrorCount) keep(err error) {
	if err != nil && len(e.First) < keptFailures {
		e.First = append(e.First, err.Error())
	}
}
