// Command tandem benchmarks versions of a program against each other and
// says, with a stated chance of error, which rows moved.
package main

import (
	"os"

	"github.com/tandem-bench/tandem/runner/proc"
	"github.com/tandem-bench/tandem/runner/remote"
)

func main() {
	if handled, code := proc.WatchdogMain(os.Args, os.Stdin); handled {
		os.Exit(code)
	}
	if handled, code := remote.AgentMain(os.Args, os.Stdin, os.Stdout, os.Stderr); handled {
		os.Exit(code)
	}
	os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
