package lab

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// What determines a system gives it another name, and what does not leaves it.
func TestKey(t *testing.T) {
	key := func(m Machine) string {
		k, err := m.key()
		if err != nil || len(k) != 12 {
			t.Fatalf("the key is %q, %v", k, err)
		}
		return k
	}
	m := V2()
	before := key(m)
	m.Memory, m.CPUs = 1, 1 // of no concern to the disk
	if after := key(m); after != before {
		t.Errorf("with another memory the key is %s, and was %s", after, before)
	}
	for name, change := range map[string]func(*Machine){
		"another package":      func(m *Machine) { m.Packages = append([]string{"sysbench"}, m.Packages...) },
		"another module":       func(m *Machine) { m.Modules = m.Modules[1:] },
		"another architecture": func(m *Machine) { m.Arch = "arm64" },
	} {
		m := V2()
		if change(&m); key(m) == before {
			t.Errorf("%s leaves the key as it is", name)
		}
	}
}

func TestPlace(t *testing.T) {
	tree := t.TempDir()
	for _, dir := range []string{"var/run", "etc", "full/kept", "elsewhere"} {
		if err := os.MkdirAll(filepath.Join(tree, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.WriteFile(filepath.Join(tree, "etc/hosts"), []byte("theirs"), 0o644), os.Symlink("elsewhere", filepath.Join(tree, "bin"))); err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string]string{"var/run": "-> /run", "etc/hosts": "ours", "etc/passwd": "ours", "bin": "-> usr/bin", "home/user/": ""} {
		if err := place(tree, path, content); err != nil {
			t.Error(err)
		}
	}
	for link, want := range map[string]string{"var/run": "/run", "bin": "elsewhere"} {
		if got, err := os.Readlink(filepath.Join(tree, link)); err != nil || got != want {
			t.Errorf("%s leads to %q, %v; want %s", link, got, err, want)
		}
	}
	for file, want := range map[string]string{"etc/hosts": "theirs", "etc/passwd": "ours"} {
		if got, err := os.ReadFile(filepath.Join(tree, file)); err != nil || string(got) != want {
			t.Errorf("%s has %q, %v; want %s", file, got, err, want)
		}
	}
	if info, err := os.Stat(filepath.Join(tree, "home/user")); err != nil || !info.IsDir() {
		t.Errorf("the user's home is %v, %v", info, err)
	}
	if err := place(tree, "full", "-> elsewhere"); err == nil {
		t.Error("a directory that is not empty gives way to a link")
	}
}
