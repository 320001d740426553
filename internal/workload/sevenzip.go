package workload

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

const sevenZip = "/usr/bin/7z"

var sevenZipTool = Tool{
	Name: "7-Zip", Packages: []string{"7zip"},
	Files: []string{sevenZip, "/usr/lib/7zip/7z", "/usr/lib/7zip/7z.so"}, // a script, and the files that it starts and loads
}

// SevenZip is 7-Zip's own benchmark, which compresses and decompresses with LZMA in memory.
type SevenZip struct {
	// Threads is 0 for as many as the program sees CPUs, which in a virtual machine is not what the host has.
	Threads int
	// Dictionary is the size of the largest dictionary, as a power of two. Up to 21, passes go from 18 to it; from 22 on,
	// from 22 to it.
	Dictionary int
	// Step is how much work a step is, by the time that it would take on a slow CPU; 7-Zip takes 4 s unless told
	// otherwise. Usage is counted in ticks of 10 ms, so that it is the coarser the shorter a step.
	Step time.Duration
}

// The first dictionaries of the passes: 7-Zip leaves out the small ones where a large one is asked for.
const smallDictionary, largeDictionary = 18, 22

// Program calls the benchmark once. Values: CompressRating, in MIPS as 7-Zip defines them, CompressUsage, the CPU time used over
// the time passed, and CompressPerUsage, 7-Zip's R/U, the rating of one CPU used in full; the same of Decompress and Total, the
// mean of both; and Threads, how many it ran.
func (z SevenZip) Program() Program {
	threads := "on"
	if z.Threads > 0 {
		threads = strconv.Itoa(z.Threads)
	}
	return Program{
		Args: []string{
			sevenZip, "b", "1", "-mmt=" + threads, "-md=" + strconv.Itoa(z.Dictionary), "-mtimems=" + milliseconds(z.Step),
		},
		Parse: func(stdout []byte) (Values, error) {
			v, err := z.parse(stdout)
			if err != nil {
				return nil, fmt.Errorf("read 7-Zip's benchmark: %w", err)
			}
			return v, nil
		},
	}
}

// passes are the dictionaries that there are lines for.
func (z SevenZip) passes() (all []int) {
	first := largeDictionary
	if z.Dictionary < largeDictionary {
		first = smallDictionary
	}
	for d := first; d <= z.Dictionary; d++ {
		all = append(all, d)
	}
	return all
}

// What stands above the table.
const (
	sevenZipBanner  = "\n7-Zip "
	sevenZipThreads = "# Benchmark threads:"
	sevenZipTable   = `Dict     Speed Usage    R/U Rating  |      Speed Usage    R/U Rating
         KiB/s     %   MIPS   MIPS  |      KiB/s     %   MIPS   MIPS

`
)

// rating is what 7-Zip found in one direction, or together.
type rating struct{ usage, perUsage, rating float64 }

func (z SevenZip) parse(stdout []byte) (Values, error) {
	if !bytes.HasPrefix(stdout, []byte(sevenZipBanner)) {
		return nil, fmt.Errorf("it begins with %q instead of %q", cut(string(stdout)), sevenZipBanner)
	}
	above, table, found := strings.Cut(string(stdout), sevenZipTable)
	_, text, counted := strings.Cut(above, sevenZipThreads)
	text, _, _ = strings.Cut(text, "\n")
	if !found || !counted {
		return nil, errors.New("it has no table of compressing and decompressing: it is cut off, or of another version")
	}
	threads, err := readWhole(strings.TrimSpace(text))
	if err != nil || threads == 0 || z.Threads > 0 && threads != uint64(z.Threads) {
		return nil, fmt.Errorf("it ran %q threads instead of %d", cut(text), z.Threads)
	}
	if !strings.HasSuffix(table, "\n") {
		return nil, errors.New("it is cut off")
	}
	averages, total, err := z.table(strings.Split(strings.TrimSuffix(table, "\n"), "\n"), float64(threads))
	if err != nil {
		return nil, err
	}
	v := Values{"Threads": float64(threads)}
	for name, r := range map[string]rating{"Compress": averages[0], "Decompress": averages[1], "Total": total} {
		v[name+"Rating"], v[name+"Usage"], v[name+"PerUsage"] = r.rating, r.usage/100, r.perUsage
	}
	return v, nil
}

