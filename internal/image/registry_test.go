package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/must"
)

func newRegistry(t *testing.T) *Registry {
	t.Helper()
	if _, err := Probe(runtime.GOARCH); err != nil {
		t.Fatal(err) // the error contains the build command
	}
	r, err := NewRegistry(t.Context(), "run1")
	must.Do(t, err)
	t.Cleanup(func() { _ = r.Close() }) // a test may have closed it
	must.Do(t, r.ServeHost(), r.ServeHost())
	return r
}

func repository(r *Registry, name string) string { return r.path + name }

// direct is a client that ignores the proxy of the environment.
var direct = &http.Transport{Proxy: nil, DisableKeepAlives: true}

// pull pulls an image with a registry client, and checks all digests.
func pull(t *testing.T, ref string) (v1.Image, error) {
	t.Helper()
	parsed, err := name.ParseReference(ref, name.Insecure)
	must.Do(t, err)
	image, err := remote.Image(parsed, remote.WithContext(t.Context()), remote.WithTransport(direct))
	if err == nil {
		err = validate.Image(image)
	}
	return image, err
}

func ask(t *testing.T, method, url string, header http.Header) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader("x"))
	must.Do(t, err)
	maps.Copy(request.Header, header)
	response, err := direct.RoundTrip(request)
	must.Do(t, err)
	body, err := io.ReadAll(response.Body)
	must.Do(t, err, response.Body.Close())
	return response, string(body)
}

func TestRegistryServesTheProbe(t *testing.T) {
	r := newRegistry(t)
	if host, _, err := net.SplitHostPort(r.Addr()); err != nil || host != "127.0.0.1" || !strings.HasPrefix(r.Probe(), r.Addr()+"/") {
		t.Errorf("the probe is %s at %s, want a loopback address", r.Probe(), r.Addr())
	}
	got, err := pull(t, r.Probe())
	must.Do(t, err)
	want, err := Build(runtime.GOARCH)
	must.Do(t, err)
	if got, want := digest(t, got), digest(t, want); got != want {
		t.Errorf("the served image has the digest %v, want %v", got, want)
	}
	if byDigest, err := pull(t, strings.TrimSuffix(r.Probe(), ":latest")+"@"+digest(t, want).String()); err != nil || digest(t, byDigest) != digest(t, want) {
		t.Errorf("by its digest: %v", err)
	}
	if !r.Has(r.Probe()) || r.Has(r.Addr()+"/"+repository(r, "other")+":latest") {
		t.Error("Has returns false for a published image")
	}
}

// Another user of the host cannot find the images.
//
// Invariant registry-private.
func TestRegistryIsUnguessable(t *testing.T) {
	one, two := newRegistry(t), newRegistry(t)
	if one.path == two.path || !IsOf(one.Probe(), "run1") || len(one.path) < len("touchstone/run1/")+26 {
		t.Errorf("the paths of two runs are %s and %s", one.path, two.path)
	}
	image, err := pull(t, one.Probe())
	must.Do(t, err)
	layer := layersOf(t, image)[0].String()
	for _, path := range []string{
		"_catalog", "touchstone/run1/probe/manifests/latest", "touchstone/run1/manifests/latest", "probe/manifests/latest", two.path + "probe/manifests/latest",
		"probe/blobs/" + layer, "touchstone/run1/probe/blobs/" + layer, two.path + "probe/blobs/" + layer, repository(one, "other") + "/blobs/" + layer,
	} {
		if response, body := ask(t, http.MethodGet, "http://"+one.Addr()+"/v2/"+path, nil); response.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s %s", path, response.Status, body)
		}
	}
}

