package execution

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/random"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/image"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// makes returns a maker of images with two layers. It fails for the names in fails.
func makes(t *testing.T, fails map[bench.Image]error) imageMaker {
	t.Helper()
	return func(_ context.Context, name bench.Image) (madeImage, error) {
		if err := fails[name]; err != nil {
			return madeImage{}, err
		}
		source, err := random.Image(1000, 2)
		return madeImage{source, "/rootfs/of/" + string(name), name == bench.WorkloadImage}, err
	}
}

func TestImagesArePublished(t *testing.T) {
	published := map[string]v1.Image{}
	publish := func(_ context.Context, name string, source v1.Image) (string, error) {
		published[name] = source
		return "registry/" + name, nil
	}
	work := []plan.Work{
		{Benchmark: bench.Benchmark{Image: bench.WorkloadImage}},
		{},
		{Benchmark: bench.Benchmark{Image: "Mine and/thine.tar"}},
		{Benchmark: bench.Benchmark{Image: bench.WorkloadImage}},
	}
	files, facts, err := prepareImages(t.Context(), imagesOf(work), makes(t, nil), publish)
	must.Do(t, err)
	if len(files) != 2 || files[bench.WorkloadImage].Ref != "registry/workload:latest" || files[bench.WorkloadImage].Rootfs != "/rootfs/of/workload" ||
		files["Mine and/thine.tar"].Ref != "registry/custom-2:latest" {
		t.Errorf("files are %+v", files)
	}
	digest, err := published["workload:latest"].Digest()
	must.Do(t, err)
	if len(facts) != 2 || facts[0].Name != "workload" || facts[0].Digest != digest.String() || facts[0].Size < 2000 || facts[0].Unavailable != "" {
		t.Errorf("the record is %+v, want the digest %s", facts, digest)
	}
	if !facts[0].UpdatedList || facts[1].UpdatedList {
		t.Errorf("the record is %+v, want an updated list for the first image only", facts)
	}
}

// An unavailable image is an error of its own, and the others are still published.
func TestUnavailableImage(t *testing.T) {
	refusal := errors.New("the registry is full")
	publish := func(_ context.Context, name string, _ v1.Image) (string, error) {
		if name == "custom-3:latest" {
			return "", refusal
		}
		return name, nil
	}
	cause := &engine.UnsupportedError{What: "x", Reason: "y", Advice: "z"}
	images := []bench.Image{bench.WorkloadImage, "a.tar", "b.tar", "c.tar"}
	files, facts, err := prepareImages(t.Context(), images, makes(t, map[bench.Image]error{bench.WorkloadImage: errors.New("no mirror responds"), "a.tar": cause}), publish)
	must.Do(t, err)
	for i, want := range []string{
		"image workload: no mirror responds",
		"x: y; z",
		"image b.tar: the registry is full; fix the file, or name another image in the plan",
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
			t.Errorf("%s: %v, recorded as %+v; want %q", images[i], err, facts[i], want)
		}
	}

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errStop)
	if _, _, err := prepareImages(ctx, images, makes(t, map[bench.Image]error{bench.WorkloadImage: errStop}), publish); !errors.Is(err, errStop) {
		t.Errorf("interrupted: %v", err)
	}
}

// An image of the user's is read from an OCI layout and unpacked. Anything else is refused.
func TestUsersImageIsRead(t *testing.T) {
	imageDir, cache := t.TempDir(), filepath.Join(t.TempDir(), "none")
	t.Setenv(image.CacheVariable, cache)
	source, err := image.Build(runtime.GOARCH)
	must.Do(t, err)
	dir := t.TempDir()
	folder, err := layout.Write(dir, empty.Index)
	must.Do(t, err)
	must.Do(t, folder.AppendImage(source))
	product, err := load(t.Context(), imageDir, dir)
	must.Do(t, err)
	want, err := source.Digest()
	must.Do(t, err)
	if got, err := product.Digest(); got != want || err != nil {
		t.Errorf("the digest is %v, %v; want %v", got, err, want)
	}
	if !strings.HasPrefix(product.rootfs, imageDir) {
		t.Errorf("it is unpacked to %s, want a directory below %s", product.rootfs, imageDir)
	}
	if _, err := os.Stat(cache); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the shared cache was used: %v", err)
	}
	if info, err := os.Stat(filepath.Join(product.rootfs, "probe")); err != nil || info.Mode()&0o111 == 0 {
		t.Errorf("the probe in %s: %v, %v", product.rootfs, info, err)
	}
	for _, path := range []string{"/no/such/image.tar", t.TempDir()} {
		if _, err := load(t.Context(), imageDir, path); err == nil {
			t.Errorf("%s is read as an image", path)
		}
	}
}

var errStop = errors.New("stop")

func TestFakeTargetsHaveNoPrograms(t *testing.T) {
	files := fakeFiles([]bench.Image{bench.WorkloadImage, "mine.tar"})
	if !engine.Unsupported(files[bench.WorkloadImage].Err) || files["mine.tar"].Err != nil || files[bench.ProbeImage].Rootfs == "" || len(files) != 3 {
		t.Errorf("files are %+v", files)
	}
}
