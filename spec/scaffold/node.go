package scaffold

import (
	"encoding/json"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// manifest is what is read of a package.json.
type manifest struct {
	Main         string            `json:"main"`
	Bin          json.RawMessage   `json:"bin"`
	Scripts      map[string]string `json:"scripts"`
	Dependencies map[string]string `json:"dependencies"`
	Dev          map[string]string `json:"devDependencies"`
}

func nodeProject(files fs.FS) *project {
	text := read(files, "package.json")
	var m manifest
	if text == "" || json.Unmarshal([]byte(text), &m) != nil {
		return nil
	}
	p := &project{found: "package.json", probe: "node: node --version"}
	p.build = nodeInstall(files, m)
	if build := m.Scripts["build"]; build != "" {
		p.build = append(p.build, "npm run build")
	}
	entry := nodeEntry(files, m)
	start := m.Scripts["start"]
	switch {
	case strings.HasPrefix(start, "node ") && !strings.ContainsAny(start, "&|;"):
		p.server = start // npm itself would be a process in between
		if f := lastField(start); exists(files, f) {
			entry = f
		}
	case start != "":
		p.server = "npm start"
	case entry != "" && looksLikeServer(read(files, entry)):
		p.server = "node " + entry
	case len(m.Bin) > 0:
		return nodeTool(p, m)
	default:
		return nil
	}
	source := read(files, entry)
	p.ready, p.routes = routes(source, nodeRoutes)
	p.port(source, entry)
	return p
}

func nodeTool(p *project, m manifest) *project {
	var one string
	if json.Unmarshal(m.Bin, &one) != nil {
		var many map[string]string
		if json.Unmarshal(m.Bin, &many) != nil || len(many) == 0 {
			return nil
		}
		names := make([]string, 0, len(many))
		for name := range many {
			names = append(names, name)
		}
		slices.Sort(names)
		one = many[names[0]]
	}
	p.tool = "node " + path.Clean(one) + " --help"
	p.notes = []string{"put the arguments of a typical use here"}
	return p
}

func nodeInstall(files fs.FS, m manifest) []string {
	switch {
	case exists(files, "pnpm-lock.yaml"):
		return []string{"pnpm install --frozen-lockfile"}
	case exists(files, "yarn.lock"):
		return []string{"yarn install --frozen-lockfile"}
	case exists(files, "bun.lock") || exists(files, "bun.lockb"):
		return []string{"bun install --frozen-lockfile"}
	case exists(files, "package-lock.json") || exists(files, "npm-shrinkwrap.json"):
		return []string{"npm ci"}
	case len(m.Dependencies)+len(m.Dev) > 0:
		return []string{"npm install"}
	}
	return nil
}

func nodeEntry(files fs.FS, m manifest) string {
	for _, name := range []string{m.Main, "server.js", "server.mjs", "app.js", "index.js", "src/server.js", "src/index.js", "src/app.js"} {
		if name = path.Clean(name); name != "." && exists(files, name) {
			return name
		}
	}
	return ""
}

func lastField(command string) string {
	f := strings.Fields(command)
	return path.Clean(f[len(f)-1])
}

var serverWords = regexp.MustCompile(`createServer|\.listen\(|ListenAndServe|express\(|fastify\(|new Hono|Deno\.serve|Bun\.serve`)

func looksLikeServer(source string) bool { return serverWords.MatchString(source) }

var (
	nodeRoutes = regexp.MustCompile("\\b(?:app|router|server|fastify|api)\\.get\\(\\s*['\"`](/[A-Za-z0-9/._-]*)['\"`]")
	goRoutes   = regexp.MustCompile(`\b(?:Handle|HandleFunc|GET|Get)\(\s*"(?:GET )?(/[A-Za-z0-9/._-]*)(?:\{\$\})?"`)
	anyHealth  = regexp.MustCompile("['\"`](/(?:healthz?|readyz?|livez|ping|status|up))['\"`]")
)

// routes lists up to four paths that answer GET, and the path that is meant
// for readiness.
func routes(source string, rule *regexp.Regexp) (ready string, found []string) {
	if m := anyHealth.FindStringSubmatch(source); m != nil {
		ready = m[1]
	}
	for _, m := range rule.FindAllStringSubmatch(source, -1) {
		if r := m[1]; r != ready && !slices.Contains(found, r) && len(found) < 4 {
			found = append(found, r)
		}
	}
	return ready, found
}

var (
	envPort  = regexp.MustCompile(`process\.env\.([A-Z_]*PORT)\b|process\.env\[['"]([A-Z_]*PORT)['"]\]|(?:Getenv|LookupEnv|environ\.get|getenv|env::var)\(\s*"([A-Z_]*PORT)"`)
	flagPort = regexp.MustCompile(`(?:--port|['"]port['"])`)
	flatPort = regexp.MustCompile(`\.listen\(\s*([0-9]{2,5})`)
)

// port says how the server learns its port.
func (p *project) port(source, entry string) {
	switch m := envPort.FindStringSubmatch(source); {
	case m != nil:
		p.env = m[1] + m[2] + m[3]
	case flagPort.MatchString(source):
		p.server += " --port ${port}"
	default:
		p.env = "PORT"
		note := "the server has to listen on the port that the variable PORT names"
		if m := flatPort.FindStringSubmatch(source); m != nil {
			note += "; " + entry + " has " + m[1] + ", and several copies run at once"
		}
		p.notes = append(p.notes, note)
	}
}
