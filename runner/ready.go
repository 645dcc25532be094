package runner

import (
	"net"
	"regexp"
	"strconv"
	"strings"

	"github.com/tandem-bench/tandem/runner/proc"
	"github.com/tandem-bench/tandem/spec"
)

// probe makes the probe of a process that is to listen on port.
func (e *execution) probe(r spec.Ready, vars spec.Vars, port int, at prober) (proc.Probe, error) {
	p := proc.Probe{Timeout: r.Timeout, Port: port}
	switch {
	case r.HTTP != "":
		path, err := r.HTTP.Expand(vars, e.Env)
		if err != nil {
			return p, err
		}
		p.HTTP = path
		if !strings.Contains(path, "://") {
			p.HTTP = vars["url"] + "/" + strings.TrimPrefix(path, "/")
		}
	case r.TCP != "":
		addr, err := r.TCP.Expand(vars, e.Env)
		if err != nil {
			return p, err
		}
		p.TCP = addr
		if !strings.Contains(addr, ":") {
			p.TCP = net.JoinHostPort(vars["host"], addr)
		}
	case r.Log != "":
		re, err := regexp.Compile(r.Log)
		if err != nil {
			return p, err
		}
		p.Log = re
	case r.Exec != nil:
		argv, err := r.Exec.Resolve(vars, e.Env)
		if err != nil {
			return p, err
		}
		p.Exec = &proc.Cmd{Name: r.Exec.String(), Argv: argv, Dir: at.dir, Env: proc.Environ(at.Environ(), nil)}
	default:
		p.TCP = net.JoinHostPort(vars["host"], strconv.Itoa(port))
	}
	return p, nil
}

// prober is where the command of a probe runs.
type prober struct {
	machine
	dir string
}

// probeDir is the folder of a server's probe: that of the spec, or, on a host,
// which does not have it, the copy's tree.
func probeDir(host, tree, specDir string) string {
	if host != "" {
		return tree
	}
	return specDir
}

// address is the address of a machine and the URL of a port there.
func address(m machine, port int) (host, url string) {
	return m.Address(), "http://" + net.JoinHostPort(m.Address(), strconv.Itoa(port))
}
