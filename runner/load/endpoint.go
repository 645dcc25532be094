package load

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/tandem-bench/tandem/spec"
)

// endpoint is where a target's connections go.
type endpoint struct {
	network string // tcp or unix
	addr    string // host:port, or the path of a socket
	host    string // Host field
	base    string // path prefix
	tls     *tls.Config
	upgrade *wsUpgrade // opens a websocket on each connection; nil: plain HTTP
}

// newEndpoint resolves where a scenario's requests to a target go: to the
// target's address, or to the scenario's own URL. Besides http and https, a
// URL may be unix:/path/of/socket, and so may a target's address.
func newEndpoint(h *spec.HTTP, t Target, env spec.Env) (endpoint, error) {
	e := endpoint{network: "tcp", addr: t.Addr, host: t.Addr}
	secure := h.TLS != nil
	if h.URL != "" {
		text, err := h.URL.Expand(t.Vars, env)
		if err != nil {
			return e, fmt.Errorf("url of the scenario: %w", err)
		}
		if !strings.HasPrefix(text, "unix:") {
			u, err := url.Parse(text)
			if err != nil {
				return e, fmt.Errorf("url of the scenario: %w", err)
			}
			secure = u.Scheme == "https"
			if !secure && u.Scheme != "http" || u.Host == "" {
				return e, fmt.Errorf("url %q of the scenario: expected http://HOST:PORT, https://HOST:PORT or unix:PATH", text)
			}
			e.addr, e.host, e.base = withPort(u), u.Host, strings.TrimSuffix(u.RequestURI(), "/")
		} else {
			e.addr = text
		}
	}
	if path, ok := strings.CutPrefix(e.addr, "unix:"); ok {
		e.network, e.addr, e.host = "unix", strings.TrimPrefix(path, "//"), "localhost"
	}
	if secure {
		config, err := tlsConfig(h.TLS, e.addr)
		if err != nil {
			return e, err
		}
		e.tls = config
	}
	return e, nil
}

// withPort is the host of a URL with the port that its scheme implies.
func withPort(u *url.URL) string {
	if u.Port() != "" {
		return u.Host
	}
	if u.Scheme == "https" {
		return net.JoinHostPort(u.Hostname(), "443")
	}
	return net.JoinHostPort(u.Hostname(), "80")
}

// tlsConfig reads what a scenario says about TLS. Only HTTP/1.1 is offered.
func tlsConfig(t *spec.TLS, addr string) (*tls.Config, error) {
	c := &tls.Config{NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12}
	if host, _, err := net.SplitHostPort(addr); err == nil {
		c.ServerName = host
	}
	if t == nil {
		return c, nil
	}
	if t.ServerName != "" {
		c.ServerName = t.ServerName
	}
	c.InsecureSkipVerify = t.Insecure
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("ca of tls: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("ca of tls: %s holds no PEM certificate", t.CA)
		}
	}
	return c, nil
}

// dial opens one connection, up to a websocket where that is asked for.
func (e *endpoint) dial(ctx context.Context) (net.Conn, error) {
	c, err := e.connect(ctx)
	if err != nil || e.upgrade == nil {
		return c, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := e.upgrade.do(c); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// connect opens one connection, with TLS where that is asked for.
func (e *endpoint) connect(ctx context.Context) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, e.network, e.addr)
	if err != nil || e.tls == nil {
		return c, err
	}
	secured := tls.Client(c, e.tls)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = c.Close()
		return nil, &failure{TLSError, fmt.Errorf("tls handshake with %s: %w", e.addr, err)}
	}
	return secured, nil
}
