package cli_test

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"io/fs"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/rogpeppe/go-internal/testscript"
)

// addImage is the command layout DIR ARCHITECTURE FILE=TEXT... It adds an image with one layer to an OCI layout. The text elf stands
// for a program of the architecture.
func addImage(ts *testscript.TestScript, _ bool, args []string) {
	dir := ts.MkAbs(args[0])
	path, err := layout.FromPath(dir)
	if errors.Is(err, fs.ErrNotExist) {
		path, err = layout.Write(dir, empty.Index)
	}
	ts.Check(err)
	ts.Check(path.AppendImage(oneLayer(ts, args[1], args[2:])))
}

// saveImage is the command saved FILE ARCHITECTURE FILE=TEXT... It writes such an image in the format of docker save.
func saveImage(ts *testscript.TestScript, _ bool, args []string) {
	tag, err := name.NewTag("example.org/image:latest")
	ts.Check(err)
	ts.Check(tarball.WriteToFile(ts.MkAbs(args[0]), tag, oneLayer(ts, args[1], args[2:])))
}

// oneLayer makes an image of files, each FILE=TEXT.
func oneLayer(ts *testscript.TestScript, arch string, files []string) v1.Image {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		file, text, _ := strings.Cut(f, "=")
		if text == "elf" {
			machine := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[arch]
			text = "\x7fELF\x02\x01\x01" + strings.Repeat("\x00", 9) + "\x02\x00" + string([]byte{byte(machine), 0})
		}
		ts.Check(w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: file, Mode: 0o644, Size: int64(len(text))}))
		_, err := w.Write([]byte(text))
		ts.Check(err)
	}
	ts.Check(w.Close())
	product, err := mutate.Append(empty.Image, mutate.Addendum{Layer: static.NewLayer(b.Bytes(), types.OCIUncompressedLayer), History: v1.History{CreatedBy: "COPY files"}})
	ts.Check(err)
	config, err := product.ConfigFile()
	ts.Check(err)
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", arch
	product, err = mutate.ConfigFile(product, config)
	ts.Check(err)
	return product
}
