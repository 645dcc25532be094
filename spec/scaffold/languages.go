package scaffold

import (
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// goProject looks for main packages at the root and below cmd.
func goProject(files fs.FS) *project {
	if !exists(files, "go.mod") {
		return nil
	}
	var tool string
	for _, dir := range goMains(files) {
		source := goSource(files, dir)
		if !looksLikeServer(source) && !strings.Contains(source, "net/http") {
			if tool == "" {
				tool = dir
			}
			continue
		}
		p := &project{found: "go.mod", probe: "go: go version", build: []string{"go build -o bench-server " + goPath(dir)}, server: "./bench-server"}
		p.ready, p.routes = routes(source, goRoutes)
		p.goPort(source, dir)
		return p
	}
	if tool == "" {
		return nil
	}
	return &project{
		found: "go.mod", probe: "go: go version", build: []string{"go build -o bench-tool " + goPath(tool)}, tool: "./bench-tool",
		notes: []string{"put the arguments of a typical use here"},
	}
}

func goPath(dir string) string {
	if dir == "." {
		return "."
	}
	return "./" + dir
}

func goMains(files fs.FS) []string {
	dirs := []string{"."}
	for _, parent := range []string{"cmd", "."} {
		entries, err := fs.ReadDir(files, parent)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if dir := path.Join(parent, e.Name()); e.IsDir() && !strings.HasPrefix(e.Name(), ".") && !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	return slices.DeleteFunc(dirs, func(dir string) bool { return !goMain.MatchString(goSource(files, dir)) })
}

var goMain = regexp.MustCompile(`(?m)^package main\b`)

// goSource is the text of a package, tests left out.
func goSource(files fs.FS, dir string) string {
	names, err := fs.Glob(files, path.Join(dir, "*.go"))
	if err != nil {
		return ""
	}
	var b strings.Builder
	for _, name := range names {
		if !strings.HasSuffix(name, "_test.go") && b.Len() < 1<<20 {
			b.WriteString(read(files, name))
		}
	}
	return b.String()
}

var (
	goFlag     = regexp.MustCompile(`flag\.(String|Int|Uint)(?:Var)?\(\s*(?:&[\w.]+,\s*)?"([a-z.-]*(?:port|addr|address|listen|bind))"`)
	goFlatPort = regexp.MustCompile(`ListenAndServe\(\s*"[^":]*:([0-9]+)"`)
)

// goPort says how a Go server learns its port.
func (p *project) goPort(source, dir string) {
	if m := goFlag.FindStringSubmatch(source); m != nil {
		value := "${port}"
		if m[1] == "String" && !strings.Contains(m[2], "port") {
			value = "127.0.0.1:${port}"
		}
		p.server += " -" + m[2] + " " + value
		return
	}
	if m := envPort.FindStringSubmatch(source); m != nil {
		p.env = m[1] + m[2] + m[3]
		return
	}
	p.env = "PORT"
	note := "the server has to listen on the port that the variable PORT names"
	if m := goFlatPort.FindStringSubmatch(source); m != nil {
		note += "; " + dir + " has " + m[1] + ", and several copies run at once"
	}
	p.notes = append(p.notes, note)
}

var (
	cargoName   = regexp.MustCompile(`(?m)^\s*name\s*=\s*"([A-Za-z0-9_-]+)"`)
	cargoServer = regexp.MustCompile(`(?m)^\s*(?:axum|actix-web|hyper|warp|rocket|tiny_http|poem|tide|salvo)\b`)
)

func cargoProject(files fs.FS) *project {
	text := read(files, "Cargo.toml")
	m := cargoName.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	build := "cargo build --release"
	if exists(files, "Cargo.lock") {
		build += " --locked"
	}
	p := &project{found: "Cargo.toml", probe: "rust: rustc --version", build: []string{build}}
	bin := "./target/release/" + m[1]
	if !cargoServer.MatchString(text) {
		p.tool = bin + " --help"
		p.notes = []string{"put the arguments of a typical use here"}
		return p
	}
	p.server = bin
	source := read(files, "src/main.rs")
	p.ready, p.routes = routes(source, regexp.MustCompile(`(?:route|at|resource)\(\s*"(/[A-Za-z0-9/._-]*)"`))
	p.port(source, "src/main.rs")
	return p
}

// procfileProject reads the web process of a Procfile, which learns its port
// by the variable PORT.
func procfileProject(files fs.FS) *project {
	for line := range strings.SplitSeq(read(files, "Procfile"), "\n") {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "web:"); ok && strings.TrimSpace(rest) != "" {
			return &project{found: "Procfile", build: pythonInstall(files), server: escape(strings.TrimSpace(rest)), env: "PORT"}
		}
	}
	return nil
}

// escape keeps ${X} of a shell from being read as a reference of the spec.
func escape(command string) string { return strings.ReplaceAll(command, "${", "$${") }

func pythonInstall(files fs.FS) []string {
	if exists(files, "requirements.txt") {
		return []string{"python3 -m venv .venv && .venv/bin/pip install -r requirements.txt"}
	}
	return nil
}

func pythonProject(files fs.FS) *project {
	for _, name := range []string{"server.py", "app.py", "main.py"} {
		source := read(files, name)
		if source == "" {
			continue
		}
		python := "python3 "
		if exists(files, "requirements.txt") {
			python = ".venv/bin/python "
		}
		p := &project{found: name, probe: "python: python3 --version", build: pythonInstall(files), server: python + name}
		p.ready, p.routes = routes(source, regexp.MustCompile(`\.(?:route|get)\(\s*['"](/[A-Za-z0-9/._-]*)['"]`))
		p.port(source, name)
		return p
	}
	return pythonTool(files)
}

// pythonScripts is the first entry of pyproject.toml's table of commands.
var pythonScripts = regexp.MustCompile(`(?m)^\[project\.scripts\]\s*\n(?:\s*(?:#.*)?\n)*\s*"?([A-Za-z0-9._-]+)"?\s*=`)

// pythonTool takes the first command that a package installs.
func pythonTool(files fs.FS) *project {
	m := pythonScripts.FindStringSubmatch(read(files, "pyproject.toml"))
	if m == nil {
		return nil
	}
	return &project{
		found: "pyproject.toml", probe: "python: python3 --version",
		build: []string{"python3 -m venv .venv && .venv/bin/pip install --quiet ."}, tool: ".venv/bin/python .venv/bin/" + m[1], // its first line names the folder that it was made in
	}
}

var (
	dockerCmd    = regexp.MustCompile(`(?m)^(?:CMD|ENTRYPOINT)\s+(.+)$`)
	dockerArg    = regexp.MustCompile(`"((?:[^"\\]|\\.)*)"`)
	dockerExpose = regexp.MustCompile(`(?m)^EXPOSE\s+([0-9]+)`)
)

// dockerProject takes the command of a Dockerfile's last stage. The image is
// not built: arms run on this machine.
func dockerProject(files fs.FS) *project {
	text := read(files, "Dockerfile")
	all := dockerCmd.FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		return nil
	}
	command := strings.TrimSpace(all[len(all)-1][1])
	if strings.HasPrefix(command, "[") {
		var words []string
		for _, m := range dockerArg.FindAllStringSubmatch(command, -1) {
			words = append(words, m[1])
		}
		command = strings.Join(words, " ")
	}
	p := &project{found: "Dockerfile", server: escape(command), env: "PORT", notes: []string{"this is the command of the Dockerfile; arms are built and run here, not in its image"}}
	if m := dockerExpose.FindStringSubmatch(text); m != nil {
		p.notes = append(p.notes, "it exposes port "+m[1]+"; here each copy has to listen on the port that PORT names")
	}
	if exists(files, "Makefile") {
		p.build = []string{"make"}
	}
	return p
}

