package compare

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/zstd"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// tiny are limits that tests can exceed.
var tiny = Limits{Layers: 3, Bytes: 1 << 20, Entries: 50, Names: 10 << 10}

func gzipped(t testing.TB, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(content)
	must.Do(t, err)
	must.Do(t, w.Close())
	return b.Bytes()
}

func zstdPacked(t testing.TB, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b)
	must.Do(t, err)
	_, err = w.Write(content)
	must.Do(t, err)
	must.Do(t, w.Close())
	return b.Bytes()
}

// many returns files with names of a length.
func many(count, length int) (files []file) {
	for i := range count {
		name := fmt.Sprint(i, "-")
		files = append(files, at(name+strings.Repeat("x", max(0, length-len(name))), ""))
	}
	return files
}

// A hostile layer is a clear error. No layer writes anything.
//
// Invariant image-comparison: A comparison of images writes nothing and holds a bounded part of them in memory.
func TestHostileLayers(t *testing.T) {
	bomb := packed(t, at("zeros", strings.Repeat("\x00", 8<<20)))
	sparse := changed(at("sparse", ""), func(h *tar.Header) {
		h.Format = tar.FormatPAX
		h.PAXRecords = map[string]string{"x": "y"}
	})
	cut := packed(t, at("file", strings.Repeat("text", 1000)))
	for _, tt := range []struct {
		name  string
		layer []byte
		want  string
	}{
		{"too many bytes", bomb, "too many bytes"},
		{"bomb of zstd", zstdPacked(t, bomb), "too many bytes"},
		{"bomb behind the archive", gzipped(t, append(packed(t, at("a", "")), make([]byte, 8<<20)...)), "too many bytes"},
		{"huge size in a header", hugeFile(t), "too many bytes"},
		{"holes of sparse files", sparseFiles(t, 3, 700<<10), "too many bytes"},
		{"few holes", sparseFiles(t, 1, 700<<10), ""},
		{"too many files", packed(t, many(60, 10)...), "too many files"},
		{"too many entries of one name", packed(t, many(60, 0)...), "too many files"},
		{"long names", packed(t, many(40, 300)...), "names in the image are too long"},
		{"a name longer than a path", packed(t, changed(at(strings.Repeat("d/", 3000)+"f", ""), func(h *tar.Header) { h.Format = tar.FormatPAX })), "more than 4096 bytes"},
		{"a name that leads out", packed(t, at("../../etc/passwd", "x")), "leads out of the image's root"},
		{"a hard link that leads out", packed(t, special(tar.TypeLink, "a", "../../etc/shadow")), "leads out of the image's root"},
		{"a whiteout without a name", packed(t, at("d/.wh.", "")), "whiteout has no name"},
		{"an unknown type", packed(t, special('Z', "z", "")), "unknown type"},
		{"cut off", cut[:1500], "read its content"},
		{"cut off in gzip", gzipped(t, cut)[:40], "unexpected EOF"},
		{"cut off in zstd", zstdPacked(t, cut)[:20], "read the archive"},
		{"not an archive", []byte(strings.Repeat("no archive ", 100)), "read the archive after 0 entries"},
		{"broken checksum", bytes.Replace(packed(t, at("name", "x")), []byte("name"), []byte("nome"), 1), "invalid tar header"},
		{"an ordinary extension", packed(t, sparse), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			img := image(t, "amd64", layer{"", tt.layer})
			for _, sides := range [][2]v1.Image{{img, empty.Image}, {empty.Image, img}} {
				c, err := Compare(t.Context(), "first", sides[0], "second", sides[1], Options{Limits: tiny})
				switch {
				case tt.want == "" && err != nil:
					t.Error(err)
				case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "layer 1 of 1")):
					t.Errorf("%+v, %v; want an error with %q", c, err, tt.want)
				}
			}
		})
	}
}

// hugeFile is an archive whose only header announces a file of an exbibyte.
func hugeFile(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	must.Do(t, tar.NewWriter(&b).WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "huge", Size: 1 << 60, Format: tar.FormatGNU}))
	return b.Bytes()
}

