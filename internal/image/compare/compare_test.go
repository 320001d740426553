package compare

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/zstd"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// file is a file of a test's layer.
type file struct {
	tar.Header
	content string
}

func at(name, content string) file {
	return file{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, ModTime: time.Unix(1, 0)}, content}
}

func special(kind byte, name, target string) file {
	return file{tar.Header{Typeflag: kind, Name: name, Linkname: target, Mode: 0o755, ModTime: time.Unix(1, 0)}, ""}
}

func changed(f file, change func(*tar.Header)) file {
	change(&f.Header)
	return f
}

// program returns the beginning of a 64-bit little-endian executable for a machine.
func program(machine byte) string {
	return "\x7fELF\x02\x01\x01" + strings.Repeat("\x00", 9) + "\x02\x00" + string([]byte{machine, 0}) + "code"
}

// The machines of ELF for x86-64 and ARM64.
const (
	machineAMD64 = 62
	machineARM64 = 183
)

func packed(t testing.TB, files ...file) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		f.Size = int64(len(f.content))
		must.Do(t, w.WriteHeader(&f.Header))
		_, err := io.WriteString(w, f.content)
		must.Do(t, err)
	}
	must.Do(t, w.Close())
	return b.Bytes()
}

// layer is a layer of an image, and the command that made it.
type layer struct {
	command string
	content []byte // compressed or not
}

func ofFiles(t testing.TB, command string, files ...file) layer {
	t.Helper()
	return layer{command, packed(t, files...)}
}

func image(t testing.TB, arch string, layers ...layer) v1.Image {
	t.Helper()
	img := v1.Image(empty.Image)
	for _, l := range layers {
		blob, err := partial.CompressedToLayer(static.NewLayer(l.content, types.OCILayer)) // decompresses
		must.Do(t, err)
		img, err = mutate.Append(img, mutate.Addendum{Layer: blob, History: v1.History{CreatedBy: l.command}})
		must.Do(t, err)
	}
	config, err := img.ConfigFile()
	must.Do(t, err)
	config = config.DeepCopy()
	config.Architecture, config.OS = arch, "linux"
	for i, l := range layers { // of the uncompressed content
		if config.RootFS.DiffIDs[i], _, err = v1.SHA256(bytes.NewReader(plain(t, l.content))); err != nil {
			t.Fatal(err)
		}
	}
	img, err = mutate.ConfigFile(img, config)
	must.Do(t, err)
	return img
}

// plain decompresses a layer of a test. Content that cannot be decompressed stays as it is.
func plain(t testing.TB, content []byte) []byte {
	t.Helper()
	const limit = 128 << 20
	d, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(limit))
	must.Do(t, err)
	defer d.Close()
	if text, err := d.DecodeAll(content, nil); err == nil {
		return text
	}
	if r, err := gzip.NewReader(bytes.NewReader(content)); err == nil {
		if text, err := io.ReadAll(io.LimitReader(r, limit)); err == nil {
			return text
		}
	}
	return content
}

func compared(t *testing.T, a, b v1.Image) *Comparison {
	t.Helper()
	c, err := Compare(t.Context(), "first", a, "second", b, Options{})
	must.Do(t, err)
	return c
}

