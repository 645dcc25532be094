package source

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The cache keeps the builds used last: at most so many, and of at most this
// size together. Those of the present run are always the newest, and the
// newest one stays whatever its size.
const (
	keepBuilds = 12
	keepBytes  = 8 << 30
)

// cache keeps built trees, by what they were built from:
//
//	builds/KEY/{tree/,entry.json}    a build
//	builds/tmp-KEY/                  one that is being written or removed
//	locks/XX                         the lock of all keys that begin with XX
//
// A build appears by a rename, and what is restored is compared with its
// digest, so neither a killed run nor a full disk leaves a tree that is taken
// for whole. Whoever writes, reads or removes a key holds its lock, so two
// runs at once build the same thing once.
type cache struct {
	dir string
	err error // why there is no cache, if there is none
}

func newCache(dir string) *cache {
	c := &cache{dir: dir}
	for _, d := range []string{"builds", "locks"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil && c.err == nil {
			c.err = err
		}
	}
	return c
}

func (c *cache) lockPath(key string) string { return filepath.Join(c.dir, "locks", key[:2]) }

// slot is one key of the cache, locked.
type slot struct {
	cache  *cache
	key    string
	unlock func()
}

// cacheEntry is entry.json: what is known of a kept build.
type cacheEntry struct {
	Digest   string   `json:"digest"`
	Products string   `json:"products,omitempty"`
	Size     int64    `json:"size"` // bytes of its files
	Warnings []string `json:"warnings,omitempty"`
}

// lock waits for the key. A cache that cannot be used is an empty one.
func (c *cache) lock(ctx context.Context, key string, progress func(string)) (*slot, error) {
	s := &slot{cache: c, key: key, unlock: func() {}}
	if c.err != nil {
		return s, nil
	}
	unlock, err := lockFile(ctx, c.lockPath(key), func() { progress("waiting for another run that builds the same") })
	if err != nil {
		c.err = err
		return s, ctx.Err()
	}
	s.unlock = unlock
	return s, nil
}

func (s *slot) path() string { return filepath.Join(s.cache.dir, "builds", s.key) }
func (s *slot) temp() string { return filepath.Join(s.cache.dir, "builds", "tmp-"+s.key) }

// restore makes t.Dir from the kept build, and reports whether there is one.
// One that is not what it was is removed.
func (s *slot) restore(ctx context.Context, t *Tree) (bool, error) {
	if s.cache.err != nil {
		return false, nil
	}
	data, err := os.ReadFile(filepath.Join(s.path(), "entry.json"))
	if err != nil {
		return false, nil
	}
	var e cacheEntry
	if err := json.Unmarshal(data, &e); err != nil {
		return false, s.remove()
	}
	if _, err := copyTree(ctx, filepath.Join(s.path(), "tree"), t.Dir, copyOptions{}); err != nil {
		return false, ctx.Err() // a tree that cannot be copied can still be built
	}
	m, err := scan(ctx, t.Dir, nil)
	if err != nil {
		return false, err
	}
	if m.digest(nil) != e.Digest {
		if err := removeTree(t.Dir); err != nil {
			return false, err
		}
		return false, s.remove()
	}
	t.Digest, t.Products, t.Cached = e.Digest, e.Products, true
	t.Warnings = append(t.Warnings, e.Warnings...)
	now := time.Now()
	_ = os.Chtimes(s.path(), now, now) // a read-only cache is pruned by age of building
	return true, nil
}

// keep stores a built tree. sourceWarnings of t, which the next run finds by
// itself, are not stored with it.
func (s *slot) keep(ctx context.Context, t *Tree, size int64, warnings []string) error {
	if s.cache.err != nil {
		return s.cache.err
	}
	data, err := json.Marshal(cacheEntry{Digest: t.Digest, Products: t.Products, Size: size, Warnings: warnings})
	if err != nil {
		return err
	}
	err = s.write(ctx, t.Dir, data)
	if err != nil {
		_ = removeTree(s.temp()) // the first error is the one to tell
	}
	return err
}

func (s *slot) write(ctx context.Context, tree string, entry []byte) error {
	if err := removeTree(s.temp()); err != nil {
		return err
	}
	if err := os.Mkdir(s.temp(), 0o755); err != nil {
		return err
	}
	if _, err := copyTree(ctx, tree, filepath.Join(s.temp(), "tree"), copyOptions{}); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.temp(), "entry.json"), entry, 0o644); err != nil {
		return err
	}
	if err := removeTree(s.path()); err != nil {
		return err
	}
	return os.Rename(s.temp(), s.path())
}

// remove removes the kept build: first out of sight, then from the disk.
func (s *slot) remove() error {
	if err := removeTree(s.temp()); err != nil {
		return err
	}
	if err := os.Rename(s.path(), s.temp()); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("build cache: %w", err)
	}
	return removeTree(s.temp())
}

// prune removes what killed runs left, and the builds that were not used for
// longest. What another run holds stays.
func (c *cache) prune(builds int, bytes int64) {
	found, err := os.ReadDir(filepath.Join(c.dir, "builds"))
	if err != nil {
		return
	}
	type kept struct {
		key  string
		used time.Time
		size int64
	}
	var all []kept
	for _, d := range found {
		if key, ok := strings.CutPrefix(d.Name(), "tmp-"); ok {
			c.drop(key, func(s *slot) error { return removeTree(s.temp()) })
			continue
		}
		k := kept{key: d.Name()}
		if info, err := d.Info(); err == nil {
			k.used = info.ModTime()
		}
		var e cacheEntry
		if data, err := os.ReadFile(filepath.Join(c.dir, "builds", k.key, "entry.json")); err == nil && json.Unmarshal(data, &e) == nil {
			k.size = e.Size
		}
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b kept) int {
		return cmp.Or(b.used.Compare(a.used), strings.Compare(a.key, b.key))
	})
	total := int64(0)
	for i, k := range all {
		total += k.size
		if i >= builds || i > 0 && total > bytes {
			c.drop(k.key, (*slot).remove)
		}
	}
}

// drop does remove under the key's lock, unless another process has it.
func (c *cache) drop(key string, remove func(*slot) error) {
	if len(key) < 2 {
		return
	}
	unlock, err := tryLockFile(c.lockPath(key))
	if err != nil {
		return
	}
	defer unlock()
	_ = remove(&slot{cache: c, key: key}) // what cannot be removed now is tried again by the next run
}
