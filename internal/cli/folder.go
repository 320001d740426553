package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/touchstone-bench/touchstone/internal/store"
)

// openResults opens the results file of a folder for writing, before any measurement. It makes both if they are missing. After an error
// neither remains that was not there before. open is store.Open, or store.OpenMany for many runs at the same time.
func openResults(ctx context.Context, dir string, open func(context.Context, string) (*store.Store, error)) (*store.Store, error) {
	undo, err := writable(dir)
	if err != nil {
		return nil, err
	}
	db, err := open(ctx, filepath.Join(dir, databaseName))
	if err != nil {
		undo()
	}
	return db, err
}

// writable makes the output folder, and checks that only trusted users can change it and that files can be created in it. undo removes
// the folders that it has made, if they are empty.
func writable(dir string) (undo func(), err error) {
	if err := store.CheckFolder(dir); errors.Is(err, store.ErrUntrusted) {
		return nil, err
	}
	undo, err = writableFolder("the output folder", dir, 0o755)
	if err != nil {
		return nil, fmt.Errorf("%w; name another folder with -d", err)
	}
	return undo, nil
}

// writableFolder creates a folder if it is missing, and checks that files can be created in it. After an error no new folder remains.
func writableFolder(what, dir string, mode os.FileMode) (undo func(), err error) {
	missing := missingFolders(dir)
	undo = func() {
		for _, name := range missing {
			_ = os.Remove(name) // another process may use it by now
		}
	}
	if err := os.MkdirAll(dir, mode); err != nil {
		undo()
		return nil, fmt.Errorf("create %s: %w", what, err)
	}
	f, err := os.CreateTemp(dir, ".touchstone-*")
	if err == nil {
		err = errors.Join(f.Close(), os.Remove(f.Name()))
	}
	if err != nil {
		undo()
		return nil, fmt.Errorf("write to %s: %w", what, err)
	}
	return undo, nil
}

// missingFolders are the folders that MkdirAll would make, the deepest first.
func missingFolders(dir string) []string {
	var missing []string
	for {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			return missing
		}
		missing = append(missing, dir)
		dir = filepath.Dir(dir)
	}
}