// A page in a browser reaches the registry by a name of its own that resolves to the loopback address.
//
// Invariant registry-private.
func TestRegistryChecksTheHost(t *testing.T) {
	r := newRegistry(t)
	url := "http://" + r.Addr() + "/v2/" + repository(r, "probe") + "/manifests/latest"
	for host, want := range map[string]int{
		r.Addr(): http.StatusOK, "evil.example": http.StatusMisdirectedRequest, "127.0.0.1": http.StatusMisdirectedRequest,
		fmt.Sprintf("evil.example:%d", r.Port()): http.StatusMisdirectedRequest, fmt.Sprintf("localhost:%d", r.Port()): http.StatusMisdirectedRequest,
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		must.Do(t, err)
		request.Host = host
		response, err := direct.RoundTrip(request)
		must.Do(t, err)
		if err := response.Body.Close(); err != nil || response.StatusCode != want {
			t.Errorf("host %s: %s, %v; want %d", host, response.Status, err, want)
		}
	}
}

// A registry reserves its port on the host, and listens there only for an engine of the user.
//
// Invariant registry-private: The registry listens on the host only for an engine of the user, and its images cannot be guessed.
func TestRegistryListensOnTheHostOnRequest(t *testing.T) {
	r, err := NewRegistry(t.Context(), "run1")
	must.Do(t, err)
	defer func() { _ = r.Close() }()
	if connection, err := net.Dial("tcp4", r.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("before ServeHost: %v, %v", connection, err)
	}
	if l, err := net.Listen("tcp4", r.Addr()); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("another program listens on the port: %v, %v", l, err)
	}
	must.Do(t, r.ServeHost())
	if _, err := pull(t, r.Probe()); err != nil {
		t.Errorf("after ServeHost: %v", err)
	}
}

// No connection is held for ever by a client that sends or reads nothing.
func TestRegistryHasTimeouts(t *testing.T) {
	s := newRegistry(t).server
	for name, limit := range map[string]time.Duration{
		"header": s.ReadHeaderTimeout, "request": s.ReadTimeout, "response": s.WriteTimeout, "idle": s.IdleTimeout,
	} {
		if limit <= 0 || limit > time.Hour {
			t.Errorf("the timeout of a %s is %v", name, limit)
		}
	}
}

func TestRegistryIsReadOnly(t *testing.T) {
	r := newRegistry(t)
	original, err := pull(t, r.Probe())
	must.Do(t, err)
	for _, method := range []string{http.MethodPut, http.MethodPost, http.MethodPatch, http.MethodDelete} {
		for _, path := range []string{"manifests/latest", "blobs/uploads/", "blobs/" + digest(t, original).String()} {
			response, body := ask(t, method, "http://"+r.Addr()+"/v2/"+repository(r, "probe")+"/"+path, nil)
			if response.StatusCode != http.StatusMethodNotAllowed || response.Header.Get("Allow") != "GET, HEAD" || !strings.Contains(body, `"UNSUPPORTED"`) {
				t.Errorf("%s %s: %s %s", method, path, response.Status, body)
			}
		}
	}
	parsed, err := name.ParseReference(r.Addr()+"/"+repository(r, "mine")+":1", name.Insecure)
	must.Do(t, err)
	if err := remote.Write(parsed, original, remote.WithContext(t.Context()), remote.WithTransport(direct)); err == nil {
		t.Error("a client pushed an image")
	}
	if img, err := pull(t, r.Probe()); err != nil || digest(t, img) != digest(t, original) {
		t.Errorf("the existing image changed: %v", err)
	}
}

