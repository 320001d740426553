package cli_test

import (
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// longRun is a run of fake targets for an interrupt. Its calls take so long on the fake clock that a line of progress comes every few trials.
// All lines together are several times as long as the buffers between the program and a test that has called startNarrow.
var longRun = []string{
	"benchmark", "--targets", "fake/a@create=2s,fake/b@create=3s,no=pause", "--filter", "operations.container",
	"--runs", "150", "--budget", "1000h", "--seed", "7",
}

// wholeRun executes longRun without an interrupt.
func wholeRun(t *testing.T) result.Run {
	t.Helper()
	dir := t.TempDir()
	start(t, dir, longRun...).ends(0)
	return export(t, dir, "latest")
}

// compareRuns checks that two runs are equal, apart from IDs and times. Without jitter, fake targets have the same
// numbers too.
func compareRuns(t *testing.T, want, got result.Run) {
	t.Helper()
	for _, r := range []*result.Run{&want, &got} {
		r.ID, r.Started, r.Ended, r.Host = "", time.Time{}, time.Time{}, result.Host{}
		r.Trials = slices.Clone(r.Trials) // others compare with them too
		for i := range r.Trials {
			r.Trials[i].Started, r.Trials[i].Self = time.Time{}, 0
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the resumed run differs (-whole +resumed):\n%.4000s", diff)
	}
}

func TestInterrupt(t *testing.T) {
	t.Parallel()
	reference := wholeRun(t)
	signals := []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}
	if testing.Short() {
		signals = signals[:1]
	}
	for _, signal := range signals {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			p := startNarrow(t, dir, append([]string{"touchstone"}, longRun...)...)
			p.awaitProgress()
			p.signal(signal)
			p.ends(130)
			run := export(t, dir, "latest")
			p.says(
				`^interrupted; continue with: touchstone benchmark --resume `+run.ID+` -d out$`,
				`^quick `+run.ID+`, interrupted after `,
				`^! The run was interrupted$`,
			)
			if run.State != result.Interrupted || len(run.Trials) == 0 || len(run.Trials) >= len(reference.Trials) {
				t.Fatalf("the run is %s and has %d trials of %d", run.State, len(run.Trials), len(reference.Trials))
			}
			p = start(t, dir, "benchmark", "--resume", run.ID)
			p.ends(0)
			compareRuns(t, reference, export(t, dir, run.ID))
			start(t, dir, "benchmark", "--resume", "latest").ends(2)
		})
	}
}

func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("it calls touchstone many times")
	}
	t.Parallel()
	reference := wholeRun(t)
	dir := t.TempDir()
	p := startNarrow(t, dir, append([]string{"touchstone"}, longRun...)...)
	count := p.awaitProgress() - 1
	list := start(t, dir, "runs")
	list.ends(0)
	list.says(`  running  `)
	resume := start(t, dir, "benchmark", "--resume", "latest")
	resume.ends(1)
	resume.says(`it is under way in another process`)
	p.signal(syscall.SIGKILL)
	p.ends(-1)
	run := export(t, dir, "latest")
	if n := len(run.Trials); n < count || run.State != result.Killed {
		t.Fatalf("the run is %s and has %d trials; %d were recorded before the kill", run.State, n, count)
	}
	list = start(t, dir, "runs")
	list.ends(0)
	list.says(`  killed  `)
	list = start(t, dir, "runs", "-o", "json")
	list.ends(0)
	list.says(`"state": "killed"`)
	p = start(t, dir, "report")
	p.ends(0)
	p.says(`the process of the run was killed; the report has`)
	start(t, dir, "benchmark", "--resume", "latest").ends(0)
	compareRuns(t, reference, export(t, dir, run.ID))
}

// TestClosedPipe: the output pipe is closed, as by head. The run ends in order.
func TestClosedPipe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := startNarrow(t, dir, append([]string{"touchstone"}, longRun...)...)
	p.awaitProgress()
	must.Do(t, p.stderr.Close())
	_ = p.cmd.Wait()
	if code := p.cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d (%v), want 130", code, p.cmd.ProcessState)
	}
	if run := export(t, dir, "latest"); run.State != result.Interrupted {
		t.Errorf("the run is %s", run.State)
	}
}

// TestIgnoredSignal: a run under nohup continues after SIGHUP.
func TestIgnoredSignal(t *testing.T) {
	t.Parallel()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	p := startNarrow(t, dir, append([]string{sh, "-c", `trap "" HUP; exec touchstone "$@"`, "sh"}, longRun...)...)
	p.awaitProgress()
	p.signal(syscall.SIGHUP)
	p.ends(0)
}
