package oci

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// The files of a bundle: config.json by the OCI specification. The runtime makes pid and log.
const (
	configName    = "config.json"
	pidName       = "pid"
	logName       = "log"
	resourcesName = "resources.json" // of the last update
)

// Every container has a bundle. These functions need half the system calls of their counterparts in package os: they do
// not try to poll a file, and do not list a directory with known files.

// writeSmall makes a new file.
func writeSmall(name string, data []byte) error {
	fd, err := open(name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
	if err != nil {
		return err
	}
	n, err := unix.Write(fd, data)
	if err == nil && n < len(data) {
		err = unix.ENOSPC
	}
	if err = errors.Join(err, unix.Close(fd)); err != nil {
		return &fs.PathError{Op: "write", Path: name, Err: err}
	}
	return nil
}

// readSmall returns the beginning of a file, which is the whole of a pid file.
func readSmall(name string) ([]byte, error) {
	fd, err := open(name, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	text := make([]byte, 64)
	n, err := unix.Read(fd, text)
	if err = errors.Join(err, unix.Close(fd)); err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return text[:n], nil
}

func open(name string, flags int) (int, error) {
	for {
		fd, err := unix.Open(name, flags|unix.O_CLOEXEC, 0o600)
		if err == nil {
			return fd, nil
		}
		if !errors.Is(err, unix.EINTR) {
			return -1, &fs.PathError{Op: "open", Path: name, Err: err}
		}
	}
}

// removeBundle removes a bundle with all its files. It is idempotent.
func removeBundle(dir string) error {
	for _, name := range []string{configName, pidName, logName} {
		_ = unix.Unlink(filepath.Join(dir, name))
	}
	if unix.Rmdir(dir) == nil {
		return nil
	}
	return os.RemoveAll(dir) // for further files, or for the error
}
