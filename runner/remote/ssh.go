package remote

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/tandem-bench/tandem/runner/proc"
)

// The scripts that bring an agent to a host, for any sh. They hold no single
// quote, since the login shell, whatever it is, gets each as one word in such
// quotes; $1 is the folder and $2 the digest of our program.
const (
	// lookScript makes the folder and tells what is there.
	lookScript = `mkdir -p "$1" && cd "$1" && echo && echo tandem look && uname -sm && pwd -P && { test -x "tandem-$2" && echo have || echo lack; }`
	// putScript takes the program from standard input, whole or not at all,
	// and removes those that nobody has needed for a month.
	putScript = `cd "$1" && umask 077 && f=".tandem-$2.$$" && trap "rm -f \"$f\"" 0 && c=cat &&
{ command -v timeout >/dev/null 2>&1 && c="timeout 600 cat"; $c >"$f"; } && test $(($(wc -c <"$f"))) -eq "$3" &&
chmod 700 "$f" && mv -f "$f" "tandem-$2" && { find . -maxdepth 1 -name "tandem-*" -mtime +30 -exec rm -f {} + || :; }`
	// agentScript becomes the agent.
	agentScript = `cd "$1" && exec "./tandem-$2" "$3" "$1"`
)

// script is a command line for the login shell of a host.
func script(text string, args ...string) string {
	line := "exec sh -c " + quote(text) + " sh"
	for _, a := range args {
		line += " " + quote(a)
	}
	return line
}

// quote makes one word of a text for any login shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// argv is the ssh client with the user's own configuration, and what a client
// that nobody watches needs: no questions, no terminal, nothing forwarded
// (least of all the user's keys, to code under test), and an end when the
// other side is gone.
func (h *Host) argv(args ...string) []string {
	argv := []string{"ssh", "-x", "-a"}
	for _, o := range []string{
		"BatchMode=yes", "ConnectTimeout=20", "ClearAllForwardings=yes", "RequestTTY=no", "RemoteCommand=none",
		"ServerAliveInterval=3", "ServerAliveCountMax=3",
	} {
		argv = append(argv, "-o", o)
	}
	return append(append(argv, args[0], "--", h.o.Host.SSH), args[1:]...)
}

// command runs ssh to completion, with one flag and a command line for the
// host, and returns what it printed.
func (h *Host) command(ctx context.Context, flag string, in io.Reader, line ...string) (string, error) {
	outR, outW, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer outR.Close()
	inR, inW, err := os.Pipe()
	if err != nil {
		outW.Close()
		return "", err
	}
	fed := make(chan error, 1)
	go func() {
		var err error
		if in != nil {
			_, err = io.Copy(inW, in)
		}
		fed <- errors.Join(err, inW.Close())
	}()
	out := make(chan string, 1)
	go func() {
		const most = 1 << 20
		b, _ := io.ReadAll(io.LimitReader(outR, most))
		out <- string(b)
	}()
	_, err = h.o.Supervisor.Run(ctx, proc.Cmd{
		Name: "ssh " + h.o.Host.SSH, Argv: h.argv(append([]string{flag}, line...)...),
		Env: h.o.Environ, CPUs: h.o.CPUs, Log: h.log(), Input: inR, Output: outW,
	})
	inR.Close()
	outW.Close()
	text, feed := <-out, <-fed
	if err == nil {
		return text, feed
	}
	return text, h.sshError(err)
}

// sshError puts ssh's own words before its exit status.
func (h *Host) sshError(err error) error {
	var exit *proc.ExitError
	if !errors.As(err, &exit) {
		return fmt.Errorf("running the ssh client: %w", err)
	}
	data, readErr := os.ReadFile(h.log())
	said := strings.TrimSpace(string(data))
	if i := strings.LastIndexByte(said, '\n'); i >= 0 {
		said = said[i+1:]
	}
	if readErr != nil || said == "" {
		said = exit.Error()
	}
	if exit.Code == 255 { // of ssh itself
		return fmt.Errorf("%s (see that this works without a question: ssh -o BatchMode=yes %s true)", said, h.o.Host.SSH)
	}
	return errors.New(said)
}

// install brings our own program to the host, where it is not there already,
// and returns its digest.
func (h *Host) install(ctx context.Context) (digest string, err error) {
	program, size, digest, err := ourselves()
	if err != nil {
		return "", err
	}
	defer program.Close()
	out, err := h.command(ctx, "-T", nil, script(lookScript, h.o.Host.Dir, digest))
	if err != nil {
		return "", err
	}
	_, said, _ := strings.Cut(out, "\ntandem look\n")
	lines := strings.Split(said, "\n")
	if len(lines) < 3 {
		return "", fmt.Errorf("found %q, expected its system, folder and program from sh there", out)
	}
	if err := sameKind(lines[0]); err != nil {
		return "", err
	}
	h.dir = lines[1]
	if lines[2] == "have" {
		return digest, nil
	}
	if _, err := program.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	if _, err := h.command(ctx, "-T", program, script(putScript, h.dir, digest, strconv.FormatInt(size, 10))); err != nil {
		return "", fmt.Errorf("bringing tandem to %s: %w", h.dir, err)
	}
	return digest, nil
}

// ourselves opens our own program.
func ourselves() (f *os.File, size int64, digest string, err error) {
	path := "/proc/self/exe" // right also where our file was replaced
	if runtime.GOOS != "linux" {
		if path, err = os.Executable(); err != nil {
			return nil, 0, "", err
		}
	}
	if f, err = os.Open(path); err != nil {
		return nil, 0, "", err
	}
	sum := sha256.New()
	if size, err = io.Copy(sum, f); err != nil {
		f.Close()
		return nil, 0, "", err
	}
	return f, size, hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

// sameKind compares what uname -sm says there with this machine: what is
// built here is to run there.
func sameKind(there string) error {
	system, machine, _ := strings.Cut(there, " ")
	goos := strings.ToLower(system)
	arch, known := map[string]string{
		"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64", "i686": "386", "i386": "386",
		"armv7l": "arm", "armv6l": "arm", "riscv64": "riscv64", "ppc64le": "ppc64le", "s390x": "s390x", "loongarch64": "loong64",
	}[machine]
	if !known {
		arch = machine
	}
	if goos != runtime.GOOS || arch != runtime.GOARCH {
		return fmt.Errorf("it is %s on %s, and this machine is %s on %s: arms are built here and run there, so both must be the same", goos, arch, runtime.GOOS, runtime.GOARCH)
	}
	return nil
}
