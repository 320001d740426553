package debian

import (
	"bytes"
	"context"
	stdjson "encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/spdx/tools-golang/json"

	"github.com/touchstone-bench/touchstone/internal/image"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/process"
	"github.com/touchstone-bench/touchstone/test/cells"
)

// fetching returns a launcher for a test that fetches packages, and skips the test with -short.
func fetching(t *testing.T) *process.Launcher {
	t.Helper()
	if testing.Short() {
		t.Skip("fetches packages; not with -short")
	}
	if err := (&fetcher{}).ready(); err != nil {
		unavailable(t, err)
	}
	return launching(t)
}

func launching(t *testing.T) *process.Launcher {
	t.Helper()
	launcher, err := process.New(process.Options{})
	must.Do(t, err)
	t.Cleanup(func() {
		must.Do(t, launcher.Close())
	})
	return launcher
}

// unavailable skips a test without its requirements, unless this machine must have all requirements of tests.
func unavailable(t *testing.T, err error) {
	t.Helper()
	if os.Getenv("TOUCHSTONE_MUST_RUN") != "" {
		t.Fatal(err)
	}
	t.Skip(err)
}

// Two builds of the image are equal to the last bit and pass the checks. If the cache of this machine has an image with the
// same name (the same list of packages, programs and builder), it is one of the two.
//
// Invariant image-reproducible: The same list and the same binary give the same workload image, to the byte.
// Invariant image-digest.
func TestRealBuildIsReproducible(t *testing.T) {
	cells.Need(t, "image/build")
	launcher := fetching(t)
	ours, err := image.OpenCache("")
	must.Do(t, err)
	lock, err := Current(ours, runtime.GOARCH)
	must.Do(t, err)
	result, err := buildAnew(t, launcher, lock)
	if vanishedErr := (*VanishedError)(nil); errors.As(err, &vanishedErr) {
		// Debian removes a package from its mirrors when it has a new version. The archive of snapshots may be out of reach.
		t.Log(err)
		if lock, err = Update(t.Context(), Options{Launcher: launcher}); err == nil {
			result, err = buildAnew(t, launcher, lock)
		}
	}
	if errors.Is(err, ErrUnreachable) {
		unavailable(t, err)
	}
	must.Do(t, err)
	wantWorkload(t, launcher, result, lock)
	wantPin(t, result)
	second, err := Cached(Options{Lock: &lock})
	must.Do(t, err)
	if second == nil {
		second, err = buildAnew(t, launcher, lock)
		must.Do(t, err)
	}
	var digests []string
	for _, img := range []*Image{result, second} {
		digest, err := img.OCI().Digest()
		must.Do(t, err)
		digests = append(digests, digest.String())
	}
	if digests[0] != digests[1] {
		t.Errorf("the digests are %v", digests)
	}
}

// buildAnew builds the image in a cache of its own, and checks that nothing else is left there.
func buildAnew(t *testing.T, launcher *process.Launcher, lock Lock) (*Image, error) {
	t.Helper()
	cache := t.TempDir()
	copyClip(t, cache)
	t.Cleanup(func() { // also of unpacking it
		if left, err := filepath.Glob(filepath.Join(cache, "tmp", "*")); err != nil || slices.ContainsFunc(left, func(f string) bool { return !strings.HasSuffix(f, ".lock") }) {
			t.Errorf("%v is left, %v", left, err)
		}
	})
	return Build(t.Context(), Options{Cache: cache, Lock: &lock, Launcher: launcher, Progress: func(step string) { t.Log(step) }})
}

// copyClip copies the clip from the cache of this machine. The build checks it, and encoding it takes as long as all other steps.
func copyClip(t *testing.T, cache string) {
	t.Helper()
	ours, err := image.OpenCache("")
	must.Do(t, err)
	clip := "clip-" + clipSHA256[:12] + ".ivf"
	if content, err := os.ReadFile(filepath.Join(ours.Dir(), clip)); err == nil {
		must.Do(t, os.WriteFile(filepath.Join(cache, clip), content, 0o644))
	}
}

