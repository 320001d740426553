// Package debian builds the workload image: well-known benchmark programs from packages of Debian, with the probe, linpack and a
// video clip to decode.
//
// mmdebstrap fetches and unpacks exactly the packages of a [Lock], which is embedded and has names, versions and checksums. The
// image keeps only the files that the programs need, about a third; the ELF headers name them. No program of the image runs during the
// build, so the image can be built for any architecture. The image contains only the packages and our own programs: the same
// lock and the same binary of Touchstone give the same digest. Our own programs depend on the compiler of the binary and have a
// layer of their own. The layer of packages is the same with every binary. The clip is encoded during the build, by an encoder
// for the host from the same list of packages; see clipSHA256.
//
// The [image.Cache] stores the image under a name with the digest of all inputs, so that [Build] finds it.
//
// The build refuses packages that differ from the lock, even with a valid signature.
package debian

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/touchstone-bench/touchstone/internal/image"
	"github.com/touchstone-bench/touchstone/internal/process"
	"github.com/touchstone-bench/touchstone/internal/workload/programs"
)

// builder is the version of the build. A new version gives images new names.
const builder = "2"

// Options select the image and the way to build it.
type Options struct {
	// Cache is the directory of the image cache; empty is image.CacheDir.
	Cache string
	// Arch is the architecture by Go's name; empty is the host's.
	Arch string
	// Lock is the list of packages; nil is the result of Current.
	Lock *Lock
	// Mirror is the URL of a mirror of Debian; empty is the host's mirror.
	Mirror string
	// Launcher starts processes. It may be nil if the image is in the cache.
	Launcher *process.Launcher
	// Progress receives each step that takes more than a moment. It may be nil.
	Progress func(step string)
}

// Image is the workload image.
type Image struct {
	builder *builderOf
	image   v1.Image
}

// Name is the name of the image in the cache.
func (i *Image) Name() string { return i.builder.name }

// OCI is the image. Its layers are files of the cache.
func (i *Image) OCI() v1.Image { return i.image }

// Pinned reports whether the image was built from the embedded list of packages.
func (i *Image) Pinned() bool {
	embedded, err := Embedded(i.builder.Arch)
	return err == nil && bytes.Equal(i.builder.lock.Format(), embedded.Format())
}

// Rootfs returns a directory with the file system of the image. The first call unpacks it: see image.Cache.Rootfs. A damaged image
// is built again.
func (i *Image) Rootfs(ctx context.Context) (string, error) {
	b := i.builder
	dir, err := b.cache.Rootfs(ctx, i.image)
	if !errors.Is(err, image.ErrDamaged) {
		return dir, err
	}
	b.progress("the image in the cache is damaged and is built again")
	if err := b.cache.Remove(ctx, b.name); err != nil {
		return "", err
	}
	replacement, err := Build(ctx, b.Options)
	if err != nil {
		return "", err
	}
	*i = *replacement
	return b.cache.Rootfs(ctx, i.image)
}

func (o *Options) setDefaults() {
	o.Arch = cmp.Or(o.Arch, runtime.GOARCH)
	if o.Mirror == "" {
		o.Mirror = hostMirror("/")
	}
}

func (o Options) progress(format string, args ...any) {
	if o.Progress != nil {
		o.Progress(fmt.Sprintf(format, args...))
	}
}

// Build returns the workload image from the cache, or builds it and stores it there. Of several processes one builds the image and the
// others wait. Errors contain advice.
func Build(ctx context.Context, o Options) (img *Image, err error) {
	defer func() {
		if err != nil {
			img, err = nil, fmt.Errorf("make the workload image: %w", err)
		}
	}()
	b, err := newBuilder(o)
	if err != nil {
		return nil, err
	}
	if _, err := image.Sweep(b.cache.Dir()); err != nil { // a killed build leaves a gigabyte
		o.progress("%v", err)
	}
	img, err = b.cached()
	if err != nil || img != nil {
		return img, err
	}
	dir, release, err := b.cache.Exclusive(ctx, b.name, func() { o.progress("waiting for another touchstone that builds the same image") })
	if err != nil {
		return nil, err
	}
	b.dir = dir
	if img, err = b.cached(); err == nil && img == nil { // no other process has built it meanwhile
		img, err = b.make(ctx)
	}
	return img, errors.Join(err, release())
}

// Cached returns the workload image if it is in the cache, else nil.
func Cached(o Options) (*Image, error) {
	b, err := newBuilder(o)
	if err != nil {
		return nil, fmt.Errorf("look for the workload image: %w", err)
	}
	return b.cached()
}

// builderOf builds one image.
type builderOf struct {
	Options
	cache *image.Cache
	dir   string // for temporary files
	lock  Lock
	probe []byte
	solve []byte // linpack
	name  string
}

