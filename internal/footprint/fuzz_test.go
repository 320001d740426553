package footprint

import (
	"strings"
	"testing"
)

// A package from any text has a name, a version, and relations that name something.
func checkUnits(t *testing.T, units []*unit) {
	t.Helper()
	for _, u := range units {
		if u.name == "" || u.estimate < 0 {
			t.Errorf("the package %+v", u)
		}
		for _, r := range append(u.depends, u.recommends...) {
			if len(r) == 0 {
				t.Errorf("package %s has an empty relation", u.name)
			}
		}
	}
	s := newStore("fuzz", units, recorded{units})
	s.newer = compareDebian
	for _, u := range units {
		if members, _ := s.closure([]*unit{u}, true); !members[u] {
			t.Errorf("the closure of %s lacks itself", u.name)
		}
	}
}

func FuzzReadControl(f *testing.F) {
	f.Add("Package: a\nStatus: install ok installed\nVersion: 1\nArchitecture: all\nDepends: b (>= 1) | c:any [amd64],\n d\nProvides: a (= 2)\nInstalled-Size: 3\n\n")
	f.Add("Package: a\nStatus: deinstall ok config-files\n\n")
	f.Add("Description: x\n .\n  y\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, status := range []bool{true, false} {
			if units, err := readControl(strings.NewReader(text), status); err == nil {
				checkUnits(t, units)
			}
		}
	})
}

func FuzzReadAPK(f *testing.F) {
	f.Add("P:a\nV:1\nI:2\nD:so:b c>=1 !d\np:so:a=1\nF:usr\nR:x\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		if units, err := readAPK(text); err == nil {
			checkUnits(t, units)
		}
	})
}

func TestParseRelations(t *testing.T) {
	for text, want := range map[string][]relation{
		"":                              nil,
		" , ":                           nil,
		"a":                             {{{name: "a"}}},
		"a (>= 1:2~rc1-3)":              {{{name: "a", op: ">=", version: "1:2~rc1-3"}}},
		"a(<<2)|b:any (= 1) , c [i386]": {{{name: "a", op: "<<", version: "2"}, {name: "b", op: "=", version: "1"}}, {{name: "c"}}},
		"a (> 1), b (< 2)":              {{{name: "a", op: ">=", version: "1"}}, {{name: "b", op: "<=", version: "2"}}},
	} {
		got := parseRelations(text)
		if len(got) != len(want) {
			t.Errorf("%q has the relations %v, want %v", text, got, want)
			continue
		}
		for i, r := range got {
			if len(r) != len(want[i]) || r[0] != want[i][0] || r[len(r)-1] != want[i][len(r)-1] {
				t.Errorf("%q has the relations %v, want %v", text, got, want)
			}
		}
	}
}

func TestVersions(t *testing.T) {
	s := &store{newer: compareDebian}
	for _, tt := range []struct {
		version, op, than string
		want              bool
	}{
		{"1.0~rc1-1", ">=", "1.0", false},
		{"1:0.1", ">>", "99", true},
		{"2.36-9+deb12u14", ">=", "2.36", true},
		{"2.36", "=", "2.36", true},
		{"2.36", "<<", "2.36", false},
		{"2.36", "<=", "2.36", true},
		{"no version", ">=", "1", true}, // dpkg has accepted it
	} {
		if got := s.holds(tt.version, atom{op: tt.op, version: tt.than}); got != tt.want {
			t.Errorf("%s %s %s is %v", tt.version, tt.op, tt.than, got)
		}
	}
}
