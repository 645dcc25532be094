package source

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// submodules writes out revisions with their submodules. It takes a submodule
// from the user's own clone where that has the commit, and fetches it into a
// repository of ours where not.
type submodules struct {
	cacheDir string // bare repositories, one for each URL
	index    string // file for the index of a checkout
	progress func(string)
}

// gitlink is one submodule of a commit.
type gitlink struct {
	path, commit string
	name, url    string // from .gitmodules; empty where it does not know the path
	skip         bool   // `update = none`
}

// export writes the tree of a commit into dir, by git itself, so that its
// filters (line ends, LFS) and lazy fetching (partial clones) work. Neither
// the repository's index nor its list of worktrees is touched, so there is
// nothing to clean up in it however this process ends, and it may be
// read-only.
func (s submodules) export(ctx context.Context, g git, commit, dir string) (warnings []string, err error) {
	gitDir, err := g.out(ctx, "rev-parse", "--absolute-git-dir")
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := removeTree(s.index); err != nil {
		return nil, err
	}
	vars := []string{"GIT_DIR=" + gitDir, "GIT_WORK_TREE=" + dir, "GIT_INDEX_FILE=" + s.index}
	_, err = git{dir: dir, env: g.env}.with(ctx, vars, "-c", "checkout.workers=0", "read-tree", "--reset", "-u", "--no-sparse-checkout", commit)
	if err != nil {
		return nil, fmt.Errorf("write out %.12s: %w", commit, err)
	}
	if err := removeTree(s.index); err != nil {
		return nil, err
	}
	links, err := g.gitlinks(ctx, commit)
	if err != nil {
		return nil, err
	}
	for _, l := range links {
		more, err := s.exportLink(ctx, g, l, dir)
		if err != nil {
			return nil, fmt.Errorf("submodule %s: %w", l.path, err)
		}
		warnings = append(warnings, more...)
	}
	return warnings, nil
}

func (s submodules) exportLink(ctx context.Context, g git, l gitlink, dir string) ([]string, error) {
	if l.skip {
		return nil, nil
	}
	if l.name == "" {
		return []string{fmt.Sprintf("submodule %s: .gitmodules does not say where it comes from; its folder is empty", l.path)}, nil
	}
	if !filepath.IsLocal(l.path) || !filepath.IsLocal(l.name) {
		return nil, fmt.Errorf("its name %q or path leads out of the repository", l.name)
	}
	sub, err := s.find(ctx, g, l)
	if err != nil {
		return nil, err
	}
	warnings, err := s.export(ctx, sub, l.commit, filepath.Join(dir, filepath.FromSlash(l.path)))
	for i := range warnings {
		warnings[i] = l.path + ": " + warnings[i]
	}
	return warnings, err
}

// find is a repository that has the submodule's commit.
func (s submodules) find(ctx context.Context, g git, l gitlink) (git, error) {
	common, err := g.out(ctx, "rev-parse", "--path-format=absolute", "--git-common-dir")
	if err != nil {
		return git{}, err
	}
	places := []string{filepath.Join(common, "modules", filepath.FromSlash(l.name))}
	if top, err := g.out(ctx, "rev-parse", "--show-toplevel"); err == nil {
		places = append(places, filepath.Join(top, filepath.FromSlash(l.path), ".git"))
	}
	for _, place := range places {
		if info, err := os.Stat(place); err != nil || !info.IsDir() {
			continue
		}
		sub := git{dir: place, env: g.env}
		if sub.has(ctx, l.commit) {
			return sub, nil
		}
	}
	url, err := g.submoduleURL(ctx, l)
	if err != nil {
		return git{}, err
	}
	return s.fetch(ctx, g, url, l, filepath.Join(common, "config"))
}

func (g git) has(ctx context.Context, commit string) bool {
	_, err := g.out(ctx, "cat-file", "-e", commit+"^{commit}")
	return err == nil
}

// fetch gets the commit of a submodule into a bare repository of ours. config
// is the configuration of the repository that names it, which in CI holds the
// credentials.
func (s submodules) fetch(ctx context.Context, g git, url string, l gitlink, config string) (git, error) {
	sum := sha256.Sum256([]byte(url))
	dir := filepath.Join(s.cacheDir, hex.EncodeToString(sum[:8])+".git")
	if err := os.MkdirAll(s.cacheDir, 0o755); err != nil {
		return git{}, err
	}
	unlock, err := lockFile(ctx, dir+".lock", nil)
	if err != nil {
		return git{}, err
	}
	defer unlock()
	sub := git{dir: s.cacheDir, env: g.env}
	if _, err := sub.out(ctx, "init", "--quiet", "--bare", dir); err != nil {
		return git{}, err
	}
	sub.dir = dir
	if _, err := sub.out(ctx, "config", "remote.origin.url", url); err != nil {
		return git{}, err
	}
	if sub.has(ctx, l.commit) {
		return sub, nil
	}
	s.progress(fmt.Sprintf("submodule %s: fetching %.12s", l.path, l.commit))
	// The URL is the repository's word, not the user's: git then refuses
	// transports that could run commands or read local files.
	vars := []string{"GIT_PROTOCOL_FROM_USER=0"}
	fetch := []string{"-c", "include.path=" + config, "fetch", "--quiet", "--no-tags", "--no-recurse-submodules"}
	_, err = sub.with(ctx, vars, append(fetch, "--depth=1", "--", url, l.commit)...)
	if err != nil && ctx.Err() == nil { // a server may refuse a commit by its hash
		_, err = sub.with(ctx, vars, append(fetch, "--", url, "+refs/*:refs/fetched/*")...)
	}
	if err != nil {
		return git{}, err
	}
	if !sub.has(ctx, l.commit) {
		return git{}, fmt.Errorf("%s has no commit %s; push it there", url, l.commit)
	}
	return sub, nil
}

