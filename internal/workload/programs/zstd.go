package programs

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"time"

	"github.com/touchstone-bench/touchstone/internal/workload"
)

const zstd = "/usr/bin/zstd"

var zstdTool = Tool{Name: "zstd", Packages: []string{"zstd"}, Files: []string{zstd}}

// Zstd calls zstd's own benchmark in one thread. zstd generates its text, the same 10 MB each time. It compresses the text
// again and again for at least d, in whole seconds, and decompresses the result for as long. Values: Compression and
// Decompression, in bytes of the text a second, each in the fastest run of about a second (zstd's programs/benchfn.c).
func Zstd(level int, d time.Duration) workload.Program {
	return workload.Program{
		Args:  []string{zstd, "-q", "-b" + strconv.Itoa(level), "-i" + wholeSeconds(d), "--single-thread"},
		Parse: reading("zstd's benchmark", func(stdout []byte) (workload.Values, error) { return readZstd(string(stdout), level, wholeSeconds(d)) }),
	}
}

// zstdBytes is the size of the text that zstd generates.
const zstdBytes = 10_000_000

// zstdReport is all output: the settings, and the level with the compressed size, the ratio and both rates in 10⁶ bytes a second.
var zstdReport = regexp.MustCompile(`^bench 1\.5\.\d+ : input 10000000 bytes, (\d+) seconds, 0 KB blocks\n` +
	`-(\d+) +(\d+) \(([\d.]+)\) +([\d.]+) MB/s +([\d.]+) MB/s  Lorem ipsum\n$`)

func readZstd(text string, level int, seconds string) (workload.Values, error) {
	found := zstdReport.FindStringSubmatch(text)
	if found == nil {
		return nil, fmt.Errorf("it is cut off, or of another version: it begins with %q", workload.Excerpt(text))
	}
	if found[1] != seconds || found[2] != strconv.Itoa(level) {
		return nil, fmt.Errorf("it is the result of level %s in %s s instead of level %d in %s s", found[2], found[1], level, seconds)
	}
	var numbers [4]float64
	for i := range numbers {
		var err error
		if numbers[i], err = readDecimal(found[3+i]); err != nil {
			return nil, err
		}
	}
	size, ratio := numbers[0], numbers[1]
	if math.Abs(ratio*size-zstdBytes) > 0.00051*size { // the ratio has three decimals
		return nil, fmt.Errorf("a text of %d bytes compressed by %v does not have %v bytes", zstdBytes, ratio, size)
	}
	const mb = 1e6
	compression, decompression := numbers[2]*mb, numbers[3]*mb
	if compression == 0 || decompression == 0 || size == 0 {
		return nil, fmt.Errorf("it has a rate or a size of 0: %q", workload.Excerpt(found[0]))
	}
	return workload.Values{"Compression": compression, "Decompression": decompression}, nil
}
