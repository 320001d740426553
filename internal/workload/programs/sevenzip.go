package programs

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/workload"
)

const sevenZip = "/usr/bin/7z"

var sevenZipTool = Tool{
	Name: "7-Zip", Packages: []string{"7zip"},
	Files: []string{sevenZip, "/usr/lib/7zip/7z", "/usr/lib/7zip/7z.so"}, // a script, and the files that it starts and loads
}

// SevenZip is 7-Zip's own benchmark, which compresses and decompresses with LZMA in memory.
type SevenZip struct {
	// Threads is 0 for the number of CPUs that the program sees. In a virtual machine this is not the number of the host.
	Threads int
	// Dictionary is the size of the largest dictionary, as a power of two. Up to 21, a pass goes from 18 to it; from 22 on,
	// from 22 to it.
	Dictionary int
	// Passes is the number of passes through the dictionaries. 0 stands for 1.
	Passes int
	// Step is the amount of work in a step, as its time on a slow CPU; 7-Zip's default is 4 s. Usage is counted in ticks of
	// 10 ms. A shorter step therefore gives a coarser usage.
	Step time.Duration
}

// The first dictionaries of a pass: 7-Zip omits the small ones if a large one is requested.
const smallDictionary, largeDictionary = 18, 22

// Program calls the benchmark. Values are means over all passes: CompressRating, in MIPS as 7-Zip defines them, CompressUsage, the CPU time used over
// the time passed, and CompressPerUsage, 7-Zip's R/U, the rating of one CPU used in full; the same of Decompress and Total, the
// mean of both; and Threads, the number of threads.
func (z SevenZip) Program() workload.Program {
	threads := "on"
	if z.Threads > 0 {
		threads = strconv.Itoa(z.Threads)
	}
	return workload.Program{
		Args: []string{
			sevenZip, "b", strconv.Itoa(max(1, z.Passes)), "-mmt=" + threads, "-md=" + strconv.Itoa(z.Dictionary), "-mtimems=" + workload.Milliseconds(z.Step),
		},
		Parse: reading("7-Zip's benchmark", z.parse),
	}
}

// rows lists the dictionaries of the lines in the table.
func (z SevenZip) rows() (list []int) {
	first := largeDictionary
	if z.Dictionary < largeDictionary {
		first = smallDictionary
	}
	for range max(1, z.Passes) {
		for d := first; d <= z.Dictionary; d++ {
			list = append(list, d)
		}
	}
	return list
}

// The text above the table.
const (
	sevenZipBanner  = "\n7-Zip "
	sevenZipThreads = "# Benchmark threads:"
	sevenZipTable   = `Dict     Speed Usage    R/U Rating  |      Speed Usage    R/U Rating
         KiB/s     %   MIPS   MIPS  |      KiB/s     %   MIPS   MIPS

`
)

// rating is the result in one direction, or of both together.
type rating struct{ usage, perUsage, rating float64 }

func (z SevenZip) parse(stdout []byte) (workload.Values, error) {
	if !bytes.HasPrefix(stdout, []byte(sevenZipBanner)) {
		return nil, fmt.Errorf("it begins with %q instead of %q", workload.Excerpt(string(stdout)), sevenZipBanner)
	}
	head, table, found := strings.Cut(string(stdout), sevenZipTable)
	_, text, ok := strings.Cut(head, sevenZipThreads)
	text, _, _ = strings.Cut(text, "\n")
	if !found || !ok {
		return nil, fmt.Errorf("it has no table of compressing and decompressing: %w, or it is of another version", workload.ErrCutOff)
	}
	threads, err := workload.Whole(strings.TrimSpace(text))
	if err != nil || threads == 0 || z.Threads > 0 && threads != uint64(z.Threads) {
		return nil, fmt.Errorf("it ran %q threads instead of %d", workload.Excerpt(text), z.Threads)
	}
	lines, err := completeLines([]byte(table))
	if err != nil {
		return nil, err
	}
	averages, total, err := z.table(lines, float64(threads))
	if err != nil {
		return nil, err
	}
	v := workload.Values{"Threads": float64(threads)}
	for name, r := range map[string]rating{"Compress": averages[0], "Decompress": averages[1], "Total": total} {
		v[name+"Rating"], v[name+"Usage"], v[name+"PerUsage"] = r.rating, r.usage/100, r.perUsage
	}
	return v, nil
}

