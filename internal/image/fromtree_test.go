package image

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// An unpacked tree has the files of its source, apart from skipped and special ones.
func TestFromTree(t *testing.T) {
	source := t.TempDir()
	for _, name := range []string{"bin", "proc", "empty"} {
		must.Do(t, os.Mkdir(filepath.Join(source, name), 0o755))
	}
	must.Do(t, os.WriteFile(filepath.Join(source, "bin/program"), []byte("text"), 0o600), os.Chmod(filepath.Join(source, "bin/program"), 0o751),
		os.WriteFile(filepath.Join(source, "proc/version"), nil, 0o600), os.WriteFile(filepath.Join(source, "touchstone"), nil, 0o600),
		os.Symlink("program", filepath.Join(source, "bin/link")), unix.Mkfifo(filepath.Join(source, "pipe"), 0o600))
	link := filepath.Join(t.TempDir(), "root")
	must.Do(t, os.Symlink(source, link)) // like /proc/PID/root
	img, err := FromTree(t.Context(), link, t.TempDir(), func(name string) bool { return name == "proc" || name == "touchstone" })
	must.Do(t, err)
	dir := filepath.Join(t.TempDir(), "rootfs")
	must.Do(t, unpackImage(t.Context(), img, dir, defaultLimits), os.Remove(filepath.Join(source, "proc/version")),
		os.Remove(filepath.Join(source, "touchstone")), os.Remove(filepath.Join(source, "pipe")))
	want, got := filesIn(t, source), filesIn(t, dir)
	delete(want, ".")
	delete(got, ".")
	if len(got) != len(want) {
		t.Errorf("the image has %v, want %v", got, want)
	}
	for name, file := range want {
		if got[name] != file {
			t.Errorf("%s is %v, want %v", name, got[name], file)
		}
	}
}
