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

// foreignFile is the file with the cgroups of RecordForeignCgroups, in the run's state directory, one a line.
const foreignFile = "foreign-cgroups"

// RecordForeignCgroups records top-level cgroups that programs of the run make under a fixed name, and leave behind. Cgroups that exist
// are not recorded: they are not the run's.
func (s Session) RecordForeignCgroups(names ...string) error {
	if s.Cgroups == nil {
		return nil
	}
	file := filepath.Join(s.State, foreignFile)
	known, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("record cgroups of the run: %w", err)
	}
	var add strings.Builder
	for _, name := range names {
		for _, m := range s.Cgroups.Mounts {
			dir := filepath.Join(m.Dir, name)
			if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) && !strings.Contains(string(known), dir+"\n") {
				add.WriteString(dir + "\n")
			}
		}
	}
	if err := os.WriteFile(file, append(known, add.String()...), 0o600); err != nil {
		return fmt.Errorf("record cgroups of the run: %w", err)
	}
	return nil
}

// RemoveForeignCgroups removes the recorded cgroups of the run with this state directory, and returns their number. A cgroup that
// another program uses now remains: only an empty one can be removed.
func RemoveForeignCgroups(state string) (removed int, err error) {
	text, err := os.ReadFile(filepath.Join(state, foreignFile))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("remove cgroups of the run: %w", err)
	}
	var errs []error
	for line := range strings.Lines(string(text)) {
		switch err := unix.Rmdir(strings.TrimSuffix(line, "\n")); {
		case err == nil:
			removed++
		case !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.ENOTEMPTY):
			errs = append(errs, fmt.Errorf("remove cgroup %s: %w", strings.TrimSpace(line), err))
		}
	}
	return removed, errors.Join(errs...)
}
