package report

import (
	"fmt"
	"math"

	"github.com/tandem-bench/tandem/runner/journal"
	"github.com/tandem-bench/tandem/spec"
)

// ServiceSummary is what one service of the run cost while it was measured.
type ServiceSummary struct {
	Name    string
	Arm     string  // whose it is; "" where all arms share it
	Busy    float64 // CPU seconds per second, the mean over all windows
	BusyMax float64 // in any window
	MaxRSS  int64   // peak of its memory, in bytes
}

// sumServices sums up what the trials say of services, in the order of their
// starts: those that all arms share, then those of each arm.
func sumServices(s *spec.Spec, trials []journal.Trial) []ServiceSummary {
	var out []ServiceSummary
	count := map[[2]string]int{}
	place := map[[2]string]int{}
	add := func(arm string, services []spec.Service) {
		for _, svc := range services {
			place[[2]string{arm, svc.Name}] = len(out)
			out = append(out, ServiceSummary{Name: svc.Name, Arm: arm})
		}
	}
	add("", s.Services)
	for _, arm := range s.Arms {
		add(arm.Name, arm.Services)
	}
	for _, t := range trials {
		for _, use := range t.Services {
			key := [2]string{t.Arm, use.Name}
			if _, own := place[key]; !own {
				key[0] = ""
			}
			i, known := place[key]
			if !known {
				continue
			}
			count[key]++
			out[i].Busy += (use.Busy - out[i].Busy) / float64(count[key])
			out[i].BusyMax = math.Max(out[i].BusyMax, use.Busy)
			out[i].MaxRSS = max(out[i].MaxRSS, use.MaxRSS)
		}
	}
	return out
}

// serviceLine says what a service cost.
func serviceLine(s ServiceSummary) string {
	name := "service " + plain(s.Name)
	if s.Arm != "" {
		name += " of " + plain(s.Arm)
	}
	memory := float64(s.MaxRSS)
	return fmt.Sprintf("%s: %s of a CPU while measuring, at most %s in a window; %s of memory",
		name, percent(s.Busy), percent(s.BusyMax), scaleFor("B", memory).with(memory))
}
