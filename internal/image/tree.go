package image

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// FromTree makes an image of the regular files, directories and symbolic links below root, with the probe as its entry point. Its layer is a file in dir,
// which must outlive the image. If skip is true for a directory, the image has it without its content; other skipped files are left out.
func FromTree(ctx context.Context, root, dir string, skip func(name string) bool) (_ v1.Image, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("make an image of the files in %s: %w", root, err)
		}
	}()
	tree, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tree.Close() }() // it is only read from
	name := filepath.Join(dir, "tree.tar.gz")
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	// The speed counts more than the size: the layer does not leave the machine.
	archive, err := gzip.NewWriterLevel(file, gzip.BestSpeed)
	if err == nil {
		err = pack(ctx, archive, tree, skip)
		err = errors.Join(err, archive.Close())
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromFile(name, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	return Assemble(runtime.GOARCH, "touchstone", nil, layer)
}

// pack writes the files of a tree as a tar archive.
func pack(ctx context.Context, out io.Writer, tree *os.Root, skip func(name string) bool) error {
	w := tar.NewWriter(out)
	err := fs.WalkDir(tree.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		isSkipped := skip(name)
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case name == ".", !entry.IsDir() && (isSkipped || entry.Type() != 0 && entry.Type() != fs.ModeSymlink):
			return nil
		}
		if err := packFile(w, tree, name, entry); err != nil {
			return fmt.Errorf("pack %q: %w", name, err)
		}
		if isSkipped {
			return fs.SkipDir
		}
		return nil
	})
	return errors.Join(err, w.Close())
}

func packFile(w *tar.Writer, tree *os.Root, name string, entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	link := ""
	if entry.Type() == fs.ModeSymlink {
		if link, err = tree.Readlink(name); err != nil {
			return err
		}
	}
	header, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	header.Name, header.Uname, header.Gname, header.ModTime = name, "", "", Epoch()
	if entry.IsDir() {
		header.Name += "/"
	}
	if err := w.WriteHeader(header); err != nil || !info.Mode().IsRegular() {
		return err
	}
	file, err := tree.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it is only read from
	_, err = io.Copy(w, file)
	return err
}
