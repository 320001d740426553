package image

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// emptied is an image whose second layer lists n entries of a directory, and removes all other entries by an opaque whiteout at its end. The
// first layer has n other entries there.
func emptied(t testing.TB, n int, typeflag byte) v1.Image {
	t.Helper()
	layer := func(prefix string) []tar.Header {
		var headers []tar.Header
		for i := range n {
			headers = append(headers, tar.Header{Typeflag: typeflag, Name: fmt.Sprintf("d/%s%d", prefix, i), Mode: 0o755})
		}
		return headers
	}
	return made(t, archive(t, layer("old")...), archive(t, append(layer("new"), regularFile("d/"+opaque))...))
}

// The memory of an opaque whiteout grows with the number of entries, and not with its square.
//
// Invariant linear-unpacking: The time to unpack an image grows with its entries, and not with their square.
func TestOpaqueWhiteoutIsLinear(t *testing.T) {
	const lo, hi = 250, 2000
	bytes := func(n int) uint64 {
		image := emptied(t, n, tar.TypeReg)
		var start, end runtime.MemStats
		runtime.ReadMemStats(&start)
		dir, err := unpacked(t, image, defaultLimits)
		runtime.ReadMemStats(&end)
		must.Do(t, err)
		left, err := os.ReadDir(filepath.Join(dir, "d"))
		if err != nil || len(left) != n || strings.HasPrefix(left[0].Name(), "old") {
			t.Errorf("%d entries are left of %d, %v", len(left), n, err)
		}
		return end.TotalAlloc - start.TotalAlloc
	}
	if costLo, costHi := bytes(lo), bytes(hi); costHi > 2*(hi/lo)*costLo {
		t.Errorf("%d entries took %d bytes of memory, and %d entries %d bytes", lo, costLo, hi, costHi)
	}
}

// A second opaque whiteout of a layer has nothing to remove.
func TestOpaqueWhiteoutRemovesOtherLayersOnly(t *testing.T) {
	directory := tar.Header{Typeflag: tar.TypeDir, Name: "d/sub", Mode: 0o700}
	dir, err := unpacked(t, made(t,
		archive(t, directory, regularFile("d/sub/old"), regularFile("d/old")),
		archive(t, regularFile("d/"+opaque), regularFile("d/sub/new"), regularFile("d/"+opaque), regularFile("d/other"), regularFile("d/sub/"+opaque)),
		archive(t, regularFile("d/third"), regularFile("d/"+opaque)),
		archive(t, regularFile("d/sub/last")),
	), defaultLimits)
	must.Do(t, err)
	got := filesIn(t, dir)
	want := map[string]file{ // the directory of the first layer was removed, and so was its mode
		".": {mode: fs.ModeDir | 0o755}, "d": {mode: fs.ModeDir | 0o755}, "d/sub": {mode: fs.ModeDir | 0o755}, "d/sub/last": {0o644, "content"}, "d/third": {0o644, "content"},
	}
	if !maps.Equal(got, want) {
		t.Errorf("the files are %v, want %v", got, want)
	}
}

// A removal of many files ends with its context.
func TestUnpackObeysItsContext(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	must.Do(t, err)
	defer func() {
		must.Do(t, root.Close())
	}()
	for i := range 10 {
		must.Do(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o600))
	}
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	u := &unpacker{root: root, limits: defaultLimits, space: &spaceGuard{dir: dir}, layers: 1}
	if err := u.clear(ctx, "."); !errors.Is(err, cause) {
		t.Errorf("an opaque whiteout: %v, want the cause", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 10 {
		t.Errorf("%d files are left of 10, %v", len(left), err)
	}
	if err := u.finish(ctx); !errors.Is(err, cause) {
		t.Errorf("the modes of directories: %v, want the cause", err)
	}
	if err := u.archive(ctx, tar.NewReader(strings.NewReader(""))); !errors.Is(err, cause) {
		t.Errorf("a layer: %v, want the cause", err)
	}
}
