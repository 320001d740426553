package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/must"
)

func forPlatform(t *testing.T, image v1.Image, arch string) v1.Image {
	t.Helper()
	config, err := image.ConfigFile()
	must.Do(t, err)
	config = config.DeepCopy()
	config.Architecture = arch
	image, err = mutate.ConfigFile(image, config)
	must.Do(t, err)
	return image
}

// writeLayout writes an OCI layout with images in a nested index or in its own index.
func writeLayout(t *testing.T, nested bool, images ...v1.Image) string {
	t.Helper()
	dir := t.TempDir()
	path, err := layout.Write(dir, empty.Index)
	must.Do(t, err)
	index := v1.ImageIndex(empty.Index)
	for _, image := range images {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image})
		if !nested {
			err = errors.Join(err, path.AppendImage(image))
		}
	}
	if nested {
		err = path.AppendIndex(index)
	}
	must.Do(t, err)
	return dir
}

func tarOf(t *testing.T, dir string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	must.Do(t, w.AddFS(os.DirFS(dir)), w.Close())
	return b.Bytes()
}

func zipped(t *testing.T, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(content)
	must.Do(t, err, w.Close())
	return b.Bytes()
}

func written(t *testing.T, content []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "image")
	must.Do(t, os.WriteFile(file, content, 0o600))
	return file
}

func dockerSaved(t *testing.T, images ...v1.Image) []byte {
	t.Helper()
	tagged := map[name.Tag]v1.Image{}
	for i, image := range images {
		tag, err := name.NewTag("example.org/image:" + string(rune('a'+i)))
		must.Do(t, err)
		tagged[tag] = image
	}
	var b bytes.Buffer
	must.Do(t, tarball.MultiWrite(tagged, &b))
	return b.Bytes()
}

func TestLoad(t *testing.T) {
	host := forPlatform(t, made(t, archive(t, regularFile("host")), archive(t, regularFile("two"))), runtime.GOARCH)
	s390x := forPlatform(t, made(t, archive(t, regularFile("other"))), "s390x")
	ppc64le := forPlatform(t, made(t, archive(t, regularFile("third"))), "ppc64le")
	var buffer bytes.Buffer
	must.Do(t, Save(t.Context(), &buffer, "mine", host))
	tests := []struct{ name, path, want string }{
		{"layout", writeLayout(t, false, host), "host"},
		{"layout of several", writeLayout(t, false, s390x, host), "host"},
		{"layout with an index", writeLayout(t, true, s390x, host), "host"},
		{"layout of another platform alone", writeLayout(t, true, s390x), "other"},
		{"archive of a layout", written(t, tarOf(t, writeLayout(t, true, s390x, host))), "host"},
		{"compressed archive of a layout", written(t, zipped(t, tarOf(t, writeLayout(t, false, host)))), "host"},
		{"docker save", written(t, dockerSaved(t, host)), "host"},
		{"docker save, compressed", written(t, zipped(t, dockerSaved(t, host))), "host"},
		{"saved", written(t, buffer.Bytes()), "host"},
		{"saved, compressed", written(t, zipped(t, buffer.Bytes())), "host"},
		{"of other platforms", writeLayout(t, true, s390x, ppc64le), "error: it contains no image for linux/" + runtime.GOARCH + ", only for linux/s390x, linux/ppc64le"},
		{"empty layout", writeLayout(t, false), "error: it contains no image"},
		{"several of docker", written(t, dockerSaved(t, host, s390x)), "error: a single image"},
		{"not an archive", written(t, []byte("what is this?\n"+strings.Repeat("x", 2000))), "error: not an archive of an image"},
		{"empty file", written(t, nil), "error: not an archive of an image"},
		{"another archive", written(t, archive(t, regularFile("file"))), "error: neither oci-layout nor manifest.json"},
		{"cut off", written(t, buffer.Bytes()[:buffer.Len()/2]), "error: damaged"},
		{"compressed and cut off", written(t, zipped(t, buffer.Bytes())[:buffer.Len()/8]), "error: damaged"},
		{"damaged compression", written(t, []byte("\x1f\x8bnot gzip at all")), "error: damaged"},
		{"directory without a layout", t.TempDir(), "error: not an OCI layout"},
		{"nothing", filepath.Join(t.TempDir(), "nothing"), "error: no such file, directory or image in the cache"},
		{"name with a NUL", "a\x00b", "error: a\x00b"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := testCache(t)
			image, release, err := c.Load(t.Context(), test.path)
			if want, ok := strings.CutPrefix(test.want, "error: "); ok {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %q in it", err, want)
				}
				wantNothing(t, c)
				return
			}
			must.Do(t, err)
			dir, err := c.Rootfs(t.Context(), image)
			must.Do(t, err)
			if _, err := os.Stat(filepath.Join(dir, test.want)); err != nil {
				t.Error(err)
			}
			layers, err := image.Layers()
			must.Do(t, err)
			for _, l := range layers { // a registry must not hold large layers in memory
				r, err := l.Compressed()
				must.Do(t, err)
				if _, ok := r.(*os.File); !ok {
					t.Errorf("a layer is a %T, not a file", r)
				}
				must.Do(t, r.Close())
			}
			must.Do(t, release())
			wantNothing(t, c)
		})
	}
}

