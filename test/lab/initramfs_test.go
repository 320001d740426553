package lab

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cavaliergopher/cpio"

	"github.com/touchstone-bench/touchstone/test/lab/job"
)

// writeInitramfs writes the kernel's initial file system: the guest program as /init, the modules, and more files of the host by their
// paths without a slash at the beginning.
func writeInitramfs(w io.Writer, guest, modules string, more map[string]string) error {
	archive := cpio.NewWriter(w)
	entries, err := os.ReadDir(modules)
	if err != nil {
		return err
	}
	// A directory must precede the files in it.
	for _, dir := range initramfsDirs(more) {
		if err := archive.WriteHeader(&cpio.Header{Name: dir, Mode: cpio.TypeDir | 0o755, Links: 2}); err != nil {
			return err
		}
	}
	for _, e := range entries {
		if err := addToInitramfs(archive, filepath.Join(job.Modules[1:], e.Name()), filepath.Join(modules, e.Name())); err != nil {
			return err
		}
	}
	if err := addToInitramfs(archive, "init", guest); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(more)) {
		if err := addToInitramfs(archive, name, more[name]); err != nil {
			return err
		}
	}
	return archive.Close()
}

// initramfsDirs returns the directories of the initramfs: one for the modules, and the parents of more files.
func initramfsDirs(more map[string]string) []string {
	dirs := []string{job.Modules[1:]}
	for name := range more {
		dirs = append(dirs, filepath.Dir(name))
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
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
	for _, name := range []string{"guest", "agent", "modules/001-one.ko", "modules/002-two.ko"} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte("content of "+name), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	if err := writeInitramfs(&b, filepath.Join(dir, "guest"), filepath.Join(dir, "modules"), map[string]string{"sbin/agent": filepath.Join(dir, "agent")}); err != nil {
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
		"modules 40755 ", "sbin 40755 ", "modules/001-one.ko 100755 content of modules/001-one.ko",
		"modules/002-two.ko 100755 content of modules/002-two.ko", "init 100755 content of guest", "sbin/agent 100755 content of agent",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the initramfs has %q, want %q", got, want)
	}
}
