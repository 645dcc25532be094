package main

import (
	"regexp"
	"runtime/debug"
)

// release is what the linker was told that this is, where the build cannot
// see it: action.yml builds a download that is no git checkout. It is the
// tag, branch or commit that the workflow names.
var release string

var wholeCommit = regexp.MustCompile(`^[0-9a-f]{40}$`)

// version is the module version of the binary, or its commit.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	if v == "" || v == "(devel)" {
		v = ""
		if c := builtFrom(); c != "" {
			v = "commit " + c[:12]
		} else if release != "" {
			v = release
		}
	}
	if v == "" {
		return "development version"
	}
	return v
}

// builtFrom is the whole commit that the binary was built from, where it
// knows it.
func builtFrom() string {
	if wholeCommit.MatchString(release) {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	commit := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.modified" && s.Value == "true":
			return "" // what was built is in no commit
		case s.Key == "vcs.revision" && wholeCommit.MatchString(s.Value):
			commit = s.Value
		}
	}
	return commit
}
