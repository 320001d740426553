package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// forPlatform gives an image another architecture.
func forPlatform(t *testing.T, image v1.Image, arch string) v1.Image {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.Architecture = arch
	if image, err = mutate.ConfigFile(image, config); err != nil {
		t.Fatal(err)
	}
	return image
}

// writeLayout writes an OCI layout with images in an index, or right in it.
func writeLayout(t *testing.T, nested bool, images ...v1.Image) string {
	t.Helper()
	dir := t.TempDir()
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// tarOf packs a directory.
func tarOf(t *testing.T, dir string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := errors.Join(w.AddFS(os.DirFS(dir)), w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipped(t *testing.T, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(content)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func written(t *testing.T, content []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// dockerSaved is what docker save writes.
func dockerSaved(t *testing.T, images ...v1.Image) []byte {
	t.Helper()
	tagged := map[name.Tag]v1.Image{}
	for i, image := range images {
		tag, err := name.NewTag("example.org/image:" + string(rune('a'+i)))
		if err != nil {
			t.Fatal(err)
		}
		tagged[tag] = image
	}
	var b bytes.Buffer
	if err := tarball.MultiWrite(tagged, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestLoad(t *testing.T) {
	host := forPlatform(t, made(t, archive(t, regularFile("host")), archive(t, regularFile("two"))), runtime.GOARCH)
	other := forPlatform(t, made(t, archive(t, regularFile("other"))), "s390x")
	third := forPlatform(t, made(t, archive(t, regularFile("third"))), "ppc64le")
	var own bytes.Buffer
	if err := Save(t.Context(), &own, "mine", host); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, path, want string }{
		{"layout", writeLayout(t, false, host), "host"},
		{"layout of several", writeLayout(t, false, other, host), "host"},
		{"layout with an index", writeLayout(t, true, other, host), "host"},
		{"layout of another platform alone", writeLayout(t, true, other), "other"},
		{"archive of a layout", written(t, tarOf(t, writeLayout(t, true, other, host))), "host"},
		{"compressed archive of a layout", written(t, zipped(t, tarOf(t, writeLayout(t, false, host)))), "host"},
		{"docker save", written(t, dockerSaved(t, host)), "host"},
		{"docker save, compressed", written(t, zipped(t, dockerSaved(t, host))), "host"},
		{"saved", written(t, own.Bytes()), "host"},
		{"saved, compressed", written(t, zipped(t, own.Bytes())), "host"},
		{"of other platforms", writeLayout(t, true, other, third), "error: there is none for linux/" + runtime.GOARCH + " in it, only for linux/s390x, linux/ppc64le"},
		{"empty layout", writeLayout(t, false), "error: there is no image in it"},
		{"several of docker", written(t, dockerSaved(t, host, other)), "error: single image"},
		{"no archive", written(t, []byte("what is this?\n"+strings.Repeat("x", 2000))), "error: no archive of an image"},
		{"empty file", written(t, nil), "error: no archive of an image"},
		{"another archive", written(t, archive(t, regularFile("file"))), "error: neither oci-layout nor manifest.json"},
		{"cut off", written(t, own.Bytes()[:own.Len()/2]), "error: damaged"},
		{"compressed and cut off", written(t, zipped(t, own.Bytes())[:own.Len()/8]), "error: damaged"},
		{"damaged compression", written(t, []byte("\x1f\x8bnot gzip at all")), "error: damaged"},
		{"directory that is no layout", t.TempDir(), "error: no OCI layout"},
		{"nothing", filepath.Join(t.TempDir(), "nothing"), "error: no such file or directory, and no image of that name"},
		{"name with a NUL", "a\x00b", "error: a\x00b"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := testCache(t)
			image, err := c.Load(t.Context(), test.path)
			if want, ok := strings.CutPrefix(test.want, "error: "); ok {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want one with %q", err, want)
				}
				if left, err := os.ReadDir(c.path("tmp")); err != nil || len(left) > 0 || len(blobsOf(t, c)) > 0 {
					t.Errorf("%v and %v is left, %v", left, blobsOf(t, c), err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			dir, err := c.Rootfs(t.Context(), image)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(filepath.Join(dir, test.want)); err != nil {
				t.Error(err)
			}
			layers, err := image.Layers()
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range layers { // large ones must not be held in memory to be served
				r, err := l.Compressed()
				if err != nil {
					t.Fatal(err)
				}
				if _, ok := r.(*os.File); !ok {
					t.Errorf("a layer is a %T and no file", r)
				}
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// What is saved and loaded has its digest and, if it is one of ours, its name.
func TestSaveAndImport(t *testing.T) {
	image := made(t, archive(t, regularFile("file")), archive(t, regularFile("file")))
	for as, want := range map[string]string{OwnPrefix + "amd64-0123": OwnPrefix + "amd64-0123", "other": "loaded-" + digest(t, image).Hex[:12]} {
		var one, two bytes.Buffer
		if err := errors.Join(Save(t.Context(), &one, as, image), Save(t.Context(), &two, as, image)); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(one.Bytes(), two.Bytes()) {
			t.Error("saved twice it is not the same")
		}
		c := testCache(t)
		name, kept, err := c.Import(t.Context(), written(t, one.Bytes()), "")
		if err != nil || name != want {
			t.Fatalf("name %q, %v; want %q", name, err, want)
		}
		wantConsistentDigest(t, kept, image)
		if name, _, err = c.Import(t.Context(), written(t, one.Bytes()), "mine"); err != nil || name != "mine" {
			t.Errorf("name %q, %v; want mine", name, err)
		}
		if loaded, err := c.Load(t.Context(), "mine"); err != nil || digest(t, loaded) != digest(t, image) {
			t.Errorf("by its name: %v", err)
		}
	}
	stopped, stop := context.WithCancelCause(t.Context())
	stop(errors.New("enough"))
	if err := Save(stopped, &bytes.Buffer{}, "image", image); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("stopped: %v", err)
	}
}

// Docker takes the archive by its manifest.json, whatever its version.
func TestSavedIsDockers(t *testing.T) {
	image := made(t, archive(t, regularFile("file")))
	var b bytes.Buffer
	if err := Save(t.Context(), &b, "image", image); err != nil {
		t.Fatal(err)
	}
	file := written(t, b.Bytes())
	loaded, err := tarball.ImageFromPath(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	want, err1 := image.ConfigName()
	got, err2 := loaded.ConfigName()
	if err := errors.Join(err1, err2); err != nil || got != want {
		t.Errorf("the image's ID is %v, want %v (%v)", got, want, err)
	}
	if _, err := unpacked(t, loaded, defaultLimits); err != nil {
		t.Error(err)
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

func FuzzLoad(f *testing.F) {
	image := made(f, archive(f, regularFile("file")))
	var own bytes.Buffer
	if err := Save(f.Context(), &own, "mine", image); err != nil {
		f.Fatal(err)
	}
	f.Add(own.Bytes())
	f.Add([]byte("\x1f\x8b"))
	f.Fuzz(func(t *testing.T, content []byte) {
		c := testCache(t)
		loaded, err := c.Load(t.Context(), written(t, content))
		if err != nil {
			if left := blobsOf(t, c); len(left) > 0 {
				t.Errorf("%v is left after %v", left, err)
			}
			return
		}
		if _, err := loaded.Digest(); err != nil {
			t.Error(err)
		}
	})
}
