package chaos

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/test/cells"
	"github.com/touchstone-bench/touchstone/test/chaos/script"
)

// overhead bounds the time that a run of these cases takes beside its trials: to try its targets, and to write the report. It is a limit against
// hanging, so each case makes the delay of a fault longer than it, or endless.
const overhead = 2 * time.Minute

// plan starts the run of a plan.
func (h *host) plan(text string) *program {
	h.Helper()
	dir := h.newDir()
	h.must(os.WriteFile(filepath.Join(dir, "plan.yaml"), []byte("version: 1\n"+text), 0o600))
	return h.benchmark(dir, "-f", "plan.yaml")
}

// TestHangingVerbs: one of four targets hangs in a verb. The others get their blocks, and the run keeps to its budget.
func TestHangingVerbs(t *testing.T) {
	cells.Need(t, "chaos/hangs")
	onHost(t, 3, "a verb hangs on one of four targets", func(h *host) {
		h.need("runc", "crun")
		h.watch()
		const (
			blocks = 10
			call   = 8 * time.Second // the good targets keep to it on a busy machine, too
			budget = 2 * time.Minute
		)
		var wg sync.WaitGroup
		for _, verbs := range []string{"create", "start", "kill", "delete", "exec", "start and delete"} {
			benchmark := lifecycle
			if verbs == "exec" {
				benchmark = "operations.container.exec"
			}
			var rules []script.Rule
			for verb := range strings.SplitSeq(verbs, " and ") {
				rules = append(rules, script.Rule{Verb: verb, From: 4, Fault: script.Hang}) // after two good trials
			}
			w := h.wrap(rules...)
			wg.Go(func() {
				p := h.plan(fmt.Sprintf("targets: [native, oci/runc, oci/crun, oci/bad]\nruntimes: {bad: %s}\nbenchmarks: [{name: %s}]\n"+
					"blocks: %d\nwarmup: 1\nbudget: %v\ntimeout: {trial: 24s, call: %v}\n", w.path, benchmark, blocks, budget, call))
				took := p.ends(3)
				h.tried(1)
				if took > budget+call+overhead {
					h.wrong("%s hangs: the run took %v, with a budget of %v and a call limit of %v", verbs, took.Round(time.Second), budget, call)
				}
				run := h.run(p.dir)
				for _, target := range []string{"native", "oci/runc", "oci/crun"} {
					if verbs == "exec" && target == "native" {
						continue // it may lack exec
					}
					if n := count(run, target); n[result.OK] < blocks*9/10 {
						h.wrong("%s hangs on oci/bad: %s got %d of %d blocks, %v", verbs, target, n[result.OK], blocks, n)
					}
				}
				if n := count(run, "oci/bad"); n[result.OK]+n[result.Failed]+n[result.Timeout]+n[result.Skipped] == 0 {
					h.wrong("%s hangs: oci/bad has no recorded trial", verbs)
				}
			})
		}
		wg.Wait()
	})
}

// TestManyHangingDeletes: the removal of many containers hangs. The clean-up of the trial has one deadline for all of them.
func TestManyHangingDeletes(t *testing.T) {
	cells.Need(t, "chaos/deletes")
	onHost(t, 4, "the removal of many containers hangs", func(h *host) {
		h.need("runc")
		h.watch()
		n, trial := 20, 30*time.Second
		if full() {
			n, trial = 100, 2*time.Minute
		}
		const call = 15 * time.Second // for each removal one after the other, these add up to more than the limit below
		w := h.wrap(script.Rule{Verb: "delete", From: n / 4, Fault: script.Hang})
		p := h.plan(fmt.Sprintf("targets: [oci/bad]\nruntimes: {bad: %s}\nbenchmarks: [scalability.runtime.%d]\nblocks: 1\nwarmup: 0\ntimeout: {trial: %v, call: %v}\n",
			w.path, n, trial, call))
		took := p.ends(3)
		h.tried(n)
		if limit := trial + 2*call + overhead; took > limit {
			h.wrong("the run took %v, want at most %v", took.Round(time.Second), limit)
		}
	})
}

// TestUnkillableRuntimes: a runtime leaves its process group, or its program is on a dead file system. Limits hold, and interrupts end the run.
func TestUnkillableRuntimes(t *testing.T) {
	cells.Need(t, "chaos/unkillable")
	onHost(t, 5, "runtimes that a kill of the process group does not reach", func(h *host) {
		h.need("runc")
		h.watch()
		const call = 2 * time.Second
		var wg sync.WaitGroup
		for _, verb := range []string{"create", "start", "kill", "delete"} {
			w := h.wrap(script.Rule{Verb: verb, From: 2, Fault: script.Escape})
			wg.Go(func() {
				p := h.plan(fmt.Sprintf("targets: [oci/bad]\nruntimes: {bad: %s}\nbenchmarks: [%s]\nblocks: 2\nwarmup: 0\ntimeout: {trial: 8s, call: %v}\n", w.path, lifecycle, call))
				took := p.ends(3)
				h.tried(1)
				// Two trials, each with a call and a clean-up, and another attempt of the target.
				if limit := 8*call + overhead; took > limit {
					h.wrong("%s leaves its process group: the run took %v, want at most %v", verb, took.Round(time.Second), limit)
				}
			})
		}
		wg.Wait()
		h.deadFileSystem()
	})
}

// deadFileSystem runs a runtime from a FUSE file system whose server stops. The limits of calls must hold, and the third interrupt must end the
// program at once.
func (h *host) deadFileSystem() {
	h.Helper()
	budget := 12 * time.Second
	const (
		free      = 10 * time.Second // the limit of a wait for the forking thread, which an execve in the kernel blocks
		closeTime = 30 * time.Second // the limit of the session's clean-up, which waits for the process in the kernel
	)
	for _, interrupt := range []bool{false, true} {
		runc, err := exec.LookPath("runc")
		h.must(err)
		program, err := os.ReadFile(runc)
		h.must(err)
		fs := enginetest.Serve(h.T, string(program))
		p := h.plan(fmt.Sprintf("targets: [oci/bad]\nruntimes: {bad: %s}\nbenchmarks: [%s]\nblocks: 200\nwarmup: 0\nbudget: %v\ntimeout: {trial: 8s, call: 2s}\n", fs.Path, lifecycle, budget))
		h.awaitTrial(p)
		fs.Stall()
		h.tried(1)
		// Exit code 1 is right if a process waits in the kernel when the program exits. The clean-up below removes it.
		if interrupt {
			for range 3 {
				p.signal(syscall.SIGINT)
				pause(time.Second)
			}
			start := time.Now()
			p.ends(130, -1) // -1 is the end by the signal, which a shell reports as 130
			if took := time.Since(start); took > closeTime-10*time.Second {
				h.wrong("a program on a dead file system: the run exited %v after the third interrupt", took.Round(time.Second))
			}
		} else if took := p.ends(0, 1, 3); took > budget+2*time.Second+overhead+free+closeTime {
			h.wrong("a program on a dead file system: the run took %v, with a budget of %v", took.Round(time.Second), budget)
		}
		fs.Release()
		if cleanup := h.start(h.newDir(), nil, "cleanup"); cleanup.ends(0) > overhead {
			h.wrong("the clean-up took too long: %s", strings.TrimSpace(cleanup.output()))
		}
	}
}
