package main

import (
	"testing"
	"time"
)

func TestRoundTime(t *testing.T) {
	for d, want := range map[time.Duration]string{
		400 * time.Millisecond: "0s",
		59 * time.Second:       "59s",
		60 * time.Second:       "1m",
		69 * time.Second:       "1m10s",
		10 * time.Minute:       "10m",
		3601 * time.Second:     "1h0m",
	} {
		if got := roundTime(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}
