package proc

// Finding is one thing on this machine that makes measurements noisy or less
// telling, or a check that found nothing of the kind.
type Finding struct {
	OK    bool
	What  string // what was looked at: "other load"
	Found string // what was found: "CPU 1 was 30% busy"
	Means string // its consequence; empty where OK
	Do    string // what to do about it; empty where nothing can be done or OK
}
