package enginetest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// traces are the resources that the containers of a private engine use on the host: processes, mounts, network namespaces, interfaces,
// addresses, cgroups, files and users of vhost-vsock. A key is the kind and the name.
type traces map[string]bool

func (r traces) add(kind string, name ...any) { r[kind+" "+fmt.Sprint(name...)] = true }

// tracesOf lists the resources in use now. A tap device is in the network namespace of its pod, which is listed by its mount.
func tracesOf(t *testing.T, s engine.Session, e engine.Engine) traces {
	t.Helper()
	r := traces{}
	daemon := fmt.Sprintf("/proc/%d", e.(engine.DaemonBacked).Daemon().PIDs[0])
	r.processes(t, s, daemon)
	r.mounts(t, daemon)
	r.cgroups(t, s)
	text, err := os.ReadFile(daemon + "/net/dev")
	must.Do(t, err)
	for line := range strings.Lines(string(text)) {
		if name, _, ok := strings.Cut(line, ":"); ok {
			r.add("interface", strings.TrimSpace(name))
		}
	}
	// The engine's data contain its images and snapshots, which its garbage collection removes later.
	for _, dir := range []string{daemon + "/root/run", daemon + "/root" + filepath.Join(s.State, "containerd"), filepath.Join(s.Data, "containerd/root/io.containerd.grpc.v1.cri"), "/dev/shm"} {
		r.files(t, dir)
	}
	users, _ := os.ReadFile("/sys/module/vhost_vsock/refcnt") // the module may be built in
	n, _ := strconv.Atoi(strings.TrimSpace(string(users)))
	for i := range n {
		r.add("user of vhost-vsock", i+1)
	}
	return r
}

// processes lists the processes in the run's cgroups, in the daemon's network, and with the daemon's own /run.
func (r traces) processes(t *testing.T, s engine.Session, daemon string) {
	t.Helper()
	network, err := os.Readlink(daemon + "/ns/net")
	must.Do(t, err)
	var private, run unix.Stat_t
	must.Do(t, unix.Stat(daemon+"/root/run", &private))
	dirs, err := filepath.Glob("/proc/[0-9]*")
	must.Do(t, err)
	for _, dir := range dirs {
		groups, _ := os.ReadFile(dir + "/cgroup") // the process may have exited
		net, _ := os.Readlink(dir + "/ns/net")
		sharesRun := unix.Stat(dir+"/root/run", &run) == nil && run.Dev == private.Dev
		if isSelf := filepath.Base(dir) == strconv.Itoa(os.Getpid()); isSelf || !sharesRun && net != network && !strings.Contains(string(groups), s.RunID) {
			continue
		}
		if stat, err := os.ReadFile(dir + "/stat"); err == nil {
			end := strings.LastIndexByte(string(stat), ')')
			r.add("process", string(stat[:end+1]))
		}
	}
}

// mounts lists the mounts that the daemon sees. Several mounts may have one place.
func (r traces) mounts(t *testing.T, daemon string) {
	t.Helper()
	f, err := os.Open(daemon + "/mountinfo")
	must.Do(t, err)
	defer func() { _ = f.Close() }() // it was only read
	mounts, err := mountinfo.GetMountsFromReader(f, nil)
	must.Do(t, err)
	counts := map[string]int{}
	for _, m := range mounts {
		counts[m.Mountpoint]++
		r.add("mount", m.Mountpoint, " ", m.FSType, " ", counts[m.Mountpoint])
	}
}

// cgroups lists the groups of the run, and the top-level groups that Kata makes.
func (r traces) cgroups(t *testing.T, s engine.Session) {
	t.Helper()
	if s.Cgroups == nil {
		return
	}
	for _, m := range s.Cgroups.Mounts {
		for _, top := range []string{engine.Prefix + s.RunID, "vc", "kata_overhead"} {
			r.tree(t, "cgroup", filepath.Join(m.Dir, s.Cgroups.Base(), top), fs.FileMode.IsDir)
		}
	}
}

func (r traces) files(t *testing.T, dir string) {
	t.Helper()
	r.tree(t, "file", dir, func(fs.FileMode) bool { return true })
	for name := range r {
		// The root file systems of containers are mounts, and their content is the image's. containerd keeps the bundle of a shim whose
		// command "delete" fails until it starts the next time.
		if strings.HasPrefix(name, "file "+dir) && (strings.Contains(name, "/rootfs/") || strings.Contains(name, "/io.containerd.runtime.v2.task/")) {
			delete(r, name)
		}
	}
}

// tree lists a directory and all below it. Files may disappear meanwhile.
func (r traces) tree(t *testing.T, kind, dir string, filter func(fs.FileMode) bool) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && filter(d.Type()) {
			r.add(kind, path)
		}
		return nil
	})
	must.Do(t, err)
}

// more lists the resources that are not in r.
func (r traces) more(state traces) []string {
	var additions []string
	for name := range state {
		if !r[name] {
			additions = append(additions, name)
		}
	}
	slices.Sort(additions)
	return additions
}

// settleLimit bounds the removal of the rest of a container. Engine and kernel remove it in the background, without an event.
const settleLimit = 2 * time.Minute

// nothingSince fails the test if the engine's containers use more than at an earlier time. The kernel and the engine finish some
// removals in the background.
func nothingSince(t *testing.T, s engine.Session, e engine.Engine, baseline traces) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), settleLimit)
	defer cancel()
	var left []string
	err := retry(ctx, 100*time.Millisecond, func() error {
		if left = baseline.more(tracesOf(t, s, e)); len(left) > 0 {
			return errors.New("something is left")
		}
		return nil
	})
	if err != nil {
		for _, name := range left {
			t.Errorf("%s is left", name)
		}
	}
}

// retry calls try until it succeeds, with a pause after each failure. When the context ends, it returns the last error. It is for
// changes of the host without an event.
func retry(ctx context.Context, pause time.Duration, try func() error) error {
	for {
		err := try()
		if err == nil || ctx.Err() != nil {
			return err
		}
		pauseCtx, cancel := context.WithTimeout(ctx, pause)
		<-pauseCtx.Done()
		cancel()
	}
}
