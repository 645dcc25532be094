//go:build unix

package source

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkLargeTree is a tree as node_modules are: 30,000 small files.
func BenchmarkLargeTree(b *testing.B) {
	root := b.TempDir()
	src := filepath.Join(root, "src")
	data := make([]byte, 64<<10)
	for i := range 30000 {
		dir := filepath.Join(src, fmt.Sprintf("pkg%d", i/100), fmt.Sprint(i/10%10))
		if i%10 == 0 {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				b.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), data[:i%97*200], 0o644); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("copy", func(b *testing.B) {
		for i := range b.N {
			dst := filepath.Join(root, fmt.Sprint("copy", i))
			if _, err := copyTree(b.Context(), src, dst, copyOptions{}); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			if err := removeTree(dst); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	})
	b.Run("digest", func(b *testing.B) {
		for b.Loop() {
			m, err := scan(b.Context(), src, nil)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(m.size())
			m.digest(nil)
		}
	})
}
