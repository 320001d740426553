package image

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
)

// makeDir creates a directory, or sets the mode and owner of an existing one.
func makeDir(root *os.Root, name string, mode fs.FileMode) error {
	if err := root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := root.Lstat(name)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return errors.New("the path exists and is not a directory")
	}
	return setOwner(root, name, mode)
}

// replace replaces or creates a file atomically.
func replace(root *os.Root, name string, content []byte, mode fs.FileMode) (err error) {
	temporary := path.Join(path.Dir(name), fmt.Sprintf(".touchstone-%d-%s", os.Getpid(), path.Base(name)))
	// A killed process with the same ID may have left it.
	if err := root.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, root.Remove(temporary))
		}
	}()
	_, err = file.Write(content)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := setOwner(root, temporary, mode); err != nil {
		return err
	}
	return root.Rename(temporary, name)
}

// setOwner sets owner, mode and time, in this order, because a new owner may clear bits of the mode. It skips the owner unless the caller is
// root.
func setOwner(root *os.Root, name string, mode fs.FileMode) error {
	if os.Geteuid() == 0 {
		if err := root.Chown(name, 0, 0); err != nil {
			return err
		}
	}
	if err := root.Chmod(name, mode); err != nil {
		return err
	}
	return root.Chtimes(name, Epoch(), Epoch())
}
