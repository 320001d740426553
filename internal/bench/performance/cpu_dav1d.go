package performance

import (
	"context"
	"strconv"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

func dav1d() bench.Benchmark {
	metrics := []result.Metric{higher("FramesPerSecond", result.PerSecond, "frames over the time from before the first to after the last; the pictures are discarded")}
	var frames []string
	for _, n := range workload.DecodedFrames() {
		frames = append(frames, strconv.Itoa(n))
	}
	return bench.Benchmark{
		Name:    "performance.cpu.dav1d",
		Summary: "decoding an AV1 video of 1920 × 1080 with dav1d, after a check of the pictures' checksum",
		Source:  "wang figure 7, with a different clip, which can be generated again",
		Metrics: metrics,
		Image:   bench.WorkloadImage,
		Params: []bench.Param{
			{Name: "frames", Help: "number of frames that are decoded", Quick: frames[0], Paper: frames[len(frames)-1], Check: bench.OneOf(frames...)},
			threadsParam(allThreads, "number of threads, or all for one for each CPU that the program sees, as in the paper"),
		},
		Run: func(ctx context.Context, t bench.Trial) error {
			frames := t.Int("frames")
			// The verification comes first, so that the clip is in the page cache on all targets.
			verify := workload.Dav1dVerify(frames)
			if _, err := bench.Measure(ctx, t, bench.InContainer, verify); err != nil {
				return err
			}
			return measureProgram(ctx, t, workload.Dav1d(frames, threads(t)), metrics)
		},
	}
}