// Save and Import keep the digest. The name in the archive does not become the name in the cache.
func TestSaveAndImport(t *testing.T) {
	image := made(t, archive(t, regularFile("file")), archive(t, regularFile("file")))
	for _, tag := range []string{OwnPrefix + "amd64-0123", "other"} {
		var one, two bytes.Buffer
		must.Do(t, Save(t.Context(), &one, tag, image), Save(t.Context(), &two, tag, image))
		if !bytes.Equal(one.Bytes(), two.Bytes()) {
			t.Error("two archives of an image differ")
		}
		c, file := testCache(t), written(t, one.Bytes())
		want := "loaded-" + digest(t, image).Hex[:12]
		name, entry, err := c.Import(t.Context(), file, Named(""))
		if err != nil || name != want {
			t.Fatalf("name %q, %v; want %q", name, err, want)
		}
		wantConsistentDigest(t, entry, image)
		if name, _, err = c.Import(t.Context(), file, Named("mine")); err != nil || name != "mine" {
			t.Errorf("name %q, %v; want mine", name, err)
		}
		if img, _, err := c.Load(t.Context(), "mine"); err != nil || digest(t, img) != digest(t, image) {
			t.Errorf("by its name: %v", err)
		}
		if name, _, err = c.Import(t.Context(), file, Named(OwnPrefix+"amd64-0123")); err == nil || !strings.Contains(err.Error(), "choose another name") {
			t.Errorf("the name of a built image: %q, %v", name, err)
		}
		var claimed string
		naming := func(_ v1.Image, claim string) (string, error) {
			claimed = claim
			return "", errors.New("refused")
		}
		if _, _, err = c.Import(t.Context(), file, naming); err == nil || claimed != tag {
			t.Errorf("the archive claims the name %q, %v; want %q", claimed, err, tag)
		}
		if entries, err := c.List(); err != nil || len(entries) != 2 {
			t.Errorf("the cache has %+v, %v", entries, err)
		}
	}
	deadCtx, stop := context.WithCancelCause(t.Context())
	stop(errors.New("enough"))
	if err := Save(deadCtx, &bytes.Buffer{}, "image", image); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("stopped: %v", err)
	}
}

// All versions of Docker load the archive through its manifest.json.
func TestDockerReadsSavedImage(t *testing.T) {
	image := made(t, archive(t, regularFile("file")))
	var b bytes.Buffer
	must.Do(t, Save(t.Context(), &b, "image", image))
	file := written(t, b.Bytes())
	img, err := tarball.ImageFromPath(file, nil)
	must.Do(t, err)
	want, err1 := image.ConfigName()
	got, err2 := img.ConfigName()
	if err := errors.Join(err1, err2); err != nil || got != want {
		t.Errorf("the image's ID is %v, want %v (%v)", got, want, err)
	}
	if _, err := unpacked(t, img, defaultLimits); err != nil {
		t.Error(err)
	}
}

