package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/tandem-bench/tandem/spec"
)

// The exit codes of every verb.
const (
	exitPassed      = 0
	exitGateFailed  = 1   // a threshold or a policy failed
	exitUsage       = 2   // the spec or the command line is wrong
	exitUnsure      = 3   // a row is unsure, where policy.unsure is fail
	exitNotMeasured = 4   // a build, a start, a check or a driver failed
	exitInterrupted = 130 // by a signal
)

// exitError carries an exit code through cobra. Its message, where there is
// one, is printed once by Main.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usageErrorf is a mistake on the command line.
func usageErrorf(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// notMeasured wraps a failure to measure.
func notMeasured(err error) error { return &exitError{exitNotMeasured, err} }

// app is what every verb shares: the streams, the environment and the clock.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	commands       io.Writer // for what a CI runner is to obey: actions.go
	env            spec.Env
	environ        []string
	now            func() time.Time
	sleep          func(context.Context, time.Duration) error
	maxSteal       float64 // see runner.Options

	file    string // -f
	profile string // --profile
	color   string // --color
}

// Main runs tandem with the given arguments and returns its exit code.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return newApp(stdin, stdout, stderr).execute(args)
}

// newApp is tandem in the environment of this process.
func newApp(stdin io.Reader, stdout, stderr io.Writer) *app {
	return &app{stdin: stdin, stdout: stdout, stderr: stderr, env: os.LookupEnv, environ: os.Environ(), now: time.Now, sleep: sleep}
}

func (a *app) execute(args []string) int {
	a.guardStreams()
	cmd := a.root()
	cmd.SetArgs(args)
	cmd.SetIn(a.stdin)
	cmd.SetOut(a.stdout)
	cmd.SetErr(a.stderr)
	err := cmd.ExecuteContext(context.Background())
	if err == nil {
		return exitPassed
	}
	var exit *exitError
	if !errors.As(err, &exit) { // cobra's own: an unknown verb
		exit = &exitError{exitUsage, fmt.Errorf("%w\nrun 'tandem --help' for the verbs and their flags", err)}
	}
	if exit.Error() != "" {
		fmt.Fprintln(a.stderr, "tandem:", exit.Error())
	}
	return exit.code
}

// sleep waits, or ends with the context.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "tandem",
		Short: "Says, with a stated chance of error, whether a change made a program faster or slower",
		Long: `Tandem benchmarks versions of a program against each other. A repository
commits a bench.yaml; tandem builds every arm, starts them side by side, takes
turns between them so quickly that all see the same machine, marks the rows that
moved beyond the noise, and fails on thresholds.

Exit codes: 0 passed, 1 a gate failed, 2 the spec or the command line is wrong,
3 unsure (where policy.unsure is fail), 4 could not measure, 130 interrupted.`,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if a.color != "auto" && a.color != "always" && a.color != "never" {
				return usageErrorf("--color: found %q, expected auto, always or never", a.color)
			}
			return nil
		},
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version(),
	}
	root.PersistentFlags().StringVar(&a.color, "color", "auto", "colour: auto, always or never (NO_COLOR is respected by auto)")
	root.AddCommand(a.runCmd(), a.reportCmd(), a.planCmd(), a.compareCmd(), a.historyCmd(), a.doctorCmd(), a.doctorServerCmd(), a.validateCmd(), a.schemaCmd(), a.initCmd(), a.mergeCmd(), a.checkCmd(), a.commentCmd())
	root.SetFlagErrorFunc(flagError)
	root.CompletionOptions.HiddenDefaultCmd = true
	return root
}

// flagError says which flag may have been meant, and where they are listed.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := spec.Nearest(unknown.GetSpecifiedName(), names); near != "" {
			err = fmt.Errorf("%w; did you mean --%s?", err, near)
		}
	}
	return usageErrorf("%w\nrun '%s --help' for its flags", err, cmd.CommandPath())
}

// specFlags adds the flags of every verb that reads a spec.
func (a *app) specFlags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&a.file, "file", "f", "", "the spec (default: bench.yaml, looked for upwards)")
	cmd.Flags().StringVar(&a.profile, "profile", "", "apply this profile of the spec")
}

// load reads and checks the spec, and prints every diagnostic to stderr.
func (a *app) load() (*spec.Spec, error) {
	path, err := a.specPath()
	if err != nil {
		return nil, err
	}
	s, diags, err := spec.Load(path, a.specOptions())
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	if len(diags) > 0 {
		if err := a.printDiagnostics(diags); err != nil {
			return nil, err
		}
	}
	if s == nil {
		return nil, &exitError{exitUsage, nil}
	}
	return s, nil
}

func (a *app) specPath() (string, error) {
	if a.file != "" {
		return a.file, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", &exitError{exitUsage, err}
	}
	path, err := spec.Find(dir)
	if err != nil {
		return "", &exitError{exitUsage, err}
	}
	if rel, err := filepath.Rel(dir, path); err == nil {
		path = rel // what a reader and an annotation can follow
	}
	return path, nil
}

func (a *app) specOptions() spec.Options {
	return spec.Options{Profile: a.profile, Env: a.env, CPUs: cpus(), Power: specPower()}
}

// colored says whether w gets colour.
func (a *app) colored(w io.Writer) bool {
	switch a.color {
	case "always":
		return true
	case "never":
		return false
	}
	if v, set := a.env("NO_COLOR"); set && v != "" {
		return false
	}
	if v, _ := a.env("TERM"); v == "dumb" {
		return false
	}
	return isTerminal(w)
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// width is the number of columns of w: of the terminal, or of $COLUMNS, or 0
// for no limit.
func (a *app) width(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
			return columns
		}
	}
	if v, ok := a.env("COLUMNS"); ok {
		var columns int
		if _, err := fmt.Sscan(v, &columns); err == nil && columns > 0 {
			return columns
		}
	}
	return 0
}
