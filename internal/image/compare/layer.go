package compare

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/klauspost/compress/zstd"
)

// The errors of an image that exceeds the limits.
var (
	errTooLarge  = errors.New("the image has too many bytes")
	errTooMany   = errors.New("the image has too many files")
	errLongNames = errors.New("the names in the image are too long")
)

// longestName is the longest name or target of a link in bytes: PATH_MAX of Linux. No engine could unpack a longer one.
const longestName = 4096

// kind is the type of an entry.
type kind uint8

// The types of entries. A whiteout removes a file of the layers below, an opaque directory all files below it.
const (
	unknown kind = iota
	regular
	directory
	symlink
	hardlink
	charDev
	blockDev
	fifo
	whiteout
	opaque
)

func (k kind) String() string {
	return [...]string{
		"unknown", "file", "directory", "symbolic link", "hard link", "character device", "block device", "FIFO", "whiteout", "opaque",
	}[k]
}

// kinds are the types of entries in an archive.
var kinds = map[byte]kind{
	tar.TypeReg: regular, tar.TypeDir: directory, tar.TypeSymlink: symlink, tar.TypeLink: hardlink,
	tar.TypeChar: charDev, tar.TypeBlock: blockDev, tar.TypeFifo: fifo, tar.TypeGNUSparse: regular,
}

// entry is a file of a layer. It is small, because an image can have a million of them.
type entry struct {
	kind        kind
	arch        string // of an ELF file; no copy
	target      string // of a link, or the numbers of a device
	uid, gid    int
	size        int64
	seconds     int64 // time of modification
	nanoseconds int32
	mode        int16
	content     sum
	attributes  string // the digest of the extended attributes; empty without any
}

// sum is the first half of a SHA-256. A collision still takes 2^64 attempts.
type sum [sha256.Size / 2]byte

// listing is the files of a layer by name.
type listing map[string]entry

// The names of whiteouts in layers.
const (
	whiteoutPrefix = ".wh."
	opaqueName     = ".wh..wh..opq"
)

// progressStep is the number of bytes between two reports of progress.
const progressStep = 64 << 20

// readLayer reads a layer to its end and verifies that its uncompressed content has the digest want. It takes the layer's bytes,
// entries and names from left.
func readLayer(ctx context.Context, layer v1.Layer, want v1.Hash, left *Limits, progress func(bytes int64)) (listing, *Layer, error) {
	content, err := uncompressed(layer)
	if err != nil {
		return nil, nil, fmt.Errorf("open it: %w", err)
	}
	defer func() { _ = content.Close() }() // it was only read
	stream := &meter{ctx: ctx, r: content, hash: sha256.New(), left: left, progress: progress}
	r := &reader{tar: tar.NewReader(stream), stream: stream, left: left, files: listing{}, about: &Layer{DiffID: want.String(), ELF: map[string]int{}}, hash: sha256.New(), buffer: make([]byte, 64<<10)}
	if err := r.all(); err != nil {
		return nil, nil, err
	}
	if _, err := io.Copy(io.Discard, stream); err != nil { // the padding of tar
		return nil, nil, fmt.Errorf("read it: %w", err)
	}
	if got := hex.EncodeToString(stream.hash.Sum(nil)); got != want.Hex {
		return nil, nil, fmt.Errorf("its content has the digest sha256:%s instead of %s: it is damaged", got, want)
	}
	return r.files, r.about, nil
}

// zstdWindow is the largest window of zstd in bytes. The format allows 4 TiB, and a decoder needs as much memory as the window. The
// command zstd makes larger windows only with --long above 27.
const zstdWindow = 128 << 20

// uncompressed opens the uncompressed content of a layer. The first bytes decide about the compression, not the media type.
func uncompressed(layer v1.Layer) (io.ReadCloser, error) {
	raw, err := layer.Compressed()
	if err != nil {
		return nil, err
	}
	buffered := bufio.NewReader(raw)
	magic, err := buffered.Peek(4)
	if err != nil || !bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}) { // the library reads the other formats; RFC 8878 section 3.1.1
		if err := raw.Close(); err != nil {
			return nil, err
		}
		return layer.Uncompressed()
	}
	decoder, err := zstd.NewReader(buffered, zstd.WithDecoderMaxWindow(zstdWindow), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	return &zstdReader{decoder.IOReadCloser(), raw}, nil
}

type zstdReader struct {
	io.ReadCloser
	raw io.Closer
}

func (z *zstdReader) Close() error { return errors.Join(z.ReadCloser.Close(), z.raw.Close()) }

// meter hashes and counts a stream. It fails when the context ends or the limit is exceeded.
type meter struct {
	ctx        context.Context
	r          io.Reader
	hash       hash.Hash
	left       *Limits
	read, next int64
	progress   func(bytes int64)
}

