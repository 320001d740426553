package footprint

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// apkInstalled is the database of apk: https://wiki.alpinelinux.org/wiki/Apk_spec.
const apkInstalled = "/lib/apk/db/installed"

// apkBase are the packages that every installation of Alpine has.
var apkBase = []string{"alpine-base", "alpine-baselayout", "apk-tools", "busybox", "musl"}

// openAPK reads the database of apk.
func openAPK(t tree) (*store, error) {
	text, err := t.text(apkInstalled)
	if err != nil {
		return nil, unreadable("apk", err)
	}
	units, err := readAPK(text)
	if err != nil {
		return nil, unreadable("apk", fmt.Errorf("%s: %w", apkInstalled, err))
	}
	s := newStore("apk", units, recorded{units})
	s.notes = []string{"apk has no recommended packages: the footprint with them is the minimal one"}
	return s, nil
}

// readAPK reads packages: lines of a letter, a colon and a value, with an empty line after each package.
func readAPK(text string) ([]*unit, error) {
	if text != "" && !strings.HasSuffix(text, "\n\n") {
		return nil, errCutOff
	}
	var units []*unit
	u, dir := &unit{installed: true}, ""
	for i, line := range strings.Split(text, "\n") {
		if line == "" {
			if u.name != "" {
				u.base = slices.Contains(apkBase, u.name)
				units = append(units, u)
			} else if u.version != "" {
				return nil, fmt.Errorf("the package before line %d has no name", i+1)
			}
			u, dir = &unit{installed: true}, ""
			continue
		}
		key, value, ok := strings.Cut(line, ":")
		if !ok || len(key) != 1 {
			return nil, fmt.Errorf("line %d is no field: %.100q", i+1, line)
		}
		var err error
		switch key {
		case "P":
			u.name = value
		case "V":
			u.version = value
		case "I":
			if u.estimate, err = strconv.ParseInt(value, 10, 64); err != nil || u.estimate < 0 {
				return nil, fmt.Errorf("line %d: the size %q is not a number of bytes", i+1, value)
			}
		case "D":
			for _, need := range strings.Fields(value) {
				if !strings.HasPrefix(need, "!") { // a conflict
					u.depends = append(u.depends, relation{{name: apkName(need)}})
				}
			}
		case "p":
			for _, provided := range strings.Fields(value) {
				u.provides = append(u.provides, atom{name: apkName(provided)})
			}
		case "F":
			dir = "/" + value
		case "R":
			if dir == "" {
				return nil, fmt.Errorf("line %d: %w", i+1, errors.New("a file has no directory"))
			}
			u.paths = append(u.paths, strings.TrimSuffix(dir, "/")+"/"+value)
		}
	}
	return units, nil
}

// apkName returns the name in "name>=1.2", without the condition: the manager has checked it.
func apkName(need string) string {
	if i := strings.IndexAny(need, "<>=~"); i >= 0 {
		return need[:i]
	}
	return need
}
