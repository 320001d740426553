package operations

import (
	"context"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
)

func pull() bench.Benchmark {
	return bench.Benchmark{
		Name:    "operations.image.pull",
		Summary: "pull and unpack an image that the engine has not seen, from a registry on this host, and remove it",
		Source:  "peers (critest)",
		Metrics: []result.Metric{
			bench.Headed(result.ColumnPull, bench.Seconds("Pull", "from the call until the image is unpacked and ready to use")),
			bench.Seconds("Remove", "time to remove the image and its unpacked files"),
		},
		Params: []bench.Param{{
			Name: "size", Help: "size of the one new layer in MiB; its bytes do not compress",
			Quick: "8", Paper: "64", Check: bench.IntRange(1, 1024),
		}},
		Waits: []bench.Medium{bench.Disk},
		Needs: func(p bench.Params) bench.Needs {
			size := int64(p.Int("size")) << 20
			// The registry keeps the layer in memory, and perhaps still the layer of the trial before. The engine keeps it packed and unpacked.
			return bench.Needs{Capabilities: []engine.Capability{engine.CanPull}, Memory: 2 * size, Space: bench.Space{Disk: 2 * size}}
		},
		Run: func(ctx context.Context, t bench.Trial) error {
			ref, err := t.Images.Fresh(ctx, int64(t.Int("size"))<<20)
			if err != nil {
				return err
			}
			pull, err := t.Images.Pull(ctx, ref)
			if err != nil {
				return err
			}
			removal, err := t.Images.Remove(ctx, ref)
			if err != nil {
				return err
			}
			t.Record("Pull", pull.Seconds())
			t.Record("Remove", removal.Seconds())
			return nil
		},
	}
}