func TestRegistryRefuses(t *testing.T) {
	r := newRegistry(t)
	zeroDigest := "sha256:" + strings.Repeat("0", 64)
	for path, want := range map[string]string{
		"/":    "404 UNSUPPORTED",
		"/v1/": "404 UNSUPPORTED",
		"/v2/" + repository(r, "probe") + "/tags/list":               "404 UNSUPPORTED",
		"/v2/" + repository(r, "probe") + "/manifests/other":         "404 MANIFEST_UNKNOWN",
		"/v2/other/manifests/latest":                                 "404 MANIFEST_UNKNOWN",
		"/v2/" + repository(r, "probe") + "/manifests/" + zeroDigest: "404 MANIFEST_UNKNOWN",
		"/v2/" + repository(r, "probe") + "/blobs/" + zeroDigest:     "404 BLOB_UNKNOWN",
		"/v2/" + repository(r, "probe") + "/blobs/latest":            "400 DIGEST_INVALID",
		"/v2/" + repository(r, "probe") + "/manifests/":              "404 UNSUPPORTED",
	} {
		response, body := ask(t, http.MethodGet, "http://"+r.Addr()+path, nil)
		status, code, _ := strings.Cut(want, " ")
		if fmt.Sprint(response.StatusCode) != status || !strings.Contains(body, code) {
			t.Errorf("%s: %s %s, want %s", path, response.Status, body, want)
		}
	}
	if response, _ := ask(t, http.MethodGet, "http://"+r.Addr()+"/v2/", nil); response.StatusCode != http.StatusOK {
		t.Errorf("/v2/: %s", response.Status)
	}
}

// A pull is compared with the bytes that were served: requests without a body and parts of a layer are less than the image.
func TestRegistryCountsServedBytes(t *testing.T) {
	r := newRegistry(t)
	ref, err := r.Fresh(t.Context(), 1<<20)
	must.Do(t, err)
	if _, err := pull(t, r.Probe()); err != nil { // its layers are part of the fresh image, and no proof of a pull
		t.Fatal(err)
	}
	sum, size := r.Served(ref)
	if sum != 0 || size < 1<<20 || size > 1<<20+64<<10 {
		t.Fatalf("before a pull: %d of %d bytes, want none of a MiB and a configuration", sum, size)
	}
	parsed, err := name.ParseReference(ref, name.Insecure)
	must.Do(t, err)
	image, err := remote.Image(parsed, remote.WithContext(t.Context()), remote.WithTransport(direct))
	must.Do(t, err)
	layers := layersOf(t, image)
	hash := layers[len(layers)-1]
	url := "http://" + r.Addr() + "/v2/" + parsed.Context().RepositoryStr() + "/blobs/" + hash.String()
	ask(t, http.MethodHead, url, nil)
	if sum, _ := r.Served(ref); sum != 0 {
		t.Errorf("after HEAD: %d bytes", sum)
	}
	ask(t, http.MethodGet, url, http.Header{"Range": {"bytes=0-99"}})
	if sum, _ := r.Served(ref); sum != 100 {
		t.Errorf("after a range of 100 bytes: %d bytes", sum)
	}
	_, err = pull(t, ref)
	must.Do(t, err)
	if sum, size := r.Served(ref); sum != size {
		t.Errorf("after a pull: %d of %d bytes", sum, size)
	}
	r.Forget(ref)
	if sum, size := r.Served(ref); sum != 0 || size != 0 {
		t.Errorf("of a forgotten image: %d of %d bytes", sum, size)
	}
}

// Engines fetch large layers in pieces, and continue after a broken connection.
func TestRegistryServesRanges(t *testing.T) {
	r := newRegistry(t)
	image, err := pull(t, r.Probe())
	must.Do(t, err)
	hash := layersOf(t, image)[0]
	url := "http://" + r.Addr() + "/v2/" + repository(r, "probe") + "/blobs/" + hash.String()
	_, content := ask(t, http.MethodGet, url, nil)
	for header, want := range map[string]string{"bytes=0-": content, "bytes=100-": content[100:], "bytes=10-19": content[10:20]} {
		response, body := ask(t, http.MethodGet, url, http.Header{"Range": {header}})
		if response.StatusCode != http.StatusPartialContent || body != want {
			t.Errorf("%s: %s with %d bytes, want %d", header, response.Status, len(body), len(want))
		}
	}
	if response, body := ask(t, http.MethodHead, url, nil); response.ContentLength != int64(len(content)) || body != "" {
		t.Errorf("HEAD: %d bytes long with the body %q, want %d and none", response.ContentLength, body, len(content))
	}
}

