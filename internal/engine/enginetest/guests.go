package enginetest

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
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// GuestGaps are the gaps of Kata Containers with every engine.
func GuestGaps() map[string]string {
	return map[string]string{"ProcessLimit": "Kata removes the limit of processes before it starts the container in the guest"}
}

const (
	// soakVariable selects tests that need several minutes in an emulated machine.
	soakVariable = "LAB_SOAK"
	// vsockVariable names the file of the module vhost_vsock.
	vsockVariable = "LAB_VSOCK"
)

// Soak skips a long test.
func Soak(t *testing.T) {
	t.Helper()
	if os.Getenv(soakVariable) == "" {
		t.Skipf("starts many virtual machines, but %s is not set: see CONTRIBUTING.md", soakVariable)
	}
}

// Guests is an open target with virtual machines and a private daemon. Its methods check what a fault of a guest does: the call ends, the reason
// is known, nothing is left while the daemon still runs, and the next container works.
type Guests struct {
	session engine.Session
	engine  engine.Engine
	runtime runtimes.Runtime
	before  traces // without containers
}

// OpenGuests opens a target, or the target with the configuration that change returns for the text of Kata's own file. change may be nil.
func OpenGuests(t *testing.T, d Opener, name string, s engine.Session, change func(text string) string) *Guests {
	t.Helper()
	r, err := runtimes.Get(t.Context(), s, Parse(t, name))
	Require(t, name, err)
	if s.Cgroups == nil {
		t.Skip("needs the right to make cgroups: it finds processes there")
	}
	spelling := name
	if change != nil {
		text, err := os.ReadFile(r.Guest.File)
		must.Do(t, err)
		variant, file := change(string(text)), filepath.Join(s.Data, "kata.toml")
		if variant == string(text) {
			t.Fatalf("%s lacks the line to change", r.Guest.File)
		}
		must.Do(t, os.WriteFile(file, []byte(variant), 0o600))
		spelling += "@config=" + file
		s.Targets = append(s.Targets, Parse(t, spelling))
	}
	e, err := open(t, d, spelling, s)
	Require(t, name, err) // the list of targets that must run has no configurations
	return &Guests{session: s, engine: e, runtime: r, before: tracesOf(t, s, e)}
}

// limited returns a context with the longest time of a call.
func limited(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), CallLimit)
	t.Cleanup(cancel)
	return ctx
}

// bootedTime is the CPU time that a hypervisor needs before it boots its guest.
const bootedTime = 3 * time.Second

// signal sends a signal to the processes of a program in the cgroup of a container's pod when they have used some CPU time.
func (g *Guests) signal(ctx context.Context, id, program string, minimum time.Duration, signal syscall.Signal) error {
	group, err := g.session.ContainerCgroup("", id)
	if err != nil {
		return err
	}
	var found []int
	err = retry(ctx, 10*time.Millisecond, func() error {
		pids, err := group.Procs()
		if err != nil {
			return err
		}
		found = slices.DeleteFunc(slices.Clone(pids), func(pid int) bool {
			exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
			return err != nil || exe != program || cpuTime(pid) < minimum
		})
		if len(found) == 0 {
			return fmt.Errorf("no process of %s in cgroup %s, only %v", program, group.Path(), pids)
		}
		return nil
	})
	for _, pid := range found {
		err = errors.Join(err, unix.Kill(pid, signal))
	}
	return err
}

// cpuTime returns the CPU time of a process; 0 if it has exited.
func cpuTime(pid int) time.Duration {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const user, system, perSecond = 11, 12, 100 // counted from the state, see proc(5)
	if len(fields) <= system {
		return 0
	}
	u, _ := strconv.Atoi(fields[user]) // the kernel writes numbers
	s, _ := strconv.Atoi(fields[system])
	return time.Duration(u+s) * time.Second / perSecond
}

// start starts a container.
func (g *Guests) start(t *testing.T, spec engine.Spec) (engine.Container, *output) {
	t.Helper()
	out := newOutput()
	spec.Process.Stdout = out
	ctx := limited(t)
	c, err := g.engine.Create(ctx, spec)
	must.Do(t, err)
	t.Cleanup(func() { Check(t, c.Delete(limited(t))) })
	must.Do(t, c.Start(ctx))
	return c, out
}

// running starts a container and returns when its program runs.
func (g *Guests) running(t *testing.T, name string) engine.Container {
	t.Helper()
	c, out := g.start(t, Spec(g.session, name))
	must.Do(t, ready(limited(t), out))
	return c
}

// ready waits until a program has written that it runs.
func ready(ctx context.Context, out *output) error {
	line, err := out.firstLine(ctx)
	if err == nil && line != probe.ReadyLine {
		err = fmt.Errorf("the program wrote %q", line)
	}
	return err
}

// gone deletes a container, and checks that nothing is left.
func (g *Guests) gone(t *testing.T, c engine.Container) {
	t.Helper()
	Check(t, c.Delete(limited(t)))
	nothingSince(t, g.session, g.engine, g.before)
}

