package cgroup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// childEnv is set in a test binary that acts as a process of a group.
const childEnv = "TOUCHSTONE_CGROUP_CHILD"

// touched is the memory and burnt the CPU time that the child "work" uses.
const (
	touched = 48 << 20
	burnt   = 100 * time.Millisecond
)

func TestMain(m *testing.M) {
	role := os.Getenv(childEnv)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := play(role); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func play(role string) error {
	for _, file := range os.Args[1:] {
		if err := os.WriteFile(file, []byte("0"), 0); err != nil {
			return err
		}
	}
	switch role {
	case "work":
		memory := make([]byte, touched)
		for i := 0; i < len(memory); i += os.Getpagesize() {
			memory[i] = 1
		}
		// The group does not account the use before the process joined it.
		for start := cpuTime(); cpuTime()-start < burnt; {
			runtime.Gosched()
		}
		runtime.KeepAlive(memory)
	case "breed": // forks forever, in groups with a limit of processes
		for first := true; ; first = false {
			child := exec.Command("/proc/self/exe")
			child.Env = append(os.Environ(), childEnv+"=wait")
			_, _ = child.StdinPipe()
			_ = child.Start()
			if first {
				fmt.Println("ready")
			}
		}
	case "rootless":
		return playRootless()
	}
	fmt.Println("ready")
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// playRootless acts as an ordinary user with a delegated group.
func playRootless() error {
	h, err := Detect("/")
	if err != nil {
		return err
	}
	if h.Base() != "" && h.Mode != V2 {
		return fmt.Errorf("an ordinary user may create groups at %q on v1", h.Base())
	}
	h = part(h, true)
	self, err := ownPath("/proc/self/cgroup")
	if err != nil {
		return err
	}
	h.findBase(self)
	if h.Base() != self {
		return fmt.Errorf("base is %q, not the caller's own group %q: %w", h.Base(), self, h.noAccess)
	}
	g, err := h.Create("/touchstone-inner/a")
	if err != nil {
		return err
	}
	if g.Path() != self+"/touchstone-inner/a" {
		return fmt.Errorf("path is %q", g.Path())
	}
	if _, err := g.Usage(); err != nil {
		return err
	}
	// The user's own group contains this process. A child must still be able to start in a group below it.
	dir, err := g.OpenDir()
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	child := exec.Command("/proc/self/exe") // exits at once without input
	child.Env = append(os.Environ(), childEnv+"=wait")
	child.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	if err := child.Run(); err != nil {
		return fmt.Errorf("start a process in the group: %w", err)
	}
	found, err := h.Find("touchstone-")
	if err != nil || !slices.Equal(found, []string{"/touchstone-inner"}) {
		return fmt.Errorf("found %v, %w", found, err)
	}
	top, err := h.Open("/touchstone-inner")
	if err != nil {
		return err
	}
	if err := top.Remove(context.Background()); err != nil {
		return err
	}
	fmt.Println("rootless works")
	return nil
}

// part returns the machine's hierarchies with only the unified tree, or with only the v1 hierarchies.
func part(h *Hierarchy, v2 bool) *Hierarchy {
	mounts := slices.DeleteFunc(slices.Clone(h.Mounts), func(m Mount) bool { return m.V2 != v2 })
	return &Hierarchy{Mode: modeOf(mounts), Mounts: mounts, own: h.own}
}

// machines calls test with this machine's hierarchies. On a hybrid machine it also calls test with each kind alone.
func machines(t *testing.T, test func(t *testing.T, h *Hierarchy)) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: creates cgroups")
	}
	h, err := Detect("/")
	must.Do(t, err)
	if h.Base() != "/" {
		t.Skipf("cannot create cgroups: %v", h.noAccess)
	}
	t.Run(string(h.Mode), func(t *testing.T) { test(t, h) })
	if h.Mode == Hybrid {
		for name, v2 := range map[string]bool{"v1 alone": false, "unified alone": true} {
			h := part(h, v2)
			h.findBase("")
			t.Run(name, func(t *testing.T) { test(t, h) })
		}
	}
}

// top creates a top-level group with a unique name, and removes it after the test.
func top(t *testing.T, h *Hierarchy) *Group {
	t.Helper()
	g, err := h.Create(fmt.Sprintf("/%stest-%d-%d", Prefix, os.Getpid(), time.Now().UnixNano()))
	must.Do(t, err)
	t.Cleanup(func() {
		// t.Context is already done.
		must.Do(t, errors.Join(g.Kill(context.Background()), g.Remove(context.Background())))
	})
	return g
}

