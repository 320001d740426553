package debian

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/ulikunitz/xz"
)

// deb has the used parts of a package's file: deb(5).
type deb struct {
	Package
	source string   // the source package
	files  []string // paths of regular files, without a slash at the beginning
}

// archivesDir is apt's directory for the files of packages.
const archivesDir = "var/cache/apt/archives"

// maxControl bounds the size of a package's control archive, in bytes.
const maxControl = 16 << 20

// readDeb reads a package's file.
func readDeb(content *io.SectionReader) (*deb, error) {
	hash, size, err := v1.SHA256(io.NewSectionReader(content, 0, content.Size()))
	if err != nil {
		return nil, err
	}
	d := &deb{Package: Package{SHA256: hash.Hex, Size: size}}
	name, control, err := arMember(content, "control.tar")
	if err != nil {
		return nil, err
	}
	var uncompressed io.Reader
	switch path.Ext(name) {
	case ".tar":
		uncompressed = control
	case ".gz":
		uncompressed, err = gzip.NewReader(control)
	case ".xz":
		uncompressed, err = xz.NewReader(bufio.NewReader(control))
	default:
		err = fmt.Errorf("%s has an unknown compression", name)
	}
	if err != nil {
		return nil, err
	}
	return d, d.readControl(tar.NewReader(io.LimitReader(uncompressed, maxControl)))
}

// arMember returns the first member of an ar archive with a prefix of its name.
func arMember(content *io.SectionReader, prefix string) (string, io.Reader, error) {
	const magic, headSize = "!<arch>\n", 60
	head := make([]byte, headSize)
	if _, err := content.ReadAt(head[:len(magic)], 0); err != nil || string(head[:len(magic)]) != magic {
		return "", nil, errors.New("it is not a package of Debian")
	}
	for offset := int64(len(magic)); ; {
		if _, err := content.ReadAt(head, offset); err != nil {
			return "", nil, fmt.Errorf("look for %s: %w", prefix, err)
		}
		size, err := strconv.ParseInt(strings.TrimSpace(string(head[48:58])), 10, 64)
		if err != nil || size < 0 || string(head[58:]) != "`\n" {
			return "", nil, errors.New("its table of contents is damaged")
		}
		name := strings.TrimSuffix(strings.TrimSpace(string(head[:16])), "/")
		if strings.HasPrefix(name, prefix) {
			return name, io.NewSectionReader(content, offset+headSize, size), nil
		}
		offset += headSize + size + size%2
	}
}

// readControl reads the control archive.
func (d *deb) readControl(r *tar.Reader) error {
	for {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read its control archive: %w", err)
		}
		var read func(line string) error
		switch path.Clean(header.Name) {
		case "control":
			read = d.readField
		case "md5sums":
			read = d.readFile
		case "conffiles": // md5sums does not list them
			read = d.readConfiguration
		default:
			continue
		}
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, maxControl)
		for err == nil && lines.Scan() {
			err = read(lines.Text())
		}
		if err := errors.Join(err, lines.Err()); err != nil {
			return fmt.Errorf("read its %s: %w", path.Base(header.Name), err)
		}
	}
	if d.source == "" {
		d.source = d.Name
	}
	if !isName(d.Name) || !isVersion(d.Version) {
		return fmt.Errorf("%q of version %q is not a package", d.Name, d.Version)
	}
	return nil
}

func (d *deb) readField(line string) error {
	name, value, _ := strings.Cut(line, ": ")
	switch name {
	case "Package":
		d.Name = value
	case "Version":
		d.Version = value
	case "Source":
		d.source, _, _ = strings.Cut(value, " ")
	}
	return nil
}

func (d *deb) readFile(line string) error {
	sum, name, ok := strings.Cut(line, "  ")
	if !ok || len(sum) != 32 {
		return fmt.Errorf("%q has another format", line)
	}
	d.files = append(d.files, unmerged(name))
	return nil
}

func (d *deb) readConfiguration(line string) error {
	if name, ok := strings.CutPrefix(line, "/"); ok { // else it has a flag: the file must be removed
		d.files = append(d.files, unmerged(strings.TrimSpace(name)))
	}
	return nil
}

// unmerged returns the path of a file where /bin and other directories are links.
func unmerged(name string) string {
	if first, _, ok := strings.Cut(name, "/"); ok && slices.Contains(merged, first) {
		return "usr/" + name
	}
	return name
}

// readDebs reads the files of all packages in a tree.
func readDebs(t *tree) ([]*deb, error) {
	var debs []*deb
	for name := range t.nodes {
		if path.Dir(name) != archivesDir || path.Ext(name) != ".deb" {
			continue
		}
		content, err := t.open(name)
		if err != nil {
			return nil, err
		}
		d, err := readDeb(content)
		if err != nil {
			return nil, fmt.Errorf("read package %s: %w", path.Base(name), err)
		}
		debs = append(debs, d)
	}
	return debs, nil
}

// compare returns an error if packages differ from a lock.
func (l Lock) compare(debs []*deb) error {
	var errs []error
	found := map[string]bool{}
	for _, d := range debs {
		found[d.Name] = true
		p, ok := l.find(d.Name)
		switch {
		case !ok:
			errs = append(errs, fmt.Errorf("package %s %s was fetched too, and is not on the list", d.Name, d.Version))
		case p.Version != d.Version:
			errs = append(errs, fmt.Errorf("package %s has the version %s instead of %s", d.Name, d.Version, p.Version))
		case p.SHA256 != d.SHA256 || p.Size != d.Size:
			errs = append(errs, fmt.Errorf("package %s %s has the checksum %s and %d bytes instead of %s and %d",
				d.Name, d.Version, d.SHA256, d.Size, p.SHA256, p.Size))
		}
	}
	for _, p := range l.Packages {
		if !found[p.Name] {
			errs = append(errs, fmt.Errorf("package %s %s was not fetched", p.Name, p.Version))
		}
	}
	return errors.Join(errs...)
}
