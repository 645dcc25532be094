package spec

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/textproto"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	tandem "github.com/tandem-bench/tandem"
)

// TestEditor opens specs in the YAML language server, which is what editors
// run: the modeline finds schema.json, accepted specs have no complaints, a
// misspelled key is flagged, hovering shows what a key means, and keys and
// values are completed. spec/testdata/editor/setup installs the server.
func TestEditor(t *testing.T) {
	server, err := filepath.Abs("testdata/editor/node_modules/yaml-language-server/bin/yaml-language-server")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(server); err != nil {
		t.Fatalf("the YAML language server is not installed: run spec/testdata/editor/setup (it needs node and npm)")
	}
	ok, err := filepath.Glob("testdata/ok/*.yaml")
	if err != nil || len(ok) < 40 {
		t.Fatalf("%d accepted specs: %v", len(ok), err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "schema.json"), tandem.Schema, 0o644); err != nil {
		t.Fatal(err)
	}
	ed := startEditor(t, server, dir)
	t.Run("accepted", func(t *testing.T) {
		for _, file := range ok { // all at once, since the server waits a while before each
			ed.show(t, filepath.Base(file), modeline+string(read(t, file)))
		}
		for _, file := range ok {
			if diags := ed.about(t, filepath.Base(file)); len(diags) > 0 {
				t.Errorf("%s: %v", file, diags)
			}
		}
	})
	t.Run("refused", func(t *testing.T) {
		schema := compileSchema(t)
		refused, err := filepath.Glob("testdata/err/*.yaml")
		if err != nil {
			t.Fatal(err)
		}
		refused = slices.DeleteFunc(refused, func(file string) bool {
			n := document(read(t, file))
			return n == nil || schema.Validate(instance(n)) == nil
		})
		if len(refused) < 200 {
			t.Errorf("the schema refuses %d files of the corpus, expected more", len(refused))
		}
		for _, file := range refused {
			ed.show(t, "err-"+filepath.Base(file), modeline+string(read(t, file)))
		}
		for _, file := range refused {
			silent := len(ed.about(t, "err-"+filepath.Base(file))) == 0
			if _, expected := editorSilent[filepath.Base(file)]; silent != expected {
				t.Errorf("%s: complaints: %v, expected: %v", file, !silent, !expected)
			}
		}
	})
	t.Run("misspelled", func(t *testing.T) {
		diags := ed.open(t, "misspelled.yaml", modeline+validSpec+"plan: { windw: 1s }\n")
		if len(diags) != 1 || !strings.Contains(diags[0].Message, "windw") || diags[0].Range.Start.Line != 5 {
			t.Errorf("got %+v", diags)
		}
	})
	t.Run("no unit", func(t *testing.T) {
		if diags := ed.open(t, "unit.yaml", modeline+validSpec+"plan: { window: 10 }\n"); len(diags) == 0 {
			t.Error("a bare number where a duration is due is not flagged")
		}
	})
	t.Run("hover", func(t *testing.T) {
		ed.open(t, "hover.yaml", modeline+validSpec+"plan: { window: 1s }\n")
		if text := ed.hover(t, "hover.yaml", 5, 10); !strings.Contains(text, "Measuring time of each copy") {
			t.Errorf("got %q", text)
		}
		if text := ed.hover(t, "hover.yaml", 2, 1); !strings.Contains(text, "versions under test") {
			t.Errorf("got %q", text)
		}
	})
	t.Run("completion", func(t *testing.T) {
		ed.open(t, "complete.yaml", modeline+validSpec+"plan:\n  \n")
		labels := ed.complete(t, "complete.yaml", 6, 2)
		for _, key := range planObject.keys {
			if !slices.Contains(labels, key) {
				t.Errorf("%s is not offered under plan: %v", key, labels)
			}
		}
		ed.open(t, "values.yaml", modeline+validSpec+"policy:\n  unsure: \n")
		if labels := ed.complete(t, "values.yaml", 6, 10); !slices.Contains(labels, "fail") {
			t.Errorf("fail is not offered for policy.unsure: %v", labels)
		}
		ed.open(t, "top.yaml", modeline+validSpec+"\n")
		labels = ed.complete(t, "top.yaml", 5, 0)
		for _, key := range []string{"plan", "thresholds", "judge", "profiles"} {
			if !slices.Contains(labels, key) {
				t.Errorf("%s is not offered at the top: %v", key, labels)
			}
		}
	})
}

const modeline = "# yaml-language-server: $schema=./schema.json\n"

// editorSilent are refused specs that the server has nothing to say of,
// though the schema refuses them: it passes over keys that have no value.
var editorSilent = map[string]bool{
	"expr-comma-in-braces.yaml":   true,
	"server-comma-in-braces.yaml": true,
	"yaml-null-key.yaml":          true,
}

// editor is a client of the language server.
type editor struct {
	dir   string
	in    io.Writer
	next  int
	got   chan message
	diags map[string][]lspDiagnostic
}

