package parts

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// store makes a store with these versions, as in runc@1.5.2. The last version of a name is in use.
func store(t *testing.T, names ...string) (root string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must.Do(t, err)
	root = filepath.Join(dir, "runtimes")
	t.Setenv(Variable, root)
	for _, name := range names {
		name, version, _ := strings.Cut(name, "@")
		part := Part{Name: name, Version: version, Programs: []Program{{Name: name}}, Dir: filepath.Join(root, name, version)}
		must.Do(t, os.MkdirAll(part.Bin(), 0o755), os.WriteFile(filepath.Join(part.Bin(), name), []byte("#!/bin/sh\n"), 0o755))
		text, err := json.Marshal(part)
		must.Do(t, err, os.WriteFile(filepath.Join(part.Dir, Record), text, 0o644))
		link := filepath.Join(root, name, Current)
		_ = os.Remove(link)
		must.Do(t, os.Symlink(version, link))
	}
	return root
}

func spell(list []Part) (names []string) {
	for _, p := range list {
		name := p.String()
		if p.Current {
			name += " current"
		}
		names = append(names, name)
	}
	return names
}

// TestRoot: a relative directory is refused, with the remedy.
func TestRoot(t *testing.T) {
	t.Setenv("HOME", "/home/u")
	want := "/home/u/.local/share/touchstone/runtimes"
	if os.Geteuid() == 0 {
		want = "/var/lib/touchstone/runtimes"
	}
	for value, want := range map[string]string{"": want, "/opt/runtimes/": "/opt/runtimes"} {
		t.Setenv(Variable, value)
		if root, err := Root(); err != nil || root != want {
			t.Errorf("%q gives %q, %v, want %q", value, root, err, want)
		}
	}
	for _, value := range []string{"runtimes", "/a:b"} {
		t.Setenv(Variable, value)
		if _, err := Root(); err == nil || !strings.Contains(err.Error(), Variable+"="+value) {
			t.Errorf("%q: the error is %v", value, err)
		}
	}
}

func TestList(t *testing.T) {
	root := store(t, "runc@1.10.0", "runc@1.9.0", "crun@1.21")
	must.Do(t, os.MkdirAll(filepath.Join(root, ".new-1", "x"), 0o755), os.WriteFile(filepath.Join(root, "README"), nil, 0o600))
	list, err := List(root)
	must.Do(t, err)
	if diff := cmp.Diff([]string{"crun@1.21 current", "runc@1.9.0 current", "runc@1.10.0"}, spell(list)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if list, err := List(filepath.Join(root, "none")); err != nil || len(list) > 0 {
		t.Errorf("a missing store: %v, %v", list, err)
	}
}

// TestDamagedParts: a part without a readable record or without its programs is an error that names the remedy, and no other part is lost.
func TestDamagedParts(t *testing.T) {
	for name, damage := range map[string]func(dir string) error{
		"no record":  func(dir string) error { return os.Remove(filepath.Join(dir, Record)) },
		"cut off":    func(dir string) error { return os.Truncate(filepath.Join(dir, Record), 9) },
		"empty":      func(dir string) error { return os.WriteFile(filepath.Join(dir, Record), []byte("{}"), 0o644) },
		"no program": func(dir string) error { return os.Remove(filepath.Join(dir, "bin/runc")) },
		"linked program": func(dir string) error {
			_ = os.Remove(filepath.Join(dir, "bin/runc"))
			return os.Symlink("/bin/true", filepath.Join(dir, "bin/runc"))
		},
		"another name": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, Record), []byte(`{"name": "crun", "version": "1", "programs": [{"name": "runc"}]}`), 0o644)
		},
		"a path as a program": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, Record), []byte(`{"name": "runc", "version": "1", "programs": [{"name": "../x"}]}`), 0o644)
		},
		"changed by others":     func(dir string) error { return os.Chmod(filepath.Join(dir, "bin/runc"), 0o777) },
		"a directory of others": func(dir string) error { return os.Chmod(filepath.Join(dir, "bin"), 0o777) },
	} {
		t.Run(name, func(t *testing.T) {
			root := store(t, "crun@2", "runc@1")
			must.Do(t, damage(filepath.Join(root, "runc", "1")))
			list, err := List(root)
			if err == nil || !strings.Contains(err.Error(), "touchstone setup --remove runc@1") {
				t.Errorf("the error is %v", err)
			}
			if diff := cmp.Diff([]string{"crun@2 current"}, spell(list)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if err := Prepend(); err == nil || strings.Contains(os.Getenv("PATH"), "/runc/1/") || !strings.Contains(os.Getenv("PATH"), "/crun/2/bin:") {
				t.Errorf("the error is %v, PATH is %s", err, os.Getenv("PATH"))
			}
		})
	}
}

// TestStoreOfAnotherUser: programs that another user can exchange never run.
//
// Invariant foreign-files.
func TestStoreOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("it needs root to make a store of another user")
	}
	root := store(t, "runc@1")
	t.Setenv("PATH", "/usr/bin")
	must.Do(t, os.Chown(root, 12345, 12345))
	if err := Prepend(); err == nil || !strings.Contains(err.Error(), "12345") || os.Getenv("PATH") != "/usr/bin" {
		t.Errorf("the error is %v, PATH is %s", err, os.Getenv("PATH"))
	}
}

// TestPrepend: the versions in use come first, and the copies of the system can still be found.
//
// Invariant store-path: The programs of touchstone setup precede the copies of the system, which stay reachable.
func TestPrepend(t *testing.T) {
	root := store(t, "runc@1.0", "runc@2.0", "crun@1.21")
	system := t.TempDir()
	t.Setenv("PATH", system)
	for range 2 { // a program that touchstone starts may be touchstone
		must.Do(t, Prepend())
	}
	want := []string{filepath.Join(root, "crun/1.21/bin"), filepath.Join(root, "runc/2.0/bin"), system}
	if diff := cmp.Diff(want, filepath.SplitList(os.Getenv("PATH"))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{system}, SystemPath()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestUses: the record of a run has the digest of the file as it is, and not as it was.
func TestUses(t *testing.T) {
	root := store(t, "runc@1", "runc@2")
	program := filepath.Join(root, "runc/1/bin/runc")
	must.Do(t, os.WriteFile(program, []byte("abc"), 0o755))
	uses, err := Uses([]string{"/usr/bin/runc", program, program, filepath.Join(root, "x"), root})
	must.Do(t, err)
	if len(uses) != 1 || uses[0].Part.String() != "runc@1" ||
		uses[0].Program != (Program{"runc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}) {
		t.Errorf("the programs are %+v", uses)
	}
	if _, err := Uses([]string{filepath.Join(root, "crun/1/bin/crun")}); err == nil {
		t.Error("a program without a record is no error")
	}
}

func TestCompare(t *testing.T) {
	versions := []string{"0.7.0", "v0.7.1", "1.1.5+ds1-1+deb12u1", "1.1.15+ds1-2", "1.5.2", "release-20240729.0", "v0.0.0-20260905035102"}
	if sorted := slices.SortedStableFunc(slices.Values(versions[:5]), Compare); !slices.Equal(sorted, versions[:5]) {
		t.Errorf("the order is %v", sorted)
	}
	if Compare("1.2", "1.2.0") >= 0 || Compare("1.02", "1.2") != 0 || Compare("10", "9") <= 0 {
		t.Error("the numbers of versions are compared wrongly")
	}
}