// A build for another architecture differs in its programs alone.
func TestArchitectures(t *testing.T) {
	base := ofFiles(t, "COPY files", at("etc/motd", "hello"))
	amd64 := image(t, "amd64", base, ofFiles(t, "RUN make", at("bin/tool", program(machineAMD64)), at("bin/script", "#!/bin/sh")))
	arm64 := image(t, "arm64", base, ofFiles(t, "RUN make", at("bin/tool", program(machineARM64)), at("bin/script", "#!/bin/sh")))
	c := compared(t, amd64, arm64)
	if diff := cmp.Diff([]Field{{"architecture", "amd64", "arm64"}}, c.Config); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	if c.Same || len(c.Layers) != 2 || c.Layers[0].Result != Same || c.Layers[1].Result != Different {
		t.Fatalf("the layers are %+v", c.Layers)
	}
	p := c.Layers[1]
	if want := "1 ELF file for arm64 instead of amd64"; p.Why != want {
		t.Errorf("the reason is %q, want %q", p.Why, want)
	}
	if len(p.Files) != 1 || p.Files[0].Name != "bin/tool" || p.Files[0].A.Arch != "amd64" || p.Files[0].B.Arch != "arm64" {
		t.Errorf("the files are %+v", p.Files)
	}
	if c.A.ELF["amd64"] != 1 || c.B.ELF["arm64"] != 1 || c.A.Files != 3 || c.A.Size != int64(len("hello")+len("#!/bin/sh")+len(program(0))) {
		t.Errorf("the images are %+v and %+v", c.A, c.B)
	}
}

func TestSameImage(t *testing.T) {
	one := image(t, "amd64", ofFiles(t, "COPY", at("a", "1")))
	if c := compared(t, one, one); !c.Same || len(c.Config) != 0 || c.Layers[0].Result != Same {
		t.Errorf("an image compared with itself: %+v", c)
	}
	if c := compared(t, empty.Image, empty.Image); !c.Same || len(c.Layers) != 0 {
		t.Errorf("an empty image compared with itself: %+v", c)
	}
}

// Each property of a file is an aspect of its own.
func TestAspects(t *testing.T) {
	f := at("f", "text")
	device := special(tar.TypeChar, "f", "")
	for name, tt := range map[string]struct {
		a, b file
		want []Aspect
	}{
		"content":         {f, at("f", "Text"), []Aspect{Content}},
		"mode":            {f, changed(f, func(h *tar.Header) { h.Mode = 0o4755 }), []Aspect{Mode}},
		"owner":           {f, changed(f, func(h *tar.Header) { h.Gid = 7 }), []Aspect{Owner}},
		"time":            {f, changed(f, func(h *tar.Header) { h.ModTime = time.Unix(2, 0) }), []Aspect{Time}},
		"several":         {f, changed(at("f", "x"), func(h *tar.Header) { h.Uid = 1 }), []Aspect{Content, Owner}},
		"type":            {f, special(tar.TypeSymlink, "f", "g"), []Aspect{Type}},
		"target":          {special(tar.TypeSymlink, "f", "../../a"), special(tar.TypeSymlink, "f", "/b"), []Aspect{Target}},
		"device":          {device, changed(device, func(h *tar.Header) { h.Devmajor, h.Devminor = 1, 3 }), []Aspect{Device}},
		"attributes":      {f, changed(f, func(h *tar.Header) { h.PAXRecords = map[string]string{xattrPrefix + "security.capability": "\x01"} }), []Aspect{Attributes}},
		"program or text": {at("f", program(machineAMD64)), at("f", "text"), []Aspect{Architecture, Content}},
	} {
		t.Run(name, func(t *testing.T) {
			c := compared(t, image(t, "amd64", ofFiles(t, "", tt.a)), image(t, "amd64", ofFiles(t, "", tt.b)))
			if len(c.Layers) != 1 || len(c.Layers[0].Files) != 1 {
				t.Fatalf("the layers are %+v", c.Layers)
			}
			if diff := cmp.Diff(tt.want, c.Layers[0].Files[0].Aspects); diff != "" {
				t.Errorf("aspects (-want +got):\n%s", diff)
			}
		})
	}
}

