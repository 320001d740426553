// Package trust refuses files and directories that another user can change: results, plans that are resumed from them, and images.
//
// A path is resolved component by component, and no link is followed before its owner is known. For root the whole path must be
// safe: if each directory on it belongs to a trusted user, no other user can exchange a part of it after the check. So a later open by
// name needs no further check. Other users choose their paths themselves, so only the file and its directory count.
//
// Trusted users are root, the user of the process, and the user who called sudo. Access lists of POSIX count. Access lists of NFSv4 do not, because
// the server of such a file system decides.
package trust

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Error is a path that another user can change.
type Error struct {
	// Path is the unsafe part of the path.
	Path    string
	Problem string
	Advice  string
}

func (e *Error) Error() string { return fmt.Sprintf("%s %s; %s", e.Path, e.Problem, e.Advice) }

// Directory returns the name of a directory without links. It refuses a directory that another user can change.
func Directory(path string) (string, error) { return resolve(path, false) }

// MakeDirectory is Directory, and creates missing directories with mode 0700.
func MakeDirectory(path string) (string, error) { return resolve(path, true) }

// File returns the name of a file without links. It refuses a file that another user can change or replace.
func File(path string) (string, error) {
	name, err := resolve(path, false)
	if err != nil {
		return "", err
	}
	if _, err := resolve(filepath.Dir(name), false); err != nil {
		return "", err
	}
	return name, nil
}

// Entry refuses a link, and a file or directory that another user can change. Its directory must be safe. A missing entry is
// fs.ErrNotExist.
func Entry(path string) error {
	var s unix.Stat_t
	if err := unix.Lstat(path, &s); err != nil {
		return &fs.PathError{Op: "lstat", Path: path, Err: err}
	}
	if s.Mode&unix.S_IFMT == unix.S_IFLNK {
		return &Error{path, "is a symbolic link", "remove it"}
	}
	return check(path, &s)
}

// maxLinks bounds the links of a path, like the kernel.
const maxLinks = 40

// resolve follows the links of a path after it has checked their owners.
func resolve(path string, create bool) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	root := os.Geteuid() == 0
	location, rest := "/", parts(path)
	for links := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		if part == ".." { // of a link
			location = filepath.Dir(location)
			continue
		}
		name := filepath.Join(location, part)
		var s unix.Stat_t
		err := unix.Lstat(name, &s)
		if errors.Is(err, unix.ENOENT) && create {
			if err := os.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
				return "", err
			}
			err = unix.Lstat(name, &s)
		}
		if err != nil {
			return "", &fs.PathError{Op: "lstat", Path: name, Err: err}
		}
		if s.Mode&unix.S_IFMT == unix.S_IFLNK {
			if links++; links > maxLinks {
				return "", &fs.PathError{Op: "resolve", Path: path, Err: unix.ELOOP}
			}
			if root && !trusted(s.Uid) {
				return "", &Error{name, "is a link of " + user(s.Uid), "name the directory itself"}
			}
			target, err := os.Readlink(name)
			if err != nil {
				return "", err
			}
			if filepath.IsAbs(target) {
				location = "/"
			}
			rest = append(parts(target), rest...)
			continue
		}
		if len(rest) > 0 && root {
			err = checkAncestor(name, &s)
		} else if len(rest) == 0 {
			err = check(name, &s)
		}
		if err != nil {
			return "", err
		}
		location = name
	}
	return location, nil
}

// parts splits a path into its components.
func parts(path string) []string {
	return slices.DeleteFunc(strings.Split(path, "/"), func(part string) bool { return part == "" || part == "." })
}

// check refuses a file or directory that another user owns or can write to. In a directory with the sticky bit, others can still create
// files with the names that the program uses.
func check(path string, s *unix.Stat_t) error {
	switch {
	case !trusted(s.Uid):
		return &Error{path, "belongs to " + user(s.Uid), "run touchstone as that user, or use chown if you trust the content"}
	case writable(s):
		return &Error{path, "can be changed by other users", fmt.Sprintf("if you trust the content, run chmod go-w %s", path)}
	case s.Mode&unix.S_IFMT == unix.S_IFDIR:
		return checkLists(path, accessList, defaultList)
	}
	return checkLists(path, accessList)
}

// checkAncestor refuses a directory whose entries another user can exchange.
func checkAncestor(path string, s *unix.Stat_t) error {
	if !trusted(s.Uid) && !unmapped(s.Uid) {
		return &Error{path, "belongs to " + user(s.Uid), "use a directory that only you can change, or run touchstone as that user"}
	}
	if writable(s) && s.Mode&unix.S_ISVTX == 0 {
		return &Error{path, "can be changed by other users", "use a directory that only you can change"}
	}
	if s.Mode&unix.S_ISVTX != 0 {
		return nil
	}
	return checkLists(path, accessList)
}

func user(uid uint32) string { return fmt.Sprintf("user %d", uid) }

// User reports whether a user is trusted.
func User(uid int) bool { return uid >= 0 && trusted(uint32(uid)) }

// trusted reports whether a user may change the files of this process.
func trusted(uid uint32) bool {
	return uid == 0 || int(uid) == os.Geteuid() || bySudo("SUDO_UID", uid)
}

// writable reports whether users of an untrusted group, or all users, can write. The group of this process is trusted, because many
// users have a group of their own and a umask of 002.
func writable(s *unix.Stat_t) bool {
	return s.Mode&unix.S_IWOTH != 0 || s.Mode&unix.S_IWGRP != 0 && !ours(s.Gid)
}

func ours(gid uint32) bool { return gid == 0 || int(gid) == os.Getegid() || bySudo("SUDO_GID", gid) }

// bySudo reports whether an ID belongs to the user who called sudo. Only root sets the variables of root.
func bySudo(variable string, id uint32) bool {
	n, err := strconv.ParseUint(os.Getenv(variable), 10, 32)
	return err == nil && os.Geteuid() == 0 && uint32(n) == id
}

// overflow is the ID of users without an ID in a user namespace.
const overflow = 65534

// unmapped reports whether a user has no ID in the user namespace of this process. The owner of / may be such a user.
func unmapped(uid uint32) bool {
	if uid != overflow {
		return false
	}
	text, err := os.ReadFile("/proc/self/uid_map")
	return err == nil && strings.Join(strings.Fields(string(text)), " ") != "0 0 4294967295"
}
