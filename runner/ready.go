package runner

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/tandem-bench/tandem/runner/proc"
	"github.com/tandem-bench/tandem/spec"
)

// probe makes the probe of a process that is to listen on port.
func (e *execution) probe(r spec.Ready, vars spec.Vars, port int) (proc.Probe, error) {
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
			p.TCP = vars["host"] + ":" + addr
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
		p.Exec = &proc.Cmd{Name: r.Exec.String(), Argv: argv, Dir: e.Spec.Dir, Env: proc.Environ(e.Environ, nil)}
	default:
		p.TCP = vars["host"] + ":" + strconv.Itoa(port)
	}
	return p, nil
}

// address is the URL of a port on this machine.
func address(port int) (host, url string) {
	return "127.0.0.1", fmt.Sprintf("http://127.0.0.1:%d", port)
}
