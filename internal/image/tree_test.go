package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// file holds the properties of a file that tests compare.
type file struct {
	mode    fs.FileMode
	content string
}

func wantFiles(t *testing.T, dir string, want map[string]file) {
	t.Helper()
	found := 0
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		got := file{mode: info.Mode()}
		if info.Mode().IsRegular() {
			b, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			got.content = string(b)
		}
		relative, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		found++
		if w, ok := want[relative]; !ok {
			t.Errorf("%s is unexpected", relative)
		} else if got != w {
			t.Errorf("%s: mode %v, want %v; same content: %t", relative, got.mode, w.mode, got.content == w.content)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found != len(want) {
		t.Errorf("%d files and directories, want %d", found, len(want))
	}
	if info, err := os.Stat(dir); err != nil || info.Mode() != fs.ModeDir|0o755 {
		t.Errorf("the directory itself: %v, %v; want mode 0755", info, err)
	}
}

// setUmask must not be used in parallel tests.
func setUmask(t *testing.T, mask int) {
	t.Helper()
	old := syscall.Umask(mask)
	t.Cleanup(func() { syscall.Umask(old) })
}

func archive(t testing.TB, headers ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		content := ""
		if h.Typeflag == tar.TypeReg {
			content = "content"
			h.Size = int64(len(content))
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestWriteTreeRefuses(t *testing.T) {
	for name, e := range map[string]entry{
		"parent":                    {name: "../escaped"},
		"absolute":                  {name: "/escaped"},
		"directory outside":         {name: "../escaped", mode: fs.ModeDir | 0o755},
		"through a link":            {name: "out/escaped"},
		"directory through a link":  {name: "out/escaped", mode: fs.ModeDir | 0o755},
		"directory instead of link": {name: "out", mode: fs.ModeDir | 0o755},
		"directory instead of file": {name: "file", mode: fs.ModeDir | 0o755},
		"file below a file":         {name: "file/below"},
		"file without a parent":     {name: "missing/below"},
	} {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			dir, outside := filepath.Join(parent, "rootfs"), filepath.Join(parent, "outside")
			err := errors.Join(
				os.Mkdir(dir, 0o755), os.Mkdir(outside, 0o700),
				os.Symlink("../outside", filepath.Join(dir, "out")),
				os.WriteFile(filepath.Join(dir, "file"), []byte("old"), 0o600),
			)
			if err != nil {
				t.Fatal(err)
			}
			if err := writeTree(dir, []entry{e}); err == nil || !strings.Contains(err.Error(), e.name) {
				t.Errorf("error %v, want %q in it", err, e.name)
			}
			for place, want := range map[string]int{parent: 2, outside: 0, dir: 2} {
				if entries, err := os.ReadDir(place); err != nil || len(entries) != want {
					t.Errorf("%s contains %v (%v), want %d entries", filepath.Base(place), entries, err, want)
				}
			}
			if info, err := os.Stat(outside); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("the directory outside was changed: %v, %v", info, err)
			}
			if old, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(old) != "old" {
				t.Errorf("the existing file: %q, %v", old, err)
			}
		})
	}
}

// tooLarge returns the header of a file that exceeds the limit.
func tooLarge(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := tar.NewWriter(&b).WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "large", Size: 16 << 20}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A file replaces a link and does not follow it.
func TestWriteTreeReplacesLink(t *testing.T) {
	parent := t.TempDir()
	dir, outside := filepath.Join(parent, "rootfs"), filepath.Join(parent, "outside")
	err := errors.Join(
		os.Mkdir(dir, 0o755), os.WriteFile(outside, []byte("kept"), 0o600),
		os.Symlink(outside, filepath.Join(dir, "file")),
	)
	if err != nil {
		t.Fatal(err)
	}
	if err := writeTree(dir, []entry{{name: "file", mode: 0o640, content: "content"}}); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, dir, map[string]file{"file": {0o640, "content"}})
	if kept, err := os.ReadFile(outside); err != nil || string(kept) != "kept" {
		t.Errorf("the target of the link: %q, %v", kept, err)
	}
}
