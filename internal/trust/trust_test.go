package trust

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// other is a user who is neither root nor the user of the test.
const other = 12345

// home is a directory of the test without links.
func home(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must.Do(t, err, os.Mkdir(filepath.Join(dir, "out"), 0o755), os.WriteFile(filepath.Join(dir, "out", "file"), nil, 0o644))
	return dir
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can give files to other users")
	}
}

func TestOwnFiles(t *testing.T) {
	dir := home(t)
	must.Do(t, os.Symlink("out", filepath.Join(dir, "link")), os.Symlink("../out/../out/file", filepath.Join(dir, "out", "file-link")),
		os.Mkdir(filepath.Join(dir, "shared"), 0o777), os.Chmod(filepath.Join(dir, "shared"), 0o777|fs.ModeSticky), os.Mkdir(filepath.Join(dir, "shared", "mine"), 0o700))
	for path, want := range map[string]string{"out": "out", "link": "out", "./link/": "out", "shared/mine": "shared/mine"} {
		if got, err := Directory(filepath.Join(dir, path)); err != nil || got != filepath.Join(dir, want) {
			t.Errorf("Directory(%s) gives %q, %v", path, got, err)
		}
	}
	for _, path := range []string{"out/file", "link/file", "link/file-link"} {
		if got, err := File(filepath.Join(dir, path)); err != nil || got != filepath.Join(dir, "out", "file") {
			t.Errorf("File(%s) gives %q, %v", path, got, err)
		}
	}
	must.Do(t, Entry(filepath.Join(dir, "out")), os.Chmod(filepath.Join(dir, "out", "file"), 0o664))
	if _, err := File(filepath.Join(dir, "out", "file")); err != nil {
		t.Errorf("a file that the user's own group can write to: %v", err)
	}
	result, err := MakeDirectory(filepath.Join(dir, "link", "a", "b"))
	if err != nil || result != filepath.Join(dir, "out", "a", "b") {
		t.Errorf("MakeDirectory gives %q, %v", result, err)
	}
	if info, err := os.Stat(result); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("it made %v, %v", info, err)
	}
	for _, f := range []func(string) (string, error){Directory, File} {
		if _, err := f(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a missing path: %v", err)
		}
	}
	if err := Entry(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing entry: %v", err)
	}
	must.Do(t, os.Symlink("round", filepath.Join(dir, "round")))
	if _, err := Directory(filepath.Join(dir, "round")); !errors.Is(err, unix.ELOOP) {
		t.Errorf("a circle of links: %v", err)
	}
}

func TestFilesOfOthers(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(dir string) error
		root  bool // only root can prepare it, or only for root it is unsafe
		want  string
	}{
		"a file that all can write to":      {func(dir string) error { return os.Chmod(dir+"/out/file", 0o646) }, false, "out/file can be changed by other users; if you trust the content, run chmod go-w "},
		"a directory that all can write to": {func(dir string) error { return os.Chmod(dir+"/out", 0o777) }, false, "out can be changed by other users"},
		"a sticky directory":                {func(dir string) error { return os.Chmod(dir+"/out", 0o777|fs.ModeSticky) }, false, "out can be changed by other users"},
		"another user's file":               {func(dir string) error { return os.Lchown(dir+"/out/file", other, 0) }, true, "out/file belongs to user 12345; run touchstone as that user"},
		"another user's directory":          {func(dir string) error { return os.Lchown(dir+"/out", other, 0) }, true, "out belongs to user 12345"},
		"another group's file": {func(dir string) error {
			return errors.Join(os.Lchown(dir+"/out/file", 0, other), os.Chmod(dir+"/out/file", 0o664))
		}, true, "out/file can be changed"},
		"a directory in another user's":       {func(dir string) error { return os.Lchown(dir, other, 0) }, true, " belongs to user 12345; use a directory that only you can change"},
		"a directory in one without a sticky": {func(dir string) error { return os.Chmod(dir, 0o777) }, true, "can be changed by other users; use a directory"},
		"another user's link": {func(dir string) error {
			return errors.Join(os.Rename(dir+"/out", dir+"/real"), os.Symlink("real", dir+"/out"), os.Lchown(dir+"/out", other, 0))
		}, true, "out is a link of user 12345; name the directory itself"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.root {
				needRoot(t)
			}
			dir := home(t)
			must.Do(t, c.spoil(dir))
			_, err := File(filepath.Join(dir, "out", "file"))
			if unsafe := (*Error)(nil); !errors.As(err, &unsafe) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("File gives %v, want %q", err, c.want)
			}
		})
	}
}

// TestSudo: the user who called sudo is trusted.
func TestSudo(t *testing.T) {
	needRoot(t)
	dir := home(t)
	for _, path := range []string{dir, dir + "/out", dir + "/out/file"} {
		must.Do(t, os.Lchown(path, other, other))
	}
	t.Setenv("SUDO_UID", "12345")
	t.Setenv("SUDO_GID", "12345")
	must.Do(t, os.Chmod(dir+"/out/file", 0o664))
	if _, err := File(filepath.Join(dir, "out", "file")); err != nil {
		t.Error(err)
	}
	t.Setenv("SUDO_UID", "-1")
	if _, err := File(filepath.Join(dir, "out", "file")); err == nil {
		t.Error("another user is trusted")
	}
}

// TestEntry: links are refused, also safe ones.
func TestEntry(t *testing.T) {
	dir := home(t)
	must.Do(t, os.Symlink("file", filepath.Join(dir, "out", "link")), os.Chmod(filepath.Join(dir, "out", "file"), 0o666))
	for path, want := range map[string]string{"out/link": "is a symbolic link; remove it", "out/file": "can be changed by other users"} {
		if err := Entry(filepath.Join(dir, path)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Entry(%s) gives %v, want %q", path, err, want)
		}
	}
}
