package cri_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/cri"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

// guestTarget is the target with virtual machines.
const guestTarget = "containerd/kata"

// soakVariable selects tests that need several minutes in an emulated machine.
const soakVariable = "LAB_SOAK"

// needSoak skips a long test.
func needSoak(t *testing.T) {
	t.Helper()
	if os.Getenv(soakVariable) == "" {
		t.Skipf("starts many virtual machines, but %s is not set: see CONTRIBUTING.md", soakVariable)
	}
}

// guests is an open target with virtual machines.
type guests struct {
	s      engine.Session
	e      engine.Engine
	r      runtimes.Runtime
	before traces // without containers
}

// openGuests opens the target, or a target with the configuration that change returns for the text of Kata's own file. change may be nil.
func openGuests(t *testing.T, change func(text string) string) guests {
	t.Helper()
	s, name := session(t, "", guestTarget), guestTarget
	r, err := runtimes.Get(t.Context(), s, parse(t, name))
	enginetest.Require(t, name, err)
	if s.Cgroups == nil {
		t.Skip("needs the right to make cgroups: it finds processes there")
	}
	if change != nil {
		text, err := os.ReadFile(r.Guest.File)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(s.Data, "kata.toml")
		if err := os.WriteFile(file, []byte(change(string(text))), 0o600); err != nil {
			t.Fatal(err)
		}
		name += "@config=" + file
		s.Targets = append(s.Targets, parse(t, name))
	}
	e, err := enginetest.Attempt(t, cri.NewContainerd(), name, s)
	enginetest.Require(t, guestTarget, err) // the list of targets that must run has no configurations
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	g := guests{s: s, r: r, e: e}
	g.before = tracesOf(t, s, g.e)
	return g
}

// limited returns a context with the longest time of a call.
func limited(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), enginetest.CallLimit)
	t.Cleanup(cancel)
	return ctx
}

// await returns the processes of a program in the cgroup of a container's pod when they have used some CPU time.
func (g guests) await(ctx context.Context, id, program string, used time.Duration) ([]int, error) {
	group, err := g.s.ContainerCgroup("", id)
	if err != nil {
		return nil, err
	}
	var found []int
	err = retry(ctx, 10*time.Millisecond, func() error {
		pids, err := group.Procs()
		if err != nil {
			return err
		}
		found = slices.DeleteFunc(slices.Clone(pids), func(pid int) bool {
			exe, err := os.Readlink(procFile(pid, "exe"))
			return err != nil || exe != program || cpuTime(pid) < used
		})
		if len(found) == 0 {
			return fmt.Errorf("no process of %s in cgroup %s, only %v", program, group.Path(), pids)
		}
		return nil
	})
	return found, err
}

// cpuTime returns the CPU time of a process; 0 if it has exited.
func cpuTime(pid int) time.Duration {
	stat, _ := os.ReadFile(procFile(pid, "stat"))
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const user, system, perSecond = 11, 12, 100 // counted from the state, see proc(5)
	if len(fields) <= system {
		return 0
	}
	u, _ := strconv.Atoi(fields[user]) // the kernel writes numbers
	s, _ := strconv.Atoi(fields[system])
	return time.Duration(u+s) * time.Second / perSecond
}

// bootedTime is the CPU time after which a hypervisor has begun to boot its guest.
const bootedTime = 3 * time.Second

// signal sends a signal to the processes of a program in the cgroup of a container's pod when they have used some CPU time.
func (g guests) signal(ctx context.Context, id, program string, used time.Duration, signal syscall.Signal) error {
	pids, err := g.await(ctx, id, program, used)
	for _, pid := range pids {
		err = errors.Join(err, syscall.Kill(pid, signal))
	}
	return err
}

// start starts a container and returns when its program runs.
func (g guests) start(t *testing.T, spec engine.Spec) (engine.Container, *lines) {
	t.Helper()
	out := &lines{wanted: workload.ReadyLine, found: make(chan struct{})}
	spec.Process.Stdout = out
	ctx := limited(t)
	c, err := g.e.Create(ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Delete(limited(t)); err != nil {
			t.Error(err)
		}
	})
	if err := c.Start(ctx); err != nil {
		t.Fatal(err)
	}
	return c, out
}

// lines is the output of a program.
type lines struct {
	mu     sync.Mutex
	text   bytes.Buffer
	wanted string
	found  chan struct{} // closed once the text has wanted
	once   sync.Once
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	if strings.Contains(l.text.String(), l.wanted) {
		l.once.Do(func() { close(l.found) })
	}
	return len(p), nil
}

