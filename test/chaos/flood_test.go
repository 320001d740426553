package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/test/cells"
	"github.com/touchstone-bench/touchstone/test/chaos/script"
)

// floodLimit is the largest allowed growth of memory, and of the file systems in memory.
const floodLimit = 64 << 20

// TestFloods: a runtime writes a lot of output. Neither the program's memory nor /run, also in the namespace of a daemon, nor memory without a name
// may grow with it.
func TestFloods(t *testing.T) {
	cells.Need(t, "chaos/floods")
	onHost(t, 7, "floods on the outputs of a runtime, in its log and in a daemon's log", func(h *host) {
		h.need("runc", "containerd", "dockerd", "podman")
		h.watch()
		size := int64(256 << 20)
		if full() {
			size = 1 << 30
		}
		baseline := h.flooded("oci", script.Rule{Verb: "none"})
		for _, fault := range []script.Fault{script.FloodOutput, script.FloodError, script.FloodLog} {
			for _, verb := range []string{"create", "start", "delete"} {
				if !full() && verb == "delete" {
					continue
				}
				h.checkFlood("oci", script.Rule{Verb: verb, From: 2, Until: 2, Fault: fault, Size: size}, baseline)
			}
		}
		for _, e := range []struct {
			name  string
			start int // the call of start in the first trial
		}{{"containerd", 3}, {"docker", 2}, {"podman", 3}} {
			baseline = h.flooded(e.name, script.Rule{Verb: "none"})
			for _, fault := range []script.Fault{script.FloodError, script.FloodLog} {
				h.checkFlood(e.name, script.Rule{Verb: "start", From: e.start, Until: e.start, Fault: fault, Size: size}, baseline)
			}
		}
	})
}

// growth is the memory that a run has used at its peak.
type growth struct{ rss, run, memfds int64 }

func (h *host) checkFlood(engine string, rule script.Rule, baseline growth) {
	h.Helper()
	got := h.flooded(engine, rule)
	h.tried(1)
	for what, surplus := range map[string]int64{"memory": got.rss - baseline.rss, "/run": got.run - baseline.run, "memfds": got.memfds - baseline.memfds} {
		if surplus > floodLimit {
			h.wrong("%s in %s of %s: %s grew by %d MiB", rule.Fault, rule.Verb, engine, what, surplus>>20)
		}
	}
}

// flooded runs a benchmark with a flood and measures it.
func (h *host) flooded(engine string, rule script.Rule) (peak growth) {
	h.Helper()
	w := h.wrap(rule)
	args := append(w.flag("flood"), "--managed", "--targets", engine+"/flood", "--filter", lifecycle, "--runs", "2", "--warmup", "0", "--timeout", "40s")
	baseline := h.used()
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
				state := h.used()
				peak.run = max(peak.run, state.run-baseline.run)
				peak.memfds = max(peak.memfds, state.memfds-baseline.memfds)
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

// inMemory returns the size of the file systems in memory at and below /run and /var/lib, in all mount namespaces.
func (h *host) inMemory() (bytes int64) {
	h.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*")
	h.must(err)
	namespaces, devices := map[string]bool{}, map[[2]int]bool{}
	for _, process := range processes {
		ns, err := os.Readlink(process + "/ns/mnt")
		if err != nil || namespaces[ns] {
			continue // the process has exited
		}
		f, err := os.Open(process + "/mountinfo")
		if err != nil {
			continue
		}
		namespaces[ns] = true
		mounts, _ := mountinfo.GetMountsFromReader(f, mountinfo.FSTypeFilter("tmpfs"))
		_ = f.Close()
		for _, m := range mounts {
			var s unix.Statfs_t
			device := [2]int{m.Major, m.Minor}
			if devices[device] || !strings.HasPrefix(m.Mountpoint+"/", "/run/") && !strings.HasPrefix(m.Mountpoint, "/var/lib") {
				continue
			}
			// A process that exits or changes its root meanwhile shows another file system at the path.
			if unix.Statfs(process+"/root"+m.Mountpoint, &s) == nil && s.Type == unix.TMPFS_MAGIC {
				devices[device] = true
				bytes += int64(s.Blocks-s.Bfree) * s.Bsize
			}
		}
	}
	return bytes
}

// used returns the size of the file systems in memory and of all files in memory without a name.
func (h *host) used() (g growth) {
	h.Helper()
	g.run = h.inMemory()
	files, err := filepath.Glob("/proc/[0-9]*/fd/*")
	h.must(err)
	inodes := map[uint64]bool{}
	for _, file := range files {
		if link, err := os.Readlink(file); err != nil || !strings.HasPrefix(link, "/memfd:") {
			continue
		}
		var st unix.Stat_t
		if err := unix.Stat(file, &st); err == nil && !inodes[st.Ino] {
			inodes[st.Ino] = true
			g.memfds += st.Blocks * 512
		}
	}
	return g
}