// sub creates a group below another one.
func sub(t *testing.T, g *Group, name string) *Group {
	t.Helper()
	child, err := g.h.Create(g.Path() + "/" + name)
	must.Do(t, err)
	return child
}

// start runs the test binary in a role, in the given group, until it is ready.
func start(t *testing.T, g *Group, role string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", g.ProcsFiles()...)
	cmd.Env = append(os.Environ(), childEnv+"="+role)
	_, err := cmd.StdinPipe()
	must.Do(t, err)
	stdout, err := cmd.StdoutPipe()
	must.Do(t, err)
	must.Do(t, cmd.Start())
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the child printed %q, %v", line, err)
	}
	return cmd
}

func killed(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	_ = cmd.Wait()
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != unix.SIGKILL {
		t.Errorf("the child ended with %v, want SIGKILL", cmd.ProcessState)
	}
}

// remains lists the existing directories of a group.
func remains(g *Group) []string {
	return slices.DeleteFunc(g.allDirs(), func(dir string) bool { return !exists(dir, "") })
}

func TestCreate(t *testing.T) {
	machines(t, func(t *testing.T, h *Hierarchy) {
		g := top(t, h)
		if _, err := h.Create(g.Path()); !errors.Is(err, fs.ErrExist) {
			t.Errorf("creating a group twice: %v, want fs.ErrExist", err)
		}
		leaf, err := h.Create(g.Path() + "/a/b/c")
		must.Do(t, err)
		for _, file := range slices.Concat(leaf.ProcsFiles(), leaf.ThreadFiles()) {
			if _, err := os.Stat(file); err != nil {
				t.Errorf("cgroup.procs: %v", err)
			}
		}
		found, err := h.Find(strings.TrimPrefix(g.Path(), "/"))
		if diff := cmp.Diff([]string{g.Path()}, found); diff != "" || err != nil {
			t.Errorf("Find: %v (-want +got):\n%s", err, diff)
		}
	})
}

// If Create fails in the last hierarchy, nothing is left in the first.
func TestFailedCreateLeavesNothing(t *testing.T) {
	for _, tt := range []struct {
		name     string
		obstacle func(dir string) error
	}{
		{"parent is a file", func(dir string) error { return os.WriteFile(filepath.Join(dir, "touchstone-a"), nil, 0o600) }},
		{"group is there", func(dir string) error { return os.MkdirAll(filepath.Join(dir, "touchstone-a/b"), 0o700) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			first, last := t.TempDir(), t.TempDir()
			must.Do(t, tt.obstacle(last))
			h := &Hierarchy{Mode: V1, base: "/", Mounts: []Mount{
				{Dir: first, Controllers: []string{"cpu"}}, {Dir: last, Controllers: []string{"memory"}},
			}}
			if _, err := h.Create("/touchstone-a/b"); err == nil {
				t.Error("Create succeeds")
			}
			if left, err := os.ReadDir(first); err != nil || len(left) > 0 {
				t.Errorf("left in the first hierarchy: %v, %v", left, err)
			}
		})
	}
}

