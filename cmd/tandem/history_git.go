package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// historyBranch is a git branch that holds results. It is read and written
// without being checked out.
type historyBranch struct {
	name   string // of the branch
	folder string // within it; "" for its top
	tip    string // the commit that it is read from, and goes on from; "" for a new branch
	local  string // what refs/heads/NAME holds; "" for nothing
	env    []string
}

// openBranch finds BRANCH or BRANCH:FOLDER in the repository of the current
// folder: the local branch, or else origin's.
func (a *app) openBranch(ctx context.Context, arg string) (*historyBranch, error) {
	name, folder, _ := strings.Cut(arg, ":")
	b := &historyBranch{name: name, folder: strings.Trim(path.Clean("/"+folder), "/"), env: a.environ}
	if _, err := b.git(ctx, nil, "check-ref-format", "--branch", name); err != nil {
		return nil, usageErrorf("--branch: found %q, expected the name of a git branch, or BRANCH:FOLDER", arg)
	}
	if _, err := b.git(ctx, nil, "rev-parse", "--git-dir"); err != nil {
		return nil, &exitError{exitUsage, err}
	}
	b.local = b.commit(ctx, "refs/heads/"+name)
	if b.tip = b.local; b.tip == "" {
		b.tip = b.commit(ctx, "refs/remotes/origin/"+name)
	}
	return b, nil
}

// commit is what a reference points to, "" where it does not exist.
func (b *historyBranch) commit(ctx context.Context, ref string) string {
	out, err := b.git(ctx, nil, "rev-parse", "--verify", "--quiet", ref+"^{commit}")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// git runs git with the given standard input and returns its output.
func (b *historyBranch) git(ctx context.Context, stdin []byte, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Env, cmd.Stdin = b.env, bytes.NewReader(stdin)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, notMeasured(fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String())))
	}
	return out, nil
}

// results reads every .json file of the branch.
func (b *historyBranch) results(ctx context.Context) ([]resultData, error) {
	if b.tip == "" {
		return nil, usageErrorf("no branch %s here or at origin: fetch it, or begin it with 'tandem history add --branch %s'", b.name, b.name)
	}
	list, err := b.git(ctx, nil, "ls-tree", "-r", "-z", "--full-tree", b.tip+":"+b.folder)
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	var files []resultData
	var objects strings.Builder
	for entry := range strings.SplitSeq(string(list), "\x00") {
		// MODE SP "blob" SP OBJECT TAB PATH
		info, name, _ := strings.Cut(entry, "\t")
		if fields := strings.Fields(info); len(fields) == 3 && fields[1] == "blob" && path.Ext(name) == ".json" {
			files = append(files, resultData{path: b.name + ":" + path.Join(b.folder, name)})
			objects.WriteString(fields[2] + "\n")
		}
	}
	batch, err := b.git(ctx, []byte(objects.String()), "cat-file", "--batch")
	if err != nil {
		return nil, err
	}
	for i := range files {
		if files[i].data, batch, err = cutObject(batch); err != nil {
			return nil, notMeasured(fmt.Errorf("%s: %w", files[i].path, err))
		}
	}
	return files, nil
}

// cutObject takes one object off the front of what cat-file --batch prints:
// a line that ends in its size, its bytes, and a newline.
func cutObject(batch []byte) (data, rest []byte, err error) {
	head, rest, _ := bytes.Cut(batch, []byte("\n"))
	fields := strings.Fields(string(head))
	if len(fields) != 3 {
		return nil, nil, fmt.Errorf("git cat-file answered %q, expected an object, its kind and its size", head)
	}
	size, err := strconv.Atoi(fields[2])
	if err != nil || size < 0 || size >= len(rest) {
		return nil, nil, fmt.Errorf("git cat-file answered %q, expected the size of what follows", head)
	}
	return rest[:size], rest[size+1:], nil
}

// add commits one file to the branch and returns the commit, "" where the
// branch holds it already. The branch moves only if nobody has moved it since.
func (b *historyBranch) add(ctx context.Context, name string, data []byte, message string) (string, error) {
	if err := b.checkNotCheckedOut(ctx); err != nil {
		return "", err
	}
	tree, err := b.treeWith(ctx, path.Join(b.folder, name), data)
	if err != nil {
		return "", err
	}
	args := []string{"commit-tree", tree, "-m", message}
	if b.tip != "" {
		if was, err := b.git(ctx, nil, "rev-parse", b.tip+"^{tree}"); err == nil && strings.TrimSpace(string(was)) == tree {
			return "", nil
		}
		args = append(args, "-p", b.tip)
	}
	out, err := b.git(ctx, nil, args...)
	if err != nil {
		return "", err
	}
	commit := strings.TrimSpace(string(out))
	was := b.local
	if was == "" {
		was = strings.Repeat("0", len(commit)) // it must not exist
	}
	_, err = b.git(ctx, nil, "update-ref", "-m", message, "refs/heads/"+b.name, commit, was)
	return commit, err
}

// treeWith makes the branch's tree with one file more, in an index of its own.
func (b *historyBranch) treeWith(ctx context.Context, name string, data []byte) (string, error) {
	dir, err := os.MkdirTemp("", "tandem-index-")
	if err != nil {
		return "", notMeasured(err)
	}
	defer os.RemoveAll(dir)
	own := *b
	own.env = append(append([]string{}, b.env...), "GIT_INDEX_FILE="+filepath.Join(dir, "index"))
	blob, err := own.git(ctx, data, "hash-object", "-w", "--stdin")
	if err != nil {
		return "", err
	}
	if b.tip != "" {
		if _, err := own.git(ctx, nil, "read-tree", b.tip); err != nil {
			return "", err
		}
	}
	if _, err := own.git(ctx, nil, "update-index", "--add", "--cacheinfo", "100644,"+strings.TrimSpace(string(blob))+","+name); err != nil {
		return "", err
	}
	tree, err := own.git(ctx, nil, "write-tree")
	return strings.TrimSpace(string(tree)), err
}

// checkNotCheckedOut refuses a branch that a working tree shows: its files
// would seem to be deleted there.
func (b *historyBranch) checkNotCheckedOut(ctx context.Context) error {
	out, err := b.git(ctx, nil, "worktree", "list", "--porcelain")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(out)) {
		if strings.TrimSpace(line) == "branch refs/heads/"+b.name {
			return usageErrorf("branch %s is checked out: choose one that holds only results, such as bench-history", b.name)
		}
	}
	return nil
}
