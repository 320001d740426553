package lab

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cavaliergopher/cpio"

	"github.com/touchstone-bench/touchstone/test/lab/job"
)

// writeInitramfs writes the kernel's initial file system: the guest program as /init, and the modules.
func writeInitramfs(w io.Writer, guest, modules string) error {
	archive := cpio.NewWriter(w)
	entries, err := os.ReadDir(modules)
	if err != nil {
		return err
	}
	// A directory must precede the files in it.
	if err := archive.WriteHeader(&cpio.Header{Name: job.Modules[1:], Mode: cpio.TypeDir | 0o755, Links: 2}); err != nil {
		return err
	}
	for _, e := range entries {
		if err := addToInitramfs(archive, filepath.Join(job.Modules[1:], e.Name()), filepath.Join(modules, e.Name())); err != nil {
			return err
		}
	}
	if err := addToInitramfs(archive, "init", guest); err != nil {
		return err
	}
	return archive.Close()
}

func addToInitramfs(archive *cpio.Writer, name, file string) (err error) {
	content, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	info, err := content.Stat()
	if err != nil {
		return err
	}
	if err := archive.WriteHeader(&cpio.Header{Name: name, Mode: cpio.TypeReg | 0o755, Links: 1, Size: info.Size()}); err != nil {
		return err
	}
	if _, err := io.Copy(archive, content); err != nil {
		return fmt.Errorf("pack %s: %w", name, err)
	}
	return nil
}

func TestInitramfs(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"guest", "modules/001-one.ko", "modules/002-two.ko"} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte("content of "+name), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	if err := writeInitramfs(&b, filepath.Join(dir, "guest"), filepath.Join(dir, "modules")); err != nil {
		t.Fatal(err)
	}
	var got []string
	for archive := cpio.NewReader(&b); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		content, readErr := io.ReadAll(archive)
		if err := errors.Join(err, readErr); err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %o %s", h.Name, h.Mode, content))
	}
	want := []string{
		"modules 40755 ", "modules/001-one.ko 100755 content of modules/001-one.ko",
		"modules/002-two.ko 100755 content of modules/002-two.ko", "init 100755 content of guest",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the initramfs has %q, want %q", got, want)
	}
}