func TestKillAndRemove(t *testing.T) {
	machines(t, func(t *testing.T, h *Hierarchy) {
		g := top(t, h)
		one, two := start(t, sub(t, g, "a"), "wait"), start(t, sub(t, g, "b"), "wait")
		pids, err := g.Procs()
		want := []int{one.Process.Pid, two.Process.Pid}
		slices.Sort(want)
		if diff := cmp.Diff(want, pids); diff != "" || err != nil {
			t.Errorf("Procs: %v (-want +got):\n%s", err, diff)
		}
		must.Do(t, g.Kill(t.Context()))
		if pids, err := g.Procs(); err != nil || len(pids) > 0 {
			t.Errorf("Procs after Kill = %v, %v", pids, err)
		}
		killed(t, one)
		killed(t, two)
		for range 2 {
			if err := g.Remove(t.Context()); err != nil {
				t.Errorf("Remove: %v", err)
			}
		}
		if left := remains(g); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
}

// removeEmpty removes only empty groups; Destroy removes the others as well.
func TestRemoveEmpty(t *testing.T) {
	machines(t, func(t *testing.T, h *Hierarchy) {
		g := top(t, h)
		empty, parent, worker := sub(t, g, "empty"), sub(t, g, "parent"), sub(t, g, "busy")
		sub(t, parent, "child")
		cmd := start(t, worker, "wait")
		for _, tt := range []struct {
			group *Group
			want  bool
		}{{empty, true}, {empty, true}, {parent, false}, {worker, false}} {
			if got := tt.group.removeEmpty(); got != tt.want || got == (len(remains(tt.group)) > 0) {
				t.Errorf("removeEmpty() = %v for %s, want %v; left: %q", got, tt.group.path, tt.want, remains(tt.group))
			}
		}
		for _, left := range []*Group{parent, worker, empty} {
			if err := left.Destroy(t.Context()); err != nil || len(remains(left)) > 0 {
				t.Errorf("Destroy of %s: %v; left: %q", left.path, err, remains(left))
			}
		}
		killed(t, cmd)
	})
}

// Runtimes create groups in hierarchies that Touchstone itself does not join.
func TestRemoveVisitsAllHierarchies(t *testing.T) {
	machines(t, func(t *testing.T, h *Hierarchy) {
		g := top(t, h)
		for _, dir := range g.allDirs() {
			must.Do(t, os.MkdirAll(filepath.Join(dir, "container/inner"), 0o755))
		}
		want := []string{"container"}
		if children, err := g.Children(); err != nil || !slices.Equal(children, want) {
			t.Errorf("Children = %q, %v; want %q", children, err, want)
		}
		must.Do(t, g.Remove(t.Context()))
		if left := remains(g); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		if children, err := g.Children(); err != nil || len(children) > 0 {
			t.Errorf("Children of a removed group = %q, %v; want none", children, err)
		}
	})
}

func TestRemoveWaitsForProcesses(t *testing.T) {
	machines(t, func(t *testing.T, h *Hierarchy) {
		g := top(t, h)
		cmd := start(t, g, "wait")
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		err := g.Remove(cancelled)
		if !errors.Is(err, context.Canceled) || !strings.Contains(fmt.Sprint(err), strconv.Itoa(cmd.Process.Pid)) {
			t.Errorf("Remove of a group in use = %v, want context.Canceled and the process %d", err, cmd.Process.Pid)
		}

		if err := g.Kill(cancelled); !errors.Is(err, context.Canceled) {
			t.Errorf("Kill = %v, want context.Canceled", err)
		}

		done := make(chan error)
		go func() { done <- g.Remove(t.Context()) }()
		must.Do(t, cmd.Process.Kill())
		if err := <-done; err != nil {
			t.Errorf("Remove of a group with an exiting process: %v", err)
		}
	})
}

// AwaitFrozen returns once all processes of a group are frozen, and not before. Frozen processes can be killed, also by the parent.
func TestAwaitFrozen(t *testing.T) {
	machines(t, func(t *testing.T, h *Hierarchy) {
		parent := top(t, h)
		g := sub(t, parent, "a")
		cmd := start(t, g, "wait")
		callCtx, give := context.WithCancel(t.Context())
		give()
		if err := g.AwaitFrozen(callCtx); !errors.Is(err, context.Canceled) {
			t.Errorf("AwaitFrozen of a thawed group = %v, want context.Canceled", err)
		}
		dir, _, ok := g.dir("freezer")
		file, value := "freezer.state", "FROZEN"
		if !ok {
			m, _ := h.unified()
			dir, file, value = filepath.Join(m.Dir, g.Path()), "cgroup.freeze", "1"
		}
		must.Do(t, write(dir, file, value))
		must.Do(t, g.AwaitFrozen(t.Context()))
		must.Do(t, parent.Kill(t.Context()))
		killed(t, cmd)
	})
}

// A v1 kernel sends no event, so AwaitFrozen pauses for 1, 2, 4, 8, … ms between two reads of the state.
func TestAwaitFrozenPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		state := filepath.Join(dir, "freezer.state")
		set := func(text string) {
			if err := os.WriteFile(state, []byte(text), 0o600); err != nil {
				t.Error(err)
			}
		}
		set("FREEZING\n")
		g := &Group{h: &Hierarchy{Mounts: []Mount{{Dir: dir, Controllers: []string{"freezer"}}}}, path: "/"}
		ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, errors.New("the limit"))
		defer cancel()
		start := time.Now()
		err := g.AwaitFrozen(ctx)
		if took := time.Since(start); !errors.Is(err, context.Cause(ctx)) || took != 100*time.Millisecond {
			t.Errorf("AwaitFrozen of a group that never freezes = %v after %v", err, took)
		}
		start = time.Now()
		time.AfterFunc(10*time.Millisecond, func() { set("FROZEN\n") })
		err = g.AwaitFrozen(t.Context())
		if took := time.Since(start); err != nil || took != 15*time.Millisecond {
			t.Errorf("AwaitFrozen = %v after %v, want 15 ms", err, took)
		}
	})
}

