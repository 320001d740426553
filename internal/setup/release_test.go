package setup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// archive packs files as a release. A name that ends with @ is a link to /etc/passwd.
func archive(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for name, text := range files {
		h := &tar.Header{Name: name, Mode: 0o755, Size: int64(len(text)), Typeflag: tar.TypeReg}
		if link, ok := strings.CutSuffix(name, "@"); ok {
			h = &tar.Header{Name: link, Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}
			text = ""
		}
		must.Do(t, w.WriteHeader(h))
		_, err := w.Write([]byte(text))
		must.Do(t, err)
	}
	must.Do(t, w.Close(), z.Close())
	return b.Bytes()
}

func sumOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// TestReleases: a release is installed only if each of its bytes is the locked one. The server plays one.
//
// Invariant half-installed.
func TestReleases(t *testing.T) {
	text := archive(t, map[string]string{"crun-1.21/bin/crun": script("crun", "1.21"), "README": "x", "crun-1.21/../../../../evil": "x"})
	program := []byte(script("crun", "1.21"))
	stranger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(text) }))
	t.Cleanup(stranger.Close)
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(text) }))
	t.Cleanup(secure.Close)
	mux := http.NewServeMux()
	serve := func(path string, f http.HandlerFunc) { mux.HandleFunc("/"+path, f) }
	write := func(b []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(b) }
	}
	serve("crun.tar.gz", write(text))
	serve("crun", write(program))
	serve("cut.tar.gz", write(text[:len(text)-20]))
	serve("long.tar.gz", write(append(text[:len(text):len(text)], "more"...)))
	serve("gone.tar.gz", http.NotFound)
	serve("broken.tar.gz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(text)))
		_, _ = w.Write(text[:10]) // the server closes the connection
	})
	for name, destination := range map[string]string{
		"same": "/crun.tar.gz", "other": stranger.URL + "/crun.tar.gz", "secure": secure.URL + "/crun.tar.gz", "loop": "/loop.tar.gz", "file": "file:///etc/passwd",
	} {
		serve(name+".tar.gz", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, destination, http.StatusFound) })
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	linkArchive, noProgram := archive(t, map[string]string{"bin/crun@": ""}), archive(t, map[string]string{"README": "x"})
	serve("linked.tar.gz", write(linkArchive))
	serve("empty.tar.gz", write(noProgram))
	serve("text.tar.gz", write(program))
	zeros := strings.Repeat("0", 64)
	for _, c := range []struct {
		name, sum string
		size      int
		want      string
	}{
		{"crun.tar.gz", sumOf(text), len(text), ""},
		{"crun", sumOf(program), len(program), ""},
		{"same.tar.gz", sumOf(text), len(text), ""},
		{"secure.tar.gz", sumOf(text), len(text), ""},
		{"crun.tar.gz", zeros, len(text), "crun.tar.gz has the SHA-256 " + sumOf(text) + ", and the lock has " + zeros},
		{"cut.tar.gz", sumOf(text), len(text), "the file ends after"},
		{"long.tar.gz", sumOf(text), len(text), "the file has more than"},
		{"broken.tar.gz", sumOf(text), len(text), "after 10 of"},
		{"gone.tar.gz", sumOf(text), len(text), "the server answers 404 Not Found"},
		{"other.tar.gz", sumOf(text), len(text), "which is neither https nor the same host"},
		{"loop.tar.gz", sumOf(text), len(text), "redirects more than 10 times"},
		{"file.tar.gz", sumOf(text), len(text), "which is neither https nor the same host"},
		{"linked.tar.gz", sumOf(linkArchive), len(linkArchive), "the program crun of " + server.URL},
		{"empty.tar.gz", sumOf(noProgram), len(noProgram), "the program crun of " + server.URL},
		{"text.tar.gz", sumOf(program), len(program), "unpack text.tar.gz"},
	} {
		t.Run(c.name+" "+c.want, func(t *testing.T) {
			r := recipe("crun", "1.21")
			r.Releases = map[string]Release{runtime.GOARCH: {URL: server.URL + "/" + c.name, SHA256: c.sum, Size: int64(c.size)}}
			s := newSetup(t, r)
			s.Client = secure.Client()
			err := install(t, s, "crun")
			if c.want == "" {
				must.Do(t, err)
				want(t, s.Root, "crun", "crun/1.21", "crun/1.21/bin", "crun/1.21/bin/crun", "crun/1.21/part.json", "crun/current -> 1.21")
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want %q", err, c.want)
			}
			want(t, s.Root)
		})
	}
	server.Close()
	r := recipe("crun", "1.21")
	r.Releases = map[string]Release{runtime.GOARCH: {URL: server.URL + "/crun.tar.gz", SHA256: sumOf(text), Size: int64(len(text))}}
	s := newSetup(t, r)
	if err := install(t, s, "crun"); err == nil || !strings.Contains(err.Error(), "download "+server.URL) {
		t.Errorf("without a network: %v", err)
	}
	want(t, s.Root)
}