// gitlinks are the submodules of a commit.
func (g git) gitlinks(ctx context.Context, commit string) ([]gitlink, error) {
	list, err := g.out(ctx, "ls-tree", "-r", "-z", "--full-tree", commit)
	if err != nil {
		return nil, err
	}
	links := parseGitlinks(list)
	if len(links) == 0 {
		return nil, nil
	}
	if _, err := g.out(ctx, "cat-file", "-e", commit+":.gitmodules"); err != nil {
		return links, ctx.Err()
	}
	config, err := g.out(ctx, "config", "--blob", commit+":.gitmodules", "-z", "--list")
	if err != nil {
		return nil, err
	}
	applyModules(links, config)
	return links, nil
}

// parseGitlinks reads `git ls-tree -z`: mode, type, hash, a tab, a path.
func parseGitlinks(list string) []gitlink {
	var out []gitlink
	for line := range strings.SplitSeq(list, "\x00") {
		head, path, ok := strings.Cut(line, "\t")
		if f := strings.Fields(head); ok && len(f) == 3 && f[0] == "160000" {
			out = append(out, gitlink{path: path, commit: f[2]})
		}
	}
	return out
}

// applyModules reads `git config -z --list` of a .gitmodules file: a key, a
// newline, a value, where the key is submodule.NAME.FIELD and NAME may hold
// dots. It fills in the links that the file knows.
func applyModules(links []gitlink, config string) {
	type module struct{ path, url, update string }
	byName := map[string]*module{}
	var names []string
	for item := range strings.SplitSeq(config, "\x00") {
		key, value, _ := strings.Cut(item, "\n")
		rest, ok := strings.CutPrefix(key, "submodule.")
		dot := strings.LastIndexByte(rest, '.')
		if !ok || dot < 1 {
			continue
		}
		name := rest[:dot]
		m := byName[name]
		if m == nil {
			m = &module{}
			byName[name] = m
			names = append(names, name)
		}
		switch rest[dot+1:] {
		case "path":
			m.path = strings.TrimSuffix(value, "/")
		case "url":
			m.url = value
		case "update":
			m.update = value
		}
	}
	for _, name := range names {
		m := byName[name]
		for i := range links {
			if links[i].path == m.path {
				links[i].name, links[i].url, links[i].skip = name, m.url, m.update == "none"
			}
		}
	}
}

// submoduleURL is where a submodule is fetched from: the user's own setting,
// or what .gitmodules says, relative to the repository's origin.
func (g git) submoduleURL(ctx context.Context, l gitlink) (string, error) {
	if url, err := g.out(ctx, "config", "--get", "submodule."+l.name+".url"); err == nil && url != "" {
		return url, nil
	}
	if l.url == "" {
		return "", fmt.Errorf(".gitmodules has no url for it")
	}
	if !strings.HasPrefix(l.url, "./") && !strings.HasPrefix(l.url, "../") {
		return l.url, nil
	}
	base, err := g.out(ctx, "config", "--get", "remote.origin.url")
	if err != nil || base == "" {
		if base, err = g.out(ctx, "rev-parse", "--show-toplevel"); err != nil {
			return "", fmt.Errorf("its url %s is relative, and the repository has no remote named origin", l.url)
		}
	}
	return relativeURL(base, l.url), nil
}

// relativeURL resolves "../x" against a URL, a path or host:path, the way git
// does (git-submodule, under "add").
func relativeURL(base, rel string) string {
	base = strings.TrimRight(base, "/")
	for {
		if rest, ok := strings.CutPrefix(rel, "./"); ok {
			rel = rest
			continue
		}
		rest, ok := strings.CutPrefix(rel, "../")
		if !ok {
			break
		}
		rel = rest
		if i := strings.LastIndexByte(base, '/'); i >= 0 {
			base = base[:i]
		} else if i := strings.LastIndexByte(base, ':'); i >= 0 {
			return base[:i] + ":" + rel
		}
	}
	return base + "/" + rel
}
