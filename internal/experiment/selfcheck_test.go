package experiment

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/target"
	"github.com/touchstone-bench/touchstone/internal/workdir"
)

// newScripted returns the selfcheck of a fake target, with its lines.
func newScripted(t *testing.T, s *script, budget time.Duration) (c *Selfcheck, lines *[]string) {
	t.Helper()
	c, err := NewSelfcheck(plan.Quick(), "fake/x")
	must.Do(t, err)
	lines = new([]string)
	c.Executor, c.Budget = s, budget
	c.Line = func(line string) { *lines = append(*lines, line) }
	return c, lines
}

// Five runs of all targets follow the calibration, and fit into the budget.
func TestSelfcheckRuns(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	s := &script{deadline: true, value: func(int, int, string) float64 { return 0.01 * math.Exp(0.1*random.NormFloat64()) }}
	c, lines := newScripted(t, s, time.Minute)
	must.Do(t, c.Run(t.Context()))
	if len(c.Runs) != selfcheckRuns || c.End != Complete || c.Spent > c.Budget || c.Pilot.Name != "selfcheck calibration" {
		t.Errorf("%d runs in %v, the end is %d, the calibration %q", len(c.Runs), c.Spent, c.End, c.Pilot.Name)
	}
	for n, r := range s.requests {
		targets, blocks := 8, c.Blocks
		if n == 0 {
			targets, blocks = 2, selfcheckPilot
		}
		if len(r.Plan.Targets) != targets || r.Plan.Blocks != blocks || r.Wait != (n > 0) || r.Plan.Baseline.String() != "fake/x-base" {
			t.Errorf("run %d: %d targets, %d blocks, wait %t, the baseline is %s", n, len(r.Plan.Targets), r.Plan.Blocks, r.Wait, r.Plan.Baseline)
		}
	}
	if want := fmt.Sprintf("5 runs of %d blocks of 8 targets", c.Blocks); len(*lines) != 1+selfcheckRuns || (*lines)[0] != want {
		t.Errorf("the lines are %q, want %q and one for each run", *lines, want)
	}
}

// A selfcheck ends early by its budget or an interrupt. Runs without a trial that is ok do not count.
func TestSelfcheckEnds(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(n int, r *Run) error
		end    End
		runs   int
		line   string // the last one
	}{
		{"a slow run", inRun(2, func(r *Run) { r.Took = time.Minute }), OutOfBudget, 2, "note: the budget ended after 2 of 5 runs, so the result is less certain; give more than --budget 1m0s"},
		{"an interrupt", inRun(2, interrupt), Interrupted, 1, "run 1 of 5: "},
		{"an interrupt of the calibration", inRun(0, interrupt), Interrupted, 0, ""},
		{"a run without values", inRun(2, func(r *Run) { r.Trials = nil }), Complete, 4, "run 5 of 5: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			check, lines := newScripted(t, &script{change: c.change}, time.Minute)
			must.Do(t, check.Run(t.Context()))
			line := ""
			if n := len(*lines); n > 0 {
				line = (*lines)[n-1]
			}
			if check.End != c.end || len(check.Runs) != c.runs || !strings.HasPrefix(line, c.line) {
				t.Errorf("the end is %d, %d runs count, the last line is %q; want %d, %d, %q", check.End, len(check.Runs), line, c.end, c.runs, c.line)
			}
		})
	}
}

// The calibration finds what prevents a result, before the runs.
func TestSelfcheckCalibration(t *testing.T) {
	run := func(budget time.Duration, change func(int, *Run) error) error {
		s := &script{change: change}
		c, _ := newScripted(t, s, budget)
		err := c.Run(t.Context())
		if len(s.requests) != 1 {
			t.Errorf("%d runs were executed, want the calibration alone", len(s.requests))
		}
		return err
	}
	refused(t, run(time.Millisecond, nil), "--budget 1ms ended within the calibration; give more, such as --budget 5m0s")
	refused(t, run(5*time.Second, nil), "--budget 5s: after the calibration 3.56s are left, and 5 runs of 6 blocks of 8 targets take 26s; give at least --budget 35s")
	err := run(time.Minute, inRun(0, func(r *Run) { r.loseAll("fake/x-base") }))
	if _, ok := errors.AsType[*PilotError](err); !ok || !strings.HasPrefix(err.Error(), "check fake/x: the calibration has too few values of create (") {
		t.Errorf("a runtime that fails: %v", err)
	}
	err = run(time.Minute, inRun(0, func(r *Run) { r.Targets[0].Unavailable = "not installed" }))
	if _, ok := errors.AsType[*UnavailableError](err); !ok || err.Error() != "fake/x-base is not available: not installed" {
		t.Errorf("a runtime that is missing: %v", err)
	}
	_, err = NewSelfcheck(plan.Quick(), "native")
	refused(t, err, "--target native has no runtime to delay")
}