// works runs a container whose program ends by itself.
func (g *Guests) works(t *testing.T, name string) {
	t.Helper()
	spec := Spec(g.session, name)
	spec.Process.Args = probe.Exit(3)
	c, _ := g.start(t, spec)
	if exit, err := c.Wait(limited(t)); err != nil || exit.Code != 3 {
		t.Errorf("Wait for the next container: %v, %v; want exit code 3", exit, err)
	}
	g.gone(t, c)
}

// wantLost checks the error of Wait.
func wantLost(t *testing.T, exit engine.Exit, err error) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), "its virtual machine ended before the program") {
		t.Errorf("Wait: %v, %v; want the loss of the virtual machine", exit, err)
	}
}

// Faults checks that a virtual machine that loses one of its processes fails the container with the reason.
func (g *Guests) Faults(t *testing.T) {
	for _, f := range []struct {
		name, program string
		soak          bool
	}{
		{name: "hypervisor", program: g.runtime.Guest.Program},
		{name: "server", program: g.runtime.Guest.FileServer},
		{name: "shim", program: g.runtime.Shim, soak: true},
	} {
		t.Run(f.name, func(t *testing.T) {
			if f.soak {
				Soak(t)
			}
			c := g.running(t, f.name)
			ctx := limited(t)
			Check(t, g.signal(ctx, c.ID(), f.program, 0, unix.SIGKILL))
			exit, err := c.Wait(ctx)
			wantLost(t, exit, err)
			g.gone(t, c)
		})
	}
	t.Run("next", func(t *testing.T) {
		Soak(t)
		g.works(t, "next")
	})
}

// NoBoot checks that a virtual machine that does not finish its boot fails Create at the caller's limit, or at Kata's.
func (g *Guests) NoBoot(t *testing.T) {
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
		{"killed, with Kata's limit", unix.SIGKILL, 2 * bootedTime, g.runtime.Guest.DialTimeout() + time.Minute, "exiting QMP loop|timed out connecting to"},
	} {
		t.Run(f.name, func(t *testing.T) {
			spec := Spec(g.session, fmt.Sprint("boot-", n))
			ctx, cancel := context.WithTimeout(t.Context(), f.limit)
			defer cancel()
			limitCtx, stop := context.WithTimeout(t.Context(), f.limit+2*time.Minute)
			defer stop()
			result := make(chan error, 1)
			go func() {
				c, err := g.engine.Create(ctx, spec)
				if err == nil {
					err = errors.Join(errors.New("the guest boots"), c.Delete(context.WithoutCancel(ctx)))
				}
				result <- err
			}()
			Check(t, g.signal(ctx, spec.ID, g.runtime.Guest.Program, f.boots, f.signal))
			select {
			case err := <-result:
				if !regexp.MustCompile(f.reason).MatchString(err.Error()) {
					t.Errorf("Create: %v; want %q", err, f.reason)
				}
			case <-limitCtx.Done():
				t.Fatal("Create has not returned two minutes after its limit")
			}
			nothingSince(t, g.session, g.engine, g.before)
		})
	}
	g.works(t, "next")
}

// OutOfMemory checks that a program that uses more memory than its limit or than the guest has is killed in the guest.
func (g *Guests) OutOfMemory(t *testing.T) {
	for _, f := range []struct {
		name  string
		limit int64
		mib   int
	}{
		{"limit", 64 << 20, 128},
		{"guest", 0, 4 * int(g.runtime.Guest.MemoryMiB)},
	} {
		t.Run(f.name, func(t *testing.T) {
			spec := Spec(g.session, f.name)
			spec.Process.Args, spec.Resources.Memory = probe.Grow(f.mib), f.limit
			c, _ := g.start(t, spec)
			if exit, err := c.Wait(limited(t)); err != nil || exit.Signal != unix.SIGKILL {
				t.Errorf("Wait: %v, %v; want a kill", exit, err)
			}
			g.gone(t, c)
		})
	}
}

// PanicOnOOM changes the text of Kata's file so that a guest's kernel panics when a program has no memory.
func PanicOnOOM(text string) string {
	const key = "\nkernel_params = \""
	return strings.Replace(text, key, key+"sysctl.vm.panic_on_oom=2 ", 1)
}

// Panic checks that the panic of a guest's kernel fails the container with the reason. The guests must have the change PanicOnOOM.
func (g *Guests) Panic(t *testing.T) {
	spec := Spec(g.session, "panic")
	spec.Process.Args, spec.Resources.Memory = probe.Grow(128), 64<<20
	c, _ := g.start(t, spec)
	exit, err := c.Wait(limited(t))
	wantLost(t, exit, err)
	g.gone(t, c)
	g.works(t, "next")
}

