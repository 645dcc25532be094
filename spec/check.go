package spec

import (
	"fmt"
	"path/filepath"
	"strings"
)

// check is the second pass: what can be said only when the whole spec is
// known.
func (d *decoder) check(s *Spec) {
	if len(s.Scenarios) == 0 || len(s.Arms) == 0 {
		return
	}
	d.checkJudge(s)
	d.checkThresholds(s)
	d.checkServers(s)
	d.checkHosts(s)
	d.checkScenarios(s)
	d.checkPins(s)
	d.checkPlan(s)
	d.checkTrees(s)
	d.checkRevisions(s)
	d.checkReports(s)
}

// checkServers checks that what is loaded is started, and drops servers
// that nothing loads.
func (d *decoder) checkServers(s *Spec) {
	needed := false
	for i, sc := range s.Scenarios {
		if !sc.needsServer() {
			continue
		}
		needed = true
		for _, a := range s.Arms {
			if a.Server == nil && sc.has(a.Name) && !d.broken(a.Name) {
				d.errorOn(d.marks.scenarios[i].key, kindUndefined, fmt.Sprintf("scenario %s loads a server, and arm %s has none", sc.Name, a.Name),
					"add server: { command: ... }; ${port} in it is the port that a copy listens on")
				break
			}
		}
	}
	if needed {
		d.checkPorts(s)
		return
	}
	for i := range s.Arms {
		s.Arms[i].Server = nil
	}
	if n := d.marks.root.keyNode("server"); n != nil && !HasErrors(d.diags) {
		d.warnOn(n, kindUndefined, "server: no scenario loads it, so it is not started", "")
	}
}

// broken reports whether an arm or its server could not be read, so that no
// more is said about it.
func (d *decoder) broken(arm string) bool {
	n := d.marks.root.node.get("arms").get(arm)
	server := d.marks.root.node.get("server")
	return n == nil || d.errorWithin(n) || server != nil && d.errorWithin(server) || d.marks.root.meant["server"]
}

// errorWithin reports whether an error stands in a part of the document.
func (d *decoder) errorWithin(n *node) bool {
	last := n
	for len(last.items)+len(last.fields) > 0 {
		if last.kind == seqKind {
			last = last.items[len(last.items)-1]
		} else {
			last = last.fields[len(last.fields)-1].val
		}
	}
	from, to := n.pos, pos{last.pos.line, last.pos.col + max(1, runes(last.text))}
	if last.style == literalStyle || last.style == foldedStyle {
		to = pos{last.pos.line + strings.Count(last.text, "\n") + 1, 0}
	}
	for _, diag := range d.diags {
		p := pos{diag.Line, diag.Column}
		if diag.Severity == Error && !p.before(from) && !to.before(p) {
			return true
		}
	}
	return false
}

// needsServer reports whether a scenario is about an arm's server.
func (s Scenario) needsServer() bool {
	switch {
	case s.HTTP != nil:
		return s.HTTP.URL == ""
	case s.WS != nil:
		return s.WS.URL == ""
	}
	return s.Exec != nil
}

// has reports whether an arm has the scenario.
func (s Scenario) has(arm string) bool {
	if s.Arms == nil {
		return true
	}
	for _, a := range s.Arms {
		if a == arm {
			return true
		}
	}
	return false
}

// checkPorts checks that a server learns its port: several copies run at
// once, so a port of the server's own choice serves only one of them.
func (d *decoder) checkPorts(s *Spec) {
	for i, a := range s.Arms {
		if a.Server == nil || mentionsPort(a) || d.broken(a.Name) {
			continue
		}
		n := d.marks.arms[i]
		if root := d.marks.root.node.get("server"); root != nil && root.get("command") != nil {
			n = root.get("command")
		}
		d.errorOn(n, kindReference, "server: nothing tells it its port, and several copies run at once",
			"put ${port} where the server reads its port: in command, or in env, such as env: { PORT: \"${port}\" }")
		return
	}
}

func mentionsPort(a Arm) bool {
	texts := append([]Template{a.Server.Command.Shell}, a.Server.Command.Argv...)
	for _, v := range a.Server.Env {
		texts = append(texts, v)
	}
	for _, t := range texts {
		if strings.Contains(string(t), "${port}") || strings.Contains(string(t), "${url}") {
			return true
		}
	}
	return false
}

// checkScenarios checks keys against the kind of the scenario.
func (d *decoder) checkScenarios(s *Spec) {
	for i, sc := range s.Scenarios {
		mark := d.marks.scenarios[i]
		if n := mark.body.keyNode("errors"); n != nil && sc.Command != nil {
			d.errorOn(n, kindConflict, fmt.Sprintf("scenario %s: errors is a share of requests, and a command has none", sc.Name), "")
		}
		if sc.Exec != nil {
			d.checkExec(sc, mark)
		}
	}
}

// checkExec checks that a load tool learns what to load.
func (d *decoder) checkExec(sc Scenario, mark scenarioMark) {
	text := string(sc.Exec.Command.Shell)
	for _, a := range sc.Exec.Command.Argv {
		text += " " + string(a)
	}
	for _, v := range sc.Exec.Env {
		text += " " + string(v)
	}
	if text != "" && !strings.Contains(text, "${url}") && !strings.Contains(text, "${port}") && !strings.Contains(text, "${request}") {
		d.warnOn(mark.body.get("exec").get("command"), kindReference, "command: nothing tells the load tool which copy to load", "put ${url} or ${port} where it reads its target")
	}
}

func (s Scenario) kindName() string {
	switch {
	case s.HTTP != nil:
		return "http"
	case s.WS != nil:
		return "ws"
	case s.Exec != nil:
		return "exec"
	}
	return "a command"
}

// checkTrees warns where arms are different parts of a repository: a folder
// below its root, and a revision, whose tree starts at the root.
func (d *decoder) checkTrees(s *Spec) {
	for i, a := range s.Arms {
		for _, b := range s.Arms {
			if a.Path == "" || b.Git == nil || a.Path == b.Git.Repo || !within(b.Git.Repo, a.Path) || !d.isFolder(a.Path) {
				continue
			}
			rel, _ := filepath.Rel(b.Git.Repo, a.Path)
			d.warnOn(d.marks.arms[i], kindPath, fmt.Sprintf("arm %s is the folder %s of the repository, and the tree of arm %s starts at its root", a.Name, filepath.ToSlash(rel), b.Name),
				"steps and servers would start in different folders; name the root as dir, and use dir: in steps and server")
			return
		}
	}
}

// checkRevisions asks whether revisions exist, where the caller can tell.
func (d *decoder) checkRevisions(s *Spec) {
	if d.o.Resolve == nil {
		return
	}
	for _, g := range d.marks.git {
		if err := d.o.Resolve(*g.git); err != nil {
			d.errorOn(g.node, kindGit, fmt.Sprintf("git: %v", err), "")
		}
	}
}

// checkReports refuses two reports in one file.
func (d *decoder) checkReports(s *Spec) {
	root := d.marks.root.node.get("report")
	for i, o := range s.Report {
		for _, earlier := range s.Report[:i] {
			if filepath.Clean(o.Path) == filepath.Clean(earlier.Path) {
				d.errorOn(root.get(o.Format), kindConflict, fmt.Sprintf("report: %s and %s are written to one file, %s", earlier.Format, o.Format, o.Path), "")
			}
		}
	}
}