func TestFresh(t *testing.T) {
	r := newRegistry(t)
	const size = 1 << 20
	first, second := fresh(t, r, size), fresh(t, r, size)
	if first == second {
		t.Fatalf("two images have the reference %s", first)
	}
	one, err := pull(t, first)
	must.Do(t, err)
	two, err := pull(t, second)
	must.Do(t, err)
	probe, err := pull(t, r.Probe())
	must.Do(t, err)
	layersOne, layersTwo, base := layersOf(t, one), layersOf(t, two), layersOf(t, probe)
	if len(layersOne) != 2 || len(layersTwo) != 2 || layersOne[0] != base[0] || layersTwo[0] != base[0] || layersOne[1] == layersTwo[1] {
		t.Errorf("the layers are %v and %v, want the probe's layer and a unique one", layersOne, layersTwo)
	}
	config, err := one.ConfigFile()
	if err != nil || len(config.Config.Entrypoint) != 1 || config.Config.Entrypoint[0] != ProbePath {
		t.Errorf("the image does not run the probe: %+v, %v", config, err)
	}
	layers, err := one.Layers()
	must.Do(t, err)
	if wire, err := layers[1].Size(); err != nil || wire < size || wire > size+size/100 {
		t.Errorf("the layer of %d bytes has %d on the wire (%v)", size, wire, err)
	}

	r.Forget(first)
	r.Forget(first) // must be idempotent
	if _, err := pull(t, first); err == nil || r.Has(first) {
		t.Errorf("a forgotten image can be pulled: %v", err)
	}
	for _, ref := range []string{second, r.Probe()} {
		if _, err := pull(t, ref); err != nil {
			t.Errorf("an image that shares a layer with a forgotten image cannot be pulled: %v", err)
		}
	}
}

func fresh(t *testing.T, r *Registry, size int64) string {
	t.Helper()
	ref, err := r.Fresh(t.Context(), size)
	must.Do(t, err)
	return ref
}

func layersOf(t *testing.T, image v1.Image) []v1.Hash {
	t.Helper()
	manifest, err := image.Manifest()
	must.Do(t, err)
	var layers []v1.Hash
	for _, l := range manifest.Layers {
		layers = append(layers, l.Digest)
	}
	return layers
}

// A run creates hundreds of images, so forgotten ones must not use memory.
func TestForgottenImagesTakeNoMemory(t *testing.T) {
	r := newRegistry(t)
	const size, n = 1 << 20, 50
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	start := heap()
	for range n {
		r.Forget(fresh(t, r, size))
	}
	if end := heap(); end-start > n*size/10 {
		t.Errorf("after %d images of %d bytes there are %d more on the heap", n, size, end-start)
	}
	if len(r.images) != 1 {
		t.Errorf("%d images are left, want only the probe", len(r.images))
	}
}

// Publish must remove all of the image that it replaces.
func TestPublishReplaces(t *testing.T) {
	r := newRegistry(t)
	for range 2 {
		image, err := freshImage(1000)
		must.Do(t, err)
		ref, err := r.Publish(t.Context(), "mine:1", image)
		must.Do(t, err)
		if got, err := pull(t, ref); err != nil || digest(t, got) != digest(t, image) {
			t.Errorf("the registry serves another image: %v", err)
		}
	}
	if len(r.images) != 2 {
		t.Errorf("%d images are left, want two", len(r.images))
	}
	image, err := Build(runtime.GOARCH)
	must.Do(t, err)
	if ref, err := r.Publish(t.Context(), "../mine", image); err == nil {
		t.Errorf("an image is published as %s", ref)
	}
}

func TestCloseFreesThePort(t *testing.T) {
	r := newRegistry(t)
	must.Do(t, r.ServeHost())
	if !holds(t, r.Port()) {
		t.Fatal("this program has no socket with the port of a registry that serves")
	}
	must.Do(t, r.Close())
	if holds(t, r.Port()) {
		t.Errorf("this program still has a socket with port %d", r.Port())
	}
}