func (m *meter) Read(p []byte) (int, error) {
	if m.ctx.Err() != nil {
		return 0, context.Cause(m.ctx)
	}
	n, err := m.r.Read(p)
	if m.left.Bytes -= int64(n); m.left.Bytes < 0 {
		return 0, errTooLarge
	}
	_, _ = m.hash.Write(p[:n]) // a hash never fails
	if m.read += int64(n); m.read >= m.next+progressStep {
		m.next = m.read
		m.progress(m.read)
	}
	return n, err
}

// reader reads the entries of a layer.
type reader struct {
	tar    *tar.Reader
	stream *meter
	left   *Limits
	files  listing
	about  *Layer

	// These are used again for each file.
	hash   hash.Hash
	buffer []byte
	digest [sha256.Size]byte
}

func (r *reader) all() error {
	for {
		header, err := r.tar.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read the archive after %d entries: %w", r.about.Entries, err)
		}
		if header.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		if err := r.entry(header); err != nil {
			return fmt.Errorf("%.200q: %w", header.Name, err)
		}
	}
	for _, e := range r.files {
		if e.kind != regular {
			continue
		}
		r.about.Files++
		r.about.Size += e.size
		if e.arch != "" {
			r.about.ELF[e.arch]++
		}
	}
	return nil
}

func (r *reader) entry(header *tar.Header) error {
	r.about.Entries++
	if r.left.Entries--; r.left.Entries < 0 {
		return errTooMany
	}
	if len(header.Name) > longestName || len(header.Linkname) > longestName {
		return fmt.Errorf("its name or its target has more than %d bytes", longestName)
	}
	if r.left.Names -= int64(len(header.Name) + len(header.Linkname)); r.left.Names < 0 {
		return errLongNames
	}
	name, err := local(header.Name)
	if err != nil {
		return err
	}
	e := entry{
		kind: kinds[header.Typeflag], mode: int16(header.Mode & 0o7777), uid: header.Uid, gid: header.Gid,
		seconds: header.ModTime.Unix(), nanoseconds: int32(header.ModTime.Nanosecond()), attributes: attributes(header.PAXRecords),
	}
	switch e.kind {
	case unknown:
		return fmt.Errorf("the entry has the unknown type %q", header.Typeflag)
	case regular:
		if err := r.regular(&e, header); err != nil {
			return err
		}
	case symlink:
		e.target = header.Linkname
	case hardlink:
		if e.target, err = local(header.Linkname); err != nil {
			return fmt.Errorf("the target %.200q of the link: %w", header.Linkname, err)
		}
	case charDev, blockDev:
		e.target = fmt.Sprintf("%d:%d", header.Devmajor, header.Devminor)
	case directory, fifo, whiteout, opaque:
	}
	if base := path.Base(name); base == opaqueName {
		e = entry{kind: opaque}
	} else if victim, ok := strings.CutPrefix(base, whiteoutPrefix); ok {
		if victim == "" || victim == "." || victim == ".." {
			return errors.New("the whiteout has no name")
		}
		e = entry{kind: whiteout}
	}
	if _, duplicate := r.files[name]; duplicate {
		r.about.Duplicates++
	}
	r.files[name] = e
	return nil
}

// local returns a name of a layer relative to the root. In some images names begin with "/" or "./".
func local(name string) (string, error) {
	cleaned := path.Clean(strings.TrimLeft(name, "/"))
	if name == "" || !filepath.IsLocal(cleaned) {
		return "", errors.New("the name leads out of the image's root")
	}
	return cleaned, nil
}

// regular reads the content of a file. The holes of a sparse file count as if the archive contained them: they take as long to hash.
func (r *reader) regular(e *entry, header *tar.Header) error {
	if header.Size > r.left.Bytes {
		return errTooLarge
	}
	start := r.stream.read
	r.hash.Reset()
	var head [headerBytes]byte
	n, err := io.ReadFull(r.tar, head[:])
	if err != nil && !errors.Is(err, io.EOF) && (n < int(min(header.Size, headerBytes)) || !errors.Is(err, io.ErrUnexpectedEOF)) {
		return fmt.Errorf("read its content: %w", err)
	}
	_, _ = r.hash.Write(head[:n]) // a hash never fails
	rest, err := io.CopyBuffer(r.hash, struct{ io.Reader }{r.tar}, r.buffer)
	if err != nil {
		return fmt.Errorf("read its content: %w", err)
	}
	e.size, e.arch = int64(n)+rest, architecture(head[:n])
	copy(e.content[:], r.hash.Sum(r.digest[:0]))
	if r.left.Bytes -= max(0, e.size-(r.stream.read-start)); r.left.Bytes < 0 {
		return errTooLarge
	}
	return nil
}

// xattrPrefix begins the PAX records of extended attributes.
const xattrPrefix = "SCHILY.xattr."

// attributes returns the digest of an entry's extended attributes, such as file capabilities; empty without any.
func attributes(records map[string]string) string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(records)) {
		if strings.HasPrefix(name, xattrPrefix) {
			fmt.Fprintf(&text, "%q=%q\n", name, records[name])
		}
	}
	if text.Len() == 0 {
		return ""
	}
	digest := sha256.Sum256([]byte(text.String()))
	return string(digest[:])
}
