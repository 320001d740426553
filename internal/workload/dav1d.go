package workload

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

const dav1d = "/usr/bin/dav1d"

var dav1dTool = Tool{Name: "dav1d", Packages: []string{"dav1d"}, Files: []string{dav1d}}

// clipSums are the MD5 of the decoded pictures of the image's clip, by how many there are from its beginning.
var clipSums = map[int]string{100: "d81f4928998d33a4ef4d633b61391e79", ClipFrames: ClipMD5}

// Dav1d decodes so many frames of the image's clip in threads (0: as many as the program sees CPUs) and drops the
// pictures. Values: FramesPerSecond, the frames over the time from before the first to after the last.
func Dav1d(frames, threads int) Program {
	return Program{
		// The time of each frame goes to standard output by its name: the rate that dav1d prints goes to the other one.
		Args: decode(frames, "--threads", strconv.Itoa(threads), "--muxer", "null", "--output", "/dev/null", "--frametimes", "/dev/stdout"),
		Parse: func(stdout []byte) (Values, error) {
			v, err := readFrameTimes(stdout, frames)
			if err != nil {
				return nil, fmt.Errorf("read dav1d's frame times: %w", err)
			}
			return v, nil
		},
	}
}

// DecodedFrames lists how many frames Dav1dVerify can decode.
func DecodedFrames() []int { return slices.Sorted(maps.Keys(clipSums)) }

// Dav1dVerify decodes so many frames of the image's clip, of DecodedFrames, and compares the MD5 of the pictures: if it is
// another, the program ends with code 1. There are no values.
func Dav1dVerify(frames int) Program {
	return Program{
		Args: decode(frames, "--verify", clipSums[frames]),
		Parse: func(stdout []byte) (Values, error) {
			if len(stdout) > 0 {
				return nil, fmt.Errorf("dav1d says %q where it should say nothing", cut(string(stdout)))
			}
			return Values{}, nil
		},
	}
}

func decode(frames int, options ...string) []string {
	return append([]string{dav1d, "--quiet", "--input", ClipPath, "--limit", strconv.Itoa(frames)}, options...)
}

// readFrameTimes reads a line for each frame: the nanoseconds since the one before.
func readFrameTimes(text []byte, frames int) (Values, error) {
	n, total := 0, uint64(0)
	for line := range bytes.Lines(text) {
		number, complete := bytes.CutSuffix(line, []byte("\n"))
		if !complete {
			return nil, errors.New("it is cut off")
		}
		ns, err := readWhole(string(number))
		if err != nil {
			return nil, err
		}
		n++
		total += ns
	}
	if n != frames {
		return nil, fmt.Errorf("%d frames were decoded instead of %d", n, frames)
	}
	if total == 0 {
		return nil, errors.New("the frames took no time")
	}
	return Values{"FramesPerSecond": float64(n) * 1e9 / float64(total)}, nil
}
