package proc

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseCPUs(t *testing.T) {
	for in, want := range map[string]CPUs{
		"":          nil,
		"0":         {0},
		"0-3":       {0, 1, 2, 3},
		"2-3,0":     {0, 2, 3},
		"1,1,0-1":   {0, 1},
		"0-7:3":     {0, 3, 6},
		" 4 , 6-7 ": {4, 6, 7},
		"5-5":       {5},
	} {
		got, err := ParseCPUs(in)
		if err != nil || !got.Equal(want) {
			t.Errorf("%q: found %v, %v, expected %v", in, got, err, want)
		}
	}
	for in, want := range map[string]string{
		"a":          `found "a"`,
		"0,":         `found ""`,
		"3-1":        "ends before it begins",
		"-1":         `found ""`,
		"+1":         `found "+1"`,
		"1-":         `found ""`,
		"0:2":        "needs a range",
		"0-4:0":      "at least 1",
		"99999":      "above the largest",
		"0-99999999": "above the largest",
		"0 1":        `found "0 1"`,
	} {
		if got, err := ParseCPUs(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: found %v, %v, expected an error with %q", in, got, err, want)
		}
	}
}

func TestCPUsString(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := CPUs(rapid.SliceOfDistinct(rapid.IntRange(0, 40), rapid.ID[int]).Draw(t, "cpus")).normal()
		got, err := ParseCPUs(want.String())
		if err != nil || !got.Equal(want) {
			t.Fatalf("%v prints as %q, which reads as %v, %v", want, want, got, err)
		}
	})
	if s := (CPUs{0, 1, 2, 5, 7, 8}).String(); s != "0-2,5,7-8" {
		t.Errorf("found %q", s)
	}
}

func FuzzParseCPUs(f *testing.F) {
	for _, s := range []string{"0", "0-3,5", "0-8:2", "", "1-", ",", "8191"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c, err := ParseCPUs(s)
		if err != nil {
			return
		}
		again, err := ParseCPUs(c.String())
		if err != nil || !again.Equal(c) || !slices.IsSorted(c) {
			t.Errorf("%q reads as %v, which prints as %q and reads as %v, %v", s, c, c, again, err)
		}
	})
}