// An archive of an index has an image for each architecture in both formats, and in the OCI layout the name that containerd, Podman and Docker use.
func TestSaveTagged(t *testing.T) {
	index, digests := v1.ImageIndex(empty.Index), map[string]v1.Hash{}
	for _, arch := range []string{"amd64", "arm64"} {
		img := forPlatform(t, made(t, archive(t, regularFile(arch))), arch)
		digest, err := img.Digest()
		must.Do(t, err)
		digests[arch] = digest
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}}})
	}
	tag, err := name.NewTag("localhost/touchstone:v1")
	must.Do(t, err)
	date := time.Unix(1_800_000_000, 0)
	var b, twin bytes.Buffer
	must.Do(t, SaveTagged(t.Context(), &b, tag, date, index), SaveTagged(t.Context(), &twin, tag, date, index))
	if !bytes.Equal(b.Bytes(), twin.Bytes()) {
		t.Error("two archives of one index differ")
	}
	file, cache := written(t, b.Bytes()), testCache(t)
	for arch, want := range digests {
		img, release, err := cache.Open(t.Context(), file, arch)
		must.Do(t, err)
		got, err := img.Digest()
		if err := errors.Join(err, release()); err != nil || got != want {
			t.Errorf("the layout has the image %v for %s, want %v (%v)", got, arch, want, err)
		}
		docker, err := name.NewTag("localhost/touchstone:v1-" + arch)
		must.Do(t, err)
		img, err = tarball.ImageFromPath(file, &docker)
		must.Do(t, err)
		if text, err := ReadFile(img, arch, 100); err != nil || string(text) != "content" {
			t.Errorf("the file of Docker's image for %s: %q, %v", arch, text, err)
		}
	}
	top := map[string]string{}
	for r := tar.NewReader(&b); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must.Do(t, err)
		if !header.ModTime.Equal(date) {
			t.Errorf("%s has the time %v", header.Name, header.ModTime)
		}
		if header.Name == "index.json" {
			manifest, err := v1.ParseIndexManifest(r)
			must.Do(t, err)
			top = manifest.Manifests[0].Annotations
		}
	}
	if want := map[string]string{containerdName: tag.Name(), refName: "v1"}; !maps.Equal(top, want) {
		t.Errorf("the index is called %v, want %v", top, want)
	}
}

// An archive of one image has its whole name in both formats, and Docker's registry by the name that container engines have for it.
func TestSaveTaggedImage(t *testing.T) {
	img := made(t, archive(t, regularFile("a")))
	tag, err := name.NewTag("bench/touchstone:v1")
	must.Do(t, err)
	var b bytes.Buffer
	must.Do(t, SaveTagged(t.Context(), &b, tag, Epoch(), img))
	file := written(t, b.Bytes())
	docker, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(file) })
	must.Do(t, err)
	if want := []string{"docker.io/bench/touchstone:v1"}; !slices.Equal(docker[0].RepoTags, want) {
		t.Errorf("Docker's names are %v, want %v", docker[0].RepoTags, want)
	}
	got, release, err := testCache(t).Open(t.Context(), file, runtime.GOARCH)
	must.Do(t, err)
	digest, err := got.Digest()
	must.Do(t, err, release())
	if want, err := img.Digest(); err != nil || digest != want {
		t.Errorf("the layout has the image %v, want %v (%v)", digest, want, err)
	}
}

// Images of agents for several architectures are an index, and one image is itself.
func TestAgents(t *testing.T) {
	amd, arm := forPlatform(t, made(t, archive(t, regularFile("amd64"))), "amd64"), forPlatform(t, made(t, archive(t, regularFile("arm64"))), "arm64")
	if one, err := Agents(amd); err != nil || one != Artifact(amd) {
		t.Errorf("one image is %v, %v", one, err)
	}
	if _, err := Agents(amd, arm, amd); err == nil || !strings.Contains(err.Error(), "two programs are for amd64") {
		t.Errorf("two images of one architecture: %v", err)
	}
	artifact, err := Agents(amd, arm)
	must.Do(t, err)
	manifest, err := artifact.(v1.ImageIndex).IndexManifest()
	must.Do(t, err)
	var platforms []string
	for _, d := range manifest.Manifests {
		platforms = append(platforms, d.Platform.String())
	}
	if want := []string{"linux/amd64", "linux/arm64"}; !slices.Equal(platforms, want) {
		t.Errorf("the index has %v, want %v", platforms, want)
	}
}

