package scaffold

import (
	"bytes"
	"embed"
	"fmt"
	"path"
	"regexp"
	"strings"
	"text/template"
)

// WorkflowOptions is what the GitHub workflows of a repository depend on.
type WorkflowOptions struct {
	Tandem string // the commit of tandem that they install, 40 hexadecimal digits
	Label  string // its version, for readers; may be empty
	File   string // the spec, from the repository's root, with slashes; "": bench.yaml there
	Shards int    // jobs that share the scenarios; below 2: one measures all
}

// File is a file to write, its path with slashes.
type File struct{ Path, Text string }

// MaxShards is as many jobs as GitHub runs of one matrix.
const MaxShards = 256

// The actions of the workflows, each pinned by the commit of a release. A tag
// can be moved to other code by whoever takes over its repository.
const (
	actionCheckout = "3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1"
	actionUpload   = "043fb46d1a93c77aae656e7c1c64a875d1fc6a0a # v7.0.1"
	actionDownload = "3e5f45b2cfb9172054b4087a40e8e0b5a5461e7c # v8.0.1"
)

//go:embed github/*.yml
var workflowFiles embed.FS

var (
	fullCommit = regexp.MustCompile(`^[0-9a-f]{40}$`)
	// plainPath is a path that means itself in a shell and in YAML.
	plainPath = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._/-]*$`)
	plainWord = regexp.MustCompile(`^[A-Za-z0-9._+-]{1,80}$`)
)

// Workflows writes the two workflows of a repository on GitHub: one that
// measures each pull request without any right to write, and one that
// comments without running anything of the pull request.
func Workflows(o WorkflowOptions) ([]File, error) {
	if !fullCommit.MatchString(o.Tandem) {
		return nil, fmt.Errorf("found %q for the commit of tandem, expected the 40 hexadecimal digits of one", o.Tandem)
	}
	if o.Shards < 0 || o.Shards > MaxShards {
		return nil, fmt.Errorf("found %d shards, expected 2 to %d", o.Shards, MaxShards)
	}
	if o.File != "" && (!plainPath.MatchString(o.File) || path.Clean(o.File) != o.File) {
		return nil, fmt.Errorf("the path %q of the spec cannot stand in a workflow as it is: use letters, digits, and . _ - /", o.File)
	}
	values := workflowValues(o)
	var out []File
	for _, name := range []string{"bench.yml", "bench-comment.yml"} {
		text, err := workflowFiles.ReadFile("github/" + name)
		if err != nil {
			return nil, err
		}
		t, err := template.New(name).Delims("[[", "]]").Option("missingkey=error").Parse(string(text))
		if err != nil {
			return nil, err
		}
		var b bytes.Buffer
		if err := t.Execute(&b, values); err != nil {
			return nil, err
		}
		out = append(out, File{".github/workflows/" + name, b.String()})
	}
	return out, nil
}

// workflowValues fills the templates.
func workflowValues(o WorkflowOptions) map[string]any {
	tandem := o.Tandem
	if plainWord.MatchString(o.Label) {
		tandem += " # " + o.Label
	}
	file := ""
	if o.File != "" && o.File != "bench.yaml" {
		file = " -f " + o.File
	}
	shards := 0
	var list []string
	if o.Shards > 1 {
		shards = o.Shards
		for k := range shards {
			list = append(list, fmt.Sprint(k+1))
		}
	}
	return map[string]any{
		"Tandem": tandem, "File": file, "Shards": shards, "List": "[" + strings.Join(list, ", ") + "]",
		"Checkout": actionCheckout, "Upload": actionUpload, "Download": actionDownload,
	}
}