func scriptProject(files fs.FS) *project {
	for _, name := range []string{"start.sh", "run.sh", "serve.sh", "bin/server", "bin/start", "scripts/start.sh", "scripts/start"} {
		source := read(files, name)
		if source == "" {
			continue
		}
		p := &project{found: name, server: "./" + name, env: "PORT"}
		if !strings.Contains(source, "PORT") {
			p.notes = []string{"the server has to listen on the port that the variable PORT names"}
		}
		if exists(files, "Makefile") {
			p.build = []string{"make"}
		}
		return p
	}
	return nil
}

var makeTarget = regexp.MustCompile(`(?m)^([A-Za-z0-9_.-]+):`)

func makeProject(files fs.FS) *project {
	text := read(files, "Makefile")
	if text == "" {
		return nil
	}
	var targets []string
	for _, m := range makeTarget.FindAllStringSubmatch(text, -1) {
		targets = append(targets, m[1])
	}
	p := &project{found: "Makefile", build: []string{"make"}}
	if slices.Contains(targets, "build") {
		p.build = []string{"make build"}
	}
	for _, t := range []string{"serve", "run", "start", "server"} {
		if slices.Contains(targets, t) {
			p.server, p.env = "make "+t, "PORT"
			p.notes = []string{"the server has to listen on the port that the variable PORT names"}
			return p
		}
	}
	p.tool = "./main"
	p.notes = []string{"name the program that make builds, with the arguments of a typical use"}
	return p
}
