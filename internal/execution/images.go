package execution

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/image"
	"github.com/touchstone-bench/touchstone/internal/image/debian"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/process"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
)

// UnpinnedNote is the note for a workload image that is built from another list of packages than the embedded one.
const UnpinnedNote = "the workload image is built from an updated list of packages (touchstone image build --update); " +
	"touchstone image build --pinned returns to the list of this touchstone"

// madeImage is an image with a directory that has its file system.
type madeImage struct {
	v1.Image
	rootfs      string
	updatedList bool // see result.Image
}

// imageMaker makes an image.
type imageMaker func(ctx context.Context, image bench.Image) (madeImage, error)

// publisher publishes an image under a name and returns its reference.
type publisher func(ctx context.Context, name string, image v1.Image) (ref string, err error)

// imagesOf lists the images of work, without the probe's image, which every run has.
func imagesOf(work []plan.Work) []bench.Image {
	var images []bench.Image
	for _, w := range work {
		if name := w.Benchmark.Image; name != bench.ProbeImage && !slices.Contains(images, name) {
			images = append(images, name)
		}
	}
	return images
}

// images prepares the images that the run's work needs, if at least one target works.
func (e *Execution) images(ctx context.Context) (map[bench.Image]runner.Image, []result.Image, error) {
	names := imagesOf(e.work)
	switch {
	case e.isFake:
		return fakeFiles(names), nil, nil
	case e.session == nil:
		pod, err := PodImage(ctx, e.Pods)
		return e.podImages(names), []result.Image{pod}, err
	}
	probe := runner.Image{Rootfs: e.session.Rootfs, Ref: e.session.Registry.Probe()}
	if len(names) == 0 || !slices.ContainsFunc(e.targets, available) {
		return map[bench.Image]runner.Image{bench.ProbeImage: probe}, nil, nil
	}
	files, facts, err := prepareImages(ctx, names, e.makeImage, e.session.Registry.Publish)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range facts {
		if f.Unavailable != "" {
			e.report(Skipped, "benchmarks that need "+f.Unavailable)
		}
	}
	files[bench.ProbeImage] = probe
	return files, facts, nil
}

// prepareImages makes and publishes images. An image that cannot be made has its reason, and the benchmarks that
// need it are skipped. Only ctx causes an error.
func prepareImages(ctx context.Context, images []bench.Image, maker imageMaker, publish publisher) (map[bench.Image]runner.Image, []result.Image, error) {
	files := map[bench.Image]runner.Image{}
	var facts []result.Image
	for i, name := range images {
		fact := result.Image{Name: string(name)}
		source, err := maker(ctx, name)
		var ref string
		if err == nil {
			fact.UpdatedList = source.updatedList
			ref, err = publish(ctx, publishedName(name, i), source.Image)
		}
		if err == nil {
			fact.Digest, fact.Size, err = digestAndSize(source.Image)
		}
		if ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
		if err != nil {
			err = unavailable(name, err)
			fact = result.Image{Name: string(name), Unavailable: err.Error()}
		}
		files[name] = runner.Image{Rootfs: source.rootfs, Ref: ref, Err: err}
		facts = append(facts, fact)
	}
	return files, facts, nil
}

// publishedName is the name of an image in the run's registry.
func publishedName(name bench.Image, index int) string {
	if name == bench.WorkloadImage {
		return "workload:latest"
	}
	return fmt.Sprintf("custom-%d:latest", index+1) // a path may have characters that a name must not have
}

// unavailable returns the error of an image that cannot be made.
func unavailable(name bench.Image, err error) error {
	if engine.Unsupported(err) {
		return err
	}
	advice := "fix the file, or name another image in the plan"
	if name == bench.WorkloadImage {
		advice = "" // the build's own error has the advice
	}
	return &engine.UnsupportedError{What: "image " + string(name), Reason: err.Error(), Advice: advice}
}

// digestAndSize returns the digest of an image, and the size of its configuration and layers in bytes.
func digestAndSize(source v1.Image) (digest string, size int64, err error) {
	hash, err := source.Digest()
	if err != nil {
		return "", 0, err
	}
	manifest, err := source.Manifest()
	if err != nil {
		return "", 0, err
	}
	size = manifest.Config.Size
	for _, l := range manifest.Layers {
		size += l.Size
	}
	return hash.String(), size, nil
}

// makeImage makes an image by its name in the plan. The workload image is built unless the cache has it. Any
// other name is the path of an image.
func (e *Execution) makeImage(ctx context.Context, name bench.Image) (madeImage, error) {
	if name != bench.WorkloadImage {
		e.report(Step, "reading image "+string(name))
		return load(ctx, filepath.Join(e.session.dir.Data, "images"), string(name))
	}
	if e.Programs != nil {
		return e.unpackWorkload(ctx)
	}
	return makeWorkload(ctx, e.session.Launcher, e.report)
}

// unpackWorkload makes the workload image of a node, and unpacks it in a directory of the run.
func (e *Execution) unpackWorkload(ctx context.Context) (madeImage, error) {
	e.report(Step, "unpacking the workload image")
	cache, err := image.OpenCache(filepath.Join(e.session.dir.Data, "images"))
	if err != nil {
		return madeImage{}, err
	}
	source, err := e.Programs(ctx, e.session.dir.Data)
	if err != nil {
		return madeImage{}, err
	}
	if source, err = cache.Put(ctx, string(bench.WorkloadImage), source); err != nil {
		return madeImage{}, err
	}
	rootfs, err := cache.Rootfs(ctx, source)
	return madeImage{Image: source, rootfs: rootfs}, err
}

// makeWorkload makes the workload image.
func makeWorkload(ctx context.Context, launcher *process.Launcher, report func(EventKind, string)) (madeImage, error) {
	product, err := debian.Build(ctx, debian.Options{Launcher: launcher, Progress: func(step string) { report(Step, step) }})
	if err != nil {
		return madeImage{}, err
	}
	if !product.Pinned() {
		report(Note, UnpinnedNote)
	}
	report(Step, "unpacking the workload image")
	rootfs, err := product.Rootfs(ctx) // this may rebuild a damaged image
	return madeImage{product.OCI(), rootfs, !product.Pinned()}, err
}

// load reads an image of the user's, from a file or a directory, and unpacks it below dir. dir belongs to the run
// and is removed with it, also after a kill. No other run uses it.
func load(ctx context.Context, dir, path string) (madeImage, error) {
	cache, err := image.OpenCache(dir)
	if err != nil {
		return madeImage{}, err
	}
	_, source, err := cache.Import(ctx, path, image.Named(""))
	if err != nil {
		return madeImage{}, err
	}
	rootfs, err := cache.Rootfs(ctx, source)
	return madeImage{Image: source, rootfs: rootfs}, err
}
