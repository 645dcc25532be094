package proc

import (
	"fmt"
	"testing"
	"time"

	"github.com/tandem-bench/tandem/spec"
)

func TestUsageCountsEveryProcess(t *testing.T) {
	const each = 150 * time.Millisecond
	for name, args := range map[string][]string{
		"alone":   {"burn-and-stay", each.String()},
		"ended":   {"fork", "2", "burn", each.String()},
		"living":  {"fork", "2", "burn-and-stay", each.String()},
		"deep":    {"fork", "1", "fork", "2", "burn-and-stay", each.String()},
		"daemon":  {"daemon-and-stay", "burn-and-stay", each.String()},
		"orphans": {"daemon-and-stay", "burn", each.String()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachWay(t, func(t *testing.T, r *rig) {
				want := each
				if args[0] == "fork" {
					want *= 2
				}
				p := r.start(args...)
				var u Usage
				until(t, fmt.Sprintf("CPU time comes to rest above %v", want), func() bool {
					last := u.CPU
					time.Sleep(50 * time.Millisecond)
					var err error
					if u, err = p.Usage(); err != nil {
						t.Fatal(err)
					}
					return u.CPU+u.Resolution >= want && u.CPU-last < 5*time.Millisecond
				})
				// The test binary itself costs something to start, more with -race.
				if u.CPU > want+time.Duration(2+len(args))*150*time.Millisecond {
					t.Errorf("found %v of CPU time, expected little more than %v", u.CPU, want)
				}
				if u.Resolution <= 0 || u.Resolution > 20*time.Millisecond {
					t.Errorf("found a resolution of %v", u.Resolution)
				}
				before := u
				if err := p.Stop(spec.Stop{Signal: "KILL"}); err != nil {
					t.Fatal(err)
				}
				after, err := p.Usage()
				if err != nil || after.CPU < before.CPU-before.Resolution || after.CPU > before.CPU+50*time.Millisecond {
					t.Errorf("found %v (%v) after the end, %v before it", after.CPU, err, before.CPU)
				}
			})
		})
	}
}

// TestClocksAgree compares the control group's account with the process's own
// clock, once the process sleeps.
func TestClocksAgree(t *testing.T) {
	r := newRig(t, Options{})
	p := r.start("burn-and-stay", "200ms")
	says(t, p, "burnt")
	until(t, "both clocks agree to a millisecond", func() bool {
		u, err := p.Usage()
		if err != nil {
			t.Fatal(err)
		}
		cpu, err := processClock(p.PID())
		if err != nil {
			t.Fatal(err)
		}
		return cpu >= 200*time.Millisecond && (cpu-u.CPU).Abs() <= time.Millisecond
	})
}

func TestUsageOfMemory(t *testing.T) {
	const each = 40 << 20
	eachWay(t, func(t *testing.T, r *rig) {
		p := r.start("fork", "2", "eat", fmt.Sprint(each))
		says(t, p, "forked")
		var u Usage
		until(t, "both have eaten", func() bool {
			var err error
			u, err = p.Usage()
			return err == nil && u.MaxRSS >= 2*each
		})
		if u.Processes != 3 || u.MaxRSS > 8*each {
			t.Errorf("found %+v", u)
		}
		if err := p.Stop(stopTerm); err != nil {
			t.Fatal(err)
		}
		after, err := p.Usage()
		if err != nil || after.MaxRSS < u.MaxRSS || after.Processes != 0 {
			t.Errorf("found %+v, %v after the end, %+v before", after, err, u)
		}

		// A command that has ended tells its own peak, unless ours is higher.
		res, err := r.Run(t.Context(), r.cmd("eat", fmt.Sprint(6*each), "and end"))
		if err != nil || res.Usage.MaxRSS < 6*each || res.Usage.MaxRSSFloor <= 0 {
			t.Errorf("found %+v, %v", res.Usage, err)
		}
		if res.Usage.CPU <= 0 || res.Wall <= 0 {
			t.Errorf("found %+v", res)
		}
	})
}
