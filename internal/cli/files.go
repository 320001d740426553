package cli

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
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
)

// imageMaker gives an image with a directory that has its file system.
type imageMaker func(ctx context.Context, image bench.Image) (made v1.Image, rootfs string, err error)

// publisher publishes an image under a name, and gives its reference.
type publisher func(ctx context.Context, as string, image v1.Image) (ref string, err error)

// imagesOf lists the images of work beside the probe's, which every run has.
func imagesOf(work []plan.Work) []bench.Image {
	var all []bench.Image
	for _, w := range work {
		if name := w.Benchmark.Image; name != bench.ProbeImage && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// makeFiles makes images ready. One that cannot be had has the reason, for which what needs it is
// skipped: the error is only that of ctx.
func makeFiles(ctx context.Context, images []bench.Image, maker imageMaker, publish publisher) (map[bench.Image]runner.Files, []result.Image, error) {
	files := map[bench.Image]runner.Files{}
	var facts []result.Image
	for i, name := range images {
		fact := result.Image{Name: string(name)}
		made, rootfs, err := maker(ctx, name)
		var ref string
		if err == nil {
			ref, err = publish(ctx, publishedName(name, i), made)
		}
		if err == nil {
			fact.Digest, fact.Size, err = weigh(made)
		}
		if ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
		if err != nil {
			err = unavailable(name, err)
			fact = result.Image{Name: string(name), Unavailable: err.Error()}
		}
		files[name] = runner.Files{Rootfs: rootfs, Ref: ref, Err: err}
		facts = append(facts, fact)
	}
	return files, facts, nil
}

// publishedName is what an image is called in the run's registry.
func publishedName(name bench.Image, place int) string {
	if name == bench.WorkloadImage {
		return "workload:latest"
	}
	return fmt.Sprintf("own-%d:latest", place+1) // a path may hold what no name may
}

// unavailable says of an image that it cannot be had.
func unavailable(name bench.Image, err error) error {
	if engine.Unsupported(err) {
		return err
	}
	advice := "mend the file, or name another image in the plan"
	if name == bench.WorkloadImage {
		advice = "" // who could not make it has said what to do
	}
	return &engine.UnsupportedError{What: "image " + string(name), Reason: err.Error(), Advice: advice}
}

// weigh gives the digest of an image and the size of all that a registry serves of it.
func weigh(made v1.Image) (digest string, size int64, err error) {
	hash, err := made.Digest()
	if err != nil {
		return "", 0, err
	}
	manifest, err := made.Manifest()
	if err != nil {
		return "", 0, err
	}
	size = manifest.Config.Size
	for _, l := range manifest.Layers {
		size += l.Size
	}
	return hash.String(), size, nil
}

// fakeFiles are the images of fake targets: what the fake engine can imitate, which is no program of the field.
func fakeFiles(images []bench.Image) map[bench.Image]runner.Files {
	files := map[bench.Image]runner.Files{bench.ProbeImage: {Rootfs: fakeRootfs}}
	for _, name := range images {
		files[name] = runner.Files{Rootfs: fakeRootfs}
		if name == bench.WorkloadImage {
			files[name] = runner.Files{Err: &engine.UnsupportedError{
				What: "image " + string(name), Reason: "fake targets have no programs but the probe and echo", Advice: "measure on native or a runtime",
			}}
		}
	}
	return files
}

// sameImages makes sure that a run goes on with the images that it began with.
func sameImages(then, now []result.Image) error {
	for _, i := range then {
		at := slices.IndexFunc(now, func(n result.Image) bool { return n.Name == i.Name })
		switch {
		case i.Unavailable != "":
		case at < 0 || now[at].Unavailable != "":
			return fmt.Errorf("image %s was there when the run began and is not any more", i.Name)
		case now[at].Digest != i.Digest:
			return fmt.Errorf("image %s was %s when the run began and is %s now", i.Name, i.Digest, now[at].Digest)
		}
	}
	return nil
}

// images makes the images that the run's work needs, if there is a target for them.
func (r *execution) images(ctx context.Context) (map[bench.Image]runner.Files, []result.Image, error) {
	wanted := imagesOf(r.work)
	if r.session == nil {
		return fakeFiles(wanted), nil, nil
	}
	probe := runner.Files{Rootfs: r.session.Rootfs, Ref: r.session.Registry.Probe()}
	works := func(t runner.Target) bool { return t.Engine != nil }
	if len(wanted) == 0 || !slices.ContainsFunc(r.targets, works) {
		return map[bench.Image]runner.Files{bench.ProbeImage: probe}, nil, nil
	}
	files, facts, err := makeFiles(ctx, wanted, r.session.makeImage(r.app), r.session.Registry.Publish)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range facts {
		if f.Unavailable != "" {
			fmt.Fprintf(r.app.env.Stderr, "skipped: what needs %s\n", printable(f.Unavailable))
		}
	}
	files[bench.ProbeImage] = probe
	return files, facts, nil
}

// makeImage makes images by what they are called in plans: ours is built unless the cache has it, others are read.
func (s *session) makeImage(a *App) imageMaker {
	return func(ctx context.Context, name bench.Image) (v1.Image, string, error) {
		defer a.note("")
		if name != bench.WorkloadImage {
			a.step("reading image " + printable(string(name)))
			return load(ctx, filepath.Join(s.dir.Data, "images"), string(name))
		}
		made, err := debian.Build(ctx, debian.Options{Launcher: s.Launcher, Progress: a.step})
		if err != nil {
			return nil, "", err
		}
		a.noteList(made)
		a.step("getting the workload image ready")
		rootfs, err := made.Rootfs(ctx) // which may make it again
		return made.OCI(), rootfs, err
	}
}

// step shows what is being done that takes its time: in place of the one before on a terminal, else in a line of its own.
func (a *App) step(what string) {
	if a.env.Live {
		a.note("%s …", what)
		return
	}
	fmt.Fprintln(a.env.Stderr, what)
}

// load reads an image of the user's, from a file or a folder, and unpacks it below dir. That is the run's: what is in
// it goes with the run, also if it is killed, and is never used by another.
func load(ctx context.Context, dir, path string) (v1.Image, string, error) {
	cache, err := image.OpenCache(dir)
	if err != nil {
		return nil, "", err
	}
	_, loaded, err := cache.Import(ctx, path, "")
	if err != nil {
		return nil, "", err
	}
	rootfs, err := cache.Rootfs(ctx, loaded)
	return loaded, rootfs, err
}