func TestResults(t *testing.T) {
	x, y := at("x", "1"), at("y", "2")
	touch := func(f file) file { return changed(f, func(h *tar.Header) { h.ModTime = time.Unix(99, 0) }) }
	for name, tt := range map[string]struct {
		a, b   []file
		result Result
		why    string
	}{
		"same":            {[]file{x, y}, []file{x, y}, Same, ""},
		"other order":     {[]file{x, y}, []file{y, x}, SameFiles, "order or encode"},
		"dot slash":       {[]file{x}, []file{at("./x", "1")}, SameFiles, "order or encode"},
		"times":           {[]file{x, y}, []file{touch(x), touch(y)}, SameTimes, "2 files with another time"},
		"added":           {[]file{x}, []file{x, y}, Different, "1 added"},
		"programs":        {[]file{at("lib/x", program(machineAMD64))}, []file{at("lib/y", program(machineARM64)), y}, Different, "2 added with 1 ELF file for arm64, 1 removed with 1 ELF file for amd64"},
		"mixed":           {[]file{x, at("z", "1")}, []file{at("x", "2"), y, touch(at("z", "1"))}, Different, "1 with other content, 1 added, 1 with another time only"},
		"whiteout":        {[]file{x}, []file{x, at("d/.wh.y", "")}, Different, "1 added"},
		"opaque":          {[]file{at("d/.wh.y", "")}, []file{at("d/.wh..wh..opq", "")}, Different, "1 added, 1 removed"},
		"duplicate":       {[]file{x}, []file{at("x", "0"), x}, SameFiles, "order or encode"},
		"empty layers":    {nil, nil, Same, ""},
		"file to nothing": {[]file{x}, nil, Different, "1 removed"},
	} {
		t.Run(name, func(t *testing.T) {
			c := compared(t, image(t, "amd64", ofFiles(t, "", tt.a...)), image(t, "amd64", ofFiles(t, "", tt.b...)))
			if p := c.Layers[0]; p.Result != tt.result || !strings.Contains(p.Why, tt.why) || (p.Why == "") != (tt.why == "") {
				t.Errorf("%q because %q, want %q because %q", p.Result, p.Why, tt.result, tt.why)
			}
		})
	}
}

// The last of several entries with a name counts, as in an unpacked layer.
func TestDuplicates(t *testing.T) {
	c := compared(t, image(t, "amd64", ofFiles(t, "", at("x", program(machineARM64)), at("x", "text"))), empty.Image)
	if p := c.Layers[0]; p.Result != OnlyA || p.Why != "1 file" || len(p.Files) != 0 {
		t.Errorf("a layer without a counterpart is %+v", p)
	}
	if l := c.Layers[0].A; l.Duplicates != 1 || l.Files != 1 || l.Entries != 2 || len(l.ELF) != 0 || l.Size != 4 {
		t.Errorf("the layer is %+v", l)
	}
}

