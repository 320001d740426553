package catalogue_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// peerRounds is the environment variable with the number of rounds. The comparison takes minutes and is meaningless on a busy
// machine, so it is skipped without the variable. scripts/bench-programs.sh sets it.
const peerRounds = "TOUCHSTONE_PEER_ROUNDS"

// peerNames is the environment variable with the benchmarks to compare, separated by spaces. Without it all are compared.
const peerNames = "TOUCHSTONE_PEERS"

const (
	peerTolerance = 0.02        // largest relative difference of the medians
	peerLimit     = time.Minute // for one run of a program
)

// peer is a benchmark whose values by Touchstone are compared with the values of its programs when they are run by hand.
type peer struct {
	benchmark string
	params    bench.Params
	values    []value
	// without are arguments that only write a value to standard output, and are left out by hand.
	without []string
	// turns is the number of runs in a round. Short programs vary more, and can run more often.
	turns int
}

// value is a metric, or a combination of several metrics, and its place in the output of the programs.
type value struct {
	name    string
	metrics []string
	// pattern matches the number of the metric, the last of several numbers, or the numbers of several metrics.
	pattern string
	// of converts the number to the metric's value; nil if they are equal.
	of func(float64) float64
	// together combines the values of several metrics.
	together func([]float64) float64
}

// one returns the value of one metric.
func one(metric, pattern string, convert func(float64) float64) value {
	return value{name: metric, metrics: []string{metric}, pattern: pattern, of: convert}
}

// one combines the values of the metrics.
func (v value) one(values []float64) float64 {
	if v.together != nil {
		return v.together(values)
	}
	return values[len(values)-1]
}

// times converts a number in the given unit.
func times(unit float64) func(float64) float64 { return func(v float64) float64 { return unit * v } }

// inverse converts a rate to a time.
func inverse(v float64) float64 { return 1 / v }

// serially returns the total time of one operation at each rate, one after the other.
func serially(rates []float64) (time float64) {
	for _, rate := range rates {
		time += 1 / rate
	}
	return time
}

// sysbenchTotal is sysbench's total time.
const sysbenchTotal = `^ *total time: +([0-9.]+)s$`

// peers are all benchmarks of the workload image's programs. Benchmarks of the probe have no peer.
func peers() []peer { return append(lonePeers(), networkPeers()...) }

// namedPeers returns the peers with the names, or all peers without names.
func namedPeers(names []string) ([]peer, error) {
	candidates := peers()
	if len(names) == 0 {
		return candidates, nil
	}
	var matches []peer
	for _, name := range names {
		i := slices.IndexFunc(candidates, func(p peer) bool { return p.benchmark == name })
		if i < 0 {
			var benchmarks []string
			for _, p := range candidates {
				benchmarks = append(benchmarks, p.benchmark)
			}
			return nil, fmt.Errorf("%s has no comparison; the benchmarks with one are %s", name, strings.Join(benchmarks, ", "))
		}
		matches = append(matches, candidates[i])
	}
	return matches, nil
}

// lonePeers are the peers with one program at a time. Their data fits into the caches of a CPU if possible: the choice of memory
// pages, by the kernel and by a virtual machine, differs between runs by more than the tolerance. For the same reason the
// programs are short and their files are in memory.
func lonePeers() []peer {
	files := func(params bench.Params) bench.Params {
		params["on"] = string(bench.BindTmpfs)
		return params
	}
	limitRequests := func(requests string) bench.Params {
		return files(bench.Params{"files": "2", "mib": "1", "requests": requests})
	}
	fio := func(metric, key string) value {
		return one(metric, `"jobname" : "`+metric+`"(?s:.*?)"`+key+`" : ([1-9][0-9.]*)`, nil)
	}
	peers := []peer{
		{benchmark: "performance.cpu.time", params: bench.Params{"events": "500"}, values: []value{one("TotalTime", sysbenchTotal, nil)}},
		{
			benchmark: "performance.memory.total", params: bench.Params{"kib": "256", "mib": "8192"},
			values: []value{one("TotalTime", sysbenchTotal, nil)},
		},
		{benchmark: "performance.cpu.sevenzip", values: []value{one("TotalRating", `^Tot: +[0-9]+ +[0-9]+ +([0-9]+)$`, nil)}},
		{
			benchmark: "performance.cpu.zstd", values: []value{
				one("Compression", `^-3 .* ([0-9.]+) MB/s +[0-9.]+ MB/s`, times(1e6)), one("Decompression", `^-3 .* ([0-9.]+) MB/s  Lorem`, times(1e6)),
			},
		},
		{
			benchmark: "performance.cpu.dav1d", values: []value{one("FramesPerSecond", ` ([0-9.]+)(?:/[0-9.]+)? fps`, nil)},
			without: []string{"--quiet", "--frametimes", "/dev/stdout"},
		},
		{
			benchmark: "performance.cpu.linpack", params: bench.Params{"n": "1000", "runs": "10"},
			values: []value{one("FlopPerSecond", `"flops_per_second":([0-9.]+)`, nil)},
		},
		{benchmark: "performance.disk.read", params: limitRequests("100000"), values: []value{one("RndRead", sysbenchTotal, nil)}},
		{benchmark: "performance.disk.write", params: limitRequests("100000"), values: []value{one("RndWrite", sysbenchTotal, nil)}},
		{
			benchmark: "performance.disk.throughput", params: files(bench.Params{"duration": "200ms", "mib": "2"}),
			values: []value{fio("SeqRead", "bw_bytes"), fio("RndRead", "iops"), fio("RndWrite", "iops")},
		},
		{
			benchmark: "performance.disk.sqlite", params: files(bench.Params{"insertions": "20000"}),
			values: []value{one("TotalTime", `\A(?s:.*?)`+took+`(?s:.*?)`+took, nil)}, // of the second program of three
		},
	}
	for i := range peers {
		peers[i].turns = 2
	}
	return peers
}

