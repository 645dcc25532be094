package proc

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
)

// User is somebody as whom a command runs.
type User struct{ UID, GID int }

// ForRoot finds the user as whom root should run a program that refuses
// root. It is nil where this process is not root's: then the program runs as
// who we are.
func ForRoot(name string) (*User, error) {
	if name == "" || os.Geteuid() != 0 {
		return nil, nil
	}
	found, err := user.Lookup(name)
	if err != nil {
		return nil, fmt.Errorf("user %q is not known on this machine: name one of /etc/passwd, such as nobody", name)
	}
	uid, err1 := strconv.Atoi(found.Uid)
	gid, err2 := strconv.Atoi(found.Gid)
	if err1 != nil || err2 != nil {
		return nil, fmt.Errorf("user %q has the numbers %s and %s, expected whole ones", name, found.Uid, found.Gid)
	}
	return &User{uid, gid}, nil
}

// Own gives a file or folder to the user; to nil it gives nothing.
func (u *User) Own(path string) error {
	if u == nil {
		return nil
	}
	return os.Chown(path, u.UID, u.GID)
}