// TestStalledServer: a server that sends no more bytes is given up, and so is one when the user does not wait any longer.
func TestStalledServer(t *testing.T) {
	start := make(chan struct{}, 2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("begin"))
		_ = http.NewResponseController(w).Flush()
		start <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	r := Release{URL: server.URL + "/x", Size: 100}
	if err := r.download(t.Context(), server.Client(), filepath.Join(t.TempDir(), "x"), time.Millisecond); !errors.Is(err, errStalled) {
		t.Errorf("the error is %v", err)
	}
	for len(start) > 0 {
		<-start
	}
	ctx, cancel := context.WithCancel(t.Context())
	end := make(chan error)
	go func() {
		_, err := r.fetch(ctx, server.Client(), t.TempDir())
		end <- err
	}()
	<-start
	cancel()
	if err := <-end; !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted download: %v", err)
	}
}

// TestSlowServer: a slow download goes on as long as bytes come.
func TestSlowServer(t *testing.T) {
	for pause, isStalled := range map[time.Duration]bool{stallLimit - time.Second: false, stallLimit + time.Second: true} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			in, out := io.Pipe()
			w := newWatch(ctx, cancel, stallLimit)
			defer w.stop()
			go func() {
				for range 5 {
					time.Sleep(pause) // of the bubble's clock
					_, _ = out.Write([]byte("x"))
				}
				_ = out.Close()
			}()
			if size, err := io.Copy(io.Discard, w.reader(in)); err != nil || size != 5 {
				t.Errorf("%d bytes, %v", size, err)
			}
			if cause := context.Cause(ctx); errors.Is(cause, errStalled) != isStalled {
				t.Errorf("with a byte each %v the cause is %v", pause, cause)
			}
		})
	}
}

// TestOffline: a directory has releases and sources with the names of the lock, or a store of another machine. Checksums are compared.
func TestOffline(t *testing.T) {
	text := archive(t, map[string]string{"bin/crun": script("crun", "1.21")})
	dir := t.TempDir()
	r := recipe("crun", "1.21")
	r.Releases = map[string]Release{runtime.GOARCH: {URL: "https://example.com/crun-1.21.tgz", SHA256: sumOf(text), Size: int64(len(text))}}
	s := newSetup(t, r, recipe("runc", "1.5.2"))
	s.From = dir
	if err := install(t, s, "crun"); err == nil || !strings.Contains(err.Error(), dir+" has no crun-1.21.tgz, "+dir+" has no crun/1.21 of a store") {
		t.Errorf("an empty directory: %v", err)
	}
	file := filepath.Join(dir, "crun-1.21.tgz")
	must.Do(t, os.WriteFile(file, append([]byte("x"), text...), 0o600))
	if err := install(t, s, "crun"); err == nil || !strings.Contains(err.Error(), "has the SHA-256") {
		t.Errorf("a damaged release: %v", err)
	}
	want(t, s.Root)
	must.Do(t, os.WriteFile(file, text, 0o600))
	must.Do(t, install(t, s, "crun"))

	// The store is the directory of the next set-up. The version in use counts there, and not the version of the lock.
	second := newSetup(t, recipe("crun", "1.22"))
	second.From = s.Root
	must.Do(t, install(t, second, "crun"))
	want(t, second.Root, "crun", "crun/1.21", "crun/1.21/bin", "crun/1.21/bin/crun", "crun/1.21/part.json", "crun/current -> 1.21")
	if err := install(t, second, "crun@1.22"); err == nil || !strings.Contains(err.Error(), "has no crun/1.22 of a store") {
		t.Errorf("a missing version: %v", err)
	}
	must.Do(t, os.WriteFile(filepath.Join(s.Root, "crun/1.21/bin/crun"), []byte("other"), 0o755))
	damagedCopy := newSetup(t, recipe("crun", "1.21"))
	damagedCopy.From = s.Root
	if err := install(t, damagedCopy, "crun"); err == nil || !strings.Contains(err.Error(), "and its record has") {
		t.Errorf("a damaged store: %v", err)
	}
	want(t, damagedCopy.Root)
	must.Do(t, os.Chmod(filepath.Join(s.Root, "crun/1.21/bin/crun"), 0o777))
	if err := install(t, damagedCopy, "crun"); err == nil || !strings.Contains(err.Error(), "can be changed by other users") {
		t.Errorf("a store that others can change: %v", err)
	}

	// The source of a build, with the name of the lock.
	r = recipe("crun", "1.21")
	run := r.Build.Run
	r.Build.File = "crun_1.21.orig.tar.gz"
	r.Build.Run = func(ctx context.Context, w *work) error {
		draft := filepath.Join(w.dir, r.Build.File)
		if err := w.fetchDebian(ctx, "pool/main/c/crun/"+r.Build.File, draft, sumOf(text), int64(len(text))); err != nil {
			return err
		}
		if err := verify(draft, sumOf(text)); err != nil {
			return err
		}
		return run(ctx, w)
	}
	fourth := newSetup(t, r)
	fourth.From = dir
	must.Do(t, os.WriteFile(filepath.Join(dir, r.Build.File), text, 0o600))
	must.Do(t, install(t, fourth, "crun"))
}
