package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/test/chaos/script"
)

// floodLimit is the largest allowed growth of memory and of /run.
const floodLimit = 64 << 20

// TestFloods: a runtime writes a lot of output. Neither the program's memory nor /run nor memory without a name may grow with it.
func TestFloods(t *testing.T) {
	onHost(t, 7, "floods on the outputs of a runtime, in its log and in a daemon's log", func(h *host) {
		h.need("runc", "containerd")
		h.watch()
		size := int64(256 << 20)
		if full() {
			size = 1 << 30
		}
		usual := h.flooded("oci", script.Rule{Verb: "none"})
		for _, fault := range []script.Fault{script.FloodOutput, script.FloodError, script.FloodLog} {
			for _, verb := range []string{"create", "start", "delete"} {
				if !full() && verb == "delete" {
					continue
				}
				h.checkFlood("oci", script.Rule{Verb: verb, From: 2, Until: 2, Fault: fault, Size: size}, usual)
			}
		}
		usual = h.flooded("containerd", script.Rule{Verb: "none"})
		for _, fault := range []script.Fault{script.FloodError, script.FloodLog} {
			h.checkFlood("containerd", script.Rule{Verb: "start", From: 3, Until: 3, Fault: fault, Size: size}, usual)
		}
	})
}

// growth is the memory that a run has used at its peak.
type growth struct{ rss, run, memfds int64 }

func (h *host) checkFlood(engine string, rule script.Rule, usual growth) {
	h.Helper()
	got := h.flooded(engine, rule)
	h.tried(1)
	for what, grown := range map[string]int64{"memory": got.rss - usual.rss, "/run": got.run - usual.run, "memfds": got.memfds - usual.memfds} {
		if grown > floodLimit {
			h.wrong("%s in %s of %s: %s grew by %d MiB", rule.Fault, rule.Verb, engine, what, grown>>20)
		}
	}
}

// flooded runs a benchmark with a flood and measures it.
func (h *host) flooded(engine string, rule script.Rule) (peak growth) {
	h.Helper()
	w := h.wrap(rule)
	args := append(w.flag("flood"), "--managed", "--targets", engine+"/flood", "--filter", lifecycle, "--runs", "2", "--warmup", "0", "--timeout", "40s")
	before := h.used()
	p := h.benchmark(h.newDir(), args...)
	done := make(chan struct{})
	var sampler sync.WaitGroup
	sampler.Go(func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				now := h.used()
				peak.run = max(peak.run, now.run-before.run)
				peak.memfds = max(peak.memfds, now.memfds-before.memfds)
				peak.rss = max(peak.rss, rss(p.cmd.Process.Pid))
			}
		}
	})
	p.ends(0, 3)
	close(done)
	sampler.Wait()
	return peak
}

// rss returns the peak of a process's memory.
func rss(pid int) (bytes int64) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // it may have exited
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			_, _ = fmt.Sscan(rest, &bytes)
		}
	}
	return bytes << 10
}

// used returns the size of /run and of all files in memory without a name.
func (h *host) used() (g growth) {
	h.Helper()
	var s unix.Statfs_t
	if err := unix.Statfs("/run", &s); err != nil {
		h.Fatal(err)
	}
	g.run = int64(s.Blocks-s.Bfree) * s.Bsize
	files, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		h.Fatal(err)
	}
	seen := map[uint64]bool{}
	for _, file := range files {
		if to, err := os.Readlink(file); err != nil || !strings.HasPrefix(to, "/memfd:") {
			continue
		}
		var st unix.Stat_t
		if err := unix.Stat(file, &st); err == nil && !seen[st.Ino] {
			seen[st.Ino] = true
			g.memfds += st.Blocks * 512
		}
	}
	return g
}