func TestReadFile(t *testing.T) {
	image := made(t, archive(t, regularFile("a"), tar.Header{Typeflag: tar.TypeSymlink, Name: "l", Linkname: "a"}), archive(t, regularFile("./b")))
	for _, name := range []string{"a", "b"} {
		if text, err := ReadFile(image, name, 100); err != nil || string(text) != "content" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	for name, limit := range map[string]int64{"c": 100, "l": 100, "b": 3} {
		if text, err := ReadFile(image, name, limit); err == nil {
			t.Errorf("%s: %q, want an error", name, text)
		}
	}
}

// Touchstone reads a user's layout as root. It must not read files outside of the layout, block, or read large files into memory.
func TestLoadRefuses(t *testing.T) {
	host := forPlatform(t, made(t, archive(t, regularFile("file"))), runtime.GOARCH)
	manifest, err := host.Manifest()
	must.Do(t, err)
	link := func(destination string) func(string) error {
		return func(file string) error { return errors.Join(os.Remove(file), os.Symlink(destination, file)) }
	}
	pipe := func(file string) error { return errors.Join(os.Remove(file), unix.Mkfifo(file, 0o600)) }
	extend := func(file string) error { return os.Truncate(file, 32<<30) }
	enlarge := func(file string) error { return os.Truncate(file, maxJSON+1) }
	index, config, layer := "index.json", blobName(manifest.Config.Digest), blobName(manifest.Layers[0].Digest)
	for _, test := range []struct {
		name   string
		file   string
		damage func(string) error
		want   string
		packed string // the error for an archive; empty if an archive cannot have the fault
	}{
		{"endless index", index, link("/dev/zero"), "not a regular file", "not a regular file"},
		{"index elsewhere", index, link("../index.json"), "not a regular file", "not a regular file"},
		{"index that is a pipe", index, pipe, "not a regular file", "not a regular file"},
		{"huge index", index, extend, "larger than 4 MiB", ""},
		{"large index", index, enlarge, "larger than 4 MiB", "larger than 4 MiB"},
		{"large manifest", blobName(digest(t, host)), enlarge, "larger than 4 MiB", "larger than 4 MiB"},
		{"huge configuration", config, extend, "larger than 4 MiB", ""},
		{"large configuration", config, enlarge, "larger than 4 MiB", "larger than 4 MiB"},
		{"endless configuration", config, link("/dev/zero"), "not a regular file", "not a regular file"},
		{"layer elsewhere", layer, link("/etc/passwd"), "not a regular file", "not a regular file"},
		{"layer that is a pipe", layer, pipe, "not a regular file", "not a regular file"},
		{"huge layer", layer, extend, "damaged", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := writeLayout(t, false, host)
			must.Do(t, test.damage(filepath.Join(dir, test.file)))
			wantRefused(t, dir, test.want)
			if test.packed != "" {
				wantRefused(t, written(t, tarOfAll(t, dir)), test.packed)
			}
		})
	}
	t.Run("pipe", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "pipe")
		must.Do(t, unix.Mkfifo(file, 0o600))
		wantRefused(t, file, "not a regular file")
	})
	t.Run("blobs elsewhere", func(t *testing.T) {
		dir, donor := writeLayout(t, false, host), writeLayout(t, false, host)
		must.Do(t, os.RemoveAll(filepath.Join(dir, "blobs")), os.Symlink(filepath.Join(donor, "blobs"), filepath.Join(dir, "blobs")))
		wantRefused(t, dir, "escapes")
	})
	t.Run("docker's manifest elsewhere", func(t *testing.T) {
		wantRefused(t, written(t, archive(t, tar.Header{Typeflag: tar.TypeSymlink, Name: "manifest.json", Linkname: "/dev/zero"})), "not a regular file")
	})
}

func wantRefused(t *testing.T, file, want string) {
	t.Helper()
	c := testCache(t)
	if _, _, err := c.Load(t.Context(), file); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q in it", err, want)
	}
	wantNothing(t, c)
}

// tarOfAll packs a directory with links and pipes.
func tarOfAll(t *testing.T, dir string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		header, err := tar.FileInfoHeader(info, "/dev/zero")
		if err != nil {
			return err
		}
		if header.Name, err = filepath.Rel(dir, name); err != nil {
			return err
		}
		if err := w.WriteHeader(header); err != nil || !info.Mode().IsRegular() {
			return err
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		_, err = w.Write(content)
		return err
	})
	must.Do(t, err, w.Close())
	return b.Bytes()
}

// The manifest and the configuration of docker save must not exceed the limit, because the library reads them into memory.
func TestDockerSavedIsBounded(t *testing.T) {
	manifest := `[{"Config":"c.json","Layers":[]}]`
	for want, files := range map[string][]struct{ name, text string }{
		"manifest.json is larger":                    {{"manifest.json", strings.Repeat(" ", maxJSON) + manifest}},
		"c.json is larger":                           {{"c.json", strings.Repeat(" ", maxJSON+1)}, {"manifest.json", manifest}},
		"c.json in the archive: file does not exist": {{"manifest.json", manifest}},
	} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, f := range files {
			err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f.name, Size: int64(len(f.text))})
			_, err2 := w.Write([]byte(f.text))
			must.Do(t, err, err2)
		}
		must.Do(t, w.Close())
		wantRefused(t, written(t, b.Bytes()), want)
	}
}

