package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// limits bound what an image may become on disk.
type limits struct {
	bytes   int64
	entries int
	reserve reserve
}

// defaultLimits are far above what any image of a workload has. The reserve is what others on the machine
// need to go on.
var defaultLimits = limits{bytes: 32 << 30, entries: 1_000_000, reserve: reserve{bytes: 1 << 30, share: 0.05}}

var (
	errTooLarge = errors.New("there are more bytes than an image may have")
	errTooMany  = errors.New("there are more files than an image may have")
)

// unpacker lays layers on top of each other, as the OCI image specification says. All goes through
// an os.Root: whatever names and links a layer has, nothing outside is touched.
//
// Extended attributes are left out: what programs here need of them, file capabilities, root has.
type unpacker struct {
	root        *os.Root
	limits      limits
	space       *room
	written     map[string]bool        // by the layer that is being unpacked
	directories map[string]*tar.Header // whose modes and times are set at the end: what is put into them needs and changes them
}

const (
	whiteout = ".wh."         // before the name of what a layer removes
	opaque   = ".wh..wh..opq" // in a directory of which a layer removes all that was there
)

// archive unpacks one layer.
func (u *unpacker) archive(r *tar.Reader) error {
	u.written = map[string]bool{}
	for {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return readError(err)
		}
		if header.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		if err := u.entry(header, r); err != nil {
			return fmt.Errorf("%q: %w", header.Name, err)
		}
	}
}

// entrySize is about what a file or directory takes on a disk beside its content, in bytes.
const entrySize = 4 << 10

func (u *unpacker) entry(header *tar.Header, content io.Reader) error {
	if u.limits.entries--; u.limits.entries < 0 {
		return errTooMany
	}
	if err := u.space.take(entrySize); err != nil {
		return err
	}
	name, err := local(header.Name)
	if err != nil {
		return err
	}
	if name == "." {
		if header.Typeflag != tar.TypeDir {
			return errors.New("the root is no directory")
		}
		u.directories[name] = header
		return nil
	}
	if err := u.parents(path.Dir(name)); err != nil {
		return err
	}
	if base := path.Base(name); base == opaque {
		return u.clear(path.Dir(name))
	} else if hidden, ok := strings.CutPrefix(base, whiteout); ok {
		if hidden == "" || hidden == "." || hidden == ".." {
			return errors.New("it removes nothing that has a name")
		}
		return u.remove(path.Join(path.Dir(name), hidden))
	}
	u.written[name] = true
	if header.Typeflag == tar.TypeDir {
		u.directories[name] = header
		return u.directory(name)
	}
	if err := u.remove(name); err != nil {
		return err
	}
	switch header.Typeflag {
	case tar.TypeReg:
		return u.regular(name, header, content)
	case tar.TypeSymlink:
		if err := u.root.Symlink(header.Linkname, name); err != nil {
			return err
		}
		return u.own(name, header)
	case tar.TypeLink:
		target, err := local(header.Linkname)
		if err != nil {
			return err
		}
		return u.root.Link(target, name)
	default:
		return fmt.Errorf("an entry of type %q, a device or the like, is not unpacked", header.Typeflag)
	}
}

// local gives a name of a layer relative to the root: images are found whose names begin with "/" or "./".
func local(name string) (string, error) {
	cleaned := path.Clean(strings.TrimLeft(name, "/"))
	if name == "" || !filepath.IsLocal(cleaned) {
		return "", errors.New("the name leads out of the directory")
	}
	return cleaned, nil
}

// parents makes the directories that a layer does not mention.
func (u *unpacker) parents(dir string) error {
	if info, err := u.root.Lstat(dir); err == nil && info.IsDir() {
		return nil
	}
	return u.root.MkdirAll(dir, 0o755)
}

// directory makes a directory, in place of what is there and is none.
func (u *unpacker) directory(name string) error {
	if info, err := u.root.Lstat(name); err == nil && info.IsDir() {
		return nil
	}
	if err := u.root.RemoveAll(name); err != nil {
		return err
	}
	return u.root.Mkdir(name, 0o755)
}

// remove removes what there is of a name.
func (u *unpacker) remove(name string) error {
	info, err := u.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return u.root.Remove(name)
	}
	maps.DeleteFunc(u.directories, func(d string, _ *tar.Header) bool { return d == name || strings.HasPrefix(d, name+"/") })
	return u.root.RemoveAll(name)
}

// clear removes what earlier layers have put into a directory.
func (u *unpacker) clear(dir string) error {
	d, err := u.root.Open(dir)
	if err != nil {
		return err
	}
	names, err := d.Readdirnames(-1)
	if err := errors.Join(err, d.Close()); err != nil {
		return err
	}
	for _, base := range names {
		name := path.Join(dir, base)
		below := func(w string) bool { return w == name || strings.HasPrefix(w, name+"/") }
		if slices.ContainsFunc(slices.Collect(maps.Keys(u.written)), below) {
			continue
		}
		if err := u.remove(name); err != nil {
			return err
		}
	}
	return nil
}

func (u *unpacker) regular(name string, header *tar.Header, content io.Reader) error {
	if u.limits.bytes -= header.Size; u.limits.bytes < 0 {
		return errTooLarge
	}
	if err := fill(u.root, name, content, u.space); err != nil {
		return err
	}
	if err := u.own(name, header); err != nil {
		return err
	}
	return u.mode(name, header)
}

// fill makes a file that is not there yet, as long as there is room on the disk.
func fill(root *os.Root, name string, content io.Reader, space *room) error {
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, sparing{content, space})
	if err := errors.Join(err, file.Close()); err != nil {
		return readOrWriteError(err)
	}
	return nil
}

// readOrWriteError tells a layer that is cut off from a disk that is full.
func readOrWriteError(err error) error {
	if inPath := (*fs.PathError)(nil); errors.As(err, &inPath) {
		return err
	}
	return readError(err)
}

// own gives what was made to its owner. Only root can.
func (u *unpacker) own(name string, header *tar.Header) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return u.root.Lchown(name, header.Uid, header.Gid)
}

// mode sets mode and time, after the owner: a new one may clear bits of the mode.
func (u *unpacker) mode(name string, header *tar.Header) error {
	mode := header.FileInfo().Mode() &^ fs.ModeType
	if header.Typeflag == tar.TypeDir && os.Geteuid() != 0 {
		mode |= 0o700 // else its owner could not remove what is in it
	}
	if err := u.root.Chmod(name, mode); err != nil {
		return err
	}
	return u.root.Chtimes(name, header.ModTime, header.ModTime)
}

// finish sets what is known of directories, the deepest first.
func (u *unpacker) finish() error {
	names := slices.Sorted(maps.Keys(u.directories))
	slices.Reverse(names)
	for _, name := range names {
		if err := errors.Join(u.own(name, u.directories[name]), u.mode(name, u.directories[name])); err != nil {
			return fmt.Errorf("%q: %w", name, err)
		}
	}
	return nil
}
