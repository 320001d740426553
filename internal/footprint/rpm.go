package footprint

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	rpmdb "github.com/knqyf263/go-rpmdb/pkg"
	_ "modernc.org/sqlite" // the driver of the database since rpm 4.16
)

// rpmFiles are the databases of rpm: SQLite, NDB and Berkeley DB, in the directories of the distributions.
var rpmFiles = []string{
	"/usr/lib/sysimage/rpm/rpmdb.sqlite", "/var/lib/rpm/rpmdb.sqlite",
	"/usr/lib/sysimage/rpm/Packages.db", "/var/lib/rpm/Packages.db",
	"/usr/lib/sysimage/rpm/Packages", "/var/lib/rpm/Packages",
}

// rpmBase are the packages that every installation has: those that Fedora protects from removal.
var rpmBase = []string{"setup", "filesystem", "basesystem", "rpm", "dnf", "dnf5", "yum", "zypper", "systemd", "sudo"}

// openRPM reads the database of rpm.
func openRPM(t tree, file, scratch string) (*store, error) {
	packages, err := listRPM(t.at(file), scratch)
	if err != nil {
		return nil, unreadable("rpm", fmt.Errorf("%s: %w", file, err))
	}
	var units []*unit
	for _, p := range packages {
		u, err := newRPM(p)
		if err != nil {
			return nil, unreadable("rpm", fmt.Errorf("%s: %w", file, err))
		}
		units = append(units, u)
	}
	s := newStore("rpm", units, recorded{units})
	s.noRecommends = "the footprint with recommended packages is unknown: the reader of rpm's database does not return them"
	return s, nil
}

// listRPM reads a copy of the database. SQLite would write to the host's: it makes files beside it, and it moves the write-ahead log
// into it. The copy includes SQLite's logs, so it has the last committed state, also while rpm writes.
func listRPM(file, scratch string) (packages []*rpmdb.PackageInfo, err error) {
	dir, err := os.MkdirTemp(scratch, "rpm")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for _, log := range []string{"", "-wal", "-journal"} {
		if err := copyFile(file+log, filepath.Join(dir, filepath.Base(file)+log)); err != nil && (log == "" || !errors.Is(err, fs.ErrNotExist)) {
			return nil, err
		}
	}
	db, err := rpmdb.Open(filepath.Join(dir, filepath.Base(file)))
	if err != nil {
		return nil, err
	}
	packages, err = db.ListPackages()
	return packages, errors.Join(err, db.Close())
}

func copyFile(source, destination string) (err error) {
	in, err := os.Open(source)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // it is only read from
	out, err := os.OpenFile(destination, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

func newRPM(p *rpmdb.PackageInfo) (*unit, error) {
	u := &unit{name: p.Name, version: p.Version + "-" + p.Release, installed: true, estimate: int64(p.Size), base: slices.Contains(rpmBase, p.Name)}
	if u.name == "" || len(p.BaseNames) != len(p.DirIndexes) {
		return nil, fmt.Errorf("package %q has no name, or no directories for its files", p.Name)
	}
	for i, base := range p.BaseNames {
		dir := p.DirIndexes[i]
		if dir < 0 || int(dir) >= len(p.DirNames) {
			return nil, fmt.Errorf("package %s: the directory of %s is unknown", u.name, base)
		}
		u.paths = append(u.paths, path.Join(p.DirNames[dir], base))
	}
	for _, need := range p.Requires {
		// rpmlib is a feature of rpm itself. A condition in parentheses such as "(a if b)" depends on other packages.
		if !strings.HasPrefix(need, "rpmlib(") && !strings.HasPrefix(need, "(") {
			u.depends = append(u.depends, relation{{name: need}})
		}
	}
	for _, name := range p.Provides {
		u.provides = append(u.provides, atom{name: name})
	}
	return u, nil
}
