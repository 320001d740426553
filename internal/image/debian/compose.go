package debian

import (
	"archive/tar"
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/gzip"

	"github.com/touchstone-bench/touchstone/internal/image"
)

// entry is a file of the image.
type entry struct {
	mode     int64
	typeflag byte
	link     string // of a symbolic link
	size     int64
	open     func() (io.ReadCloser, error) // of a regular file
	pkg      string                        // the package; empty for our own
}

// layout has the files of a layer, by path without a slash at the beginning.
type layout map[string]entry

func (l layout) dir(name string, mode int64) {
	l[name] = entry{typeflag: tar.TypeDir, mode: mode}
}

func (l layout) text(name string, mode int64, content string) {
	open := func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }
	l[name] = entry{typeflag: tar.TypeReg, mode: mode, size: int64(len(content)), open: open}
}

func (l layout) link(name, destination string) {
	l[name] = entry{typeflag: tar.TypeSymlink, mode: 0o777, link: destination}
}

// file adds a file of the host.
func (l layout) file(name, source string) error {
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	l[name] = entry{typeflag: tar.TypeReg, mode: 0o644, size: info.Size(), open: func() (io.ReadCloser, error) { return os.Open(source) }}
	return nil
}

// packaged adds files and links of a tree that belong to a package.
func (l layout) packaged(t *tree, pkg string, names ...string) error {
	for _, name := range names {
		n, ok := t.nodes[name]
		switch {
		case !ok:
			return fmt.Errorf("%s does not exist", name)
		case n.header.Typeflag == tar.TypeSymlink:
			l[name] = entry{typeflag: tar.TypeSymlink, mode: 0o777, link: n.header.Linkname, pkg: pkg}
		case n.header.Typeflag == tar.TypeReg:
			open := func() (io.ReadCloser, error) {
				return io.NopCloser(io.NewSectionReader(t.file, n.offset, n.header.Size)), nil
			}
			// No program of the image needs the rights of another user.
			l[name] = entry{typeflag: tar.TypeReg, mode: n.header.Mode & 0o777, size: n.header.Size, open: open, pkg: pkg}
		default:
			return fmt.Errorf("%s is neither file nor link", name)
		}
	}
	return nil
}

// parents adds missing directories.
func (l layout) parents() {
	for name := range maps.Clone(l) {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if _, ok := l[dir]; !ok {
				l.dir(dir, 0o755)
			}
		}
	}
}

// skeleton is the base of the file system, with the files that no package of the list has. Benchmarks write to /data. The users
// are the users of the image's programs.
func skeleton() layout {
	l := layout{}
	for name, mode := range map[string]int64{
		"data": 0o755, "dev": 0o755, "proc": 0o555, "root": 0o700, "run": 0o755, "sys": 0o555, "tmp": 0o1777,
		"var/log/nginx": 0o755, "var/lib/nginx": 0o755, "var/tmp": 0o1777,
	} {
		l.dir(name, mode)
	}
	for _, name := range merged {
		l.dir("usr/"+name, 0o755)
		l.link(name, "usr/"+name)
	}
	l.link("usr/bin/sh", "busybox")
	l.link("var/run", "/run")
	l.text("etc/passwd", 0o644, "root:x:0:0:root:/root:/bin/sh\nwww-data:x:33:33:www-data:/var/www:/bin/false\n"+
		"redis:x:100:100::/var/lib/redis:/bin/false\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n")
	l.text("etc/group", 0o644, "root:x:0:\nwww-data:x:33:\nredis:x:100:\nnogroup:x:65534:\n")
	l.text("etc/hosts", 0o644, "127.0.0.1 localhost\n::1 localhost\n")
	l.text("etc/nsswitch.conf", 0o644, "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n")
	return l
}

// write packs a layer as a compressed tar archive: parents first, sorted, with a fixed time and owner.
func (l layout) write(sink io.Writer) error {
	buffered := bufio.NewWriterSize(sink, 1<<20)
	zip, err := gzip.NewWriterLevel(buffered, gzip.BestCompression)
	if err != nil {
		return err
	}
	w := tar.NewWriter(zip)
	for _, name := range slices.Sorted(maps.Keys(l)) {
		if err := l[name].write(w, name); err != nil {
			return fmt.Errorf("pack %s: %w", name, err)
		}
	}
	return errors.Join(w.Close(), zip.Close(), buffered.Flush())
}

func (e entry) write(w *tar.Writer, name string) error {
	header := tar.Header{Typeflag: e.typeflag, Name: name, Mode: e.mode, Size: e.size, Linkname: e.link, ModTime: image.Epoch()}
	if e.typeflag == tar.TypeDir {
		header.Name += "/"
	}
	if err := w.WriteHeader(&header); err != nil {
		return err
	}
	if e.typeflag != tar.TypeReg {
		return nil
	}
	r, err := e.open()
	if err != nil {
		return err
	}
	_, err = io.Copy(w, r)
	return errors.Join(err, r.Close())
}

// sumOf returns the SHA-256 of a file, in hexadecimal.
func sumOf(name string) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", err
	}
	hash, _, err := v1.SHA256(file)
	return hash.Hex, errors.Join(err, file.Close())
}

// inFiles packs layers in a directory.
func inFiles(dir string, contents ...layout) ([]v1.Layer, error) {
	var layers []v1.Layer
	for i, content := range contents {
		name := filepath.Join(dir, fmt.Sprintf("%d.tar.gz", i))
		file, err := os.Create(name)
		if err != nil {
			return nil, err
		}
		if err := errors.Join(content.write(file), file.Close()); err != nil {
			return nil, err
		}
		layer, err := tarball.LayerFromFile(name, tarball.WithMediaType(types.OCILayer))
		if err != nil {
			return nil, err
		}
		layers = append(layers, layer)
	}
	return layers, nil
}

// inMemory packs a small layer.
func inMemory(content layout) (v1.Layer, error) {
	var buffer bytes.Buffer
	if err := content.write(&buffer); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(buffer.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
}

// assemble builds the image from its layers.
func assemble(arch string, layers ...v1.Layer) (v1.Image, error) {
	return image.Assemble(arch, "touchstone image build", map[string]string{
		"org.opencontainers.image.title":       "touchstone workload",
		"org.opencontainers.image.description": "The programs that Touchstone measures with, from Debian " + Suite,
	}, layers...)
}
