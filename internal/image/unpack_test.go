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

func TestUnpackRefuses(t *testing.T) {
	regular := func(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644} }
	tests := []struct {
		name  string
		layer []byte
		want  string
	}{
		{"parent", archive(t, regular("../escaped")), "leads out"},
		{"parent from below", archive(t, regular("etc/../../escaped")), "leads out"},
		{"absolute", archive(t, regular("/escaped")), "leads out"},
		{"directory outside", archive(t, tar.Header{Typeflag: tar.TypeDir, Name: "../escaped/", Mode: 0o755}), "leads out"},
		{"the directory itself", archive(t, tar.Header{Typeflag: tar.TypeDir, Name: "./", Mode: 0o777}), "leads out"},
		{"no name", archive(t, regular("")), "leads out"},
		{"through a link", archive(t, regular("out/escaped")), "escapes"},
		{"directory through a link", archive(t, tar.Header{Typeflag: tar.TypeDir, Name: "out/escaped", Mode: 0o755}), "escapes"},
		{"directory in place of a link", archive(t, tar.Header{Typeflag: tar.TypeDir, Name: "out", Mode: 0o755}), "not a directory"},
		{"directory in place of a file", archive(t, tar.Header{Typeflag: tar.TypeDir, Name: "file", Mode: 0o755}), "not a directory"},
		{"file below a file", archive(t, regular("file/below")), "not a directory"},
		{"file below nothing", archive(t, regular("missing/below")), "no such file"},
		{"link", archive(t, tar.Header{Typeflag: tar.TypeSymlink, Name: "link", Linkname: "/"}), "neither a file nor a directory"},
		{"hard link", archive(t, tar.Header{Typeflag: tar.TypeLink, Name: "link", Linkname: "file"}), "neither a file nor a directory"},
		{"device", archive(t, tar.Header{Typeflag: tar.TypeChar, Name: "null", Devmajor: 1, Devminor: 3}), "neither a file nor a directory"},
		{"fifo", archive(t, tar.Header{Typeflag: tar.TypeFifo, Name: "fifo"}), "neither a file nor a directory"},
		{"cut off", archive(t, regular("file"))[:515], "unexpected EOF"},
		{"no archive", bytes.Repeat([]byte("x"), 1024), "read layer"},
		{"too large", tooLarge(t), "more than 16777216"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
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
			if err := unpack(bytes.NewReader(test.layer), dir); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q in it", err, test.want)
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
	if err := tar.NewWriter(&b).WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "large", Size: maxFile + 1}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A file replaces a link and does not follow it.
func TestUnpackReplacesLink(t *testing.T) {
	parent := t.TempDir()
	dir, outside := filepath.Join(parent, "rootfs"), filepath.Join(parent, "outside")
	err := errors.Join(
		os.Mkdir(dir, 0o755), os.WriteFile(outside, []byte("kept"), 0o600),
		os.Symlink(outside, filepath.Join(dir, "file")),
	)
	if err != nil {
		t.Fatal(err)
	}
	layer := archive(t, tar.Header{Typeflag: tar.TypeReg, Name: "file", Mode: 0o640})
	if err := unpack(bytes.NewReader(layer), dir); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, dir, map[string]file{"file": {0o640, "content"}})
	if kept, err := os.ReadFile(outside); err != nil || string(kept) != "kept" {
		t.Errorf("the target of the link: %q, %v", kept, err)
	}
}