func wantWorkload(t *testing.T, launcher *process.Launcher, img *Image, lock Lock) {
	t.Helper()
	must.Do(t, validate.Image(img.OCI()))
	embedded, err := Embedded(runtime.GOARCH)
	must.Do(t, err)
	if want := bytes.Equal(lock.Format(), embedded.Format()); img.Pinned() != want {
		t.Errorf("it is of the list of packages that comes with the program: %t, want %t", img.Pinned(), want)
	}
	const limit = 80 << 20
	manifest, err := img.OCI().Manifest()
	must.Do(t, err)
	size := int64(0)
	for _, l := range manifest.Layers {
		size += l.Size
	}
	if size > limit {
		t.Errorf("the image has %d bytes, and may have %d", size, int64(limit))
	}
	contents, err := ContentsOf(img.OCI())
	must.Do(t, err)
	for _, name := range []string{"fio", "libc6", "sysbench", "touchstone"} {
		i := slices.IndexFunc(contents.Packages, func(p Part) bool { return p.Name == name })
		if i < 0 || contents.Packages[i].Files == 0 || contents.Packages[i].Version == "" {
			t.Errorf("package %s is %d in the contents", name, i)
		}
	}
	bill, err := SBOM(img.OCI())
	must.Do(t, err)
	doc, err := json.Read(bytes.NewReader(bill))
	if err != nil || len(doc.Packages) != len(contents.Packages) {
		t.Errorf("the bill of materials: %v", err)
	}
	rootfs, err := img.Rootfs(t.Context())
	must.Do(t, err)
	for _, file := range wanted().Files {
		if _, err := os.Stat(filepath.Join(rootfs, file)); err != nil {
			t.Error(err)
		}
	}
	wantLinpack(t, launcher, rootfs)
	rebuild, err := Build(t.Context(), Options{Cache: filepath.Dir(filepath.Dir(rootfs)), Lock: &lock})
	if err != nil || rebuild.Name() != img.Name() {
		t.Errorf("from the cache: %v", err)
	}
}

// wantLinpack runs linpack as the image has it, by the image's dynamic linker and libraries. The launcher
// starts it, because it would reap a process that another package starts.
func wantLinpack(t *testing.T, launcher *process.Launcher, rootfs string) {
	t.Helper()
	lib := filepath.Join(rootfs, "usr/lib", architectures[runtime.GOARCH].triplet)
	linker, err := filepath.Glob(filepath.Join(rootfs, "usr/lib*", "ld-linux-*"))
	if matches, moreErr := filepath.Glob(filepath.Join(lib, "ld-linux-*")); moreErr == nil {
		linker = append(linker, matches...)
	}
	if err != nil || len(linker) == 0 {
		t.Fatalf("the image has no dynamic linker, %v", err)
	}
	linpack := func(args ...string) (stdout, stderr string, code int) {
		var out, errs bytes.Buffer
		var output process.Output
		must.Do(t, output.Open(&out, &errs))
		cmd := exec.CommandContext(t.Context(), linker[len(linker)-1], append([]string{"--library-path", lib, filepath.Join(rootfs, "usr/bin/linpack")}, args...)...)
		output.Set(cmd)
		err := launcher.Run(t.Context(), cmd)
		var exit *process.ExitError
		if errors.As(err, &exit) {
			code, err = exit.Exit.Status.ExitStatus(), nil
		}
		must.Do(t, err, output.Close(), output.Wait(t.Context()))
		return out.String(), errs.String(), code
	}
	out, errs, code := linpack("--n", "400", "--runs", "3", "--threads", "1")
	var found struct {
		Program                   string
		Version, N, Runs, Threads int
		Seconds                   []float64
		Rate                      float64 `json:"flops_per_second"`
		Residual                  float64
	}
	if err := stdjson.Unmarshal([]byte(out), &found); err != nil || code != 0 {
		t.Fatalf("linpack ended with %d, %v: %s%s", code, err, out, errs)
	}
	const n = 400.0
	want := (2.0/3*n*n*n + 2*n*n) / slices.Min(found.Seconds)
	if found.Program != "linpack" || found.N != n || found.Runs != 3 || len(found.Seconds) != 3 || found.Threads != 1 ||
		found.Rate < want*0.99 || found.Rate > want*1.01 || found.Residual <= 0 || found.Residual >= 16 {
		t.Errorf("%s; the rate must be %g", out, want)
	}
	// Two threads divide the matrix in another way than one, so the rounding errors differ. They were the same with dgesv_, which left
	// the second thread idle.
	one, _, _ := linpack("--n", "2000", "--threads", "1")
	two, errs, code := linpack("--n", "2000", "--threads", "2")
	residual := func(out string) string {
		_, tail, _ := strings.Cut(out, `"residual":`)
		return tail
	}
	if code != 0 || residual(one) == "" || residual(one) == residual(two) {
		t.Errorf("with one thread: %s\nwith two, code %d: %s%s", one, code, two, errs)
	}
	for _, bad := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--n", "0"}, 2, "--n must be from 1"},
		{[]string{"--n"}, 2, "--n must be from 1"},
		{[]string{"--runs", "x"}, 2, "--runs must be from 1"},
		{[]string{"--what", "1"}, 2, "usage: linpack"},
		{[]string{"--library", "libnone.so"}, 1, "libnone.so: cannot open"},
		{[]string{"--library", "libc.so.6"}, 1, "dgetrf_"},
	} {
		if out, errs, code := linpack(bad.args...); code != bad.code || !strings.Contains(errs, bad.says) || out != "" {
			t.Errorf("%v: code %d, %q, %q", bad.args, code, out, errs)
		}
	}
}