// holds reports whether this program has a socket with a port. Another program may get the port at once when it is free, so a test that listens
// there shows nothing.
func holds(t *testing.T, port int) bool {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	must.Do(t, err)
	return slices.ContainsFunc(files, func(file os.DirEntry) bool {
		fd, err := strconv.Atoi(file.Name())
		must.Do(t, err)
		address, err := unix.Getsockname(fd)
		inet, isInet := address.(*unix.SockaddrInet4)
		return err == nil && isInet && inet.Port == port
	})
}

// Other implementations of tar and gzip must be able to read the layer.
func TestPackBytes(t *testing.T) {
	content := bytes.Repeat([]byte("touchstone"), 20_000)
	for _, size := range []int64{0, 1, 511, 65_536, int64(len(content))} {
		layer, err := packBytes(bytes.NewReader(content), size)
		must.Do(t, err)
		if got := untar(t, layer); got != string(content[:size]) {
			t.Errorf("%d bytes were packed, %d read", size, len(got))
		}
	}
	if _, err := packBytes(strings.NewReader("short"), 100); err == nil {
		t.Error("packBytes accepts too little content")
	}
}

// untar returns the content of the only file in a layer.
func untar(t *testing.T, layer []byte) string {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(layer))
	must.Do(t, err)
	r := tar.NewReader(zip)
	header, err := r.Next()
	if err != nil || "/"+header.Name != FreshPath {
		t.Fatalf("the first file is %v, %v", header, err)
	}
	content, err := io.ReadAll(r)
	must.Do(t, err)
	if next, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("a second file follows: %v, %v", next, err)
	}
	return string(content)
}

func TestIsOf(t *testing.T) {
	for ref, want := range map[string]bool{
		"127.0.0.1:1234/touchstone/run1/probe:latest":   true,
		"127.0.0.1:9/touchstone/run1/fresh:7":           true,
		"127.0.0.1:1234/touchstone/run12/probe:latest":  false,
		"127.0.0.1:1234/touchstone/run2/probe:latest":   false,
		"127.0.0.1:1234/mine/touchstone/run1/probe:1":   false,
		"registry.example/touchstone/run1/probe:latest": false,
		"touchstone/run1/probe:latest":                  false,
		"":                                              false,
	} {
		if got := IsOf(ref, "run1"); got != want {
			t.Errorf("IsOf(%q) = %v, want %v", ref, got, want)
		}
	}
}

// The registry serves layers in files directly, whole and in ranges, and does not keep them in memory.
func TestRegistryServesFiles(t *testing.T) {
	r, c := newRegistry(t), testCache(t)
	image := put(t, c, "image", forPlatform(t, made(t, archive(t, regularFile("file"))), runtime.GOARCH))
	ref, err := r.Publish(t.Context(), "workload:latest", image)
	must.Do(t, err)
	got, err := pull(t, ref)
	must.Do(t, err)
	wantConsistentDigest(t, got, image)
	layer := layersOf(t, image)[0]
	r.mu.RLock()
	content, err := r.images[ref].blobs[layer]()
	r.mu.RUnlock()
	must.Do(t, err)
	file, ok := content.(*os.File)
	if !ok {
		t.Fatalf("the layer is served from a %T", content)
	}
	data, err := io.ReadAll(file)
	must.Do(t, err, file.Close())
	url := "http://" + r.Addr() + "/v2/" + repository(r, "workload") + "/blobs/" + layer.String()
	response, body := ask(t, http.MethodGet, url, http.Header{"Range": {"bytes=3-"}})
	if response.StatusCode != http.StatusPartialContent || body != string(data[3:]) {
		t.Errorf("a range: %s, %d bytes", response.Status, len(body))
	}
	must.Do(t, os.Remove(c.blob(layer)))
	if response, body := ask(t, http.MethodGet, url, nil); response.StatusCode != http.StatusNotFound || !strings.Contains(body, "BLOB_UNKNOWN") {
		t.Errorf("a removed file: %s, %s", response.Status, body)
	}
}
