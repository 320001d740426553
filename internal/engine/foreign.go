package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Files in the run's state directory with the directories to remove, one a line.
const (
	foreignCgroups = "foreign-cgroups"
	foreignDirs    = "foreign-directories"
)

// RecordForeignCgroups records top-level cgroups that programs of the run make under a fixed name, and leave behind. Cgroups that exist
// are not recorded: they are not the run's.
func (s Session) RecordForeignCgroups(names ...string) error {
	if s.Cgroups == nil {
		return nil
	}
	var dirs []string
	for _, name := range names {
		for _, m := range s.Cgroups.Mounts {
			dirs = append(dirs, filepath.Join(m.Dir, name))
		}
	}
	return s.recordForeign(foreignCgroups, dirs)
}

// RecordForeignDirs does the same for directories outside of the run's own. A directory precedes its parent.
func (s Session) RecordForeignDirs(dirs ...string) error { return s.recordForeign(foreignDirs, dirs) }

func (s Session) recordForeign(name string, dirs []string) error {
	file := filepath.Join(s.State, name)
	record, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("record directories that the run leaves: %w", err)
	}
	var add strings.Builder
	for _, dir := range dirs {
		if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) && !strings.Contains("\n"+string(record), "\n"+dir+"\n") {
			add.WriteString(dir + "\n")
		}
	}
	if add.Len() == 0 {
		return nil
	}
	if err := os.WriteFile(file, append(record, add.String()...), 0o600); err != nil {
		return fmt.Errorf("record directories that the run leaves: %w", err)
	}
	return nil
}

// RemoveForeign removes the recorded cgroups and directories of the run with this state directory, and returns the number of cgroups. One
// that another program uses now remains: only an empty directory can be removed.
func RemoveForeign(state string) (cgroups int, err error) {
	cgroups, err = removeForeign(filepath.Join(state, foreignCgroups))
	_, bad := removeForeign(filepath.Join(state, foreignDirs))
	return cgroups, errors.Join(err, bad)
}

func removeForeign(file string) (count int, err error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("remove directories that the run leaves: %w", err)
	}
	var errs []error
	for line := range strings.Lines(string(text)) {
		dir := strings.TrimSuffix(line, "\n")
		switch err := unix.Rmdir(dir); {
		case err == nil:
			count++
		case !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.ENOTDIR):
			errs = append(errs, &fs.PathError{Op: "rmdir", Path: dir, Err: err})
		}
	}
	return count, errors.Join(errs...)
}
