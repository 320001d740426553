package debian

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/touchstone-bench/touchstone/internal/image"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// update fetches the packages of all architectures, unlike the flag in other packages.
var update = flag.Bool("update", false, "build the pinned layers for all architectures, and write their digests")

// The binary has the digests of the layers for each list of packages. With -update the test builds the layers and writes the digests.
// TestRealBuildIsReproducible compares them with a build for the host's architecture.
//
// Invariant image-digest.
func TestPins(t *testing.T) {
	for _, arch := range Architectures() {
		t.Run(arch, func(t *testing.T) {
			lock, err := Embedded(arch)
			must.Do(t, err)
			if *update {
				writePin(t, lock)
				return
			}
			p, err := embeddedPin(arch)
			must.Do(t, err)
			if p.lock != lock.sum() {
				t.Errorf("the digests for %s belong to another list of packages; build the layers with make pins", arch)
			}
			if file, err := locks.ReadFile(pinFile(arch)); err != nil || !bytes.Equal(p.format(), file) {
				t.Errorf("the file %s has another format, %v", pinFile(arch), err)
			}
		})
	}
}

func writePin(t *testing.T, lock Lock) {
	t.Helper()
	launcher := fetching(t)
	cache, err := image.OpenCache(t.TempDir())
	must.Do(t, err)
	copyClip(t, cache.Dir())
	b := &builderOf{Options: Options{Arch: lock.Arch, Lock: &lock, Launcher: launcher, Progress: func(s string) { t.Log(s) }}, cache: cache, lock: lock, dir: t.TempDir()}
	b.setDefaults()
	download, clip, err := b.fetched(t.Context())
	must.Do(t, err)
	defer download.close()
	layers, err := b.packaged(download, clip)
	must.Do(t, err)
	p, err := pinOf(lock, layers)
	must.Do(t, err)
	must.Do(t, os.WriteFile(filepath.FromSlash(pinFile(lock.Arch)), p.format(), 0o644))
}

func TestParsePin(t *testing.T) {
	file, err := locks.ReadFile(pinFile("amd64"))
	must.Do(t, err)
	text := string(file)
	for _, bad := range []string{
		"", "touchstone-pin 2" + strings.TrimPrefix(text, pinHead), strings.Replace(text, "lock ", "list ", 1), strings.Replace(text, "lock ", "lock x", 1),
		strings.Replace(text, "layer", "part", 1), strings.Replace(text, "sha256:", "", 1), text + "layer\n", strings.TrimSuffix(text, "\n") + "x\n",
	} {
		if p, err := parsePin(bad); err == nil {
			t.Errorf("%q is read as %+v", bad, p)
		}
	}
}

// changed is an image of an attacker, or of another version, for an architecture.
func changed(t *testing.T, arch string) v1.Image {
	t.Helper()
	evil := skeleton()
	evil.text("probe", 0o755, "#!/bin/sh\nexit 0\n")
	layer, err := inMemory(evil)
	must.Do(t, err)
	img, err := assemble(arch, layer)
	must.Do(t, err)
	return img
}

// An archive with the name of the workload image does not become the workload image.
//
// Invariant image-digest: Only an image with the digest in the binary becomes the workload image; a name in an archive proves nothing.
func TestArchiveCannotBeTheWorkloadImage(t *testing.T) {
	for _, arch := range Architectures() {
		o := Options{Cache: t.TempDir(), Arch: arch}
		b, err := newBuilder(o)
		if err != nil {
			t.Skip(err) // without cross compilers
		}
		file := saved(t, b.name, changed(t, arch))
		name, _, err := b.cache.Import(t.Context(), file, Naming(""))
		if err == nil || !strings.Contains(err.Error(), "calls itself "+b.name) || !strings.Contains(err.Error(), "--name") {
			t.Errorf("the archive has the name %q, %v", name, err)
		}
		if _, _, err := b.cache.Import(t.Context(), file, Naming(b.name)); err == nil || !strings.Contains(err.Error(), "choose another name") {
			t.Errorf("with --name %s: %v", b.name, err)
		}
		if name, _, err = b.cache.Import(t.Context(), file, Naming("mine")); err != nil || name != "mine" {
			t.Errorf("as an own image it has the name %q, %v", name, err)
		}
		if img, err := Cached(o); img != nil || err != nil {
			t.Errorf("the cache has the workload image %v, %v", img, err)
		}
		if entries, err := b.cache.List(); err != nil || len(entries) != 1 {
			t.Errorf("the cache has %+v, %v", entries, err)
		}
	}
}

// An image in the cache is used only with the digest of the binary, whatever its name.
//
// Invariant image-digest.
func TestCachedImageIsChecked(t *testing.T) {
	var steps []string
	o := Options{Cache: t.TempDir(), Progress: func(step string) { steps = append(steps, step) }}
	b, err := newBuilder(o)
	must.Do(t, err)
	_, err = b.cache.Put(t.Context(), b.name, changed(t, b.Arch))
	must.Do(t, err)
	img, err := Cached(o)
	if img != nil || err != nil {
		t.Fatalf("another image is used: %v, %v", img, err)
	}
	if text := strings.Join(steps, "\n"); !strings.Contains(text, b.name) || !strings.Contains(text, "instead of sha256:") {
		t.Errorf("the steps are %q", text)
	}
	// An image of a list that is not embedded has no digest in the binary.
	lock := b.lock
	lock.Packages = lock.Packages[1:]
	o.Lock = &lock
	b, err = newBuilder(o)
	must.Do(t, err)
	_, err = b.cache.Put(t.Context(), b.name, changed(t, b.Arch))
	must.Do(t, err)
	if img, err = Cached(o); err != nil || img == nil || img.Pinned() {
		t.Errorf("the image of another list: %v, %v", img, err)
	}
}

// The expected digest changes with each part of the image.
func TestExpectedDigest(t *testing.T) {
	b, err := newBuilder(Options{Cache: t.TempDir()})
	must.Do(t, err)
	names := map[v1.Hash]string{}
	for _, change := range []struct {
		name string
		do   func()
	}{
		{"nothing", func() {}},
		{"probe", func() { b.probe = append(bytes.Clone(b.probe), 0) }},
		{"linpack", func() { b.solve = append(bytes.Clone(b.solve), 0) }},
	} {
		change.do()
		digest, err := b.expected()
		if err != nil || digest == nil {
			t.Fatalf("after a change of %s: %v, %v", change.name, digest, err)
		}
		if rival, ok := names[*digest]; ok {
			t.Errorf("a change of %s gives the digest of %s", change.name, rival)
		}
		names[*digest] = change.name
	}
}

// saved writes an image to an archive that claims a name.
func saved(t *testing.T, name string, img v1.Image) string {
	t.Helper()
	var out bytes.Buffer
	must.Do(t, image.Save(t.Context(), &out, name, img))
	file := filepath.Join(t.TempDir(), "image.tar")
	must.Do(t, os.WriteFile(file, out.Bytes(), 0o600))
	return file
}
