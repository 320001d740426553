package catalogue_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/native"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// peerRounds is the environment variable with the number of rounds. The comparison takes minutes and means nothing on
// a busy machine: without it it is left out. scripts/bench-programs.sh sets it.
const peerRounds = "TOUCHSTONE_PEER_ROUNDS"

const (
	peerMostApart = 0.02        // by which the medians may differ
	peerLimit     = time.Minute // for one run of a program
)

// peer is a program whose value by Touchstone is compared with what the program says when it is run by hand.
type peer struct {
	benchmark string
	params    bench.Params
	metric    string
	// says finds the value in the output of the program run by hand, in units of scale; the last of several counts if
	// there are several.
	says  string
	scale float64
	// without are arguments that only serve to get a value to standard output.
	without []string
}

// took is what the script of byHand writes after each program.
const took = `^took ([0-9.]+)$`

// sysbenchTotal is sysbench's total time.
const sysbenchTotal = `^ *total time: +([0-9.]+)s$`

// peers are measured with files in memory: how much a disk differs from run to run says nothing of who runs the program.
func peers() []peer {
	files := func(more bench.Params) bench.Params {
		more["on"] = string(bench.BindTmpfs)
		return more
	}
	fio := func(metric, key string) peer {
		return peer{
			"performance.disk.throughput", files(bench.Params{"duration": "1s", "mib": "256"}), metric,
			`"jobname" : "` + metric + `"(?s:.*?)"` + key + `" : ([1-9][0-9.]*)`, 1, nil,
		}
	}
	return []peer{
		{"performance.cpu.time", bench.Params{"events": "2000"}, "TotalTime", sysbenchTotal, 1, nil},
		{"performance.memory.total", nil, "TotalTime", sysbenchTotal, 1, nil},
		{"performance.cpu.sevenzip", nil, "TotalRating", `^Tot: +[0-9]+ +[0-9]+ +([0-9]+)$`, 1, nil},
		{"performance.cpu.dav1d", nil, "FramesPerSecond", ` ([0-9.]+)(?:/[0-9.]+)? fps`, 1, []string{"--quiet", "--frametimes", "/dev/stdout"}},
		{"performance.cpu.linpack", bench.Params{"n": "4000"}, "FlopPerSecond", `"flops_per_second":([0-9.]+)`, 1, nil},
		{"performance.disk.read", files(bench.Params{"files": "64", "requests": "100000"}), "RndRead", sysbenchTotal, 1, nil},
		{"performance.disk.write", files(bench.Params{"files": "64", "requests": "100000"}), "RndWrite", sysbenchTotal, 1, nil},
		fio("SeqRead", "bw_bytes"),
		fio("RndRead", "iops"),
		{"performance.disk.sqlite", files(bench.Params{"insertions": "10000"}), "TotalTime", took, 1, nil},
	}
}

// byHand runs programs as one would in a shell: in the root directory $1, with the directory $2 at /data, where they run,
// one after the other, with "--then" between them. The mounts are its own. It joins the cgroups of the files in $JOIN: what
// is charged to one, memory above all, costs time.
const byHand = `
set -eu
for file in $JOIN; do echo 0 >"$file"; done
root=$1 data=$2
shift 2
for dir in proc dev sys; do mount --rbind "/$dir" "$root/$dir"; done
mount -t tmpfs tmpfs "$root/tmp"
mount --bind "$data" "$root/data"
TIMEFORMAT='took %3R'
while [ $# -gt 0 ]; do
	program=()
	while [ $# -gt 0 ] && [ "$1" != --then ]; do program+=("$1"); shift; done
	[ $# -eq 0 ] || shift
	{ time chroot "$root" /usr/bin/busybox sh -c 'cd /data && exec "$0" "$@"' "${program[@]}"; } 2>&1
done
`

// peerLab is bare metal, with the image's root file system.
type peerLab struct {
	*testing.T
	engine.Engine
	session engine.Session
	rootfs  string
	memory  string
	argv    []string // of the last container
}

// Create notes what the container's program is called with.
func (l *peerLab) Create(ctx context.Context, spec engine.Spec) (engine.Container, error) {
	l.argv = spec.Process.Args
	return l.Engine.Create(ctx, spec)
}

// Place is native's.
func (l *peerLab) Place(group string) error { return l.Engine.(engine.Placer).Place(group) }

