package debian

import (
	"bufio"
	"bytes"
	"embed"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Suite is the release of Debian of the image.
const Suite = "trixie"

// Lock is the exact list of packages of an image.
//
// As a file it is text with a package per line, sorted by name, so that a diff shows each change:
//
//	touchstone-lock 1
//	suite trixie
//	arch amd64
//	date 2026-09-05T08:43:31Z
//	fio 3.39-1 a3f5…e1 681212
//	svt-av1 2.3.0+dfsg-1 5b09…77 47428 clip
//
// The date is the date in the suite's Release file. The name and version are followed by the SHA-256 and the size of the package's
// file, and by a mark on packages for the encoding of the clip.
type Lock struct {
	Suite    string
	Arch     string // Go's name
	Date     time.Time
	Packages []Package
}

// Package is a package of Debian, of one version.
type Package struct {
	Name    string
	Version string
	SHA256  string // of the file, in hexadecimal
	Size    int64  // of the file, in bytes
	Clip    bool   // for the clip's encoder
}

// lockHead begins a lock file and contains the version of the format.
const lockHead = "touchstone-lock 1"

// Bounds of a lock file.
const (
	maxPackages = 1000
	maxPackage  = 1 << 30 // bytes
	maxLockLine = 512
)

//go:embed lock
var locks embed.FS

// Embedded returns the lock in the binary for an architecture, by Go's name.
func Embedded(arch string) (Lock, error) {
	content, err := locks.ReadFile("lock/" + arch + ".lock")
	if err != nil {
		return Lock{}, fmt.Errorf("the binary has no list of packages for architecture %q; it has lists for %s", arch, strings.Join(Architectures(), ", "))
	}
	lock, err := ParseLock(content)
	if err != nil {
		return Lock{}, fmt.Errorf("embedded list of packages for %s: %w", arch, err)
	}
	return lock, nil
}

// ParseLock reads a lock file. Names and versions must follow Debian's policy, so that they cannot inject options into the command
// line of the package manager.
func ParseLock(content []byte) (Lock, error) {
	var lock Lock
	lines := bufio.NewScanner(bytes.NewReader(content))
	lines.Buffer(nil, maxLockLine)
	number := 0
	for lines.Scan() {
		number++
		if err := lock.line(number, lines.Text()); err != nil {
			return Lock{}, fmt.Errorf("line %d: %w", number, err)
		}
	}
	if err := lines.Err(); err != nil {
		return Lock{}, fmt.Errorf("line %d: %w", number+1, err)
	}
	if len(lock.Packages) == 0 {
		return Lock{}, errors.New("it has no package")
	}
	return lock, nil
}

// line reads a line by its number; the first four lines are the head.
func (l *Lock) line(number int, line string) (err error) {
	name, value, _ := strings.Cut(line, " ")
	switch {
	case number > 4:
		return l.add(line)
	case number == 1 && line != lockHead && name == "touchstone-lock":
		return fmt.Errorf("the version %q of the list is unknown, this touchstone reads %q; use another touchstone", line, lockHead)
	case number == 1 && line != lockHead:
		return fmt.Errorf("it must be %q", lockHead)
	case name != strings.Fields("touchstone-lock suite arch date")[number-1] || value == "" || strings.Contains(value, " "):
		return errors.New("the head must have suite, arch and date, in this order and each with a value")
	}
	switch name {
	case "suite":
		if l.Suite = value; value != Suite {
			err = fmt.Errorf("the suite must be %s", Suite)
		}
	case "arch":
		if l.Arch = value; !slices.Contains(Architectures(), value) {
			err = fmt.Errorf("architecture %q is not one of %s", value, strings.Join(Architectures(), ", "))
		}
	case "date":
		if l.Date, err = time.Parse(time.RFC3339, value); err == nil && l.Date.UTC().Format(time.RFC3339) != value {
			err = fmt.Errorf("%q is not a time in UTC", value)
		}
	}
	return err
}

func (l *Lock) add(line string) error {
	fields := strings.Split(line, " ")
	if len(fields) != 4 && (len(fields) != 5 || fields[4] != "clip") {
		return errors.New("it must have a package's name, version, checksum and size, and may end in clip")
	}
	size, err := strconv.ParseInt(fields[3], 10, 64)
	if err != nil || size <= 0 || size > maxPackage || strconv.FormatInt(size, 10) != fields[3] {
		return fmt.Errorf("%q is not a size of a package", fields[3])
	}
	p := Package{Name: fields[0], Version: fields[1], SHA256: fields[2], Size: size, Clip: len(fields) == 5}
	switch {
	case !isName(p.Name):
		return fmt.Errorf("%q is not a name of a package", p.Name)
	case !isVersion(p.Version):
		return fmt.Errorf("%q is not a version of a package", p.Version)
	case !isSHA256(p.SHA256):
		return fmt.Errorf("%q is not a SHA-256", p.SHA256)
	case len(l.Packages) >= maxPackages:
		return fmt.Errorf("it has more than %d packages", maxPackages)
	case len(l.Packages) > 0 && l.Packages[len(l.Packages)-1].Name >= p.Name:
		return fmt.Errorf("package %s is out of order or occurs twice", p.Name)
	}
	l.Packages = append(l.Packages, p)
	return nil
}

// Names and versions: Debian Policy, 5.6.1 and 5.6.12.
var (
	isName    = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]+$`).MatchString
	isVersion = regexp.MustCompile(`^[0-9][A-Za-z0-9.+~:-]*$`).MatchString
	isSHA256  = regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString
)

// Format returns the lock as a file.
func (l Lock) Format() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\nsuite %s\narch %s\ndate %s\n", lockHead, l.Suite, l.Arch, l.Date.UTC().Format(time.RFC3339))
	for _, p := range l.Packages {
		fmt.Fprintf(&b, "%s %s %s %d", p.Name, p.Version, p.SHA256, p.Size)
		if p.Clip {
			b.WriteString(" clip")
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// search returns the index of the package with a name, or the index for its insertion.
func (l Lock) search(name string) (int, bool) {
	return slices.BinarySearchFunc(l.Packages, name, func(p Package, name string) int { return strings.Compare(p.Name, name) })
}

// find returns the package with a name.
func (l Lock) find(name string) (p Package, ok bool) {
	i, ok := l.search(name)
	if ok {
		p = l.Packages[i]
	}
	return p, ok
}

// onlyClip returns a lock with the packages of the clip's encoder.
func (l Lock) onlyClip() Lock {
	l.Packages = slices.DeleteFunc(slices.Clone(l.Packages), func(p Package) bool { return !p.Clip })
	return l
}

// snapshot returns a time for the archive of snapshots, where it has the suite of the lock. For a time the archive serves the last snapshot
// before it, and the suite changes every two months.
func (l Lock) snapshot() time.Time { return l.Date.UTC().Add(24 * time.Hour) }