// read parses the values in the output of the programs.
func (p peer) read(output []byte) ([]float64, error) {
	var results []float64
	for _, v := range p.values {
		found := regexp.MustCompile(`(?m)`+v.pattern).FindAllSubmatch(output, -1)
		if len(found) == 0 || v.together != nil && len(found) != len(v.metrics) {
			return nil, fmt.Errorf("the output lacks matches of %q: %s", v.pattern, output)
		}
		var values []float64
		for _, groups := range found {
			n, err := strconv.ParseFloat(string(groups[len(groups)-1]), 64)
			if err != nil {
				return nil, err
			}
			if v.of != nil {
				n = v.of(n)
			}
			values = append(values, n)
		}
		results = append(results, v.one(values))
	}
	return results, nil
}

// contest is a peer and its results by turn. The values of each turn are in the order of the peer's values.
type contest struct {
	peer
	programs []program // of the last trial
	ours     [][]float64
	// By hand everything runs twice in a turn. The two results differ only by chance.
	theirs, again [][]float64
	err           error // the reason if the contest was given up
}

// takeTurns runs all peers by Touchstone and by hand. Each round goes through all peers, so that a drift of the machine affects
// all. The side that begins changes from turn to turn. A first trial of each peer does not count: it lists the programs to
// run by hand.
func (l *peerHarness) takeTurns(peers []peer, rounds int) []*contest {
	var contests []*contest
	for _, p := range peers {
		c := &contest{peer: p}
		_, c.programs, c.err = l.measure(p)
		contests = append(contests, c)
	}
	for range rounds {
		for _, c := range contests {
			for range c.turns {
				if c.err == nil {
					c.err = l.turn(c)
				}
			}
		}
	}
	return contests
}

// turn runs each side once.
func (l *peerHarness) turn(c *contest) error {
	var ours, rival, repeats []float64
	byHand := func(values *[]float64) func() error {
		return func() (err error) {
			if *values, err = l.byHand(c.peer, c.programs); err != nil {
				err = fmt.Errorf("by hand: %w", err)
			}
			return err
		}
	}
	sides := []func() error{
		func() (err error) {
			if ours, c.programs, err = l.measure(c.peer); err != nil {
				err = fmt.Errorf("by Touchstone: %w", err)
			}
			return err
		},
		byHand(&rival),
		byHand(&repeats),
	}
	first := len(c.ours) % len(sides)
	for _, side := range append(sides[first:], sides[:first]...) {
		if err := side(); err != nil {
			return err
		}
	}
	c.ours, c.theirs, c.again = append(c.ours, ours), append(c.theirs, rival), append(c.again, repeats)
	return nil
}

// comparison is the result for a value.
type comparison struct {
	ours, theirs float64 // medians
	// turns compares Touchstone's values with the values by hand, and control compares the two values by hand.
	turns, control stats.Comparison
}

func (c *contest) compare(i int) comparison {
	column := func(turns [][]float64) (values []float64, samples []stats.Sample) {
		for block, turn := range turns {
			values, samples = append(values, turn[i]), append(samples, stats.Sample{Block: block, Value: turn[i]})
		}
		return values, samples
	}
	ours, ourSamples := column(c.ours)
	rival, theirSamples := column(c.theirs)
	repeats, againSamples := column(c.again)
	return comparison{
		stats.Summarize(ours).Median, stats.Summarize(append(rival, repeats...)).Median,
		// The two values by hand are samples of one block. The direction affects only verdicts.
		stats.Compare(append(theirSamples, againSamples...), ourSamples, stats.Lower, 1),
		stats.Compare(theirSamples, againSamples, stats.Lower, 1),
	}
}

