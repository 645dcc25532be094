package spec

import (
	"fmt"
	"strings"
	"testing"
)

// largeSpec is a spec of n scenarios, each written out, with thresholds.
func largeSpec(n int) []byte {
	var b strings.Builder
	b.WriteString(validHead)
	b.WriteString("thresholds:\n  - { metric: rps, fail: 'worse > max(noise, 0.05)' }\n  - { metric: latency.p99, scenario: 'api/*', warn: worse > noise && head.latency.p99 > 0.1 }\nscenarios:\n")
	for i := range n {
		fmt.Fprintf(&b, "  api/route-%d:\n    http: { method: POST, path: /route/%d, headers: { content-type: application/json }, body: '{\"n\":%d}', connections: 64 }\n    expect: status == 200 && body contains \"ok\"\n", i, i, i)
	}
	return []byte(b.String())
}

// BenchmarkParse reads specs of 1,250 to 5,000 written-out scenarios, and
// one of 5,000 points of a matrix. ns/scenario shows whether time grows with
// size faster than linearly.
func BenchmarkParse(b *testing.B) {
	o := Options{Env: testEnv, Stat: testStat, Power: testPower()}
	for _, n := range []int{1250, 2500, 5000} {
		src := largeSpec(n)
		b.Run(fmt.Sprintf("written=%d", n), func(b *testing.B) { benchmarkParse(b, src, n, o) })
	}
	axis := strings.TrimSuffix(strings.Repeat("%d, ", 50), ", ")
	values := make([]any, 50)
	for i := range values {
		values[i] = i + 1
	}
	list := fmt.Sprintf(axis, values...)
	matrix := fmt.Sprintf("%sscenarios:\n  m:\n    matrix: { a: [%s], b: [%s], c: [1, 2] }\n    http: { path: '/${matrix.a}/${matrix.b}', connections: '${matrix.c}' }\n", validHead, list, list)
	b.Run("matrix=5000", func(b *testing.B) { benchmarkParse(b, []byte(matrix), 5000, o) })
}

func benchmarkParse(b *testing.B, src []byte, n int, o Options) {
	b.SetBytes(int64(len(src)))
	b.ReportAllocs()
	for b.Loop() {
		s, diags := Parse("bench.yaml", src, o)
		if s == nil || len(s.Scenarios) != n {
			b.Fatalf("refused: %v", diags)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/scenario")
}