// sparseFiles is an archive of files in the old sparse format of GNU tar, which consist of one hole.
func sparseFiles(t *testing.T, count int, size int64) []byte {
	t.Helper()
	var buffer bytes.Buffer
	for i := range count {
		var b bytes.Buffer
		must.Do(t, tar.NewWriter(&b).WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: fmt.Sprint("sparse", i), Format: tar.FormatGNU}))
		block := b.Bytes()
		block[156] = tar.TypeGNUSparse
		copy(block[386:], fmt.Sprintf("%011o\x00%011o\x00", size, 0)) // the only piece: no bytes at the end
		copy(block[483:], fmt.Sprintf("%011o\x00", size))
		copy(block[148:], "        ")
		sum := 0
		for _, c := range block[:512] {
			sum += int(c)
		}
		copy(block[148:], fmt.Sprintf("%06o\x00 ", sum))
		buffer.Write(block[:512])
	}
	buffer.Write(make([]byte, 1024))
	return buffer.Bytes()
}

// Devices, FIFOs and links to anywhere are legal in a layer. They are described, and neither made nor followed.
func TestSpecialFiles(t *testing.T) {
	device := changed(special(tar.TypeBlock, "dev/sda", ""), func(h *tar.Header) { h.Devmajor, h.Devminor = 8, 0 })
	c := compared(t, image(t, "amd64", ofFiles(t, "")), image(t, "amd64", ofFiles(t, "", device, special(tar.TypeFifo, "pipe", ""),
		special(tar.TypeSymlink, "out", "/../../etc/shadow"), special(tar.TypeLink, "hard", "/dev/sda"), at(".wh.gone", ""), at("d/.wh..wh..opq", ""))))
	got := map[string]Version{}
	for _, f := range c.Layers[0].Files {
		got[f.Name] = *f.B
	}
	for name, want := range map[string]Version{
		"dev/sda": {Type: "block device", Device: "8:0"}, "pipe": {Type: "FIFO"}, "out": {Type: "symbolic link", Target: "/../../etc/shadow"},
		"hard": {Type: "hard link", Target: "dev/sda"}, ".wh.gone": {Type: "whiteout"}, "d/.wh..wh..opq": {Type: "opaque"},
	} {
		if v := got[name]; v.Type != want.Type || v.Device != want.Device || v.Target != want.Target {
			t.Errorf("%s is %+v, want %+v", name, v, want)
		}
	}
}

// Layers may be compressed with zstd, whatever their media type says.
func TestZstd(t *testing.T) {
	content := packed(t, at("a", "text"))
	c := compared(t, image(t, "amd64", layer{"", content}), image(t, "amd64", layer{"", zstdPacked(t, content)}))
	if c.Layers[0].Result != Same {
		t.Errorf("the same layer in zstd: %+v", c.Layers[0])
	}
}

// A window that needs more memory than zstdWindow is refused before it is allocated.
func TestZstdWindow(t *testing.T) {
	// RFC 8878, section 3.1.1: the magic number, a frame header with a window of 2^38 bytes, and the beginning of a block.
	frame := append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, (38 - 10) << 3}, 0x03, 0, 0, 0)
	var start, end runtime.MemStats
	runtime.ReadMemStats(&start)
	_, err := Compare(t.Context(), "first", image(t, "amd64", layer{"", frame}), "second", empty.Image, Options{})
	runtime.ReadMemStats(&end)
	if err == nil || !strings.Contains(err.Error(), "window") {
		t.Errorf("a window of 256 GiB: %v", err)
	}
	if growth := end.TotalAlloc - start.TotalAlloc; growth > 64<<20 {
		t.Errorf("it allocated %d MiB", growth>>20)
	}
}

