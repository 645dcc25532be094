package comment

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/tandem-bench/tandem/report"
)

type entry struct {
	name string
	data []byte
	mode fs.FileMode
	edit func(*zip.FileHeader)
}

func archive(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		h.SetMode(e.mode | 0o644)
		if e.edit != nil {
			e.edit(h)
		}
		w, err := z.CreateHeader(h)
		if err == nil {
			_, err = w.Write(e.data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func result(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile("../testdata/moved.json")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestReadArchive(t *testing.T) {
	data := archive(t, entry{name: "journal.jsonl", data: []byte("x")}, entry{name: "logs/"}, entry{name: "logs/head.log"}, entry{name: ResultName, data: result(t)})
	a, err := ReadArchive(bytes.NewReader(data), int64(len(data)))
	if err != nil || len(a.Rows) == 0 {
		t.Fatalf("%v", err)
	}
	data = archive(t, entry{name: "journal.jsonl"}, entry{name: "other/result.json", data: result(t)})
	if _, err := ReadArchive(bytes.NewReader(data), int64(len(data))); !errors.Is(err, ErrNoResult) {
		t.Errorf("%v, want ErrNoResult", err)
	}
}

func TestReadArchiveRefuses(t *testing.T) {
	good := entry{name: ResultName, data: result(t)}
	long := strings.Repeat("n", 1000)
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"no zip":                {[]byte("hello"), "not a zip archive"},
		"nothing":               {nil, "not a zip archive"},
		"a way up":              {archive(t, good, entry{name: "../x"}), `"../x" does not lie plainly`},
		"a way up inside":       {archive(t, good, entry{name: "a/../../x"}), "does not lie plainly"},
		"an absolute path":      {archive(t, good, entry{name: "/etc/passwd"}), "does not lie plainly"},
		"a drive":               {archive(t, good, entry{name: "C:/x"}), "does not lie plainly"},
		"a backslash":           {archive(t, good, entry{name: `..\x`}), "does not lie plainly"},
		"a dot":                 {archive(t, good, entry{name: "./result.json"}), "does not lie plainly"},
		"a NUL":                 {archive(t, good, entry{name: "result.json\x00.txt"}), "does not lie plainly"},
		"a long name":           {archive(t, good, entry{name: long}), "name has 1000 bytes"},
		"a link":                {archive(t, entry{name: ResultName, data: []byte("/etc/passwd"), mode: fs.ModeSymlink}), "is a link or a device"},
		"a device":              {archive(t, good, entry{name: "tty", mode: fs.ModeDevice | fs.ModeCharDevice}), "is a link or a device"},
		"the result twice":      {archive(t, good, good), `holds "result.json" twice`},
		"twice but for case":    {archive(t, good, entry{name: "Result.JSON", data: []byte("{}")}), `holds "Result.JSON" twice`},
		"a folder of that name": {archive(t, entry{name: "result.json/"}), "holds no result.json"},
		"an encrypted one":      {archive(t, entry{name: ResultName, data: result(t), edit: func(h *zip.FileHeader) { h.Flags |= 1 }}), "is encrypted"},
		"another result":        {archive(t, entry{name: ResultName, data: []byte(`{"version": 1}`)}), "contradicts itself"},
		"a bomb":                {archive(t, entry{name: ResultName, data: make([]byte, maxResult+1)}), "at most 33554432 are read"},
		"a bomb that lies":      {lying(archive(t, entry{name: ResultName, data: make([]byte, maxResult+1)})), "unpacking result.json"},
		"a truncated one":       {archive(t, good)[:200], "not a zip archive"},
		"many entries":          {many(t), "table of contents is longer than 4 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadArchive(bytes.NewReader(c.data), int64(len(c.data)))
			if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 300 {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// lying makes the sizes in an archive's headers those of a small file.
func lying(data []byte) []byte {
	for i := range len(data) - 46 {
		if string(data[i:i+4]) == "PK\x01\x02" {
			binary.LittleEndian.PutUint32(data[i+24:], 100)
		}
	}
	return data
}

func many(t *testing.T) []byte {
	var all []entry
	for i := range 40_000 {
		all = append(all, entry{name: fmt.Sprintf("logs/%0100d", i), edit: func(h *zip.FileHeader) { h.Method = zip.Store }})
	}
	return archive(t, all...)
}

func FuzzReadArchive(f *testing.F) {
	f.Add(archive(f, entry{name: ResultName, data: []byte(`{"version":1}`)}))
	f.Add(archive(f, entry{name: "a/"}, entry{name: "a/b", data: []byte("x")}))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := ReadArchive(bytes.NewReader(data), int64(len(data)))
		if (a == nil) == (err == nil) {
			t.Errorf("%v, %v", a, err)
		}
	})
}

var source = Source{Key: Key("bench.yaml", ""), Head: strings.Repeat("ab", 20), Run: 12, Attempt: 2, RunURL: "https://github.com/octo/app/actions/runs/12", Spec: "bench.yaml"}

func TestMarker(t *testing.T) {
	m := Marker{Key: source.Key, Head: source.Head, Run: 12, Attempt: 2}
	for _, m := range []Marker{m, {Key: m.Key, Head: m.Head, Run: 12, Attempt: 2, Stale: strings.Repeat("cd", 20)}} {
		for _, end := range []string{"\n", "\r\n"} {
			if got, ok := ParseMarker(m.String() + end + "text"); !ok || got != m {
				t.Errorf("%+v came back as %+v, %v", m, got, ok)
			}
		}
	}
	for _, body := range []string{"", "text", " " + m.String() + "\n", m.String(), "> " + m.String() + "\n", strings.Replace(m.String(), "run=12", "run=99999999999999999999", 1) + "\n"} {
		if _, ok := ParseMarker(body); ok {
			t.Errorf("%q has a marker", body)
		}
	}
	for _, c := range []struct {
		run     int64
		attempt int
		head    string
		want    bool
	}{{12, 2, source.Head, false}, {12, 3, source.Head, true}, {13, 1, source.Head, true}, {11, 9, source.Head, false}, {13, 1, "abcd", false}} {
		if got := (Marker{Head: c.head, Run: c.run, Attempt: c.attempt}).Newer(source); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	if again := Key("a", "b"); Key("a", "b") == Key("ab", "") || Key("a", "b") != again {
		t.Error("keys do not tell parts apart")
	}
}

func TestStale(t *testing.T) {
	a, err := report.ReadUntrusted(bytes.NewReader(result(t)))
	if err != nil {
		t.Fatal(err)
	}
	body, err := Render(a, source)
	if err != nil {
		t.Fatal(err)
	}
	b, c := strings.Repeat("b", 40), strings.Repeat("c", 40)
	once := Stale(body, b)
	if once == body || !strings.Contains(once, "is of commit abababa; the pull request is at bbbbbbb now") || !strings.Contains(once, "3 regressed") {
		t.Errorf("%s", once)
	}
	if Stale(once, b) != once || Stale(body, source.Head) != body || Stale("text", b) != "text" {
		t.Error("changed without need")
	}
	crlf := strings.ReplaceAll(once, "\n", "\r\n")
	for _, x := range []string{once, crlf} {
		twice := strings.ReplaceAll(Stale(x, c), "\r\n", "\n")
		if twice != Stale(body, c) {
			t.Errorf("not as if marked once:\n%s", twice)
		}
	}
}

func TestRenderProblem(t *testing.T) {
	body := RenderProblem("refused: <b>@x</b>", source)
	if m, ok := ParseMarker(body); !ok || m.Key != source.Key || strings.Contains(body, "<b>") || strings.Contains(body, "@") {
		t.Errorf("%s", body)
	}
}

func TestClosed(t *testing.T) {
	for in, want := range map[string]string{
		"text": "text",
		"<details><summary>x</summary>\n</details>": "<details><summary>x</summary>\n</details>",
		"<details><summary>x</summary>\n<pre>\ncut": "<details><summary>x</summary>\n<pre>\ncut\n</pre>\n\n</details>\n",
	} {
		if got := closed(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}
