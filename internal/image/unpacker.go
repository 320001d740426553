package image

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// limits bound the unpacked size of an image.
type limits struct {
	bytes   int64
	entries int
	reserve reserve
}

// defaultLimits are far above the size of any workload image. The reserve is for other programs on the machine.
var defaultLimits = limits{bytes: 32 << 30, entries: 1_000_000, reserve: reserve{bytes: 1 << 30, share: 0.05}}

var (
	errTooLarge = errors.New("the image has too many bytes")
	errTooMany  = errors.New("the image has too many files")
)

// unpacker merges layers according to the OCI image specification. It uses an os.Root, so it cannot change files outside of its
// directory, whatever the names and links of a layer are.
//
// It ignores extended attributes. Programs would need only file capabilities, and containers run as root.
type unpacker struct {
	root   *os.Root
	limits limits
	space  *spaceGuard
	layers int  // the number of the current layer
	tree   node // the directory itself
}

// node is a path that a layer lists, or a parent of one. The paths form a tree, so that the removal of a directory takes the same time
// in an image of any size.
type node struct {
	children map[string]*node
	header   *tar.Header // of a directory; modes and times are set at the end, because new files need the mode and change the time
	layer    int         // the last layer with this path or a path below it
	opaque   int         // the last layer that removed the content of earlier layers
}

// find returns the node of a path, or nil.
func (u *unpacker) find(name string) *node {
	n := &u.tree
	for name != "." && n != nil {
		base, rest, hasRest := strings.Cut(name, "/")
		if n, name = n.children[base], rest; !hasRest {
			break
		}
	}
	return n
}

// mark records that the current layer has a path, and returns its node.
func (u *unpacker) mark(name string) *node {
	n := &u.tree
	n.layer = u.layers
	for hasRest := name != "."; hasRest; {
		var base string
		base, name, hasRest = strings.Cut(name, "/")
		child := n.children[base]
		if child == nil {
			if child = (&node{}); n.children == nil {
				n.children = map[string]*node{}
			}
			n.children[strings.Clone(base)] = child
		}
		n = child
		n.layer = u.layers
	}
	return n
}

// forget drops the node of a path, and all nodes below it.
func (u *unpacker) forget(name string) {
	if parent := u.find(path.Dir(name)); parent != nil {
		delete(parent.children, path.Base(name))
	}
}

const (
	whiteout = ".wh."         // prefix of a name that the layer removes
	opaque   = ".wh..wh..opq" // marks a directory whose earlier content the layer removes
)

// archive unpacks one layer.
func (u *unpacker) archive(ctx context.Context, r *tar.Reader) error {
	u.layers++
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
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
		if err := u.entry(ctx, header, r); err != nil {
			return fmt.Errorf("%q: %w", header.Name, err)
		}
	}
}

// entrySize is the approximate disk space of a file or directory in addition to its content, in bytes.
const entrySize = 4 << 10

func (u *unpacker) entry(ctx context.Context, header *tar.Header, content io.Reader) error {
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
			return errors.New("the root is not a directory")
		}
		u.tree.header = header
		return nil
	}
	if err := u.parents(path.Dir(name)); err != nil {
		return err
	}
	if base := path.Base(name); base == opaque {
		return u.clear(ctx, path.Dir(name))
	} else if victim, ok := strings.CutPrefix(base, whiteout); ok {
		if victim == "" || victim == "." || victim == ".." {
			return errors.New("the whiteout has no name")
		}
		return u.remove(path.Join(path.Dir(name), victim))
	}
	if header.Typeflag == tar.TypeDir {
		u.mark(name).header = header
		return u.directory(name)
	}
	if err := u.remove(name); err != nil {
		return err
	}
	u.mark(name)
	switch header.Typeflag {
	case tar.TypeReg:
		return u.regular(name, header, content)
	case tar.TypeSymlink:
		if err := u.root.Symlink(header.Linkname, name); err != nil {
			return err
		}
		return u.setOwner(name, header)
	case tar.TypeLink:
		target, err := local(header.Linkname)
		if err != nil {
			return err
		}
		return u.root.Link(target, name)
	default:
		return fmt.Errorf("an entry of type %q, such as a device, is refused", header.Typeflag)
	}
}