// A changed layer is noticed during unpacking, and the image is built again.
func TestDamagedImageIsBuiltAgain(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // so that the second build stops at the missing mmdebstrap
	var steps []string
	lock := netbase(t) // the binary has no digest for the image of this list
	o := Options{Cache: t.TempDir(), Lock: &lock, Progress: func(step string) { steps = append(steps, step) }}
	b, err := newBuilder(o)
	must.Do(t, err)
	putSkeleton(t, b)
	left := filepath.Join(o.Cache, "tmp", image.OwnPrefix+"of-a-killed-build")
	must.Do(t, os.MkdirAll(filepath.Join(left, "mmdebstrap.1"), 0o700))
	img, err := Build(t.Context(), o)
	must.Do(t, err)
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory of a killed build still exists: %v", err)
	}
	layers, err := img.OCI().Layers()
	must.Do(t, err)
	digest, err := layers[0].Digest()
	must.Do(t, err)
	blob := filepath.Join(o.Cache, "blobs", "sha256", digest.Hex)
	content, err := os.ReadFile(blob)
	must.Do(t, err)
	content[len(content)/2] ^= 1
	must.Do(t, os.WriteFile(blob, content, 0o644))
	if _, err := img.Rootfs(t.Context()); err == nil || !strings.Contains(err.Error(), "install the package") {
		t.Errorf("%v, want an error of the second build", err)
	}
	if !slices.ContainsFunc(steps, func(step string) bool { return strings.Contains(step, "damaged") }) {
		t.Errorf("what is told is %v", steps)
	}
	if img, err := Cached(o); img != nil || err != nil {
		t.Errorf("the damaged image is still there: %v, %v", img, err)
	}
}

// wantPin compares the layers of an image of the embedded list with the digests in the binary.
func wantPin(t *testing.T, img *Image) {
	t.Helper()
	if !img.Pinned() {
		return
	}
	want, err := locks.ReadFile(pinFile(runtime.GOARCH))
	must.Do(t, err)
	if got, err := img.Pin(); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the digests are %s, %v; want %s", got, err, want)
	}
}

// putSkeleton puts an image without programs into the cache, for the one that is asked for.
func putSkeleton(t *testing.T, b *builderOf) {
	t.Helper()
	layers, err := inFiles(t.TempDir(), skeleton())
	must.Do(t, err)
	oci, err := assemble(b.Arch, layers...)
	must.Do(t, err)
	_, err = b.cache.Put(t.Context(), b.name, oci)
	must.Do(t, err)
}

