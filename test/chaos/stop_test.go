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

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/test/cells"
	"github.com/touchstone-bench/touchstone/test/chaos/script"
)

// TestStoppedDaemons: a daemon stops in the middle of a call. The trial ends at its limit, a private daemon is started again, and the
// run continues.
func TestStoppedDaemons(t *testing.T) {
	cells.Need(t, "chaos/stopped")
	onHost(t, 8, "SIGSTOP of daemons in the middle of a call", func(h *host) {
		h.need("runc")
		h.watch()
		var wg sync.WaitGroup
		for _, d := range []struct {
			engine, daemon string
			start          int // the call of start in the first trial
		}{
			{"containerd", "containerd", 4}, {"docker", "dockerd", 2}, {"podman", "conmon", 3}, {"crio", "crio", 4},
		} {
			if _, err := exec.LookPath(d.daemon); err != nil {
				h.Logf("no %s: %v", d.engine, err)
				continue
			}
			wg.Go(func() {
				w := h.wrap(script.Rule{Verb: "start", From: d.start, Until: d.start, Fault: script.Hold})
				const budget, call = 2 * time.Minute, 20 * time.Second
				p := h.plan(fmt.Sprintf("targets: [%s/held]\nruntimes: {held: %s}\nengines: {managed: true}\nbenchmarks: [%s]\nblocks: 3\nwarmup: 0\nbudget: %v\ntimeout: {trial: 50s, call: %v}\n",
					d.engine, w.path, lifecycle, budget, call))
				w.reached(p)
				for _, pid := range h.daemons(d.daemon, h.run(p.dir).ID) {
					if err := unix.Kill(pid, syscall.SIGSTOP); err != nil {
						h.wrong("stop %s: %v", d.daemon, err)
					}
				}
				w.release()
				took := p.ends(3)
				h.tried(1)
				if took > budget+call+overhead {
					h.wrong("%s stops: the run took %v, with a budget of %v", d.daemon, took.Round(time.Second), budget)
				}
				n := count(h.run(p.dir), d.engine+"/held")
				if n[result.OK] < 2 {
					h.wrong("%s stops in the first of 3 trials: the trials are %v, want 2 ok", d.daemon, n)
				}
			})
		}
		wg.Wait()
	})
}

// daemons returns the processes of a program that belong to a run, by their arguments or their cgroup.
func (h *host) daemons(program, id string) (pids []int) {
	h.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	h.must(err)
	for _, dir := range dirs {
		comm, _ := os.ReadFile(filepath.Join(dir, "comm"))
		cmdline, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		group, _ := os.ReadFile(filepath.Join(dir, "cgroup"))
		if strings.TrimSpace(string(comm)) != program || !strings.Contains(string(cmdline)+string(group), id) {
			continue
		}
		var pid int
		if _, err := fmt.Sscan(filepath.Base(dir), &pid); err != nil {
			h.Fatal(err)
		}
		pids = append(pids, pid)
	}
	if len(pids) == 0 {
		h.wrong("there is no %s of run %s", program, id)
	}
	return pids
}