// newBuilder collects the inputs of the image except for the packages, and determines its name.
func newBuilder(o Options) (*builderOf, error) {
	o.setDefaults()
	cache, err := image.OpenCache(o.Cache)
	if err != nil {
		return nil, err
	}
	b := &builderOf{Options: o, cache: cache}
	if b.Lock != nil {
		b.lock = *b.Lock
	} else if b.lock, err = Current(b.cache, b.Arch); err != nil {
		return nil, err
	}
	if b.lock.Arch != b.Arch {
		return nil, fmt.Errorf("the list of packages is for %s", b.lock.Arch)
	}
	return b, b.programs()
}

// programs collects Touchstone's programs, and determines the name of the image.
func (b *builderOf) programs() (err error) {
	if b.probe, err = image.Probe(b.Arch); err == nil {
		b.solve, err = linpack(b.Arch)
	}
	if err != nil {
		return err
	}
	hash := sha256.New()
	for _, part := range [][]byte{[]byte(builder), b.lock.Format(), b.probe, b.solve, []byte(clipSHA256)} {
		fmt.Fprintf(hash, "%d\n%s", len(part), part) // a hash never returns an error
	}
	b.name = image.OwnPrefix + b.Arch + "-" + hex.EncodeToString(hash.Sum(nil))[:12]
	return nil
}

// cached returns the image if it is in the cache, has the digest that the binary expects, and passes a quick check.
func (b *builderOf) cached() (*Image, error) {
	oci, err := b.cache.Get(b.name)
	switch {
	case errors.Is(err, image.ErrNoImage):
		return nil, nil
	case errors.Is(err, image.ErrDamaged):
		b.progress("the image in the cache is damaged and is built again")
		return nil, nil
	case err != nil:
		return nil, err
	}
	if err := b.check(oci); errors.Is(err, errOther) {
		b.progress("the cache has another image with the name %s, so the image is built again: %v", b.name, err)
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return &Image{b, oci}, nil
}

// Disk space for the build: a factor for the size of the packages (their files and their unpacked contents, twice during
// archiving), and a constant for the rest.
const (
	roomFactor = 12
	roomRest   = 256 << 20
)

// make builds the image.
func (b *builderOf) make(ctx context.Context) (*Image, error) {
	packages, clip, err := b.fetched(ctx)
	if err != nil {
		return nil, err
	}
	defer packages.close()
	b.progress("packing the image")
	oci, err := b.pack(packages, clip)
	if err != nil {
		return nil, err
	}
	if err := b.check(oci); err != nil {
		return nil, fmt.Errorf("check the new image: %w; %s", err,
			"the packages gave other files on this machine: load an image that was saved on another machine with touchstone image load FILE, and report it")
	}
	if oci, err = b.cache.Put(ctx, b.name, oci); err != nil {
		return nil, err
	}
	return &Image{b, oci}, nil
}

// fetched returns the packages of the list, and the file with the clip.
func (b *builderOf) fetched(ctx context.Context) (*packages, string, error) {
	room := int64(roomRest)
	for _, p := range b.lock.Packages {
		room += p.Size * roomFactor
	}
	f, err := b.fetcher(b.dir, room)
	if err != nil {
		return nil, "", err
	}
	b.progress("fetching %d packages of Debian %s for %s", len(b.lock.Packages), b.lock.Suite, b.Arch)
	p, err := b.fetchLocked(ctx, f, b.lock, "packages.tar")
	if err != nil {
		return nil, "", err
	}
	clip, err := b.clip(ctx, f, p)
	if err != nil {
		p.close()
		return nil, "", err
	}
	return p, clip, nil
}

// packages are fetched and unpacked packages.
type packages struct {
	tree *tree
	debs []*deb
}

func (p *packages) close() { _ = p.tree.file.Close() } // it is open for reading only

// fetchLocked fetches the packages of a lock. If the mirror no longer has one of them, it uses the archive of snapshots.
func (b *builderOf) fetchLocked(ctx context.Context, f *fetcher, lock Lock, filename string) (*packages, error) {
	r := request{arch: lock.Arch, mirror: b.Mirror}
	for _, p := range lock.Packages {
		r.packages = append(r.packages, p.Name+"="+p.Version)
	}
	file, err := f.fetch(ctx, r, filename)
	if vanishedErr := (*VanishedError)(nil); errors.As(err, &vanishedErr) {
		b.progress("%s; looking in the archive of snapshots", vanishedErr)
		r.mirror = snapshots + lock.snapshot().Format("20060102T150405Z")
		file, err = f.fetch(ctx, r, filename)
		if err != nil && ctx.Err() == nil {
			err = fmt.Errorf("%w, and the archive of snapshots failed too: %w; %s", vanishedErr, err,
				"name another mirror with touchstone image build --mirror URL, use the current packages with --update, or load a saved image: touchstone image load FILE")
		}
	}
	if errors.Is(err, ErrUnreachable) {
		err = fmt.Errorf("%w; name another with touchstone image build --mirror URL, or load an image that was saved on another machine: touchstone image load FILE", err)
	}
	if err != nil {
		return nil, err
	}
	p, err := readPackages(file)
	if err == nil {
		err = lock.compare(p.debs)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("check the packages from %s: %w", r.mirror, err), file.Close())
	}
	return p, nil
}

