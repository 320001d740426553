package trust

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Open opens a regular file for reading, after the checks of File. It never blocks: a pipe or a device in the place of the file is an
// Error, and so is a link of another user. A missing file is fs.ErrNotExist, also below a directory of another user.
//
// It is for files with a name that the program chooses. A file that the user names may be a pipe, as in <(command).
func Open(path string) (*os.File, error) {
	name, err := File(path)
	if err != nil {
		var unsafe *Error
		if _, missing := os.Stat(path); errors.As(err, &unsafe) && missing != nil && !errors.Is(missing, fs.ErrPermission) {
			return nil, missing
		}
		return nil, err
	}
	var s unix.Stat_t
	if err := unix.Lstat(name, &s); err != nil {
		return nil, &fs.PathError{Op: "lstat", Path: name, Err: err}
	}
	if err := regular(name, &s); err != nil { // to open a device may have an effect
		return nil, err
	}
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if err = unix.Fstat(int(f.Fd()), &s); err == nil {
		if err = regular(name, &s); err == nil {
			err = check(name, &s)
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// ReadFile reads a file like Open. A file with more than limit bytes is an error.
func ReadFile(path string, limit int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it is only read from
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	return text, err
}

func regular(path string, s *unix.Stat_t) error {
	if s.Mode&unix.S_IFMT == unix.S_IFREG {
		return nil
	}
	return &Error{path, "is not a regular file", "make it one, or remove it"}
}