// The memory for a layer does not depend on the size of its files.
//
// Invariant image-comparison.
func TestMemoryIsBounded(t *testing.T) {
	zeros := zstdPacked(t, packed(t, at("zeros", strings.Repeat("\x00", 64<<20))))
	img := image(t, "amd64", layer{"", zeros})
	runtime.GC()
	var start, end runtime.MemStats
	runtime.ReadMemStats(&start)
	_, err := Compare(t.Context(), "first", img, "second", empty.Image, Options{})
	must.Do(t, err)
	runtime.ReadMemStats(&end)
	if growth := end.TotalAlloc - start.TotalAlloc; growth > 48<<20 {
		t.Errorf("it allocated %d MiB for a file of 64 MiB", growth>>20)
	}
}

// counterfeit is a layer with other content than its digest says.
type counterfeit struct {
	v1.Layer
	content []byte
}

func (c counterfeit) Compressed() (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(c.content)), nil
}
func (c counterfeit) Uncompressed() (io.ReadCloser, error) { return c.Compressed() }

// listed is an image with other layers than its configuration lists.
type listed struct {
	v1.Image
	layers []v1.Layer
	err    error
}

func (l listed) Layers() ([]v1.Layer, error) { return l.layers, l.err }

func TestHostileImages(t *testing.T) {
	content := packed(t, at("a", "text"))
	good := image(t, "amd64", layer{"", content})
	layers, err := good.Layers()
	must.Do(t, err)
	var stack []layer
	for i := range 5 {
		stack = append(stack, ofFiles(t, "", at(fmt.Sprint(i), "")))
	}
	odd, err := mutate.Append(empty.Image, mutate.Addendum{Layer: static.NewLayer(content, "application/vnd.example.chart.v1+tar")})
	must.Do(t, err)
	for name, tt := range map[string]struct {
		image v1.Image
		want  string
	}{
		"wrong digest":       {listed{good, []v1.Layer{counterfeit{layers[0], packed(t, at("a", "Text"))}}, nil}, "it is damaged"},
		"more layers listed": {listed{good, nil, nil}, "its manifest has 0 layers, but its configuration has 1"},
		"unreadable list":    {listed{good, nil, io.ErrUnexpectedEOF}, "read the list of layers"},
		"wrong media type":   {odd, `media type "application/vnd.example.chart.v1+tar" is not the type of a layer`},
		"too many layers":    {image(t, "amd64", stack...), "it has 5 layers, more than 3"},
	} {
		_, err := Compare(t.Context(), "good", good, "bad", tt.image, Options{Limits: tiny})
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "image bad") {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

// FuzzReadLayer reads arbitrary archives: no layer makes the reader panic or exceed its limits.
//
// Invariant image-comparison.
func FuzzReadLayer(f *testing.F) {
	f.Add(packed(f, at("a/b", "text"), special(tar.TypeSymlink, "l", "/x"), at("d/.wh.x", ""), at("p", program(machineARM64))))
	f.Add(gzipped(f, packed(f, at("./a", "text"), special(tar.TypeLink, "h", "a"))))
	f.Add(zstdPacked(f, packed(f, changed(at("x", ""), func(h *tar.Header) { h.PAXRecords = map[string]string{xattrPrefix + "user.a": "b"} }))))
	f.Add([]byte("no archive"))
	f.Fuzz(func(t *testing.T, content []byte) {
		input, err := partial.CompressedToLayer(static.NewLayer(content, types.OCILayer))
		must.Do(t, err)
		left := tiny
		hash, _, err := v1.SHA256(bytes.NewReader(plain(t, content)))
		must.Do(t, err)
		files, result, err := readLayer(t.Context(), input, hash, &left, func(int64) {})
		if err != nil {
			return
		}
		if left.Bytes < 0 || left.Entries < 0 || left.Names < 0 || len(files) > result.Entries || result.Files > len(files) || result.Size < 0 {
			t.Errorf("the layer is %+v with %d files, and %+v is left", result, len(files), left)
		}
		for name, e := range files {
			if path, err := local(name); err != nil || path != name || e.kind == unknown {
				t.Errorf("the file %q is %+v: %v", name, e, err)
			}
		}
		if d := differences(files, files); len(d) > 0 {
			t.Errorf("a layer differs from itself: %+v", d)
		}
		if d := differences(files, nil); len(d) != len(files) {
			t.Errorf("%d of %d files are removed", len(d), len(files))
		}
	})
}
