package execution

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/engines"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
)

// fakeEnvironment returns an environment without processes. The fake engine moves its clock.
func fakeEnvironment(runID, folder string, p plan.Plan) (environment, error) {
	scratch, err := filepath.Abs(filepath.Join(folder, ".fake-"+runID))
	clock := fake.NewClock()
	return environment{drivers: engines.All(clock, p.Engines.Sockets), clock: clock, noise: quiet{}, isFake: true, scratch: scratch}, err
}

// fakeImages are the images of fake targets. They are empty.
type fakeImages struct{ made int }

func (f *fakeImages) Fresh(context.Context, int64) (string, error) {
	f.made++
	return fmt.Sprintf("fake/fresh:%d", f.made), nil
}

func (f *fakeImages) Minimal(_ context.Context, arch, _ string) (string, []byte, error) {
	f.made++
	return fmt.Sprintf("fake/minimal-%s:%d", arch, f.made), nil, nil
}

// Served reports no missing bytes: a fake pull transfers none.
func (*fakeImages) Served(string) (transfer, size int64) { return 0, 0 }

func (*fakeImages) Forget(string) {}

// fakeRootfs is the root file system of fake targets. The fake engine does not read it.
const fakeRootfs = "/"

// fakeFiles are the images of fake targets. The fake engine imitates the probe, not the programs of the
// workload image.
func fakeFiles(images []bench.Image) map[bench.Image]runner.Image {
	files := map[bench.Image]runner.Image{bench.ProbeImage: {Rootfs: fakeRootfs}}
	for _, name := range images {
		files[name] = runner.Image{Rootfs: fakeRootfs}
		if name == bench.WorkloadImage {
			files[name] = runner.Image{Err: &engine.UnsupportedError{
				What: "image " + string(name), Reason: "fake targets have no programs but the probe and echo", Advice: "measure on native or a runtime",
			}}
		}
	}
	return files
}

// quiet is the host of fake targets, without any disturbance.
type quiet struct{}

func (quiet) Begin() func([]bench.Medium) result.Disturbance {
	return func([]bench.Medium) result.Disturbance { return result.Disturbance{} }
}
