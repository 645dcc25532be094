package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocumentedCommandsAreRun holds every tandem command that the README and
// the examples show against the scripts: what a reader is told to type is
// typed by a test.
func TestDocumentedCommandsAreRun(t *testing.T) {
	docs, err := filepath.Glob("../../examples/*/README.md")
	if err != nil {
		t.Fatal(err)
	}
	run := scripted(t)
	count := 0
	for _, doc := range append(docs, "../../README.md") {
		data, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, command := range documented(string(data)) {
			count++
			if !run[command] && !exampleRun.MatchString(command) {
				t.Errorf("%s shows `%s`, and no script in testdata/script runs it", doc, command)
			}
		}
	}
	if count < 8 {
		t.Errorf("found only %d commands: does the test still recognise them?", count)
	}
}

// exampleRun is the run of an example, which the tests in examples/ do, with
// each of its profiles checked.
var exampleRun = regexp.MustCompile(`^tandem run -f examples/[a-z-]+/[a-z-]+\.yaml( --profile [a-z]+)?$`)

var inlineCode = regexp.MustCompile("`([^`]+)`")

// documented returns the tandem commands of a Markdown text: in code blocks
// and in inline code.
func documented(text string) []string {
	var found []string
	add := func(line string) {
		line, _, _ = strings.Cut(line, "   #")
		line = strings.TrimPrefix(strings.TrimSpace(line), "$ ")
		line = strings.Replace(line, "go run ./cmd/tandem ", "tandem ", 1)
		if strings.HasPrefix(line, "tandem ") && !strings.Contains(line, "VERB") {
			found = append(found, strings.TrimSpace(line))
		}
	}
	fenced := false
	for _, line := range strings.Split(text, "\n") {
		switch {
		case strings.HasPrefix(line, "```"):
			fenced = !fenced
		case fenced || strings.HasPrefix(line, "    "):
			add(line)
		default:
			for _, m := range inlineCode.FindAllStringSubmatch(line, -1) {
				add(m[1])
			}
		}
	}
	return found
}

// scripted returns the commands that the scripts run.
func scripted(t *testing.T) map[string]bool {
	t.Helper()
	run := map[string]bool{}
	files, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	before := regexp.MustCompile(`^(! |\? )?(exec|exits \d+) `)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(string(data), "\n") {
			if prefix := before.FindString(line); prefix != "" {
				run[strings.TrimSpace(strings.ReplaceAll(line[len(prefix):], "'", ""))] = true
			}
		}
	}
	return run
}