// selfcheckIn is an environment variable with the directory of a selfcheck that is killed. It marks the process of that selfcheck.
const selfcheckIn = "TOUCHSTONE_TEST_SELFCHECK"

// TestKilledSelfcheck: a sweep leaves the adapters of a selfcheck under way, and removes them after a kill.
func TestKilledSelfcheck(t *testing.T) {
	const id = "20260101-000001-aaaa"
	if dir := os.Getenv(selfcheckIn); dir != "" {
		c := Selfcheck{Target: target.Target{Engine: "oci", Runtime: "x"}, Binary: "/bin/true"}
		err := c.Open(rootsIn(dir), id)
		if err == nil {
			_, err = c.add("base", nil, "")
		}
		must.Do(t, err)
		fmt.Printf("adapter %s\n", c.plan.Runtimes["x-base"].Path)
		_, _ = os.Stdin.Read(make([]byte, 1)) // until the kill
		return
	}
	dir := t.TempDir()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), selfcheckIn+"="+dir)
	in, err := child.StdinPipe()
	must.Do(t, err)
	defer func() { _ = in.Close() }()
	out, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	must.Do(t, err)
	line, err := bufio.NewReader(out).ReadString('\n')
	adapter, ok := strings.CutPrefix(strings.TrimSpace(line), "adapter ")
	if !ok {
		t.Fatalf("the selfcheck printed %q, %v", line, err)
	}
	sweep := func(want ...workdir.Swept) {
		t.Helper()
		leftovers, err := workdir.Sweep(t.Context(), rootsIn(dir), nil, workdir.Daemons{})
		if diff := cmp.Diff(want, leftovers); diff != "" || err != nil {
			t.Errorf("the sweep, %v (-want +got):\n%s", err, diff)
		}
	}
	sweep()
	if _, err := os.Stat(adapter); err != nil {
		t.Errorf("after a sweep during the selfcheck: %v", err)
	}
	must.Do(t, child.Process.Kill())
	_ = child.Wait() // the error is the kill
	sweep(workdir.Swept{RunID: id, Files: true})
	if _, err := os.Stat(adapter); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after a sweep the adapter of a killed selfcheck: %v", err)
	}
}

func rootsIn(dir string) workdir.Roots {
	return workdir.Roots{State: filepath.Join(dir, "state"), Data: filepath.Join(dir, "data")}
}

// TestSelfcheckLearnsCounts holds that the traces of the two equal targets show the counts that vary.
func TestSelfcheckLearnsCounts(t *testing.T) {
	s := &script{}
	c, _ := newScripted(t, s, time.Minute)
	must.Do(t, c.learn(t.Context()))
	if len(s.requests) != 0 || c.Counts != nil {
		t.Errorf("a fake target has %d runs and the counts %+v", len(s.requests), c.Counts)
	}
	c.Target.Engine = "oci"
	c.base, c.same = "fake/x-base", "fake/x-same"
	for _, name := range []string{c.base, c.same} {
		parsed, err := target.Parse(name)
		must.Do(t, err)
		c.plan.Targets = append(c.plan.Targets, plan.Pattern(parsed))
	}
	s.change = func(_ int, r *Run) error {
		for n := range s.requests[0].Plan.Trace {
			for _, t := range r.Targets {
				r.Traces = append(r.Traces, result.Trace{
					Cell: result.Cell{Benchmark: r.Bench[0].Name, Params: r.Trials[0].Params, Target: t.Name}, Status: result.OK,
					Counts: []result.TraceCounts{{Step: "create", Component: "runtime", Calls: map[string]int64{"mount": 33, "futex": int64(n)}}},
				})
			}
		}
		return nil
	}
	must.Do(t, c.learn(t.Context()))
	if c.Counts == nil || c.Counts.Traces != 2*selfcheckTraces || len(c.Counts.Benchmarks) != 1 || c.Counts.Benchmarks[0].Stable != 1 || !slices.Equal(c.Counts.Benchmarks[0].Names(), []string{"futex"}) {
		t.Errorf("the knowledge is %+v", c.Counts)
	}
}