// Equal layers are paired wherever they are, then layers of the same command, then the rest by order.
func TestAlign(t *testing.T) {
	keys := func(text string) (list []key) {
		for _, word := range strings.Fields(text) {
			id, command, _ := strings.Cut(word, ":")
			list = append(list, key{id, command})
		}
		return list
	}
	for _, tt := range []struct {
		name, a, b string
		want       []places
	}{
		{"equal", "1 2", "1 2", []places{{0, 0}, {1, 1}}},
		{"inserted", "1 2", "1 9 2", []places{{0, 0}, {-1, 1}, {1, 2}}},
		{"removed", "1 9 2", "1 2", []places{{0, 0}, {1, -1}, {2, 1}}},
		{"same commands", "1:a 2:b", "3:a 9:x 4:b", []places{{0, 0}, {-1, 1}, {1, 2}}},
		{"content before command", "1:a 2:b", "2:a", []places{{0, -1}, {1, 0}}},
		{"nothing in common", "1 2 3", "4 5", []places{{0, 0}, {1, 1}, {2, -1}}},
		{"no layers", "", "1", []places{{-1, 0}}},
		{"repeated", "1 1", "1 1 1", []places{{0, 0}, {1, 1}, {-1, 2}}},
	} {
		if diff := cmp.Diff(tt.want, align(keys(tt.a), keys(tt.b)), cmp.AllowUnexported(places{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestConfig(t *testing.T) {
	modify := func(change func(*v1.ConfigFile)) *v1.ConfigFile {
		c := &v1.ConfigFile{Architecture: "amd64", OS: "linux", Config: v1.Config{Entrypoint: []string{"/init", "-x"}, Env: []string{"PATH=/bin", "A=1"}, Labels: map[string]string{"l": "1"}}}
		change(c)
		return c
	}
	got := compareConfigs(modify(func(*v1.ConfigFile) {}), modify(func(c *v1.ConfigFile) {
		c.Architecture, c.Variant = "arm64", "v8"
		c.Config.Entrypoint, c.Config.Env, c.Config.Labels = nil, []string{"PATH=/sbin", "B="}, map[string]string{"l": "2"}
		c.Config.Healthcheck = &v1.HealthConfig{Test: []string{"CMD", "true"}}
		c.Created = v1.Time{Time: time.Unix(0, 0).UTC().AddDate(1, 0, 0)}
	}))
	want := []Field{
		{"architecture", "amd64", "arm64"},
		{"variant", "", "v8"},
		{"entrypoint", `["/init","-x"]`, ""},
		{"created", "", "1971-01-01T00:00:00Z"},
		{"health check", "", `{"Test":["CMD","true"]}`},
		{"label l", "1", "2"},
		{"variable A", "1", ""},
		{"variable B", "", "(empty)"},
		{"variable PATH", "/bin", "/sbin"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

func TestArchitecture(t *testing.T) {
	head := func(class, data, low, high byte) []byte {
		return append([]byte{0x7f, 'E', 'L', 'F', class, data, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0}, low, high)
	}
	for _, tt := range []struct {
		head []byte
		want string
	}{
		{head(2, 1, 62, 0), "amd64"},
		{head(1, 1, 62, 0), "amd64p32"},
		{head(2, 1, 183, 0), "arm64"},
		{head(2, 2, 0, 22), "s390x"},
		{head(2, 1, 21, 0), "ppc64le"},
		{head(2, 1, 0x34, 0x12), "machine-4660"},
		{head(9, 9, 62, 0), "machine-62"},
		{head(2, 1, 62, 0)[:19], ""},
		{[]byte("#!/bin/sh and more than 20 bytes"), ""},
		{nil, ""},
	} {
		if got := architecture(tt.head); got != tt.want {
			t.Errorf("architecture(% x) = %q, want %q", tt.head, got, tt.want)
		}
	}
}

// The result is data for other programs.
func TestJSON(t *testing.T) {
	odd := changed(at("x", "1"), func(h *tar.Header) { h.ModTime = time.Unix(1<<40, 5); h.Format = tar.FormatPAX })
	c := compared(t, image(t, "amd64", ofFiles(t, "RUN", odd)), image(t, "amd64", ofFiles(t, "RUN", at("x", "2"))))
	text, err := json.Marshal(c)
	must.Do(t, err)
	for _, want := range []string{`"result":"different"`, `"aspects":["content","time"]`, `"config":[]`, `"created_by":"RUN"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is missing in %s", want, text)
		}
	}
}

func TestProgress(t *testing.T) {
	one := image(t, "amd64", ofFiles(t, "", at("a", "1")), ofFiles(t, "", at("b", "1")))
	var lines []string
	_, err := Compare(t.Context(), "first", one, "second", one, Options{Progress: func(side string, layer, layers int, bytes int64) {
		lines = append(lines, side+strings.Repeat("|", layer))
		if layers != 2 || bytes != 0 {
			t.Errorf("layer %d of %d at %d bytes", layer, layers, bytes)
		}
	}})
	if diff := cmp.Diff([]string{"a|", "b|", "a||", "b||"}, lines); err != nil || diff != "" {
		t.Errorf("%v, progress (-want +got):\n%s", err, diff)
	}
}

func TestCancel(t *testing.T) {
	one := image(t, "amd64", ofFiles(t, "", at("a", "1")))
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("interrupted")
	cancel(stop)
	if _, err := Compare(ctx, "first", one, "second", one, Options{}); !errors.Is(err, stop) {
		t.Errorf("after the end of the context: %v", err)
	}
}