// table reads a line for each dictionary of each pass, a rule, the averages of the lines, and the average of both directions.
func (z SevenZip) table(lines []string, threads float64) (averages [2]rating, total rating, err error) {
	rows := z.rows()
	if len(lines) != len(rows)+3 {
		return averages, total, fmt.Errorf("its table has %d lines instead of %d", len(lines), len(rows)+3)
	}
	var sums [2]rating
	for i, d := range rows {
		pair, err := directions(lines[i], strconv.Itoa(d)+":")
		if err != nil {
			return averages, total, err
		}
		for j, r := range pair {
			if err := r.check(threads); err != nil {
				return averages, total, fmt.Errorf("%q: %w", workload.Excerpt(lines[i]), err)
			}
			sums[j].usage += r.usage / float64(len(rows))
			sums[j].rating += r.rating / float64(len(rows))
		}
	}
	if strings.Trim(lines[len(rows)], "-| ") != "" {
		return averages, total, fmt.Errorf("%q follows the last line of a dictionary", workload.Excerpt(lines[len(rows)]))
	}
	if averages, err = directions(lines[len(rows)+1], "Avr:"); err != nil {
		return averages, total, err
	}
	last := strings.Fields(lines[len(rows)+2])
	if len(last) != 4 || last[0] != "Tot:" {
		return averages, total, fmt.Errorf("%q is not the total", workload.Excerpt(lines[len(rows)+2]))
	}
	if total, err = readRating(last[1:]); err != nil {
		return averages, total, err
	}
	for j, sum := range sums {
		if !sum.like(averages[j]) {
			return averages, total, errors.New("the averages do not match the lines of the dictionaries")
		}
	}
	mean := rating{usage: (averages[0].usage + averages[1].usage) / 2, rating: (averages[0].rating + averages[1].rating) / 2}
	if !mean.like(total) {
		return averages, total, errors.New("the total is not the average of both directions")
	}
	return averages, total, nil
}

// like reports whether two ratings are equal except for rounding.
func (r rating) like(second rating) bool {
	return math.Abs(r.usage-second.usage) <= 1.5 && math.Abs(r.rating-second.rating) <= 1.5
}

// check returns an error if the numbers of a line contradict each other or are impossible. They depend on the clocks inside: if
// the clocks are wrong, the ratings are wrong.
func (r rating) check(threads float64) error {
	if r.usage == 0 || r.rating == 0 {
		return errors.New("it completed no work in its time")
	}
	if deviation := r.perUsage*r.usage/100 - r.rating; math.Abs(deviation) > 0.006*r.perUsage+0.002*r.rating+1 {
		return errors.New("usage, R/U and rating contradict each other")
	}
	// The ticks can exceed the time by one at each end.
	if r.usage > 150*threads {
		return fmt.Errorf("%v threads used %v %% of a CPU: its clocks are wrong", threads, r.usage)
	}
	return nil
}

// directions reads a line of the table: speed, usage, R/U and rating of compressing and of decompressing.
func directions(line, title string) (pair [2]rating, err error) {
	compress, decompress, found := strings.Cut(line, "|")
	first, second := strings.Fields(compress), strings.Fields(decompress)
	if !found || len(first) != 5 || len(second) != 4 || first[0] != title {
		return pair, fmt.Errorf("%q is not the line %q", workload.Excerpt(line), title)
	}
	if pair[0], err = readRating(first[2:]); err != nil {
		return pair, err
	}
	pair[1], err = readRating(second[1:])
	return pair, err
}

func readRating(words []string) (r rating, err error) {
	for i, value := range []*float64{&r.usage, &r.perUsage, &r.rating} {
		n, err := workload.Whole(words[i])
		if err != nil {
			return r, err
		}
		*value = float64(n)
	}
	return r, nil
}
