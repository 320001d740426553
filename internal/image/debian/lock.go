package debian

import (
	"bufio"
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Suite is the release of Debian that the image is made of.
const Suite = "trixie"

// Lock is the list of packages that an image is made of, exactly these.
//
// As a file it is text, a package a line, in the order of names, so that a change can be read
// as one:
//
//	touchstone-lock 1
//	suite trixie
//	arch amd64
//	date 2026-09-05T08:43:31Z
//	fio 3.39-1 a3f5…e1 681212
//	svt-av1 2.3.0+dfsg-1 5b09…77 47428 clip
//
// The date is that of the suite, from its Release file. What follows name and version is the SHA-256
// and the size of the package's file, and a mark on what is needed to encode the clip.
type Lock struct {
	Suite    string
	Arch     string // as Go names it
	Date     time.Time
	Packages []Package
}

// Package is a package of Debian, of one version.
type Package struct {
	Name    string
	Version string
	SHA256  string // of the file, in hexadecimal
	Size    int64  // of the file, in bytes
	Clip    bool   // the clip's encoder needs it
}

// lockHead begins a lock file; it has the version of the format.
const lockHead = "touchstone-lock 1"

// Bounds of what a lock file may say.
const (
	maxPackages = 1000
	maxPackage  = 1 << 30 // bytes
	maxLockLine = 512
)

//go:embed lock
var locks embed.FS

// Embedded is the lock that comes with the program, for an architecture as Go names it.
func Embedded(arch string) (Lock, error) {
	content, err := locks.ReadFile("lock/" + arch + ".lock")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
		return Lock{}, fmt.Errorf("there is no list of packages for architecture %q; there are %s", arch, strings.Join(Architectures(), ", "))
	}
	if err != nil {
		return Lock{}, err
	}
	lock, err := ParseLock(content)
	if err != nil {
		return Lock{}, fmt.Errorf("embedded list of packages for %s: %w", arch, err)
	}
	return lock, nil
}

// ParseLock reads a lock file. It refuses what could reach into the command line of the package manager:
// names and versions are just what Debian's policy allows.
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
		return Lock{}, errors.New("it names no package")
	}
	return lock, nil
}

// line reads the line of a number; the first four are the head.
func (l *Lock) line(number int, line string) (err error) {
	head := func(name string) (string, error) {
		value, ok := strings.CutPrefix(line, name+" ")
		if !ok || value == "" || strings.Contains(value, " ") {
			return "", fmt.Errorf("it must be %q and a value", name)
		}
		return value, nil
	}
	switch number {
	case 1:
		if line != lockHead {
			err = fmt.Errorf("it must be %q", lockHead)
		}
	case 2:
		if l.Suite, err = head("suite"); err == nil && l.Suite != Suite {
			err = fmt.Errorf("the suite must be %s", Suite)
		}
	case 3:
		if l.Arch, err = head("arch"); err == nil && !slices.Contains(Architectures(), l.Arch) {
			err = fmt.Errorf("architecture %q is none of %s", l.Arch, strings.Join(Architectures(), ", "))
		}
	case 4:
		var date string
		if date, err = head("date"); err == nil {
			l.Date, err = time.Parse(time.RFC3339, date)
			if err == nil && l.Date.Format(time.RFC3339) != date || l.Date.Location() != time.UTC {
				err = fmt.Errorf("%q is no time in UTC", date)
			}
		}
	default:
		err = l.add(line)
	}
	return err
}

func (l *Lock) add(line string) error {
	fields := strings.Split(line, " ")
	if len(fields) != 4 && (len(fields) != 5 || fields[4] != "clip") {
		return errors.New("it must be a package's name, version, checksum and size, and may end in clip")
	}
	size, err := strconv.ParseInt(fields[3], 10, 64)
	if err != nil || size <= 0 || size > maxPackage || strconv.FormatInt(size, 10) != fields[3] {
		return fmt.Errorf("%q is no size of a package", fields[3])
	}
	p := Package{Name: fields[0], Version: fields[1], SHA256: fields[2], Size: size, Clip: len(fields) == 5}
	switch {
	case !isName(p.Name):
		return fmt.Errorf("%q is no name of a package", p.Name)
	case !isVersion(p.Version):
		return fmt.Errorf("%q is no version of a package", p.Version)
	case !isSHA256(p.SHA256):
		return fmt.Errorf("%q is no SHA-256", p.SHA256)
	case len(l.Packages) >= maxPackages:
		return fmt.Errorf("there are more than %d packages", maxPackages)
	case len(l.Packages) > 0 && l.Packages[len(l.Packages)-1].Name >= p.Name:
		return fmt.Errorf("package %s is out of order or there twice", p.Name)
	}
	l.Packages = append(l.Packages, p)
	return nil
}

const (
	lower  = "abcdefghijklmnopqrstuvwxyz"
	digits = "0123456789"
)

func of(s, alphabet string) bool { return s != "" && strings.Trim(s, alphabet) == "" }

// isName and isVersion: Debian Policy, 5.6.1 and 5.6.12.
func isName(s string) bool {
	return len(s) >= 2 && of(s[:1], lower+digits) && of(s, lower+digits+"+-.")
}

func isVersion(s string) bool {
	return of(s, lower+strings.ToUpper(lower)+digits+".+-~:") && of(s[:1], digits)
}

func isSHA256(s string) bool { return len(s) == 64 && of(s, digits+"abcdef") }

// Format is the lock as a file.
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

// find gives the package of a name.
func (l Lock) find(name string) (Package, bool) {
	i, ok := slices.BinarySearchFunc(l.Packages, name, func(p Package, name string) int { return strings.Compare(p.Name, name) })
	if !ok {
		return Package{}, false
	}
	return l.Packages[i], true
}

// only gives the lock of what the clip's encoder needs.
func (l Lock) onlyClip() Lock {
	l.Packages = slices.DeleteFunc(slices.Clone(l.Packages), func(p Package) bool { return !p.Clip })
	return l
}

// snapshot is a time at which the archive of snapshots has the suite as the lock knows it: the one it
// gives for a time is the last from before, and the suite changes once in two months.
func (l Lock) snapshot() time.Time { return l.Date.UTC().Add(24 * time.Hour) }