type message struct {
	ID     *int            `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  json.RawMessage `json:"error,omitempty"`
}

type lspPosition struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

type lspDiagnostic struct {
	Range struct {
		Start lspPosition `json:"start"`
	} `json:"range"`
	Message string `json:"message"`
}

func startEditor(t *testing.T, server, dir string) *editor {
	t.Helper()
	cmd := exec.Command("node", server, "--stdio")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("this test needs node: %v", err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	e := &editor{dir: dir, in: in, got: make(chan message, 100), diags: map[string][]lspDiagnostic{}}
	go e.receive(out)
	e.call(t, "initialize", map[string]any{"processId": nil, "rootUri": "file://" + dir, "capabilities": map[string]any{
		"textDocument": map[string]any{"hover": map[string]any{"contentFormat": []string{"markdown"}}},
	}})
	e.notify(t, "initialized", map[string]any{})
	e.notify(t, "workspace/didChangeConfiguration", map[string]any{"settings": map[string]any{"yaml": map[string]any{
		"validate": true, "hover": true, "completion": true, "schemaStore": map[string]any{"enable": false},
	}}})
	return e
}

// receive reads messages until the server ends.
func (e *editor) receive(out io.Reader) {
	defer close(e.got)
	r := bufio.NewReader(out)
	for {
		header, err := textproto.NewReader(r).ReadMIMEHeader()
		if err != nil {
			return
		}
		size, err := strconv.Atoi(header.Get("Content-Length"))
		if err != nil {
			return
		}
		body := make([]byte, size)
		if _, err := io.ReadFull(r, body); err != nil {
			return
		}
		var m message
		if json.Unmarshal(body, &m) == nil {
			e.got <- m
		}
	}
}

func (e *editor) send(t *testing.T, m any) {
	t.Helper()
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(e.in, "Content-Length: %d\r\n\r\n%s", len(b), b); err != nil {
		t.Fatalf("the language server has ended: %v", err)
	}
}

func (e *editor) notify(t *testing.T, method string, params any) {
	t.Helper()
	e.send(t, map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
}

// await handles messages until one satisfies done.
func (e *editor) await(t *testing.T, what string, done func(message) bool) {
	t.Helper()
	deadline := time.After(2 * time.Minute) // a safety net, not a bar
	for {
		select {
		case m, open := <-e.got:
			if !open {
				t.Fatalf("the language server ended before %s", what)
			}
			if m.ID != nil && m.Method != "" { // a request of the server's
				e.send(t, map[string]any{"jsonrpc": "2.0", "id": *m.ID, "result": nil})
			}
			e.note(t, m)
			if done(m) {
				return
			}
		case <-deadline:
			t.Fatalf("the language server did not answer: %s", what)
		}
	}
}

func (e *editor) call(t *testing.T, method string, params any) json.RawMessage {
	t.Helper()
	e.next++
	id := e.next
	e.send(t, map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	var result json.RawMessage
	e.await(t, method, func(m message) bool {
		if m.ID == nil || *m.ID != id || m.Method != "" {
			return false
		}
		if m.Error != nil {
			t.Fatalf("%s: %s", method, m.Error)
		}
		result = m.Result
		return true
	})
	return result
}

func (e *editor) uri(name string) string {
	return "file://" + filepath.ToSlash(filepath.Join(e.dir, name))
}

// open opens a document and returns what the server says of it.
func (e *editor) open(t *testing.T, name, text string) []lspDiagnostic {
	t.Helper()
	e.show(t, name, text)
	return e.about(t, name)
}

func (e *editor) show(t *testing.T, name, text string) {
	t.Helper()
	e.notify(t, "textDocument/didOpen", map[string]any{"textDocument": map[string]any{"uri": e.uri(name), "languageId": "yaml", "version": 1, "text": text}})
}

// about is what the server says of a document that is open.
func (e *editor) about(t *testing.T, name string) []lspDiagnostic {
	t.Helper()
	known := func(message) bool {
		_, ok := e.diags[e.uri(name)]
		return ok
	}
	if !known(message{}) {
		e.await(t, "diagnostics of "+name, known)
	}
	return e.diags[e.uri(name)]
}

// note keeps the diagnostics that a message brings.
func (e *editor) note(t *testing.T, m message) {
	t.Helper()
	if m.Method != "textDocument/publishDiagnostics" {
		return
	}
	var p struct {
		URI         string          `json:"uri"`
		Diagnostics []lspDiagnostic `json:"diagnostics"`
	}
	if err := json.Unmarshal(m.Params, &p); err != nil {
		t.Fatal(err)
	}
	e.diags[p.URI] = p.Diagnostics
}

func (e *editor) at(name string, line, char int) map[string]any {
	return map[string]any{"textDocument": map[string]any{"uri": e.uri(name)}, "position": lspPosition{line, char}}
}

func (e *editor) hover(t *testing.T, name string, line, char int) string {
	t.Helper()
	var h struct {
		Contents struct {
			Value string `json:"value"`
		} `json:"contents"`
	}
	if err := json.Unmarshal(e.call(t, "textDocument/hover", e.at(name, line, char)), &h); err != nil {
		t.Fatal(err)
	}
	return h.Contents.Value
}

func (e *editor) complete(t *testing.T, name string, line, char int) []string {
	t.Helper()
	var list struct {
		Items []struct {
			Label string `json:"label"`
		} `json:"items"`
	}
	if err := json.Unmarshal(e.call(t, "textDocument/completion", e.at(name, line, char)), &list); err != nil {
		t.Fatal(err)
	}
	var labels []string
	for _, it := range list.Items {
		labels = append(labels, it.Label)
	}
	return labels
}
