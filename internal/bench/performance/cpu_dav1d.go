package performance

import (
	"context"
	"errors"
	"strconv"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

func dav1d() bench.Benchmark {
	metrics := []result.Metric{higher("FramesPerSecond", result.PerSecond, "frames over the time from before the first to after the last; the pictures are dropped")}
	var frames []string
	for _, n := range workload.DecodedFrames() {
		frames = append(frames, strconv.Itoa(n))
	}
	return bench.Benchmark{
		Name:    "performance.cpu.dav1d",
		Summary: "decoding an AV1 video of 1920 × 1080 with dav1d, checked beforehand by the sum of its pictures",
		Source:  "wang figure 7, with a clip of its own that can be generated anew",
		Metrics: metrics,
		Image:   bench.WorkloadImage,
		Params: []bench.Param{
			{Name: "frames", Help: "how many frames are decoded", Quick: frames[0], Paper: frames[len(frames)-1], Check: bench.OneOf(frames...)},
			threadsParam(allThreads, "how many threads work at once, or all for as many as the program sees CPUs, as in the paper"),
		},
		Run: func(ctx context.Context, t bench.Trial) error {
			var frames int
			threads, err := threads(t)
			if err := errors.Join(err, bench.Numbers(t, map[string]*int{"frames": &frames})); err != nil {
				return err
			}
			// First, so that the clip is in the page cache on all targets.
			verify := workload.Dav1dVerify(frames)
			if _, err := bench.Measure(ctx, t, bench.SpecOf(t, verify), verify); err != nil {
				return err
			}
			return measureProgram(ctx, t, workload.Dav1d(frames, threads), metrics)
		},
	}
}