func (l *lines) Close() error { return nil }

// works runs a container whose program ends by itself.
func (g guests) works(t *testing.T, name string) {
	t.Helper()
	spec := enginetest.Spec(g.s, name)
	spec.Process.Args = workload.Exit(3)
	c, _ := g.start(t, spec)
	if exit, err := c.Wait(limited(t)); err != nil || exit.Code != 3 {
		t.Errorf("Wait for the next container: %v, %v; want exit code 3", exit, err)
	}
	if err := c.Delete(limited(t)); err != nil {
		t.Error(err)
	}
	nothingSince(t, g.s, g.e, g.before)
}

// lostLimit bounds the time from a fault of a running virtual machine to the end of Wait.
const lostLimit = 4 * time.Minute

// A virtual machine that loses one of its processes fails the container with the reason, the container can be deleted, nothing is left,
// and the next container works.
func TestGuestFaults(t *testing.T) {
	g := openGuests(t, nil)
	for _, f := range []struct {
		name, program string
		soak          bool
	}{
		{name: "hypervisor", program: g.r.Guest.Program},
		{name: "server", program: g.r.Guest.FileServer},
		{name: "shim", program: g.r.Shim, soak: true},
	} {
		t.Run(f.name, func(t *testing.T) {
			if f.soak {
				needSoak(t)
			}
			c, out := g.start(t, enginetest.Spec(g.s, f.name))
			if engine.Await(limited(t), out.found) != nil {
				t.Fatal("the program does not run")
			}
			ended := make(chan error, 1)
			ctx, cancel := context.WithTimeout(t.Context(), lostLimit)
			defer cancel()
			go func() {
				exit, err := c.Wait(ctx)
				if err == nil {
					err = fmt.Errorf("exit %v", exit)
				}
				ended <- err
			}()
			if err := g.signal(ctx, c.ID(), f.program, 0, unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			killed := time.Now()
			err := <-ended
			t.Logf("Wait, %v after the fault: %v", time.Since(killed).Round(time.Millisecond), err)
			if !strings.Contains(err.Error(), "its virtual machine ended before the program") {
				t.Errorf("Wait: %v; want the loss of the virtual machine", err)
			}
			killed = time.Now()
			if err := c.Delete(limited(t)); err != nil {
				t.Error(err)
			}
			t.Logf("Delete took %v", time.Since(killed).Round(time.Millisecond))
			nothingSince(t, g.s, g.e, g.before)
		})
	}
	t.Run("next", func(t *testing.T) {
		needSoak(t)
		g.works(t, "next")
	})
}

// A virtual machine that does not finish its boot fails Create at the caller's limit, or at Kata's. Nothing is left while the engine runs,
// and the next container works.
func TestGuestThatDoesNotBoot(t *testing.T) {
	needSoak(t)
	g := openGuests(t, nil)
	for n, f := range []struct {
		name   string
		signal syscall.Signal
		boots  time.Duration // CPU time of the hypervisor before the signal
		limit  time.Duration
		reason string
	}{
		// Kata 3.32.0 waits without a limit for a hypervisor that exits before it serves requests.
		{"killed", unix.SIGKILL, 0, 30 * time.Second, "deadline exceeded"},
		// Kata sees the exit, or waits for the agent, depending on the stage of the boot.
		{"killed while it boots", unix.SIGKILL, bootedTime, 30 * time.Second, "exiting QMP loop|deadline exceeded"},
		{"stopped", unix.SIGSTOP, bootedTime, 30 * time.Second, "deadline exceeded"},
		{"killed, with Kata's limit", unix.SIGKILL, 2 * bootedTime, g.r.Guest.DialTimeout() + time.Minute, "exiting QMP loop|timed out connecting to"},
	} {
		t.Run(f.name, func(t *testing.T) {
			spec := enginetest.Spec(g.s, fmt.Sprint("boot-", n))
			ctx, cancel := context.WithTimeout(t.Context(), f.limit)
			defer cancel()
			ended := make(chan error, 1)
			began := time.Now()
			go func() {
				c, err := g.e.Create(ctx, spec)
				if err == nil {
					err = c.Delete(context.WithoutCancel(ctx))
					err = errors.Join(errors.New("the guest boots"), err)
				}
				ended <- err
			}()
			if err := g.signal(ctx, spec.ID, g.r.Guest.Program, f.boots, f.signal); err != nil {
				t.Error(err)
			}
			err := <-ended
			took := time.Since(began).Round(time.Millisecond)
			t.Logf("Create took %v: %v", took, err)
			if !regexp.MustCompile(f.reason).MatchString(err.Error()) {
				t.Errorf("Create: %v; want %q", err, f.reason)
			}
			if most := f.limit + 2*time.Minute; took > most {
				t.Errorf("Create took %v, want at most %v", took, most)
			}
			nothingSince(t, g.s, g.e, g.before)
		})
	}
	g.works(t, "next")
}

// A program that uses more memory than its limit or than the guest has is killed in the guest. A guest whose kernel panics then is lost.
func TestGuestOutOfMemory(t *testing.T) {
	needSoak(t)
	g := openGuests(t, nil)
	for _, f := range []struct {
		name  string
		limit int64
		mib   int
	}{
		{"limit", 64 << 20, 128},
		{"guest", 0, 4 * int(g.r.Guest.MemoryMiB)},
	} {
		t.Run(f.name, func(t *testing.T) {
			spec := enginetest.Spec(g.s, f.name)
			spec.Process.Args, spec.Resources.Memory = workload.Grow(f.mib), f.limit
			c, out := g.start(t, spec)
			exit, err := c.Wait(limited(t))
			if err != nil || exit.Signal != unix.SIGKILL {
				t.Errorf("Wait: %v, %v; want a kill", exit, err)
			}
			if err := c.Delete(limited(t)); err != nil {
				t.Error(err)
			}
			all := strings.Split(strings.TrimSpace(out.text.String()), "\n")
			t.Logf("the last line of the program was %q", all[len(all)-1])
			nothingSince(t, g.s, g.e, g.before)
		})
	}
}

// The panic of a guest's kernel fails the container with the reason.
func TestGuestPanic(t *testing.T) {
	needSoak(t)
	g := openGuests(t, func(text string) string {
		const key = "\nkernel_params = \""
		if !strings.Contains(text, key) {
			t.Skip("Kata's configuration has no line with kernel_params")
		}
		return strings.Replace(text, key, key+"sysctl.vm.panic_on_oom=2 ", 1)
	})
	spec := enginetest.Spec(g.s, "panic")
	spec.Process.Args, spec.Resources.Memory = workload.Grow(128), 64<<20
	c, _ := g.start(t, spec)
	began := time.Now()
	exit, err := c.Wait(limited(t))
	t.Logf("Wait took %v: %v, %v", time.Since(began).Round(time.Millisecond), exit, err)
	if err == nil || !strings.Contains(err.Error(), "its virtual machine ended before the program") {
		t.Errorf("Wait: %v, %v; want the loss of the virtual machine", exit, err)
	}
	if err := c.Delete(limited(t)); err != nil {
		t.Error(err)
	}
	nothingSince(t, g.s, g.e, g.before)
	g.works(t, "next")
}

// A virtual machine that stops to answer while its container runs does not hang a call beyond its limit, and can be deleted.
func TestGuestThatHangs(t *testing.T) {
	needSoak(t)
	g := openGuests(t, nil)
	c, out := g.start(t, enginetest.Spec(g.s, "hang"))
	if engine.Await(limited(t), out.found) != nil {
		t.Fatal("the program does not run")
	}
	if err := g.signal(limited(t), c.ID(), g.r.Guest.Program, 0, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	began := time.Now()
	_, err := c.(engine.Execer).Exec(ctx, engine.Process{Args: workload.Exit(0)})
	t.Logf("Exec took %v: %v", time.Since(began), err)
	if err == nil {
		t.Error("Exec in a stopped guest works")
	}
	began = time.Now()
	err = c.Delete(limited(t))
	t.Logf("Delete took %v: %v", time.Since(began), err)
	if err != nil {
		t.Error(err)
	}
	nothingSince(t, g.s, g.e, g.before)
	g.works(t, "next")
}

// vsockVariable names the file of the module vhost_vsock.
const vsockVariable = "LAB_VSOCK"

// Without vhost-vsock the target is refused with the reason, and with it the target works again.
func TestVsockUnloaded(t *testing.T) {
	needSoak(t)
	module := os.Getenv(vsockVariable)
	if module == "" {
		t.Skipf("unloads a module of the kernel, but %s does not name its file", vsockVariable)
	}
	content, err := os.ReadFile(module)
	if err != nil {
		t.Fatal(err)
	}
	unloadVsock(t)
	t.Run("without", func(t *testing.T) {
		s := session(t, "", guestTarget)
		_, err = cri.NewContainerd().Open(t.Context(), parse(t, guestTarget), s)
		if !engine.Unsupported(err) || !strings.Contains(err.Error(), "/dev/vhost-vsock does not exist") {
			t.Errorf("Open without the module: %v; want this reason", err)
		}
	})
	if err := unix.InitModule(content, ""); err != nil {
		t.Fatal(err)
	}
	t.Run("again", func(t *testing.T) { openGuests(t, nil).works(t, "again") })
}

// unloadVsock unloads the module vhost_vsock when nothing uses it any more. The kernel keeps a socket for 8 s if its guest has ended without
// an answer.
func unloadVsock(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), settleLimit)
	defer cancel()
	err := retry(ctx, 100*time.Millisecond, func() error { return unix.DeleteModule("vhost_vsock", unix.O_NONBLOCK) })
	if err != nil {
		users, _ := os.ReadFile("/sys/module/vhost_vsock/refcnt") // for the message
		t.Fatalf("unload vhost_vsock with %s users: %v", bytes.TrimSpace(users), err)
	}
}

