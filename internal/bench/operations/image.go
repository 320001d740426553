package operations

import (
	"context"
	"strconv"

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
			seconds("Pull", "from the call until the image is unpacked and can be used"),
			seconds("Remove", "the image and what was unpacked of it"),
		},
		Params: []bench.Param{{
			Name: "size", Help: "size of the one layer that is new, of bytes that do not compress, in MiB",
			Quick: "8", Paper: "64", Check: bench.IntRange(1, 1024),
		}},
		Waits: []bench.Medium{bench.Disk},
		Needs: []engine.Capability{engine.CanPull},
		Run: func(ctx context.Context, t bench.Trial) error {
			mib, err := strconv.ParseInt(t.Param("size"), 10, 64)
			if err != nil {
				return err
			}
			ref, err := t.FreshImage(ctx, mib<<20)
			if err != nil {
				return err
			}
			pulled, err := t.Pull(ctx, ref)
			if err != nil {
				return err
			}
			removed, err := t.RemoveImage(ctx, ref)
			if err != nil {
				return err
			}
			t.Record("Pull", pulled.Seconds())
			t.Record("Remove", removed.Seconds())
			return nil
		},
	}
}
