package lab

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

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