const (
	soakLives = 20
	soakCrowd = 5
	// crowdLimit is the time in which virtual machines that boot at once on two CPUs with an emulated CPU end.
	crowdLimit = 10 * time.Minute
	// soakLost is the number of virtual machines that may be lost. In an emulated machine one guest in thirty stops or crashes at boot:
	// see docs/adr/0030-nested-virtualization.md.
	soakLost = 3
)

// Many virtual machines, one after the other and several at once, leave nothing. Few of them are lost.
func TestGuestSoak(t *testing.T) {
	needSoak(t)
	dial := regexp.MustCompile(`(?m)^#? *dial_timeout *=.*$`)
	g := openGuests(t, func(text string) string {
		if !dial.MatchString(text) {
			t.Fatal("Kata's configuration has no line with dial_timeout")
		}
		return dial.ReplaceAllString(text, fmt.Sprintf("dial_timeout = %.0f", crowdLimit.Seconds()))
	})
	life := func(name string, limit time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		spec := enginetest.Spec(g.s, name)
		out := &lines{wanted: workload.ReadyLine, found: make(chan struct{})}
		spec.Process.Stdout = out
		began := time.Now()
		c, err := g.e.Create(ctx, spec)
		if err != nil {
			return err
		}
		created := time.Since(began)
		if err = c.Start(ctx); err == nil {
			err = engine.Await(ctx, out.found)
		}
		if err == nil {
			_, err = c.(engine.Execer).Exec(ctx, engine.Process{Args: workload.Exit(0)})
		}
		if err == nil {
			err = c.Kill(ctx, unix.SIGKILL)
		}
		if err == nil {
			_, err = c.Wait(ctx)
		}
		if bad := c.Delete(limited(t)); bad != nil {
			t.Errorf("%s: %v", name, bad)
		}
		t.Logf("%s: %v, with %v for Create: %v", name, time.Since(began).Round(100*time.Millisecond), created.Round(100*time.Millisecond), err)
		return err
	}
	t.Cleanup(func() {
		if t.Failed() {
			text, _ := os.ReadFile(filepath.Join(g.s.State, "containerd/syslog"))
			t.Logf("the end of the system log:\n%s", text[max(0, len(text)-1<<13):])
		}
	})
	began := time.Now()
	var lost []error
	for n := range soakLives {
		if err := life(fmt.Sprintf("alone-%02d", n), enginetest.CallLimit); err != nil {
			lost = append(lost, err)
		}
	}
	nothingSince(t, g.s, g.e, g.before)
	t.Logf("%d virtual machines one after the other: %v", soakLives, time.Since(began).Round(time.Second))
	began = time.Now()
	errs := make([]error, soakCrowd)
	var wg sync.WaitGroup
	for n := range soakCrowd {
		wg.Go(func() { errs[n] = life(fmt.Sprintf("crowd-%d", n), crowdLimit) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			lost = append(lost, err)
		}
	}
	if len(lost) > soakLost {
		t.Errorf("%d virtual machines of %d are lost, want at most %d: %v", len(lost), soakLives+soakCrowd, soakLost, errors.Join(lost...))
	}
	nothingSince(t, g.s, g.e, g.before)
	t.Logf("%d virtual machines at once: %v", soakCrowd, time.Since(began).Round(time.Second))
}
