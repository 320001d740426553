package oci

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestFilesOfABundle(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bundle")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	name, text := filepath.Join(dir, configName), bytes.Repeat([]byte("{}"), 5000)
	if err := writeSmall(name, text); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, text) {
		t.Errorf("%d bytes were written, want %d: %v", len(got), len(text), err)
	}
	if s, err := os.Stat(name); err != nil || s.Mode() != 0o600 {
		t.Errorf("mode %v, %v; it may hold secrets", s.Mode(), err)
	}
	if err := writeSmall(name, nil); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second config.json: %v", err)
	}
	if got, err := readSmall(name); err != nil || !bytes.Equal(got, text[:len(got)]) || len(got) == 0 {
		t.Errorf("read %q, %v", got, err)
	}
	if _, err := readSmall(filepath.Join(dir, pidName)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("readSmall of a missing file: %v", err)
	}
	if _, err := readSmall(dir); err == nil {
		t.Error("a directory was read as a file")
	}
	// Files of Exec, and files that a runtime may leave.
	for _, left := range []string{pidName, "exec1.json", "left/over"} {
		file := filepath.Join(dir, left)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := removeBundle(dir); err != nil {
			t.Errorf("remove the bundle: %v", err)
		}
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the bundle is still there: %v", err)
	}
}
