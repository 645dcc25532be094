package spec

import (
	"fmt"
	"slices"
	"strings"
)

// defaultHostDir is where Tandem keeps its files on a host, relative to the
// home folder there.
const defaultHostDir = ".cache/tandem"

const hostsHint = "write hosts: { db: { ssh: user@host } }"

// hostMark is where a host is named.
type hostMark struct {
	node *node
	name string
}

// hosts decodes the other machines.
func (d *decoder) hosts(v value) []Host {
	var out []Host
	d.names(v, "a mapping of names to hosts", hostsHint, func(name string, key *node, v value) {
		d.name(key, "host", false)
		d.marks.hosts = append(d.marks.hosts, key)
		out = append(out, d.host(name, v))
	})
	return out
}

func (d *decoder) host(name string, v value) Host {
	h := Host{Name: name, Dir: defaultHostDir}
	m, ok := d.object(v, hostObject)
	if !ok || !m.require("ssh", "ssh: says how the host is reached: user@host, or a name from ~/.ssh/config") {
		return h
	}
	m.on("ssh", func(v value) { h.SSH = d.destination(v) })
	m.on("address", func(v value) {
		if s, ok := d.str(v, "a host name or an IP address"); ok {
			h.Address = s
			if strings.ContainsAny(s, "/@ \t\n") {
				d.errorOn(v.node, kindBadValue, fmt.Sprintf("address: %s is no address", quote(s)), "a host name or an IP address, without a port")
			}
		}
	})
	m.on("dir", func(v value) {
		if s, ok := d.str(v, "a folder"); ok {
			h.Dir = strings.TrimPrefix(s, "~/")
		}
	})
	return h
}

// destination reads what the ssh client gets as the host to connect to.
func (d *decoder) destination(v value) string {
	s, ok := d.str(v, "an ssh destination such as user@host")
	if !ok {
		return ""
	}
	hint := ""
	switch host := s[strings.LastIndexByte(s, '@')+1:]; {
	case strings.HasPrefix(s, "-"), strings.ContainsAny(s, " \t\n"):
		hint = "user@host, or a name from ~/.ssh/config, where options belong"
	case !strings.HasPrefix(s, "ssh://") && strings.Count(host, ":") == 1:
		hint = "write ssh://" + s + ", or set the port in ~/.ssh/config"
	default:
		return s
	}
	d.errorOn(v.node, kindBadValue, fmt.Sprintf("ssh: %s is no ssh destination", quote(s)), hint)
	return ""
}

// hostRef reads the name of a host; the hosts are known by then.
func (d *decoder) hostRef(v value) string {
	name, ok := d.str(v, "the name of a host")
	if !ok {
		return ""
	}
	d.marks.hostRefs = append(d.marks.hostRefs, hostMark{v.node, name})
	var names []string
	for _, k := range d.marks.hosts {
		names = append(names, k.text)
	}
	if slices.Contains(names, name) {
		return name
	}
	hint := hostsHint
	if len(names) > 0 {
		hint = "hosts: " + strings.Join(names, ", ")
	}
	if near := Nearest(name, names); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	d.errorOn(v.node, kindUndefined, fmt.Sprintf("host: there is no host %q", name), hint)
	return ""
}

// serviceHost reads the host of a service.
func (d *decoder) serviceHost(v value, service mapping) string {
	if k := service.keyNode("user"); k != nil {
		d.errorOn(k, kindConflict, "user: on a host a service runs as who ssh logs in", "name the user in hosts: { ssh: user@host }")
	}
	return d.hostRef(v)
}

// checkHosts checks that arms share a machine, and that each host has a use.
func (d *decoder) checkHosts(s *Spec) {
	where := func(a Arm) string {
		if a.Server.Host == "" {
			return "this machine"
		}
		return "host " + a.Server.Host
	}
	var first *Arm
	for i, a := range s.Arms {
		switch {
		case a.Server == nil || d.broken(a.Name):
		case first == nil:
			first = &s.Arms[i]
		case a.Server.Host != first.Server.Host:
			d.errorOn(d.marks.arms[i], kindConflict, fmt.Sprintf("arm %s runs on %s, and arm %s on %s: that compares machines, not versions", first.Name, where(*first), a.Name, where(a)),
				"name one host for all, under server at the top level")
			return
		}
	}
	for i, sc := range s.Scenarios {
		if sc.Command != nil && first != nil && first.Server.Host != "" {
			d.errorOn(d.marks.scenarios[i].key, kindConflict, fmt.Sprintf("scenario %s: a command runs on this machine, and the servers on host %s", sc.Name, first.Server.Host),
				"put it in a bench.yaml of its own")
			return
		}
	}
	if HasErrors(d.diags) {
		return
	}
	for _, k := range d.marks.hosts {
		if !slices.ContainsFunc(d.marks.hostRefs, func(m hostMark) bool { return m.name == k.text }) {
			d.warnOn(k, kindUndefined, fmt.Sprintf("host %s: nothing runs there", k.text), "name it: server: { host: "+k.text+" }, or in a service")
		}
	}
}