func TestKillOutrunsForks(t *testing.T) {
	machines(t, func(t *testing.T, h *Hierarchy) {
		g := top(t, h)
		dir, _, ok := g.dir("pids")
		if !ok {
			t.Skip("needs the pids controller to limit the children of this test")
		}
		must.Do(t, write(dir, "pids.max", "60"))
		cmd := start(t, sub(t, g, "a"), "breed")
		must.Do(t, g.Kill(t.Context()))
		killed(t, cmd)
		if value, err := words(dir, "pids.max"); err != nil || !slices.Equal(value, []string{"60"}) {
			t.Errorf("pids.max after Kill = %v, %v; want 60, the previous value", value, err)
		}
	})
}

// A process may exit before it is killed.
func TestKillOfExitedProcess(t *testing.T) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), childEnv+"=wait")
	_, err := cmd.StdinPipe()
	must.Do(t, err)
	must.Do(t, cmd.Start())
	processes := hold([]int{cmd.Process.Pid})
	defer release(processes)
	must.Do(t, kill(processes[0]))
	killed(t, cmd)
	if err := kill(processes[0]); err != nil {
		t.Errorf("killing an exited process: %v", err)
	}
	must.Do(t, awaitExit(t.Context(), processes))
}

func TestHoldSparesInitAndCaller(t *testing.T) {
	if processes := hold([]int{-1, 0, 1, os.Getpid()}); len(processes) > 0 {
		release(processes)
		t.Errorf("held %v", processes)
	}
}

// Kill and Remove must not kill a thread of the caller or wait for it.
func TestOwnThread(t *testing.T) {
	machines(t, func(t *testing.T, h *Hierarchy) {
		g := top(t, h)
		files := g.ThreadFiles()
		if len(files) == 0 {
			t.Skip("single threads cannot join the unified tree")
		}
		home, err := h.OwnThreadFiles()
		if err != nil || len(home) != len(files) {
			t.Fatalf("OwnThreadFiles = %v, %v; want one for each of %v", home, err, files)
		}
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for _, file := range files {
			must.Do(t, os.WriteFile(file, []byte("0"), 0))
		}
		if pids, err := g.Procs(); err != nil || !slices.Equal(pids, []int{os.Getpid()}) {
			t.Errorf("Procs = %v, %v; want this process", pids, err)
		}
		if err := g.Kill(t.Context()); err != nil {
			t.Errorf("Kill: %v", err)
		}
		if err := g.Remove(t.Context()); !errors.Is(err, unix.EBUSY) || !strings.Contains(fmt.Sprint(err), "a thread of this process") {
			t.Errorf("Remove = %v, want EBUSY and the reason", err)
		}
		for _, file := range home {
			must.Do(t, os.WriteFile(file, []byte("0"), 0))
		}
		if pids, err := g.Procs(); err != nil || len(pids) > 0 {
			t.Errorf("Procs after the thread left = %v, %v", pids, err)
		}
	})
}

// A group has no swap, and a group that a runtime creates below it has none either.
func TestGroupsHaveNoSwap(t *testing.T) {
	machines(t, func(t *testing.T, h *Hierarchy) {
		g := top(t, h)
		dir, v2, ok := g.dir("memory")
		if !ok {
			t.Skip("needs the controller memory")
		}
		file := "memory.swap.max"
		if !v2 {
			file, dir = "memory.swappiness", filepath.Join(dir, "inner")
			must.Do(t, os.Mkdir(dir, 0o755))
		}
		if !exists(dir, file) {
			t.Skipf("needs %s", file)
		}
		if got, err := words(dir, file); err != nil || !slices.Equal(got, []string{"0"}) {
			t.Errorf("%s is %q, %v", file, got, err)
		}
	})
}