func newPeerLab(t *testing.T) *peerLab {
	t.Helper()
	rootfs, _ := enginetest.Workload(t)
	l := &peerLab{T: t, session: enginetest.Session(t, oci.Surroundings), rootfs: rootfs, memory: memoryDir(t)}
	if l.session.Cgroups == nil {
		t.Skip("needs the right to make cgroups: run as root")
	}
	var err error
	l.Engine, err = native.Driver{}.Open(t.Context(), target.Target{Engine: "native"}, l.session)
	enginetest.Require(t, "native", err)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// measure gives Touchstone's value, by a trial as in any run.
func (l *peerLab) measure(p peer) (float64, error) {
	l.Helper()
	b := find(l.T, p.benchmark)
	params, err := b.Resolve(p.params, false)
	if err != nil {
		return 0, err
	}
	var trial result.Trial
	_, err = runner.Run(l.Context(), runner.Config{
		RunID: l.session.RunID, Files: map[bench.Image]runner.Files{b.Image: {Rootfs: l.rootfs}}, Data: l.session.Data, Memory: l.memory,
		Work: []plan.Work{{Benchmark: b, Params: params}}, Targets: []runner.Target{{Name: "native", Engine: l}},
		Blocks: 1, MaxBlocks: 1, TrialLimit: peerLimit, CallLimit: peerLimit,
		Clock: runner.SystemClock{}, Cgroups: l.session.Cgroups, Noise: quiet{}, Observer: quiet{},
		Record: func(t result.Trial) error { trial = t; return nil },
	})
	if err != nil {
		return 0, err
	}
	values := trial.Values(p.metric)
	if trial.Status != result.OK || len(values) != 1 {
		return 0, fmt.Errorf("%s because %s, with the values %v: %s", trial.Status, trial.Reason, values, trial.Output)
	}
	return values[0], nil
}

// run gives what the program itself says when it is run by hand with the arguments that it had last: in a cgroup of
// its own beside those of trials, on all CPUs, as those are.
func (l *peerLab) run(p peer) (value float64, err error) {
	l.Helper()
	programs := slices.DeleteFunc(slices.Clone(l.argv), func(arg string) bool { return slices.Contains(p.without, arg) })
	if i := slices.Index(programs, "--"); i > 0 && slices.Contains(programs[:i], "sequence") {
		programs = programs[i+1:]
	}
	data, err := os.MkdirTemp(l.memory, "")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(data)) }()
	ctx, cancel := context.WithTimeout(l.Context(), peerLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "unshare", slices.Concat(
		[]string{"--mount", "--propagation", "private", "--", "bash", "-c", byHand, "by-hand", l.rootfs, data}, programs)...)
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	err = l.session.InGroup(ctx, l, "by-hand", peerLimit, func() error {
		group, err := l.session.Cgroups.Create("/" + engine.Prefix + l.session.RunID + "/by-hand/program")
		if err != nil {
			return err
		}
		files := slices.DeleteFunc(group.ProcsFiles(), l.session.Hides)
		cmd.Env = append(cmd.Env, "JOIN="+strings.Join(files, " "))
		return l.session.Launcher.Run(ctx, cmd)
	})
	if err != nil {
		return 0, fmt.Errorf("%w: %s", err, output.Bytes())
	}
	return p.read(output.Bytes())
}

// read finds the value in a program's output.
func (p peer) read(output []byte) (float64, error) {
	found := regexp.MustCompile(`(?m)`+p.says).FindAllSubmatch(output, -1)
	if strings.Contains(p.benchmark, "sqlite") && len(found) == 3 {
		found = found[:2] // the third program checks what the second has done
	}
	if len(found) == 0 {
		return 0, fmt.Errorf("%q is not in what it says: %s", p.says, output)
	}
	v, err := strconv.ParseFloat(string(found[len(found)-1][1]), 64)
	return v * p.scale, err
}

// TestProgramsBesideThemselves compares what Touchstone reports of the image's programs on bare metal with what the
// same programs say by hand in the same root directory: one after the other, by turns.
func TestProgramsBesideThemselves(t *testing.T) {
	rounds, err := strconv.Atoi(os.Getenv(peerRounds))
	if err != nil || rounds < 1 {
		t.Skipf("takes minutes on a quiet machine: %s says how many rounds", peerRounds)
	}
	l := newPeerLab(t)
	w := tabwriter.NewWriter(t.Output(), 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%d rounds\ttouchstone\tby hand\tratio\n", rounds)
	for _, p := range peers() {
		t.Run(p.benchmark+"."+p.metric, func(t *testing.T) {
			ours, theirs, err := l.takeTurns(p, rounds)
			if err != nil {
				t.Fatal(err)
			}
			a, b := stats.Summarize(ours, 1).Median, stats.Summarize(theirs, 1).Median
			fmt.Fprintf(w, "%s %s\t%.5g\t%.5g\t%.3f\n", p.benchmark, p.metric, a, b, a/b)
			if math.Abs(a/b-1) > peerMostApart {
				t.Errorf("what Touchstone reports is %.3f times what the program says by hand, more than %.0f %% apart", a/b, 100*peerMostApart)
			}
		})
	}
	if err := w.Flush(); err != nil {
		t.Error(err)
	}
}

// takeTurns runs a program so often by Touchstone and by hand. Who begins changes from round to round; a first one, to
// warm up, does not count.
func (l *peerLab) takeTurns(p peer, rounds int) (ours, theirs []float64, err error) {
	sides := []struct {
		name   string
		batch  func(peer) (float64, error)
		values *[]float64
	}{{"Touchstone", l.measure, &ours}, {"by hand", l.run, &theirs}}
	for round := range rounds + 1 {
		for _, side := range sides {
			value, err := side.batch(p)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", side.name, err)
			}
			if round > 0 {
				*side.values = append(*side.values, value)
			}
		}
		// Not before the first one: by hand the arguments are those of a trial before.
		slices.Reverse(sides)
	}
	return ours, theirs, nil
}
