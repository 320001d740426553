package footprint

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	debversion "github.com/knqyf263/go-deb-version"
)

// Files of dpkg: dpkg(1), deb-control(5).
const (
	dpkgDir     = "/var/lib/dpkg/"
	dpkgStatus  = dpkgDir + "status"
	dpkgUpdates = dpkgDir + "updates"
	dpkgInfo    = dpkgDir + "info"
)

// openDpkg reads the database of dpkg.
func openDpkg(t tree) (*store, error) {
	// While dpkg works, changes of the status are in this directory. They also stay there after an interruption.
	pending, err := os.ReadDir(t.at(dpkgUpdates))
	if err != nil && !missing(err) {
		return nil, unreadable("dpkg", err)
	}
	for _, p := range pending {
		if _, err := strconv.Atoi(p.Name()); err == nil {
			return nil, unreadable("dpkg", fmt.Errorf("dpkg is at work or was interrupted: %s/%s exists", dpkgUpdates, p.Name()))
		}
	}
	file, err := os.Open(t.at(dpkgStatus))
	if err != nil {
		return nil, unreadable("dpkg", err)
	}
	defer func() { _ = file.Close() }() // it is only read from
	d := &dpkg{}
	if d.units, err = readControl(file, true); err != nil {
		return nil, unreadable("dpkg", fmt.Errorf("%s: %w", dpkgStatus, err))
	}
	for _, u := range d.units {
		if u.name == "dpkg" {
			d.arch = u.arch
		}
	}
	for _, u := range d.units {
		if d.arch != "" && u.arch != d.arch && u.arch != "all" {
			u.name += ":" + u.arch
		}
	}
	if d.diversions, err = readDiversions(t); err != nil {
		return nil, unreadable("dpkg", err)
	}
	s := newStore("dpkg", d.units, d)
	s.newer = compareDebian
	s.index = d.aptIndex
	return s, nil
}

// compareDebian compares two versions: deb-version(7).
func compareDebian(a, b string) (int, error) {
	v, err := debversion.NewVersion(a)
	if err != nil {
		return 0, err
	}
	w, err := debversion.NewVersion(b)
	if err != nil {
		return 0, err
	}
	return v.Compare(w), nil
}

// dpkg lists the files of dpkg's packages.
type dpkg struct {
	arch       string // the host's own
	units      []*unit
	diversions map[string]diversion // by the path that packages list
}

// diversion is a file that a package has moved to make room for its own: dpkg-divert(1).
type diversion struct{ to, by string }

func readDiversions(t tree) (map[string]diversion, error) {
	text, err := t.text(dpkgDir + "diversions")
	if err != nil && !missing(err) {
		return nil, err
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if text == "" {
		lines = nil
	}
	if len(lines)%3 != 0 {
		return nil, fmt.Errorf("%sdiversions: %w: it has %d lines, and an entry has three", dpkgDir, errCutOff, len(lines))
	}
	diversions := map[string]diversion{}
	for entry := range slices.Chunk(lines, 3) {
		diversions[entry[0]] = diversion{to: entry[1], by: entry[2]}
	}
	return diversions, nil
}

// placed is the path of a package's file after diversions.
func (d *dpkg) placed(file string, u *unit) string {
	if diversion, ok := d.diversions[file]; ok && diversion.by != u.name {
		return diversion.to
	}
	return file
}

// open opens the list of a package's files. A package that can be installed for several architectures has one for each.
func (d *dpkg) open(t tree, u *unit) (*os.File, error) {
	name, _, _ := strings.Cut(u.name, ":")
	f, err := os.Open(t.at(path.Join(dpkgInfo, name+":"+u.arch+".list")))
	if missing(err) {
		f, err = os.Open(t.at(path.Join(dpkgInfo, name+".list")))
	}
	return f, err
}

// lines calls visit with the path of each file of a package.
func (d *dpkg) lines(t tree, u *unit, visit func(file string)) error {
	f, err := d.open(t, u)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it is only read from
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if file := lines.Text(); strings.HasPrefix(file, "/") && file != "/." {
			visit(d.placed(file, u))
		}
	}
	return lines.Err()
}

func (d *dpkg) list(t tree, u *unit) ([]string, error) {
	var files []string
	err := d.lines(t, u, func(file string) { files = append(files, file) })
	return files, err
}

func (d *dpkg) owners(t tree, files map[string]bool) (map[string]*unit, error) {
	names := newNames(t, files)
	if len(files) == 0 {
		return names.found, nil
	}
	for _, u := range d.units {
		if err := d.lines(t, u, func(file string) { names.note(file, u) }); err != nil && !missing(err) {
			return nil, unreadable("dpkg", err)
		}
	}
	return names.found, nil
}