// An architecture without our programs has no image.
func TestMissingPrograms(t *testing.T) {
	_, err := Build(t.Context(), Options{Cache: t.TempDir(), Arch: "s390x", Lock: &Lock{Arch: "s390x"}})
	if !errors.Is(err, image.ErrNoProbe) || !strings.Contains(err.Error(), `"s390x"`) {
		t.Errorf("%v, want an error with the missing program", err)
	}
}

// netbase is a lock of one small package that depends on nothing, with the version that Debian has now.
func netbase(t *testing.T) Lock {
	t.Helper()
	lock, err := Embedded(runtime.GOARCH)
	must.Do(t, err)
	p, ok := lock.find("netbase")
	if !ok {
		t.Fatal("the lock has no netbase")
	}
	lock.Packages = []Package{p}
	return lock
}

// testBuilder makes a builder that has what fetchLocked needs.
func testBuilder(t *testing.T, mirror string) (*builderOf, *fetcher) {
	t.Helper()
	launcher := fetching(t)
	dir := t.TempDir()
	b := &builderOf{Options: Options{Mirror: mirror, Launcher: launcher}, dir: dir}
	return b, &fetcher{launcher: launcher, dir: dir, progress: func(string) {}}
}

// mirrors serves Debian as a mirror does that has lost some files, below /debian, and whole below /snapshot.
func mirrors(t *testing.T, gap string) (base string, requests func() []string) {
	t.Helper()
	upstream, err := url.Parse(hostMirror("/"))
	must.Do(t, err)
	var mu sync.Mutex
	var paths []string
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		_, rest, _ := strings.Cut(r.In.URL.Path, "/dists/")
		path := "/dists/" + rest
		if rest == "" {
			_, rest, _ = strings.Cut(r.In.URL.Path, "/pool/")
			path = "/pool/" + rest
		}
		r.SetURL(upstream)
		r.Out.URL.Path, r.Out.URL.RawPath = upstream.Path+path, ""
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		paths = append(paths, r.URL.Path)
		mu.Unlock()
		if strings.HasPrefix(r.URL.Path, "/debian/") && strings.Contains(r.URL.Path, gap) {
			http.NotFound(w, r)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(paths)
	}
}

// Packages that the mirror no longer has come from the archive of snapshots, at the right time.
func TestRealSnapshot(t *testing.T) {
	cells.Need(t, "image/build")
	lock := netbase(t)
	base, requests := mirrors(t, "/netbase_")
	b, f := testBuilder(t, base+"/debian")
	was := snapshots
	snapshots = base + "/snapshot/"
	defer func() { snapshots = was }()
	got, err := b.fetchLocked(t.Context(), f, lock, "packages.tar")
	if errors.Is(err, ErrUnreachable) {
		unavailable(t, err)
	}
	must.Do(t, err)
	got.close()
	if !got.tree.has("/etc/services") {
		t.Error("the package was not unpacked")
	}
	prefix := "/snapshot/" + lock.snapshot().Format("20060102T150405Z") + "/"
	if !slices.ContainsFunc(requests(), func(p string) bool { return strings.HasPrefix(p, prefix+"pool/") }) {
		t.Errorf("below %s nothing was asked for: %v", prefix, requests())
	}
}

