package image

import (
	"archive/tar"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
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
	must(t, err)
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
		must(t, w.WriteHeader(&h))
		if _, err := w.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	must(t, w.Close())
	return b.Bytes()
}

// tooLarge returns the header of a file that exceeds the limit.
func tooLarge(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	must(t, tar.NewWriter(&b).WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "large", Size: 16 << 20}))
	return b.Bytes()
}
