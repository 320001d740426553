package image

import (
	"archive/tar"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// file holds the properties of a file that tests compare.
type file struct {
	mode    fs.FileMode
	content string
}

// filesIn returns the files and directories below a directory by their names.
func filesIn(t *testing.T, dir string) map[string]file {
	t.Helper()
	found := map[string]file{}
	must.Do(t, fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		var content []byte
		if err == nil && info.Mode().IsRegular() {
			content, err = os.ReadFile(filepath.Join(dir, name))
		}
		found[name] = file{info.Mode(), string(content)}
		return err
	}))
	return found
}

// setUmask must not be used in parallel tests.
func setUmask(t *testing.T, mask int) {
	t.Helper()
	old := syscall.Umask(mask)
	t.Cleanup(func() { syscall.Umask(old) })
}

func archive(t testing.TB, headers ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		content := ""
		if h.Typeflag == tar.TypeReg {
			content = "content"
			h.Size = int64(len(content))
		}
		must.Do(t, w.WriteHeader(&h))
		_, err := w.Write([]byte(content))
		must.Do(t, err)
	}
	must.Do(t, w.Close())
	return b.Bytes()
}

// tooLarge returns the header of a file that exceeds the limit.
func tooLarge(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	must.Do(t, tar.NewWriter(&b).WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "large", Size: 16 << 20}))
	return b.Bytes()
}
