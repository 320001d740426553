package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// maxFile is the maximum size of a file in the probe image's layer, in bytes.
const maxFile = 16 << 20

// unpack writes the probe image's layer to dir. It uses an os.Root, so it cannot write outside of dir, whatever the names in the
// layer and the links in dir are.
func unpack(layer io.Reader, dir string) (err error) {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	if err := root.Chmod(".", 0o755); err != nil {
		return err
	}
	r := tar.NewReader(layer)
	for {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read layer: %w", err)
		}
		if err := unpackEntry(root, header, r); err != nil {
			return fmt.Errorf("unpack %q: %w", header.Name, err)
		}
	}
}

func unpackEntry(root *os.Root, header *tar.Header, content io.Reader) error {
	name := path.Clean(header.Name)
	if !filepath.IsLocal(name) || name == "." {
		return errors.New("the name leads out of the directory")
	}
	mode := header.FileInfo().Mode()
	switch header.Typeflag {
	case tar.TypeDir:
		return makeDir(root, name, mode&^fs.ModeDir)
	case tar.TypeReg:
		if header.Size > maxFile {
			return fmt.Errorf("the file has %d bytes, more than %d", header.Size, maxFile)
		}
		b, err := io.ReadAll(content)
		if err != nil {
			return err
		}
		return replace(root, name, b, mode)
	default:
		return fmt.Errorf("an entry of type %q is neither a file nor a directory", header.Typeflag)
	}
}

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
