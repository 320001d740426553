package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// entry is a file or a directory of the image.
type entry struct {
	name    string
	mode    fs.FileMode // with fs.ModeDir for a directory
	content string
}

// tree returns the files of the image, parents first.
//
// Engines need etc/passwd and etc/group to look up the name of user 0. Benchmarks bind a directory of the host to /data.
func tree(probe []byte) []entry {
	return []entry{
		{name: "data", mode: fs.ModeDir | 0o755},
		{name: "dev", mode: fs.ModeDir | 0o755},
		{name: "etc", mode: fs.ModeDir | 0o755},
		{name: "etc/group", mode: 0o644, content: "root:x:0:\n"},
		{name: "etc/passwd", mode: 0o644, content: "root:x:0:0:root:/:" + ProbePath + "\n"},
		{name: "probe", mode: 0o755, content: string(probe)},
		{name: "proc", mode: fs.ModeDir | 0o555},
		{name: "sys", mode: fs.ModeDir | 0o555},
		{name: "tmp", mode: fs.ModeDir | fs.ModeSticky | 0o777},
	}
}

// pack builds the layer: an uncompressed, reproducible tar archive.
func pack(entries []entry) ([]byte, error) {
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	for _, e := range entries {
		header := tar.Header{
			Format:   tar.FormatUSTAR,
			Typeflag: tar.TypeReg,
			Name:     e.name,
			Mode:     int64(e.mode.Perm()),
			Size:     int64(len(e.content)),
			ModTime:  Epoch(),
		}
		if e.mode.IsDir() {
			header.Typeflag = tar.TypeDir
			header.Name += "/"
		}
		if e.mode&os.ModeSticky != 0 {
			header.Mode |= 0o1000
		}
		if err := w.WriteHeader(&header); err != nil {
			return nil, fmt.Errorf("pack %q: %w", e.name, err)
		}
		if _, err := w.Write([]byte(e.content)); err != nil {
			return nil, fmt.Errorf("pack %q: %w", e.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("pack layer: %w", err)
	}
	return layer.Bytes(), nil
}

// writeTree writes files to dir. It uses an os.Root, so that links in dir cannot lead it out of dir.
func writeTree(dir string, entries []entry) (err error) {
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
	for _, e := range entries {
		if e.mode.IsDir() {
			err = makeDir(root, e.name, e.mode&^fs.ModeDir)
		} else {
			err = replace(root, e.name, []byte(e.content), e.mode)
		}
		if err != nil {
			return fmt.Errorf("write %q: %w", e.name, err)
		}
	}
	return nil
}