// Hangs checks that a virtual machine that stops to answer while its container runs does not hang a call beyond its limit, and can be deleted.
func (g *Guests) Hangs(t *testing.T) {
	c := g.running(t, "hang")
	Check(t, g.signal(limited(t), c.ID(), g.runtime.Guest.Program, 0, unix.SIGSTOP))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := c.(engine.Execer).Exec(ctx, engine.Process{Args: probe.Exit(0)}); err == nil {
		t.Error("Exec in a stopped guest works")
	}
	g.gone(t, c)
	g.works(t, "next")
}

// NoVsock checks that a target is refused with the reason without the module vhost_vsock, and that it works again with it.
func NoVsock(t *testing.T, attempt func(t *testing.T) error, guests func(t *testing.T) *Guests) {
	t.Helper()
	module := os.Getenv(vsockVariable)
	if module == "" {
		t.Skipf("unloads a module of the kernel, but %s does not name its file", vsockVariable)
	}
	content, err := os.ReadFile(module)
	must.Do(t, err)
	unloadVsock(t)
	t.Run("without", func(t *testing.T) {
		if err := attempt(t); !engine.Unsupported(err) || !strings.Contains(err.Error(), "/dev/vhost-vsock does not exist") {
			t.Errorf("Open without the module: %v; want this reason", err)
		}
	})
	must.Do(t, unix.InitModule(content, ""))
	t.Run("again", func(t *testing.T) { guests(t).works(t, "again") })
}

// unloadVsock unloads the module vhost_vsock when nothing uses it any more. The kernel keeps a socket for 8 s if its guest has ended without
// an answer.
func unloadVsock(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), settleLimit)
	defer cancel()
	if err := retry(ctx, 100*time.Millisecond, func() error { return unix.DeleteModule("vhost_vsock", unix.O_NONBLOCK) }); err != nil {
		users, _ := os.ReadFile("/sys/module/vhost_vsock/refcnt") // for the message
		t.Fatalf("unload vhost_vsock with %s users: %v", bytes.TrimSpace(users), err)
	}
}

const (
	soakLives = 20
	soakCrowd = 5
	// crowdLimit bounds the lives of virtual machines that boot at once on two CPUs with an emulated CPU.
	crowdLimit = 10 * time.Minute
	// soakLost is the number of virtual machines that may be lost. In an emulated machine one guest in thirty stops or crashes at boot:
	// see docs/adr/0030-nested-virtualization.md.
	soakLost = 3
)

// PatientBoot changes the text of Kata's file so that it waits for the guests of Many, which boot at once.
func PatientBoot(text string) string {
	dial := regexp.MustCompile(`(?m)^#? *dial_timeout *=.*$`)
	return dial.ReplaceAllString(text, fmt.Sprintf("dial_timeout = %.0f", crowdLimit.Seconds()))
}

// Many checks that many virtual machines, one after the other and several at once, leave nothing, and that few of them are lost. The guests must
// have the change PatientBoot.
func (g *Guests) Many(t *testing.T) {
	t.Cleanup(func() {
		if t.Failed() {
			text, _ := os.ReadFile(filepath.Join(g.session.State, "containerd/syslog"))
			t.Logf("the end of the system log:\n%s", text[max(0, len(text)-1<<13):])
		}
	})
	var failures []error
	for n := range soakLives {
		if err := g.life(t, fmt.Sprintf("alone-%02d", n), CallLimit); err != nil {
			failures = append(failures, err)
		}
	}
	nothingSince(t, g.session, g.engine, g.before)
	errs := make([]error, soakCrowd)
	var wg sync.WaitGroup
	for n := range soakCrowd {
		wg.Go(func() { errs[n] = g.life(t, fmt.Sprintf("crowd-%d", n), crowdLimit) })
	}
	wg.Wait()
	failures = append(failures, slices.DeleteFunc(errs, func(err error) bool { return err == nil })...)
	if len(failures) > soakLost {
		t.Errorf("%d virtual machines of %d are lost, want at most %d: %v", len(failures), soakLives+soakCrowd, soakLost, errors.Join(failures...))
	}
	nothingSince(t, g.session, g.engine, g.before)
}

// life is the life of one container, whose virtual machine may be lost.
func (g *Guests) life(t *testing.T, name string, limit time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	spec, out := Spec(g.session, name), newOutput()
	spec.Process.Stdout = out
	c, err := g.engine.Create(ctx, spec)
	if err != nil {
		t.Logf("%s: %v", name, err)
		return err
	}
	for _, step := range []func() error{
		func() error { return c.Start(ctx) },
		func() error { return ready(ctx, out) },
		func() error {
			_, err := c.(engine.Execer).Exec(ctx, engine.Process{Args: probe.Exit(0)})
			return err
		},
		func() error { return c.Kill(ctx, unix.SIGKILL) },
		func() error { _, err := c.Wait(ctx); return err },
	} {
		if err = step(); err != nil {
			break
		}
	}
	Check(t, c.Delete(limited(t)))
	t.Logf("%s: %v", name, err)
	return err
}
