package load

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tandem-bench/tandem/spec"
)

// asHTTP is the scenario as if our own driver sent its request: that is how
// it is checked, with the bytes that the tool is given.
func (d *execDriver) asHTTP() spec.Scenario {
	r := d.x.Request
	return spec.Scenario{
		Name: d.s.Name, Matrix: d.s.Matrix, Expect: d.s.Expect,
		HTTP: &spec.HTTP{
			Method: r.Method, Path: r.Path, Headers: r.Headers, Body: r.Body, BodyFile: r.BodyFile, Sign: r.Sign,
			Connections: 1, Pipeline: 1, KeepAlive: true,
		},
	}
}

// writeRequests renders the request for each target in the way of the
// preset's tool. Bodies go into files, since they may hold any byte and be
// longer than an argument can be.
func (l *execLoad) writeRequests() error {
	if l.d.x.Request == nil {
		return nil
	}
	h := l.d.asHTTP().HTTP
	defs, err := definitions(h)
	if err != nil {
		return err
	}
	if l.files, err = os.MkdirTemp(l.d.o.Temp, "request-"); err != nil {
		return fmt.Errorf("folder for the request of %s: %w", l.d.x.Preset, err)
	}
	for i, t := range l.targets {
		r := renderer{env: l.d.o.Env, sign: h.Sign}
		q, err := r.expand(defs[0], t.Vars)
		if err != nil {
			return fmt.Errorf("%s: %w", t.Name, err)
		}
		file := filepath.Join(l.files, fmt.Sprint(i))
		args, err := toolRequest{q, t.Vars["url"] + q.path, file}.args(l.d.x.Preset)
		if err != nil {
			return fmt.Errorf("%s: %w", t.Name, err)
		}
		l.requests[i] = args
	}
	return nil
}

// toolRequest is a request on its way to a tool.
type toolRequest struct {
	*expanded
	url  string
	file string // where the tool may find what does not go into arguments
}

// args writes the request as arguments of a tool: options, then the URL.
func (q toolRequest) args(tool string) ([]string, error) {
	switch tool {
	case "wrk", "wrk2":
		return []string{"-s", q.file, q.url}, q.write([]byte(q.lua()))
	case "vegeta":
		return []string{"-targets", q.file, "-body", q.file + ".body"}, q.writeTargets()
	case "autocannon":
		return q.options("-m", "-i", "="), q.writeBody()
	case "ab":
		return q.abOptions(), q.write(q.body)
	case "hey":
		return q.options("-m", "-D", ": "), q.writeBody()
	case "oha":
		return q.options("-m", "-D", ": "), q.writeBody()
	case "bombardier":
		return q.options("-m", "-f", ": "), q.writeBody()
	case "h2load":
		return q.h2loadOptions(), q.writeBody()
	default:
		return nil, fmt.Errorf("%s cannot be given a request by arguments", tool)
	}
}

func (q toolRequest) write(b []byte) error {
	// The server's user may differ from the tool's, and the body may be secret.
	return os.WriteFile(q.file, b, 0o600)
}

func (q toolRequest) writeBody() error {
	if len(q.body) == 0 {
		return nil
	}
	return q.write(q.body)
}

// options are those of tools that differ only in the names of method and
// body, and in what stands between the name and the value of a header.
func (q toolRequest) options(method, body, between string) []string {
	args := []string{method, q.method}
	args = append(args, q.headerOptions(between)...)
	if len(q.body) > 0 {
		args = append(args, body, q.file)
	}
	return append(args, q.url)
}

func (q toolRequest) headerOptions(between string) []string {
	var args []string
	for _, f := range q.fields {
		args = append(args, "-H", f.name+between+f.value)
	}
	return args
}

// abOptions: the option for the body is also that of the method, and the
// content type has an option of its own.
func (q toolRequest) abOptions() []string {
	var args []string
	for _, f := range q.fields {
		if strings.EqualFold(f.name, "content-type") && len(q.body) > 0 {
			args = append(args, "-T", f.value)
		} else {
			args = append(args, "-H", f.name+": "+f.value)
		}
	}
	if q.method != "GET" && q.method != "POST" && q.method != "PUT" {
		args = append(args, "-m", q.method)
	}
	switch {
	case q.method == "PUT":
		args = append(args, "-u", q.file)
	case q.method == "POST" || len(q.body) > 0:
		args = append(args, "-p", q.file)
	}
	return append(args, q.url)
}

// h2loadOptions: the method is a header, as in HTTP/2.
func (q toolRequest) h2loadOptions() []string {
	args := append([]string{"-H", ":method: " + q.method}, q.headerOptions(": ")...)
	if len(q.body) > 0 {
		args = append(args, "-d", q.file)
	}
	return append(args, q.url)
}

// writeTargets writes vegeta's list of targets with one target.
func (q toolRequest) writeTargets() error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s\n", q.method, q.url)
	for _, f := range q.fields {
		fmt.Fprintf(&b, "%s: %s\n", f.name, f.value)
	}
	if err := q.write(b.Bytes()); err != nil {
		return err
	}
	return os.WriteFile(q.file+".body", q.body, 0o600)
}

// lua is the request as a script of wrk.
func (q toolRequest) lua() string {
	var b strings.Builder
	fmt.Fprintf(&b, "wrk.method = %s\n", luaString([]byte(q.method)))
	for _, f := range q.fields {
		fmt.Fprintf(&b, "wrk.headers[%s] = %s\n", luaString([]byte(f.name)), luaString([]byte(f.value)))
	}
	if len(q.body) > 0 {
		fmt.Fprintf(&b, "wrk.body = %s\n", luaString(q.body))
	}
	return b.String()
}

// luaString quotes any bytes for Lua.
func luaString(s []byte) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range s {
		if c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			fmt.Fprintf(&b, "\\%03d", c)
		} else {
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// resolveTool resolves a tool's command. ${request} is several arguments: in
// a line for the shell they are quoted, in a list they take its place.
func resolveTool(c spec.Command, request []string, vars spec.Vars, env spec.Env) ([]string, error) {
	words := make([]string, len(request))
	for i, a := range request {
		words[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
	}
	if request != nil {
		vars["request"] = strings.Join(words, " ")
	}
	at := slices.Index(c.Argv, "${request}")
	if at < 0 || request == nil {
		return c.Resolve(vars, env)
	}
	argv, err := spec.Command{Argv: slices.Delete(slices.Clone(c.Argv), at, at+1)}.Resolve(vars, env)
	if err != nil {
		return nil, err
	}
	return slices.Insert(argv, at, request...), nil
}
