package performance

import (
	"context"
	"strconv"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
	"github.com/touchstone-bench/touchstone/internal/workload/programs"
)

func dav1d() bench.Benchmark {
	var frames []string
	for _, n := range programs.DecodedFrames() {
		frames = append(frames, strconv.Itoa(n))
	}
	b := ofProgram(bench.Benchmark{
		Name:    "performance.cpu.dav1d",
		Summary: "decoding an AV1 video of 1920 × 1080 with dav1d, after a check of the pictures' checksum",
		Source:  "wang figure 7, with a different clip, which can be generated again",
		Metrics: []result.Metric{bench.Scored(result.DimensionCPU, bench.Higher("FramesPerSecond", result.PerSecond, "frames over the time from before the first to after the last; the pictures are discarded"))},
		Params: []bench.Param{
			{Name: "frames", Help: "number of frames that are decoded", Quick: frames[0], Paper: frames[len(frames)-1], Check: bench.OneOf(frames...)},
			threadsParam(allThreads, "number of threads, or all for one for each CPU that the program sees, as in the paper"),
		},
	}, func(t bench.Trial) workload.Program { return programs.Dav1d(t.Int("frames"), threads(t)) })
	measure := b.Run
	b.Run = func(ctx context.Context, t bench.Trial) error {
		// The verification comes first, so that the clip is in the page cache on all targets.
		if _, err := bench.Measure(ctx, t, bench.InContainer, programs.Dav1dVerify(t.Int("frames"))); err != nil {
			return err
		}
		return measure(ctx, t)
	}
	return b
}