// readControl reads packages in the format of deb-control(5). status is set for dpkg's status, whose packages need not be
// installed; otherwise the packages are not installed.
func readControl(r io.Reader, status bool) ([]*unit, error) {
	var units []*unit
	fields := map[string]string{}
	number := 0
	end := func() error {
		if len(fields) == 0 {
			return nil
		}
		u, err := newDebian(fields, status)
		clear(fields)
		if err != nil {
			return fmt.Errorf("the paragraph before line %d: %w", number, err)
		}
		if u != nil {
			units = append(units, u)
		}
		return nil
	}
	lines := bufio.NewReaderSize(r, 64<<10)
	field := ""
	for {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) && line == "" {
			return units, end()
		}
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("line %d: %w", number+1, errCutOff)
		}
		if err != nil {
			return nil, err
		}
		number++
		line = strings.TrimRight(line, "\n")
		if line == "" {
			if err := end(); err != nil {
				return nil, err
			}
			continue
		}
		if line[0] == ' ' || line[0] == '\t' {
			if field != "" && isRelation(field) {
				fields[field] += line
			}
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, fmt.Errorf("line %d is neither a field nor its continuation: %.100q", number, line)
		}
		field = ""
		if slices.Contains(debianFields, name) {
			field = name
			fields[name] = strings.TrimSpace(value)
		}
	}
}

// debianFields are the fields that matter here; the relations come first.
var debianFields = []string{
	"Depends", "Pre-Depends", "Recommends", "Provides",
	"Package", "Version", "Architecture", "Status", "Installed-Size", "Essential", "Protected", "Priority",
}

const debianRelations = 4

func isRelation(field string) bool { return slices.Contains(debianFields[:debianRelations], field) }

// newDebian makes a package from its fields. It is nil if the package is not installed.
func newDebian(fields map[string]string, status bool) (*unit, error) {
	if status {
		words := strings.Fields(fields["Status"])
		if len(words) != 3 {
			return nil, fmt.Errorf("the status %q of package %q has no three words", fields["Status"], fields["Package"])
		}
		if !slices.Contains([]string{"installed", "triggers-pending", "triggers-awaited", "half-configured", "unpacked"}, words[2]) {
			return nil, nil
		}
	}
	u := &unit{name: fields["Package"], version: fields["Version"], arch: fields["Architecture"], installed: status}
	if u.name == "" || u.version == "" || u.arch == "" {
		return nil, fmt.Errorf("a package (%q) has no name, version or architecture", u.name)
	}
	if size := fields["Installed-Size"]; size != "" {
		kib, err := strconv.ParseInt(size, 10, 54)
		if err != nil || kib < 0 {
			return nil, fmt.Errorf("the size %q of package %s is not a number of KiB", size, u.name)
		}
		u.estimate = kib << 10
	}
	u.base = fields["Essential"] == "yes" || fields["Protected"] == "yes" || fields["Priority"] == "required"
	u.depends = append(parseRelations(fields["Pre-Depends"]), parseRelations(fields["Depends"])...)
	u.recommends = parseRelations(fields["Recommends"])
	for _, r := range parseRelations(fields["Provides"]) {
		u.provides = append(u.provides, r...)
	}
	return u, nil
}

// parseRelations parses "a (>= 1) | b:any, c [amd64]".
func parseRelations(text string) []relation {
	var relations []relation
	for part := range strings.SplitSeq(text, ",") {
		var r relation
		for alternative := range strings.SplitSeq(part, "|") {
			if a := parseAtom(alternative); a.name != "" {
				r = append(r, a)
			}
		}
		if len(r) > 0 {
			relations = append(relations, r)
		}
	}
	return relations
}

func parseAtom(text string) atom {
	name, condition, _ := strings.Cut(strings.TrimSpace(text), "(")
	name, _, _ = strings.Cut(name, "[")
	name, _, _ = strings.Cut(strings.TrimSpace(name), ":") // :any, :native
	condition, _, _ = strings.Cut(condition, ")")
	condition = strings.TrimSpace(condition)
	op := condition[:len(condition)-len(strings.TrimLeft(condition, "<>="))]
	a := atom{name: name, op: op, version: strings.TrimSpace(condition[len(op):])}
	switch op { // the old spellings: deb-control(5)
	case "<":
		a.op = "<="
	case ">":
		a.op = ">="
	}
	return a
}