func TestRootless(t *testing.T) {
	machines(t, func(t *testing.T, h *Hierarchy) {
		g := top(t, h)
		dir, err := g.OpenDir()
		if h.Mode == V1 && !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("OpenDir on v1 = %v, want errors.ErrUnsupported", err)
		}
		if h.Mode != V2 {
			t.Skip("needs a unified tree: v1 cannot be delegated")
		}
		const nobody = 65534
		must.Do(t, err)
		defer func() { _ = dir.Close() }()
		for _, file := range []string{"", "cgroup.procs", "cgroup.subtree_control"} {
			must.Do(t, os.Chown(filepath.Join(dir.Name(), file), nobody, nobody))
		}
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), childEnv+"=rootless")
		cmd.SysProcAttr = &syscall.SysProcAttr{
			UseCgroupFD: true, CgroupFD: int(dir.Fd()),
			Credential: &syscall.Credential{Uid: nobody, Gid: nobody},
		}
		out, err := cmd.CombinedOutput()
		if err != nil || string(out) != "rootless works\n" {
			t.Errorf("an ordinary user with a delegated group: %v\n%s", err, out)
		}
	})
}

// The memory, the CPU time and the processes of a group are also its parent's.
func TestCharges(t *testing.T) {
	machines(t, func(t *testing.T, h *Hierarchy) {
		parent := top(t, h)
		g := sub(t, parent, "a")
		cmd := start(t, g, "work")
		for _, g := range []*Group{g, parent} {
			inRange := func(n int64) bool { return n >= touched && n <= 4*touched }
			usage, err := g.Usage()
			if err != nil || usage.CPU < burnt || usage.CPU > 100*burnt {
				t.Errorf("%s: Usage = %+v, %v; want CPU time a little above %v", g.Path(), usage, err, burnt)
			}
			memory, err := g.Memory()
			if slices.Contains(g.Missing(), "memory") {
				if !errors.Is(err, errors.ErrUnsupported) || usage.PeakMemory != 0 {
					t.Errorf("%s: Memory = %d, %v, and the peak %d without the controller", g.Path(), memory, err, usage.PeakMemory)
				}
			} else if err != nil || !inRange(memory) || !inRange(usage.PeakMemory) {
				t.Errorf("%s: Memory = %d, %v, and the peak %d, want a little above %d", g.Path(), memory, err, usage.PeakMemory, touched)
			}
			if cpu, err := g.CPU(); err != nil || cpu < burnt || cpu > 100*burnt {
				t.Errorf("%s: CPU = %v, %v, want a little above %v", g.Path(), cpu, err, burnt)
			}
			pids, err := g.AccountedProcs()
			if diff := cmp.Diff([]int{cmd.Process.Pid}, pids); err != nil || diff != "" {
				t.Errorf("%s: AccountedProcs: %v (-want +got):\n%s", g.Path(), err, diff)
			}
		}
	})
}

// A removed group has no memory and no processes, its CPU time is lost, and it can be killed and removed again.
func TestChargesOfARemovedGroup(t *testing.T) {
	machines(t, func(t *testing.T, h *Hierarchy) {
		g, err := h.Open("/touchstone-nothing")
		must.Do(t, err)
		if memory, err := g.Memory(); memory != 0 || err != nil && !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("Memory = %d, %v", memory, err)
		}
		if cpu, err := g.CPU(); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("CPU = %v, %v; want fs.ErrNotExist", cpu, err)
		}
		if pids, err := g.AccountedProcs(); len(pids) > 0 || err != nil {
			t.Errorf("AccountedProcs = %v, %v", pids, err)
		}
		_, err = g.Usage()
		for what, err := range map[string]error{"Usage": err, "Limit": g.Limit(Limits{CPU: 1})} {
			if !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s = %v; want fs.ErrNotExist", what, err)
			}
		}
		if err := errors.Join(g.Kill(t.Context()), g.Remove(t.Context())); err != nil {
			t.Errorf("Kill and Remove = %v", err)
		}
	})
}

func TestMemoryWithoutTheController(t *testing.T) {
	dir := t.TempDir()
	writeFixture(t, filepath.Join(dir, "touchstone-x/cgroup.procs"), "")
	for what, controllers := range map[string][]string{"not enabled for the group": {"memory"}, "not in the kernel": {"cpu"}} {
		g := &Group{h: &Hierarchy{Mounts: []Mount{{Dir: dir, V2: true, Controllers: controllers}}}, path: "/touchstone-x"}
		if memory, err := g.Memory(); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: Memory = %d, %v; want errors.ErrUnsupported", what, memory, err)
		}
	}
}
