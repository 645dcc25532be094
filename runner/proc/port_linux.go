package proc

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// listener is a listening TCP socket.
type listener struct {
	at    netip.AddrPort
	inode uint64 // of the socket
	uid   int    // of the user who made it
}

// readListeners lists the listening sockets of our network namespace.
func readListeners() ([]listener, error) {
	var all []listener
	for _, name := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		f, err := os.Open(name)
		if errors.Is(err, os.ErrNotExist) {
			continue // a kernel without IPv6
		}
		if err != nil {
			return nil, err
		}
		l, err := parseListeners(f)
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, l...)
	}
	return all, nil
}

// parseListeners reads a table such as /proc/net/tcp (proc_pid_net(5)).
func parseListeners(r io.Reader) ([]listener, error) {
	const listen = "0A" // TCP_LISTEN
	var out []listener
	in := bufio.NewScanner(r)
	in.Scan() // the heading
	for in.Scan() {
		f := strings.Fields(in.Text())
		if len(f) < 10 {
			return nil, fmt.Errorf("found %q, expected a socket with at least 10 fields", clip(in.Text(), 80))
		}
		if f[3] != listen {
			continue
		}
		at, err := parseSockAddr(f[1])
		if err != nil {
			return nil, err
		}
		uid, err1 := strconv.Atoi(f[7])
		inode, err2 := strconv.ParseUint(f[9], 10, 64)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		out = append(out, listener{at, inode, uid})
	}
	return out, in.Err()
}

// parseSockAddr reads "0100007F:1F90": the address in words of 32 bits, each
// in the machine's byte order, and the port.
func parseSockAddr(s string) (netip.AddrPort, error) {
	addr, port, ok := strings.Cut(s, ":")
	b, err := hex.DecodeString(addr)
	n, err2 := strconv.ParseUint(port, 16, 16)
	if !ok || err != nil || err2 != nil || len(b) != 4 && len(b) != 16 {
		return netip.AddrPort{}, fmt.Errorf("found %q, expected a socket address in hexadecimal", clip(s, 60))
	}
	for i := 0; i < len(b); i += 4 {
		binary.NativeEndian.PutUint32(b[i:], binary.BigEndian.Uint32(b[i:]))
	}
	ip, _ := netip.AddrFromSlice(b)
	return netip.AddrPortFrom(ip.Unmap(), uint16(n)), nil
}

// answering picks those of the listeners that would get a connection to the
// address: sockets bound to exactly it, else those bound to any address.
func answering(all []listener, to netip.AddrPort) []listener {
	var exact, wild []listener
	for _, l := range all {
		switch {
		case l.at.Port() != to.Port():
		case l.at.Addr() == to.Addr() || to.Addr().IsUnspecified() && l.at.Addr().IsLoopback():
			exact = append(exact, l)
		case l.at.Addr().IsUnspecified() && (l.at.Addr().Is6() || to.Addr().Is4()):
			wild = append(wild, l) // a version 6 wildcard takes version 4 as well
		}
	}
	if len(exact) > 0 {
		return exact
	}
	return wild
}

// checkPort returns nil where every socket that could answer at the address
// belongs to the tree, errNoListener where there is none, and a
// [*StrangerError] otherwise. Sockets and processes are read one after the
// other while a server forks and closes, so a stranger is believed only when
// it is found three times.
func (p *Process) checkPort(at netip.AddrPort) error {
	var err error
	for i := range 3 {
		if i > 0 {
			time.Sleep(2 * time.Millisecond)
		}
		err = p.lookAtPort(at)
		var stranger *StrangerError
		if !errors.As(err, &stranger) {
			break
		}
	}
	return err
}

// lookAtPort is one look of checkPort.
func (p *Process) lookAtPort(at netip.AddrPort) error {
	all, err := readListeners()
	if err != nil {
		return fmt.Errorf("find out who listens on port %d: %w", at.Port(), err)
	}
	found := answering(all, at)
	if len(found) == 0 {
		return errNoListener
	}
	pids, err := p.tree.members()
	if err != nil {
		return fmt.Errorf("find out who listens on port %d: %w", at.Port(), err)
	}
	ours, hidden := map[uint64]bool{}, false
	for _, pid := range pids {
		if err := addSockets(ours, pid); err != nil && !gone(err) {
			hidden = true // it runs as another user
		}
	}
	for _, l := range found {
		if ours[l.inode] {
			continue
		}
		pid := socketOwner(l.inode)
		if pid == 0 && hidden {
			continue // it may well be the process of ours that cannot be looked into
		}
		e := &StrangerError{Name: p.name, Port: int(at.Port()), PID: pid}
		if pid != 0 {
			e.Command = commandLine(pid)
		}
		return e
	}
	return nil
}

// listens lists where the tree listens; nil where that cannot be found out.
func (p *Process) listens() []string {
	all, err := readListeners()
	if err != nil {
		return nil
	}
	pids, err := p.tree.members()
	if err != nil {
		return nil
	}
	ours := map[uint64]bool{}
	for _, pid := range pids {
		if err := addSockets(ours, pid); err != nil && !gone(err) {
			return nil
		}
	}
	out := []string{}
	for _, l := range all {
		if ours[l.inode] {
			out = append(out, l.at.String())
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// OwnsPort reports whether the process, or one that it started, listens on
// the port and would answer a connection to 127.0.0.1. The error names a
// stranger who does ([*StrangerError]).
func (p *Process) OwnsPort(port int) (bool, error) {
	err := p.checkPort(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(port)))
	if errors.Is(err, errNoListener) {
		return false, nil
	}
	return err == nil, err
}

// addSockets adds the inodes of all sockets that a process has open.
func addSockets(set map[uint64]bool, pid int) error {
	dir := "/proc/" + strconv.Itoa(pid) + "/fd"
	fds, err := numericNames(dir)
	if err != nil {
		return err
	}
	for _, fd := range fds {
		link, err := os.Readlink(dir + "/" + strconv.Itoa(fd))
		if err != nil {
			continue // closed meanwhile
		}
		if s, ok := strings.CutPrefix(link, "socket:["); ok {
			if n, err := strconv.ParseUint(strings.TrimSuffix(s, "]"), 10, 64); err == nil {
				set[n] = true
			}
		}
	}
	return nil
}

// socketOwner finds the process that has a socket open, 0 where it cannot be seen.
func socketOwner(inode uint64) int {
	pids, err := numericNames("/proc")
	if err != nil {
		return 0
	}
	for _, pid := range pids {
		set := map[uint64]bool{}
		if addSockets(set, pid) == nil && set[inode] {
			return pid
		}
	}
	return 0
}
