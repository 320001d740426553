package cells

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
)

const root = "../.."

// Each package of the module has a cell, or its tests run with each change.
func TestEveryPackageIsInTheMap(t *testing.T) {
	var packages []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "bin" || d.Name() == "out" || strings.HasPrefix(d.Name(), ".") && d.Name() != "..") {
			return filepath.SkipDir
		}
		dir, _ := filepath.Rel(root, filepath.Dir(path))
		if strings.HasSuffix(path, ".go") && !slices.Contains(packages, dir) {
			packages = append(packages, dir)
		}
		return nil
	})
	must.Do(t, err)
	for _, dir := range packages {
		celled := slices.ContainsFunc(All(), func(c Cell) bool { return c.covers(dir + "/file.go") })
		lit := slices.Contains(light(), dir)
		switch {
		case celled && lit:
			t.Errorf("%s is in the list of light packages, but a cell has it too", dir)
		case !celled && !lit:
			t.Errorf("%s has no cell: add it to one, or to the light packages if all its tests run with each change", dir)
		}
	}
	for _, dir := range light() {
		if !slices.Contains(packages, dir) {
			t.Errorf("the list of light packages has %s, which is no package", dir)
		}
	}
}

func TestCells(t *testing.T) {
	names := make(map[string]bool)
	for _, c := range All() {
		if names[c.Name] {
			t.Errorf("cell %s is in the list twice", c.Name)
		}
		names[c.Name] = true
		for _, dir := range c.Paths {
			if info, err := os.Stat(filepath.Join(root, dir)); err != nil || !info.IsDir() {
				t.Errorf("cell %s names %s, which is no directory", c.Name, dir)
			}
		}
	}
	record := readFile(t)
	for name := range record {
		if !names[name] {
			t.Errorf("%s has a run of %s, which is no cell", RecordFile, name)
		}
	}
}

// Some test asks for each cell.
func TestEveryCellHasATest(t *testing.T) {
	var code []byte
	for _, pattern := range []string{"internal/*/*_test.go", "internal/*/*/*_test.go", "test/*/*_test.go"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		must.Do(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			must.Do(t, err)
			if filepath.Base(filepath.Dir(file)) != "cells" {
				code = append(code, text...)
			}
		}
	}
	for _, c := range All() {
		if !bytes.Contains(code, []byte(`"`+c.Name+`"`)) {
			t.Errorf("no test asks for cell %s", c.Name)
		}
	}
}

func readFile(t *testing.T) Record {
	t.Helper()
	f, err := os.Open(filepath.Join(root, RecordFile))
	must.Do(t, err)
	defer func() { _ = f.Close() }()
	record, err := ReadRecord(f)
	must.Do(t, err)
	return record
}

// In any six changes every cell of the rotation runs, whatever the numbers of their commits and the changed files are.
func TestEveryCellRunsInSixChanges(t *testing.T) {
	for _, step := range []int{1, 2, 6, 7, 49, 50, 300} {
		t.Run(fmt.Sprintf("commits_%d", step), func(t *testing.T) {
			record := make(Record)
			var changes []map[string]bool
			for n := range 40 {
				number := 1000 + n*step
				diffs := make(map[string][]string)
				if n%3 == 0 {
					diffs["abc"] = []string{Rotation()[n%len(Rotation())].Paths[0] + "/x.go"}
				}
				choice := make(map[string]bool)
				for _, name := range Choose(Rotation(), record, diffs, number) {
					choice[name] = true
					record[name] = Run{Number: number, Commit: "abc"}
				}
				changes = append(changes, choice)
			}
			for first := range len(changes) - Changes + 1 {
				for _, c := range Rotation() {
					if !slices.ContainsFunc(changes[first:first+Changes], func(choice map[string]bool) bool { return choice[c.Name] }) {
						t.Errorf("cell %s ran in none of the changes %d to %d", c.Name, first, first+Changes-1)
					}
				}
			}
		})
	}
}

// TestNightly: a name in the list that no cell has would leave a cell in the rotation.
func TestNightly(t *testing.T) {
	if got, want := len(Rotation()), len(All())-len(nightly()); got != want {
		t.Errorf("%d cells are in the rotation, want %d", got, want)
	}
}

func TestChoose(t *testing.T) {
	list := []Cell{{"a", []string{"x"}}, {"b", []string{"y"}}, {"c", []string{"y/z"}}, {"d", []string{"w"}}, {"e", []string{"v"}}, {"f", []string{"u"}}}
	record := Record{"a": {6, "new"}, "b": {5, "new"}, "c": {4, "new"}, "d": {1, "old"}, "e": {3, "old"}, "f": {2, "old"}}
	for _, tt := range []struct {
		name    string
		changed []string
		want    string
	}{
		{"nothing", nil, "d"},
		{"a file", []string{"x/file.go"}, "a d"},
		{"below a directory", []string{"y/z/deep/file.go"}, "b c d"},
		{"another directory with this prefix", []string{"yy/file.go"}, "d"},
		{"a page", []string{"x/README.md"}, "d"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for number := range 12 {
				if got := strings.Join(Choose(list, record, map[string][]string{"new": tt.changed}, number), " "); got != tt.want {
					t.Errorf("commit %d runs %s, want %s", number, got, tt.want)
				}
			}
		})
	}
	// A change before the last run of a cell does not count.
	older := map[string][]string{"old": {"x/file.go", "u/file.go"}}
	if got := strings.Join(Choose(list, record, older, 1), " "); got != "d f" {
		t.Errorf("a change of the cells a and f since the run of f runs %s, want d f", got)
	}
	names := make(map[string]bool)
	for number := range 6 {
		for _, name := range Choose(list, nil, nil, number) {
			names[name] = true
		}
	}
	if len(names) != len(list) {
		t.Errorf("without a record six commits in a row run %d cells, want %d", len(names), len(list))
	}
}

func TestRecordReadsBack(t *testing.T) {
	record := Record{"b/c": {12, "abc"}, "a": {3, "def"}}
	var text bytes.Buffer
	must.Do(t, record.Write(&text))
	got, err := ReadRecord(&text)
	if err != nil || !maps.Equal(got, record) {
		t.Errorf("read %v, %v, want %v", got, err, record)
	}
	if commits := strings.Join(got.Commits(), " "); commits != "abc def" {
		t.Errorf("the commits are %s, want abc def", commits)
	}
}

func TestRecordIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"no header":  "a\t1\tabc\n",
		"two fields": header + "\na\t1\n",
		"no number":  header + "\na\tx\tabc\n",
		"zero":       header + "\na\t0\tabc\n",
		"twice":      header + "\na\t1\tabc\na\t2\tdef\n",
	} {
		if record, err := ReadRecord(strings.NewReader(text)); err == nil {
			t.Errorf("%s: read %v, want an error", name, record)
		}
	}
}

func TestRuns(t *testing.T) {
	for list, want := range map[string]bool{"": true, "all": true, "oci/crun": true, "lab/v2,oci/crun": true, "lab/v2": false, "none": false} {
		t.Setenv(Chosen, list)
		if got := Runs(t, "oci/crun"); got != want {
			t.Errorf("with %s=%q cell oci/crun runs: %v, want %v", Chosen, list, got, want)
		}
	}
}
