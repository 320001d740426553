package workdir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// owner is the record in each directory of a run. The lock alone is not enough: a file system that several hosts share may not
// share locks.
type owner struct {
	// Host is the name of the host that executes the run.
	Host string `json:"host"`
	// Boot is the kernel's ID of the boot.
	Boot string `json:"boot"`
	// Dirs are all directories of the run. The last one holds the state.
	Dirs []string `json:"dirs"`
}

const ownerName = "owner.json"

// maxOwnerSize bounds the record, in bytes. Three paths have at most 12 KiB.
const maxOwnerSize = 64 << 10

// thisOwner is the record of this host, without directories.
func thisOwner() owner {
	var o owner
	o.Host, _ = os.Hostname() // an empty name is equal on all hosts without a name
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	o.Boot = strings.TrimSpace(string(boot))
	return o
}

// writeOwner writes the record to a directory, where it appears whole. After a loss of power it may be empty. That is harmless on a local
// file system, and a shared one stores a file when it is closed.
func writeOwner(dir string, dirs []string) (err error) {
	o := thisOwner()
	o.Dirs = dirs
	text, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("record the owner of %s: %w", dir, err)
	}
	path := filepath.Join(dir, ownerName)
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.Write(text)
		err = errors.Join(err, f.Close())
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return fmt.Errorf("record the owner of %s: %w", dir, err)
	}
	return nil
}

// readOwner reads the record of a directory. A missing or malformed one is false: a process was killed while it made the directory.
func readOwner(dir string) (o owner, ok bool) {
	path := filepath.Join(dir, ownerName)
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxOwnerSize {
		return o, false
	}
	text, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(text, &o) != nil {
		return owner{}, false
	}
	return o, true
}

// leftovers are the directories of a run, also in roots of other sessions.
type leftovers struct {
	id     string
	dirs   []string // directories that hold state come last
	states []string // the directories that hold state
	alive  bool     // a process holds a lock
	host   string   // another host that executes the run; empty if it is this one
}

// find returns the directories of a run and its owner. A lock that cannot be queried is an error, unless the run is of an earlier boot
// of this host.
func find(roots Roots, id string) (leftovers, error) {
	dirs := roots.of(id)
	l := leftovers{id: id, dirs: dirs, states: dirs[len(dirs)-1:]}
	self, oldBoot := thisOwner(), false
	for _, dir := range dirs {
		o, ok := readOwner(dir)
		if !ok {
			continue
		}
		if o.Host != self.Host {
			l.host = o.Host
		}
		oldBoot = oldBoot || o.Boot != self.Boot
		dirs := slices.DeleteFunc(o.Dirs, func(dir string) bool { return !isRunDir(dir, id) })
		if len(dirs) > 0 {
			l.dirs = slices.Concat(dirs, l.dirs)
			l.states = append(dirs[len(dirs)-1:], l.states...)
		}
	}
	l.states = distinct(l.states)
	l.dirs = distinct(slices.Concat(slices.DeleteFunc(l.dirs, func(dir string) bool { return slices.Contains(l.states, dir) }), l.states))
	for _, dir := range l.dirs {
		isHeld, err := locked(dir)
		if err != nil && !oldBoot {
			return l, fmt.Errorf("check whether run %s is alive: %w", id, err)
		}
		l.alive = l.alive || isHeld
	}
	return l, nil
}

// isRunDir reports whether a recorded path can be a directory of the run: its name is the ID, and no other user can change its
// parent.
func isRunDir(dir, id string) bool {
	return filepath.IsAbs(dir) && filepath.Clean(dir) == dir && filepath.Base(dir) == id && private(filepath.Dir(dir)) == nil
}

// distinct removes repeated items and keeps the order.
func distinct(items []string) []string {
	var list []string
	for _, item := range items {
		if !slices.Contains(list, item) {
			list = append(list, item)
		}
	}
	return list
}

// locked reports whether a process holds the lock of a directory.
func locked(dir string) (bool, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = errors.Join(flock(f, unix.LOCK_SH|unix.LOCK_NB), f.Close())
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}