// A small archive can decompress to unlimited size, so reading must stop.
func TestEndlessArchive(t *testing.T) {
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	w := tar.NewWriter(zip)
	err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "zeros", Size: 8 << 20})
	_, err2 := io.CopyN(w, zeros{}, 8<<20)
	must.Do(t, err, err2, w.Close(), zip.Close())
	bomb := archiveFile{t.Context(), written(t, b.Bytes()), limits{bytes: 4 << 20}}
	if _, _, err := bomb.kind(); !errors.Is(err, errTooLarge) || errors.Is(err, ErrDamaged) {
		t.Errorf("%v, want %v", err, errTooLarge)
	}
}

func TestExpandKeepsReserve(t *testing.T) {
	source := archiveFile{t.Context(), written(t, tarOf(t, writeLayout(t, false, made(t, archive(t, regularFile("file")))))), limits{1 << 30, 100, wholeDisk}}
	if err := source.expand(t.TempDir()); !errors.Is(err, errNoSpace) {
		t.Errorf("%v, want %v", err, errNoSpace)
	}
	source.limits = limits{bytes: 1 << 30, entries: 3}
	if err := source.expand(t.TempDir()); !errors.Is(err, errTooMany) {
		t.Errorf("%v, want %v", err, errTooMany)
	}
}

// expand ignores files that do not belong to a layout.
func TestExpandIgnoresOtherFiles(t *testing.T) {
	dir := writeLayout(t, false, made(t, archive(t, regularFile("file"))))
	want := slices.Sorted(maps.Keys(filesIn(t, dir)))
	must.Do(t, os.Symlink("/dev/zero", filepath.Join(dir, "repositories")), os.Mkdir(filepath.Join(dir, "more"), 0o700),
		os.WriteFile(filepath.Join(dir, "more", "file"), nil, 0o600))
	destination := t.TempDir()
	must.Do(t, (archiveFile{t.Context(), written(t, tarOfAll(t, dir)), defaultLimits}).expand(destination))
	if got := slices.Sorted(maps.Keys(filesIn(t, destination))); !slices.Equal(got, want) {
		t.Errorf("%v is unpacked, want %v", got, want)
	}
}

func FuzzLoad(f *testing.F) {
	image := made(f, archive(f, regularFile("file")))
	var buffer bytes.Buffer
	must.Do(f, Save(f.Context(), &buffer, "mine", image))
	f.Add(buffer.Bytes())
	f.Add([]byte("\x1f\x8b"))
	f.Fuzz(func(t *testing.T, content []byte) {
		c := testCache(t)
		img, release, err := c.Load(t.Context(), written(t, content))
		if err != nil {
			wantNothing(t, c)
			return
		}
		if _, err := img.Digest(); err != nil {
			t.Error(err)
		}
		must.Do(t, release())
	})
}

// Open selects an image by its architecture, from files and from the cache, and copies no layer.
func TestOpen(t *testing.T) {
	one := forPlatform(t, made(t, archive(t, regularFile("one"))), "s390x")
	two := forPlatform(t, made(t, archive(t, regularFile("two"))), "riscv64")
	cache := testCache(t)
	_, err := cache.Put(t.Context(), "mine", one)
	must.Do(t, err)
	pair := writeLayout(t, true, one, two)
	for _, tt := range []struct{ name, path, arch, want string }{
		{"of several", pair, "riscv64", "two"},
		{"of several, in an archive", written(t, tarOf(t, pair)), "s390x", "one"},
		{"of several, missing", pair, "arm", "error: no image for linux/arm, only for linux/s390x, linux/riscv64"},
		{"any single one", writeLayout(t, false, two), "", "two"},
		{"another single one", writeLayout(t, false, two), "s390x", "error: no image for linux/s390x, only for linux/riscv64"},
		{"docker save", written(t, dockerSaved(t, two)), "riscv64", "two"},
		{"docker save for another", written(t, dockerSaved(t, two)), "arm", "error: only for linux/riscv64"},
		{"of the cache", "mine", "s390x", "one"},
		{"unknown", "none", "", "error: no such file, directory or image"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			image, release, err := cache.Open(t.Context(), tt.path, tt.arch)
			if want, fails := strings.CutPrefix(tt.want, "error: "); fails {
				if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "open image "+tt.path) {
					t.Errorf("%v, want %q", err, want)
				}
				return
			}
			must.Do(t, err)
			if _, err := ReadFile(image, tt.want, 100); err != nil {
				t.Error(err)
			}
			must.Do(t, release())
		})
	}
	if left, err := os.ReadDir(filepath.Join(cache.Dir(), "tmp")); err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
}
