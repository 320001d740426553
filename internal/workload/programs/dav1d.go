package programs

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/touchstone-bench/touchstone/internal/workload"
)

const dav1d = "/usr/bin/dav1d"

var dav1dTool = Tool{Name: "dav1d", Packages: []string{"dav1d"}, Files: []string{dav1d}}

// The clip of the workload image: a generated pattern, 1920 × 1080, 30 frames/s, as AV1. The build of the image checks the
// clip.
const (
	ClipPath   = "/usr/share/touchstone/clip.ivf"
	ClipFrames = 600
	// ClipMD5 is the MD5 of the decoded pictures, as dav1d computes and verifies it.
	ClipMD5 = "7cd56e11c73f3bc0d3f3664a07e6360b"
)

// clipSums are the MD5 of the decoded pictures by their number, from the beginning of the image's clip.
var clipSums = map[int]string{100: "d81f4928998d33a4ef4d633b61391e79", ClipFrames: ClipMD5}

// Dav1d decodes a number of frames of the image's clip in threads (0: the number of CPUs that the program sees) and drops the
// pictures. Values: FramesPerSecond, the frames over the time from before the first to after the last.
func Dav1d(frames, threads int) workload.Program {
	return workload.Program{
		// This option writes the time of each frame. dav1d's own rate would go to standard error.
		Args:  decode(frames, "--threads", strconv.Itoa(threads), "--muxer", "null", "--output", "/dev/null", "--frametimes", "/dev/stdout"),
		Parse: reading("dav1d's frame times", func(stdout []byte) (workload.Values, error) { return readFrameTimes(stdout, frames) }),
	}
}

// DecodedFrames lists the numbers of frames that Dav1dVerify accepts.
func DecodedFrames() []int { return slices.Sorted(maps.Keys(clipSums)) }

// Dav1dVerify decodes a number of frames of the image's clip, one of DecodedFrames, and compares the MD5 of the pictures. dav1d
// exits with code 1 if the MD5 differs. It has no values.
func Dav1dVerify(frames int) workload.Program {
	return workload.Program{Args: decode(frames, "--verify", clipSums[frames]), Parse: reading("dav1d's output", silent(""))}
}

func decode(frames int, options ...string) []string {
	return append([]string{dav1d, "--quiet", "--input", ClipPath, "--limit", strconv.Itoa(frames)}, options...)
}

// readFrameTimes reads a line for each frame: the nanoseconds since the previous frame.
func readFrameTimes(stdout []byte, frames int) (workload.Values, error) {
	lines, err := completeLines(stdout)
	if err != nil {
		return nil, err
	}
	if len(lines) != frames {
		return nil, fmt.Errorf("%d frames were decoded instead of %d", len(lines), frames)
	}
	total := uint64(0)
	for _, line := range lines {
		ns, err := workload.Whole(line)
		if err != nil {
			return nil, err
		}
		total += ns
	}
	if total == 0 {
		return nil, errors.New("the frames took no time")
	}
	return workload.Values{"FramesPerSecond": float64(frames) * 1e9 / float64(total)}, nil
}