// The verdicts.
const (
	agrees    = "within 2 %"
	undecided = "undecided"
	differs   = "differs"
)

// verdict reports whether the ratio is within the tolerance of 1. It differs if its whole interval is outside of the tolerance,
// and is undecided if the difference may be chance.
func (c comparison) verdict() string {
	const minimum, maximum = 1 - peerTolerance, 1 + peerTolerance
	ci := c.turns.CI
	switch {
	case c.turns.Ratio >= minimum && c.turns.Ratio <= maximum:
		return agrees
	case ci == nil || ci.Lo <= maximum && ci.Hi >= minimum:
		return undecided
	}
	return differs
}

// String formats a line of the table in columns.
func (c comparison) String() string {
	ratio := func(c stats.Comparison) string {
		if c.CI == nil {
			return fmt.Sprintf("%.3f", c.Ratio)
		}
		return fmt.Sprintf("%.3f (%.3f to %.3f)", c.Ratio, c.CI.Lo, c.CI.Hi)
	}
	return fmt.Sprintf("%d\t%.5g\t%.5g\t%s\t%s\t%s", c.turns.N, c.ours, c.theirs, ratio(c.turns), ratio(c.control), c.verdict())
}

// TestProgramsByHand compares Touchstone's values for the image's programs on bare metal with the values of the same programs,
// run by hand in the same root directory: one after the other, in turns.
func TestProgramsByHand(t *testing.T) {
	rounds, err := strconv.Atoi(os.Getenv(peerRounds))
	if err != nil || rounds < 1 {
		t.Skipf("takes minutes on a quiet machine: set %s to the number of rounds", peerRounds)
	}
	selection, err := namedPeers(strings.Fields(os.Getenv(peerNames)))
	must.Do(t, err)
	contests := newPeerHarness(t).takeTurns(selection, rounds)
	w := tabwriter.NewWriter(t.Output(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\tturns\tTouchstone\tby hand\tratio in a turn (95 %)\tby hand twice (95 %)\t")
	verdicts := map[string]int{}
	for _, c := range contests {
		if c.err != nil {
			t.Errorf("%s: %v", c.benchmark, c.err)
			continue
		}
		for i, v := range c.values {
			name, found := c.benchmark+" "+v.name, c.compare(i)
			fmt.Fprintf(w, "%s\t%v\n", name, found)
			verdict := found.verdict()
			verdicts[verdict]++
			if verdict != agrees {
				t.Errorf("%s: %s: Touchstone reports %.3f times the value by hand", name, verdict, found.turns.Ratio)
			}
		}
	}
	if err := w.Flush(); err != nil {
		t.Error(err)
	}
	t.Logf("%d values are within 2 %%, %d are undecided on this machine, %d differ", verdicts[agrees], verdicts[undecided], verdicts[differs])
}

// The verdict on a ratio outside of the tolerance depends on its interval.
func TestPeersVerdict(t *testing.T) {
	turns := func(values ...float64) (rows [][]float64) {
		for _, v := range values {
			rows = append(rows, []float64{v})
		}
		return rows
	}
	steady, shaky := turns(100, 101, 99, 100, 101, 99, 100), turns(100, 130, 80, 100, 120, 90, 100)
	for _, tt := range []struct {
		name         string
		ours, theirs [][]float64
		want         string
	}{
		{"equal", steady, steady, agrees},
		{"nearly equal", turns(101.9, 102.9, 100.9, 101.9, 102.9, 100.9, 101.9), steady, agrees},
		{"more", turns(104, 105, 103, 104, 105, 103, 104), steady, differs},
		{"less", turns(96, 97, 95, 96, 97, 95, 96), steady, differs},
		{"may be chance", turns(96, 95, 103, 96, 140, 80, 96), shaky, undecided},
		{"too few turns", turns(104, 104), turns(100, 100), undecided},
	} {
		c := contest{peer: peer{values: make([]value, 1)}, ours: tt.ours, theirs: tt.theirs, again: tt.theirs}
		found := c.compare(0)
		if got := found.verdict(); got != tt.want {
			t.Errorf("%s: %q, want %q: %v", tt.name, got, tt.want, found)
		}
		if found.control.Ratio != 1 {
			t.Errorf("%s: by hand is %v times by hand", tt.name, found.control.Ratio)
		}
	}
}