// table reads a line for each pass, a rule, their averages and the averages of both directions.
func (z SevenZip) table(lines []string, threads float64) (averages [2]rating, total rating, err error) {
	passes := z.passes()
	if len(lines) != len(passes)+3 {
		return averages, total, fmt.Errorf("its table has %d lines instead of %d", len(lines), len(passes)+3)
	}
	var sums [2]rating
	for i, d := range passes {
		both, err := directions(lines[i], strconv.Itoa(d)+":")
		if err != nil {
			return averages, total, err
		}
		for j, r := range both {
			if err := r.check(threads); err != nil {
				return averages, total, fmt.Errorf("%q: %w", cut(lines[i]), err)
			}
			sums[j].usage += r.usage / float64(len(passes))
			sums[j].rating += r.rating / float64(len(passes))
		}
	}
	if strings.Trim(lines[len(passes)], "-| ") != "" {
		return averages, total, fmt.Errorf("%q follows the last pass", cut(lines[len(passes)]))
	}
	if averages, err = directions(lines[len(passes)+1], "Avr:"); err != nil {
		return averages, total, err
	}
	last := strings.Fields(lines[len(passes)+2])
	if len(last) != 4 || last[0] != "Tot:" {
		return averages, total, fmt.Errorf("%q is not the total", cut(lines[len(passes)+2]))
	}
	if total, err = readRating(last[1:]); err != nil {
		return averages, total, err
	}
	for j, sum := range sums {
		if !sum.like(averages[j]) {
			return averages, total, errors.New("the averages are not those of the passes")
		}
	}
	both := rating{usage: (averages[0].usage + averages[1].usage) / 2, rating: (averages[0].rating + averages[1].rating) / 2}
	if !both.like(total) {
		return averages, total, errors.New("the total is not the average of both directions")
	}
	return averages, total, nil
}

// like tells whether the numbers of r are those of another, which are rounded.
func (r rating) like(other rating) bool {
	return math.Abs(r.usage-other.usage) <= 1.5 && math.Abs(r.rating-other.rating) <= 1.5
}

// check tells whether the numbers of a pass belong together, and can be. The program takes all of them by the clocks
// inside: where these go wrong, its ratings are wrong.
func (r rating) check(threads float64) error {
	if r.usage == 0 || r.rating == 0 {
		return errors.New("it got nothing done in its time")
	}
	if off := r.perUsage*r.usage/100 - r.rating; math.Abs(off) > 0.006*r.perUsage+0.002*r.rating+1 {
		return errors.New("usage, R/U and rating do not belong together")
	}
	// A tick more than there was time for is possible, at each end.
	if r.usage > 150*threads {
		return fmt.Errorf("%v threads used %v %% of a CPU: its clocks cannot be right", threads, r.usage)
	}
	return nil
}

// directions reads a line of the table: speed, usage, R/U and rating of compressing and of decompressing.
func directions(line, title string) (both [2]rating, err error) {
	compress, decompress, found := strings.Cut(line, "|")
	first, second := strings.Fields(compress), strings.Fields(decompress)
	if !found || len(first) != 5 || len(second) != 4 || first[0] != title {
		return both, fmt.Errorf("%q is not the line that begins with %q", cut(line), title)
	}
	if both[0], err = readRating(first[2:]); err != nil {
		return both, err
	}
	both[1], err = readRating(second[1:])
	return both, err
}

func readRating(words []string) (r rating, err error) {
	for i, value := range []*float64{&r.usage, &r.perUsage, &r.rating} {
		n, err := readWhole(words[i])
		if err != nil {
			return r, err
		}
		*value = float64(n)
	}
	return r, nil
}
