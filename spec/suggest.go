package spec

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agext/levenshtein"
)

// Nearest returns the candidate that a misspelled word, of the command line,
// say, was probably meant to be, or "".
func Nearest(word string, candidates []string) string {
	if word == "" || len(word) > 2*maxName {
		return ""
	}
	flat := flatten(word)
	best, bestDist := "", 1<<30
	for _, c := range candidates {
		if flatten(c) == flat && c != word {
			return c
		}
		if dist := levenshtein.Distance(word, c, nil); dist < bestDist {
			best, bestDist = c, dist
		}
	}
	if bestDist == 0 || bestDist > reach(word, best) {
		return ""
	}
	return best
}

// reach is how many edits away a suggestion may be. Two letters that changed
// places count as two edits, and are allowed in short words, too.
func reach(word, candidate string) int {
	switch n := utf8.RuneCountInString(word); {
	case n <= 4 && letters(word) != letters(candidate):
		return 1
	case n <= 8:
		return 2
	}
	return 3
}

// letters are the letters of a word, sorted.
func letters(word string) string {
	r := []rune(word)
	slices.Sort(r)
	return string(r)
}

// flatten makes warmUp, warm-up and warm_up the same.
func flatten(s string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "", " ", "").Replace(s))
}

// synonyms are what other tools call our keys. Where several of ours are
// listed, the first that the mapping knows is meant.
var synonyms = map[string][]string{
	"args": {"command", "run"}, "argv": {"command", "run"}, "cmd": {"command", "run"}, "exec": {"command", "run"},
	"run": {"command"}, "start": {"command"}, "script": {"command", "run"}, "command": {"run"}, "entrypoint": {"command"},
	"concurrency": {"connections"}, "conns": {"connections"}, "clients": {"connections"}, "connection": {"connections"},
	"threads": {"connections"}, "vus": {"connections"}, "workers": {"connections"}, "users": {"connections"}, "c": {"connections"},
	"duration": {"window"}, "time": {"window"}, "seconds": {"window"}, "d": {"window"},
	"pipelining": {"pipeline"}, "arrivalrate": {"rate"}, "qps": {"rate"}, "rps": {"rate"},
	"warmups": {"warmup"}, "warmuptime": {"warmup"}, "warm": {"warmup"},
	"rounds": {"blocks"}, "iterations": {"blocks"}, "runs": {"blocks"}, "repeat": {"blocks"}, "repeats": {"blocks"}, "samples": {"blocks"}, "count": {"blocks"}, "trials": {"blocks"},
	"benchmarks": {"scenarios"}, "benchmark": {"scenarios"}, "tests": {"scenarios"}, "workloads": {"scenarios"}, "cases": {"scenarios"}, "scenario": {"scenarios"},
	"variants": {"arms"}, "versions": {"arms"}, "targets": {"arms"}, "branches": {"arms"}, "candidates": {"arms"}, "subjects": {"arms"}, "arm": {"arms"},
	"branch": {"git"}, "ref": {"git"}, "commit": {"git"}, "sha": {"git"}, "tag": {"git"}, "revision": {"git"}, "rev": {"git"},
	"cwd": {"dir"}, "workdir": {"dir"}, "workingdirectory": {"dir"}, "directory": {"dir"}, "path": {"dir"}, "folder": {"dir"}, "root": {"dir"},
	"environment": {"env"}, "envs": {"env"}, "environ": {"env"}, "variables": {"env", "vars"},
	"health": {"ready"}, "healthcheck": {"ready"}, "wait": {"ready"}, "waitfor": {"ready"}, "readiness": {"ready"}, "healthz": {"ready"},
	"url": {"path"}, "uri": {"path"}, "endpoint": {"path"}, "route": {"path"},
	"payload": {"body"}, "data": {"body"}, "json": {"body"}, "form": {"body"}, "verb": {"method"}, "type": {"method"}, "header": {"headers"},
	"msg": {"message"}, "bytes": {"size"}, "length": {"size"},
	"prepare": {"setup", "build"}, "before": {"setup", "prepare"}, "install": {"setup", "build"}, "builds": {"build"}, "steps": {"build"},
	"after": {"cleanup"}, "teardown": {"cleanup"}, "input": {"stdin"}, "exitcode": {"exit"}, "status": {"exit", "expect"},
	"assert": {"expect"}, "check": {"expect"}, "checks": {"expect"}, "validate": {"expect"}, "expected": {"expect"},
	"threshold": {"thresholds"}, "gates": {"thresholds"}, "gate": {"thresholds"}, "limit": {"limits", "fail"}, "metrics": {"judge"}, "measure": {"judge"},
	"if": {"fail"}, "when": {"fail"}, "condition": {"fail"}, "expr": {"fail"}, "error": {"fail"}, "warning": {"warn"},
	"significance": {"alpha"}, "pvalue": {"alpha"}, "confidence": {"alpha"}, "outputs": {"report"}, "output": {"report"}, "reports": {"report"}, "reporters": {"report"},
	"cpus": {"pins", "server"}, "affinity": {"pins"}, "taskset": {"pins"}, "pin": {"pins"}, "client": {"load"}, "generator": {"load"},
	"service": {"services"}, "dependencies": {"services"}, "profile": {"profiles"}, "default": {"defaults"}, "axes": {"matrix"}, "params": {"matrix"}, "parameters": {"matrix"},
	"title": {"name", "label"}, "timelimit": {"budget"}, "deadline": {"budget"}, "maxtime": {"budget"}, "kill": {"signal"},
	"reference": {"baseline"}, "main": {"baseline"}, "control": {"baseline"}, "minimum": {"min"}, "maximum": {"max"}, "schedule": {"interleave"}, "order": {"interleave"},
	"memorylimit": {"memory"}, "mem": {"memory"}, "files": {"nofile"}, "ulimit": {"nofile"}, "procs": {"processes"}, "pids": {"processes"},
	"keepalives": {"keepalive"}, "pause": {"think"}, "sleep": {"think"}, "delay": {"think"}, "requesttimeout": {"timeout"},
}

// synonym returns our key for another tool's word.
func synonym(word string, keys []string) string {
	flat := flatten(word)
	for _, c := range synonyms[flat] {
		if slices.Contains(keys, c) {
			return c
		}
	}
	return ""
}