func readPackages(file *os.File) (*packages, error) {
	t, err := openTree(file)
	if err != nil {
		return nil, err
	}
	debs, err := readDebs(t)
	return &packages{t, debs}, err
}

// clip returns the file with the clip. All images have the same clip, so the cache keeps it beside the images.
func (b *builderOf) clip(ctx context.Context, f *fetcher, p *packages) (string, error) {
	cacheFile := filepath.Join(b.cache.Dir(), "clip-"+clipSHA256[:12]+".ivf")
	if sum, err := sumOf(cacheFile); err == nil && sum == clipSHA256 {
		return cacheFile, nil
	}
	if b.Arch != runtime.GOARCH {
		lock, err := Current(b.cache, runtime.GOARCH)
		if err != nil {
			return "", fmt.Errorf("encode the clip: %w", err)
		}
		b.progress("fetching the clip's encoder for %s", runtime.GOARCH)
		if p, err = b.fetchLocked(ctx, f, lock.onlyClip(), "encoder.tar"); err != nil {
			return "", err
		}
		defer p.close()
	}
	b.progress("encoding the clip, %d frames", programs.ClipFrames)
	draft := filepath.Join(b.dir, "clip.ivf")
	if err := makeClip(ctx, b.Launcher, p.tree, architectures[runtime.GOARCH], b.dir, draft); err != nil {
		return "", err
	}
	if err := os.Rename(draft, cacheFile); err != nil {
		return "", err
	}
	return cacheFile, nil
}

// pack builds the image with three layers: Debian's files, which change only with the list of packages; the clip and the lists of
// contents, which change with the build too; and Touchstone's programs, which change with the compiler of the binary.
func (b *builderOf) pack(p *packages, clip string) (v1.Image, error) {
	layers, err := b.packaged(p, clip)
	if err != nil {
		return nil, err
	}
	ours, err := b.ours()
	if err != nil {
		return nil, err
	}
	return assemble(b.Arch, append(layers, ours)...)
}

// packaged packs the layers that a pin describes.
func (b *builderOf) packaged(p *packages, clip string) ([]v1.Layer, error) {
	base, licences, err := debianLayer(p, architectures[b.Arch])
	if err != nil {
		return nil, err
	}
	extra := layout{}
	if err := extra.file(programs.ClipPath[1:], clip); err != nil {
		return nil, err
	}
	contents := describe(b.lock, p.debs, licences, builder, base)
	text, err := contents.encode()
	if err != nil {
		return nil, err
	}
	extra.text(contentsPath, 0o644, text)
	bill, err := sbom(contents)
	if err != nil {
		return nil, fmt.Errorf("write the bill of materials: %w", err)
	}
	extra.text(sbomPath, 0o644, bill)
	extra.parents()
	return inFiles(b.dir, base, extra)
}

// ours packs the layer of Touchstone's programs in memory, because it is small.
func (b *builderOf) ours() (v1.Layer, error) {
	l := layout{}
	l.text(path.Base(image.ProbePath), 0o755, string(b.probe))
	l.text("usr/bin/linpack", 0o755, string(b.solve))
	l.parents()
	return inMemory(l)
}

// debianLayer returns the skeleton with the files from packages, and the licences by package.
func debianLayer(p *packages, arch architecture) (layout, map[string][]string, error) {
	l := skeleton()
	c := newClosure(p.tree, arch, "/bin/sh")
	tools := wanted()
	for _, library := range tools.Libraries {
		tools.Files = append(tools.Files, path.Join("/usr/lib", arch.triplet, library))
	}
	for _, file := range tools.Files {
		if err := c.add(file); err != nil {
			return nil, nil, err
		}
	}
	// Debian's alternatives make this link during the installation of the package.
	l.link(path.Join("usr/lib", arch.triplet, "libopenblas.so.0"), "openblas-pthread/libopenblas.so.0")
	l.link("etc/os-release", "../usr/lib/os-release")
	ownerOf := owners(p.debs)
	var sources []string
	for _, name := range c.list() {
		pkg := ownerOf[name]
		if p.tree.nodes[name].header.Typeflag == tar.TypeReg {
			if pkg == "" {
				return nil, nil, fmt.Errorf("%s: %w in any package's list of files", name, fs.ErrNotExist)
			}
			sources = append(sources, pkg)
		}
		if err := l.packaged(p.tree, pkg, name); err != nil {
			return nil, nil, err
		}
	}
	slices.Sort(sources)
	licences, err := l.addLicences(p.tree, slices.Compact(sources))
	if err != nil {
		return nil, nil, err
	}
	l.parents()
	return l, licences, nil
}
