package cli

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/random"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/image"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// makes gives images of two layers, but for the names in fails.
func makes(t *testing.T, fails map[bench.Image]error) imageMaker {
	t.Helper()
	return func(_ context.Context, name bench.Image) (v1.Image, string, error) {
		if err := fails[name]; err != nil {
			return nil, "", err
		}
		made, err := random.Image(1000, 2)
		return made, "/rootfs/of/" + string(name), err
	}
}

func TestImagesAreMadeReady(t *testing.T) {
	published := map[string]v1.Image{}
	publish := func(_ context.Context, as string, made v1.Image) (string, error) {
		published[as] = made
		return "registry/" + as, nil
	}
	work := []plan.Work{
		{Benchmark: bench.Benchmark{Image: bench.WorkloadImage}},
		{},
		{Benchmark: bench.Benchmark{Image: "Mine and/thine.tar"}},
		{Benchmark: bench.Benchmark{Image: bench.WorkloadImage}},
	}
	files, facts, err := makeFiles(t.Context(), imagesOf(work), makes(t, nil), publish)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 2 || files[bench.WorkloadImage].Ref != "registry/workload:latest" || files[bench.WorkloadImage].Rootfs != "/rootfs/of/workload" ||
		files["Mine and/thine.tar"].Ref != "registry/own-2:latest" {
		t.Errorf("files are %+v", files)
	}
	digest, err := published["workload:latest"].Digest()
	if err != nil {
		t.Fatal(err)
	}
	if len(facts) != 2 || facts[0].Name != "workload" || facts[0].Digest != digest.String() || facts[0].Size < 2000 || facts[0].Unavailable != "" {
		t.Errorf("on record are %+v, want the digest %s", facts, digest)
	}
}

// An image that cannot be had keeps only what needs it from running.
func TestImageThatCannotBeHad(t *testing.T) {
	refused := errors.New("the registry is full")
	publish := func(_ context.Context, as string, _ v1.Image) (string, error) {
		if as == "own-3:latest" {
			return "", refused
		}
		return as, nil
	}
	own := &engine.UnsupportedError{What: "x", Reason: "y", Advice: "z"}
	images := []bench.Image{bench.WorkloadImage, "a.tar", "b.tar", "c.tar"}
	files, facts, err := makeFiles(t.Context(), images, makes(t, map[bench.Image]error{bench.WorkloadImage: errors.New("no mirror answers"), "a.tar": own}), publish)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{
		"image workload: no mirror answers",
		"x: y; z",
		"image b.tar: the registry is full; mend the file, or name another image in the plan",
		"",
	} {
		err := files[images[i]].Err
		if want == "" {
			if err != nil || facts[i].Digest == "" {
				t.Errorf("%s: %v, %+v", images[i], err, facts[i])
			}
			continue
		}
		if !engine.Unsupported(err) || err.Error() != want || facts[i] != (result.Image{Name: string(images[i]), Unavailable: want}) {
			t.Errorf("%s: %v, on record as %+v; want %q", images[i], err, facts[i], want)
		}
	}

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(ErrInterrupted)
	if _, _, err := makeFiles(ctx, images, makes(t, map[bench.Image]error{bench.WorkloadImage: ErrInterrupted}), publish); !errors.Is(err, ErrInterrupted) {
		t.Errorf("interrupted: %v", err)
	}
}

// An image of the user's is read from a layout, and has its files unpacked; what is none is refused.
func TestUsersImageIsRead(t *testing.T) {
	apart, cache := t.TempDir(), filepath.Join(t.TempDir(), "none")
	t.Setenv(image.CacheVariable, cache)
	wanted, err := image.Build(runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	saved, err := layout.Write(dir, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	if err := saved.AppendImage(wanted); err != nil {
		t.Fatal(err)
	}
	loaded, rootfs, err := load(t.Context(), apart, dir)
	if err != nil {
		t.Fatal(err)
	}
	want, err := wanted.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := loaded.Digest(); got != want || err != nil {
		t.Errorf("the digest is %v, %v; want %v", got, err, want)
	}
	if !strings.HasPrefix(rootfs, apart) {
		t.Errorf("it is unpacked to %s, want a place below %s", rootfs, apart)
	}
	if _, err := os.Stat(cache); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the cache for good was used: %v", err)
	}
	if info, err := os.Stat(filepath.Join(rootfs, "probe")); err != nil || info.Mode()&0o111 == 0 {
		t.Errorf("the probe in %s: %v, %v", rootfs, info, err)
	}
	for _, path := range []string{"/no/such/image.tar", t.TempDir()} {
		if _, _, err := load(t.Context(), apart, path); err == nil {
			t.Errorf("%s is read as an image", path)
		}
	}
}

func TestFakeTargetsHaveNoPrograms(t *testing.T) {
	files := fakeFiles([]bench.Image{bench.WorkloadImage, "mine.tar"})
	if !engine.Unsupported(files[bench.WorkloadImage].Err) || files["mine.tar"].Err != nil || files[bench.ProbeImage].Rootfs == "" || len(files) != 3 {
		t.Errorf("files are %+v", files)
	}
}

func TestRunGoesOnWithItsImages(t *testing.T) {
	then := []result.Image{{Name: "workload", Digest: "sha256:1"}, {Name: "mine", Unavailable: "no"}}
	for name, tt := range map[string]struct {
		now []result.Image
		err string
	}{
		"the same":         {slices.Clone(then), ""},
		"one more":         {append(slices.Clone(then), result.Image{Name: "more"}), ""},
		"another":          {[]result.Image{{Name: "workload", Digest: "sha256:2"}}, "image workload was sha256:1 when the run began and is sha256:2 now"},
		"none":             {nil, "image workload was there when the run began and is not any more"},
		"not to be had":    {[]result.Image{{Name: "workload", Unavailable: "no"}}, "is not any more"},
		"there at last":    {[]result.Image{then[0], {Name: "mine", Digest: "sha256:3"}}, ""},
		"in another order": {[]result.Image{then[1], then[0]}, ""},
	} {
		err := sameImages(then, tt.now)
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %v, want %q", name, err, tt.err)
		}
	}
}

func TestStepsAreShown(t *testing.T) {
	for live, want := range map[bool]string{true: "\r\x1b[Kencoding …", false: "encoding\n"} {
		var out bytes.Buffer
		New(Environment{Stderr: &out, Live: live}).step("encoding")
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("live %v (-want +got):\n%s", live, diff)
		}
	}
}

func TestPullingIsShown(t *testing.T) {
	for _, tt := range []struct {
		env  Environment
		want string
	}{
		{Environment{}, "getting image workload ready on docker/runc …\n"},
		{Environment{Live: true}, "\r\x1b[Kgetting image workload ready on docker/runc …"},
		{Environment{Live: true, Width: 20}, "\r\x1b[Kgetting image workl"},
	} {
		var out bytes.Buffer
		tt.env.Stderr = &out
		(&progress{env: tt.env}).Pulling("docker/runc", bench.WorkloadImage)
		if out.String() != tt.want {
			t.Errorf("it says %q, want %q", out.String(), tt.want)
		}
	}
}

func TestWhatWasDoneToTheHost(t *testing.T) {
	var c conduct
	if got := c.caveats(); got != nil {
		t.Errorf("of nothing the run says %q", got)
	}
	c.drops.Store(7)
	c.refused = "it is read-only"
	want := []string{
		"the page cache of the whole machine was dropped 7 times, each right before a cold reading",
		"the page cache was not dropped, though it might have been: it is read-only",
	}
	if diff := cmp.Diff(want, c.caveats()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