func TestRealVanished(t *testing.T) {
	cells.Need(t, "image/build")
	base, _ := mirrors(t, "no file")
	b, f := testBuilder(t, base+"/debian")
	was := snapshots
	snapshots = "http://127.0.0.1:1/"
	defer func() { snapshots = was }()
	lock := netbase(t)
	lock.Packages[0].Version = "0.1"
	_, err := b.fetchLocked(t.Context(), f, lock, "packages.tar")
	vanishedErr := (*VanishedError)(nil)
	if !errors.As(err, &vanishedErr) {
		if errors.Is(err, ErrUnreachable) {
			unavailable(t, err)
		}
		t.Fatalf("%v, want a VanishedError", err)
	}
	for _, want := range []string{"netbase 0.1", base, "snapshots", "--update", "--mirror", "image load"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
}

// A package that has the right name and version, but is another.
func TestRealOtherPackage(t *testing.T) {
	cells.Need(t, "image/build")
	b, f := testBuilder(t, hostMirror("/"))
	lock := netbase(t)
	lock.Packages[0].SHA256 = sum
	_, err := b.fetchLocked(t.Context(), f, lock, "packages.tar")
	if errors.Is(err, ErrUnreachable) {
		unavailable(t, err)
	}
	if err == nil || !strings.Contains(err.Error(), "has the checksum") {
		t.Errorf("%v, want one of the checksum", err)
	}
}

func TestRealNoMirror(t *testing.T) {
	cells.Need(t, "image/build")
	launcher := fetching(t)
	cache := t.TempDir()
	_, err := Build(t.Context(), Options{Cache: cache, Launcher: launcher, Mirror: "http://127.0.0.1:1/debian"})
	if !errors.Is(err, ErrUnreachable) {
		t.Fatalf("%v, want ErrUnreachable", err)
	}
	for _, want := range []string{"http://127.0.0.1:1/debian", "--mirror", "touchstone image load FILE"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	wantNothing(t, cache)
}

// A cancelled build leaves nothing.
func TestRealCancel(t *testing.T) {
	cells.Need(t, "image/build")
	launcher := fetching(t)
	cache := t.TempDir()
	ctx, stop := context.WithCancelCause(t.Context())
	errEnough := errors.New("enough")
	_, err := Build(ctx, Options{Cache: cache, Launcher: launcher, Progress: func(step string) {
		if step == "downloading packages" {
			stop(errEnough)
		}
	}})
	if errors.Is(err, ErrUnreachable) {
		unavailable(t, err)
	}
	if !errors.Is(err, errEnough) {
		t.Errorf("%v, want why it was stopped", err)
	}
	wantNothing(t, cache)
}

func wantNothing(t *testing.T, cache string) {
	t.Helper()
	err := filepath.WalkDir(cache, func(name string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(name) != ".lock" {
			t.Errorf("%s is left", name)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(filepath.Join(cache, "tmp")); err != nil || len(left) > 1 {
		t.Errorf("%v is left, %v", left, err)
	}
}

func TestBuildWithoutTools(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	cache := t.TempDir()
	_, err := Build(t.Context(), Options{Cache: cache})
	for _, want := range []string{"make the workload image: ", "install the package", "touchstone image load FILE"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
	wantNothing(t, cache)
	if img, err := Cached(Options{Cache: cache}); img != nil || err != nil {
		t.Errorf("%v, %v from an empty cache", img, err)
	}
	if _, err := Build(t.Context(), Options{Cache: cache, Arch: "m68k"}); err == nil || !strings.Contains(err.Error(), "amd64, arm64, riscv64") {
		t.Errorf("for an architecture that there is not: %v", err)
	}
	lock := netbase(t)
	lock.Arch = "riscv64"
	if _, err := Build(t.Context(), Options{Cache: cache, Arch: "arm64", Lock: &lock}); err == nil || !strings.Contains(err.Error(), "is for riscv64") {
		t.Errorf("with the list of another architecture: %v", err)
	}
}

// The list in use is the embedded one, unless the cache has another.
func TestCurrent(t *testing.T) {
	cache, err := image.OpenCache(t.TempDir())
	must.Do(t, err)
	embedded, err := Embedded("arm64")
	must.Do(t, err)
	want := func(packages int) {
		t.Helper()
		if lock, err := Current(cache, "arm64"); err != nil || len(lock.Packages) != packages {
			t.Errorf("a list of %d packages, want %d (%v)", len(lock.Packages), packages, err)
		}
	}
	want(len(embedded.Packages))
	subset := embedded
	subset.Packages = subset.Packages[:3]
	must.Do(t, Keep(cache, subset))
	want(3)
	subset.Date = subset.Date.Add(-time.Second) // a newer touchstone has a newer list
	must.Do(t, Keep(cache, subset))
	want(len(embedded.Packages))
	must.Do(t, os.WriteFile(ownLock(cache, "arm64"), []byte("damaged"), 0o644))
	if _, err := Current(cache, "arm64"); err == nil || !strings.Contains(err.Error(), "--update") {
		t.Errorf("a damaged list: %v", err)
	}
	must.Do(t, Discard(cache, "arm64"), Discard(cache, "arm64"))
	want(len(embedded.Packages))
}

// pretendMirror replaces mmdebstrap by a program that fetches one package from a release with a date.
func pretendMirror(t *testing.T, date string) {
	t.Helper()
	archive := treeOf(t,
		file{archivesDir + "/thing_1_all.deb", debOf(t, "", file{"control", "Package: thing\nVersion: 1\n"})},
		file{"var/lib/apt/lists/mirror_InRelease", "Date: " + date + "\n"},
	).file.Name()
	bin := t.TempDir()
	for name, script := range map[string]string{mmdebstrap: "exec cat '" + archive + "'", "apt-get": "", "dpkg-deb": ""} {
		must.Do(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	was := keyrings
	t.Cleanup(func() { keyrings = was })
	keyrings = []string{archive}
}

// A mirror with an older release than the embedded list makes no new list.
func TestOlderMirrorIsRefused(t *testing.T) {
	launcher := launching(t)
	embedded, err := Embedded(runtime.GOARCH)
	must.Do(t, err)
	o := Options{Cache: t.TempDir(), Arch: runtime.GOARCH, Mirror: "http://mirror.example/debian", Launcher: launcher}
	for days, want := range map[int]error{-1: ErrOlder, 0: nil, 1: nil} {
		pretendMirror(t, embedded.Date.AddDate(0, 0, days).Format(time.RFC1123))
		if lock, err := Update(t.Context(), o); !errors.Is(err, want) {
			t.Errorf("a release %d days after the embedded list: %v, %v; want %v", days, lock.Date, err, want)
		} else if want != nil && (!strings.Contains(err.Error(), o.Mirror) || !strings.Contains(err.Error(), "--mirror")) {
			t.Errorf("the error is %v", err)
		}
	}
}

// A new list is the one in use once there is an image of it, and not before.
func TestRenew(t *testing.T) {
	launcher := launching(t)
	pretendMirror(t, "Sat, 01 Jan 2050 07:55:41 UTC")
	o := Options{Cache: t.TempDir(), Arch: runtime.GOARCH, Mirror: "http://mirror.example/debian", Launcher: launcher}
	cache, err := image.OpenCache(o.Cache)
	must.Do(t, err)

	if _, err := Renew(t.Context(), o); err == nil || !strings.Contains(err.Error(), "make the workload image: ") {
		t.Errorf("of packages without the programs: %v", err)
	}
	embedded, err := Embedded(o.Arch)
	must.Do(t, err)
	if list, err := Current(cache, o.Arch); err != nil || !slices.Equal(list.Packages, embedded.Packages) {
		t.Errorf("a list of %d packages without an image is in use, %v", len(list.Packages), err)
	}

	lock, err := Update(t.Context(), o)
	must.Do(t, err)
	b, err := newBuilder(Options{Cache: o.Cache, Arch: o.Arch, Lock: &lock})
	must.Do(t, err)
	putSkeleton(t, b)
	img, err := Renew(t.Context(), o)
	must.Do(t, err)
	if list, err := Current(cache, o.Arch); err != nil || !slices.Equal(list.Packages, lock.Packages) {
		t.Errorf("the list of the new image is not in use: %d packages, %v", len(list.Packages), err)
	}
	if img.Pinned() {
		t.Error("the new list is taken for the one that comes with the program")
	}
}

func TestPatternIsTheSame(t *testing.T) {
	var one, two bytes.Buffer
	must.Do(t, writePattern(&one, 3), writePattern(&two, 3))
	const frame = clipWidth * clipHeight * 3 / 2
	if head := bytes.IndexByte(one.Bytes(), '\n') + 1; one.Len() != head+3*(len("FRAME\n")+frame) {
		t.Errorf("there are %d bytes", one.Len())
	}
	if !bytes.Equal(one.Bytes(), two.Bytes()) {
		t.Error("made twice it is not the same")
	}
	if err := writePattern(failing{}, 1); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("to nobody: %v", err)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