// maxName is the length of the longest path that Linux accepts, in bytes.
const maxName = 4095

// local returns a name of a layer relative to the root. In some images names begin with "/" or "./".
func local(name string) (string, error) {
	if len(name) > maxName {
		return "", fmt.Errorf("the name has more than %d bytes", maxName)
	}
	cleaned := path.Clean(strings.TrimLeft(name, "/"))
	if name == "" || !filepath.IsLocal(cleaned) {
		return "", errors.New("the name leads out of the directory")
	}
	return cleaned, nil
}

// parents creates directories that are missing in a layer.
func (u *unpacker) parents(dir string) error {
	if info, err := u.root.Lstat(dir); err == nil && info.IsDir() {
		return nil
	}
	return u.root.MkdirAll(dir, 0o755)
}

// directory creates a directory. It replaces an existing file.
func (u *unpacker) directory(name string) error {
	if info, err := u.root.Lstat(name); err == nil && info.IsDir() {
		return nil
	}
	if err := u.root.RemoveAll(name); err != nil {
		return err
	}
	return u.root.Mkdir(name, 0o755)
}

// remove removes a file or a directory tree. A missing one is not an error.
func (u *unpacker) remove(name string) error {
	info, err := u.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	u.forget(name)
	if !info.IsDir() {
		return u.root.Remove(name)
	}
	return u.root.RemoveAll(name)
}

// clear removes the files of earlier layers from a directory. It does so once per layer, because later the directory has none.
func (u *unpacker) clear(ctx context.Context, dir string) error {
	n := u.mark(dir)
	if n.opaque == u.layers {
		return nil
	}
	n.opaque = u.layers
	d, err := u.root.Open(dir)
	if err != nil {
		return err
	}
	names, err := d.Readdirnames(-1)
	if err := errors.Join(err, d.Close()); err != nil {
		return err
	}
	for _, base := range names {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if child := n.children[base]; child != nil && child.layer == u.layers {
			continue
		}
		if err := u.remove(path.Join(dir, base)); err != nil {
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
	if err := u.setOwner(name, header); err != nil {
		return err
	}
	return u.mode(name, header)
}

// fill creates a new file. It fails if the disk has too little space.
func fill(root *os.Root, name string, content io.Reader, space *spaceGuard) error {
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, spaceReader{content, space})
	if err := errors.Join(err, file.Close()); err != nil {
		return readOrWriteError(err)
	}
	return nil
}

// readOrWriteError distinguishes a truncated layer from a full disk.
func readOrWriteError(err error) error {
	if inPath := (*fs.PathError)(nil); errors.As(err, &inPath) {
		return err
	}
	return readError(err)
}

// setOwner sets the owner of a file. It does nothing unless the caller is root.
func (u *unpacker) setOwner(name string, header *tar.Header) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return u.root.Lchown(name, header.Uid, header.Gid)
}

// mode sets mode and time. It must follow setOwner, because a new owner may clear bits of the mode.
func (u *unpacker) mode(name string, header *tar.Header) error {
	mode := header.FileInfo().Mode() &^ fs.ModeType
	if header.Typeflag == tar.TypeDir && os.Geteuid() != 0 {
		mode |= 0o700 // otherwise the owner could not remove its content
	}
	if err := u.root.Chmod(name, mode); err != nil {
		return err
	}
	return u.root.Chtimes(name, header.ModTime, header.ModTime)
}

// finish sets owner, mode and time of the directories, the deepest first.
func (u *unpacker) finish(ctx context.Context) error { return u.finishNode(ctx, ".", &u.tree) }

func (u *unpacker) finishNode(ctx context.Context, name string, n *node) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for base, child := range n.children {
		if err := u.finishNode(ctx, path.Join(name, base), child); err != nil {
			return err
		}
	}
	if n.header == nil {
		return nil
	}
	if err := errors.Join(u.setOwner(name, n.header), u.mode(name, n.header)); err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	return nil
}
