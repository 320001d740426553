package enginetest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
	"github.com/touchstone-bench/touchstone/internal/image"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/target"
	"github.com/touchstone-bench/touchstone/test/record"
)

// defectVariable names the defect of the engine in TestDefective.
const defectVariable = "TOUCHSTONE_TEST_DEFECT"

// leavesContainer is the defect with leftovers.
const leavesContainer = "cancelled creation leaves a container"

// defect is a violation of the contract.
type defect struct {
	name string
	// found is a subtest that must fail.
	found string
	bend  bend
	// limit of a call, for engines that hang.
	limit time.Duration
	// must means that MustRun names the target.
	must bool
}

// bend changes an engine that keeps the contract. A nil field changes nothing.
type bend struct {
	spec      func(*engine.Spec)
	create    func(ctx context.Context, e engine.Engine, spec engine.Spec) (engine.Container, error)
	container func(engine.Container) engine.Container
	info      func(*engine.Info)
	supports  func(engine.Capability, error) error
	close     func(calls int, err error) error
	pull      func(ctx context.Context, p engine.Puller, ref string) error
	remove    func(ctx context.Context, p engine.Puller, ref string) error // of an image
	// optional keeps the capabilities whose interfaces a bent container would hide.
	optional bool
}

func defects() []defect {
	wrap := func(w func(c *bent)) bend {
		return bend{container: func(c engine.Container) engine.Container {
			b := &bent{Container: c, id: c.ID(), start: c.Start, kill: c.Kill, wait: c.Wait, state: c.State, delete: c.Delete}
			w(b)
			return b
		}}
	}
	return []defect{
		{name: "no version", found: "Info", bend: bend{info: func(i *engine.Info) { i.Version = " " }}},
		{name: "no target", found: "Info", bend: bend{info: func(i *engine.Info) { i.Target = target.Target{} }}},
		{name: "refuses without a reason", found: "Supports", bend: bend{supports: func(engine.Capability, error) error {
			return &engine.UnsupportedError{What: "it"}
		}}},
		{name: "refuses with another error", found: "Supports", bend: bend{supports: func(engine.Capability, error) error {
			return errors.New("no")
		}}},
		{name: "promises everything", found: "Supports", bend: bend{supports: func(engine.Capability, error) error { return nil }}},
		{name: "promises an interface it lacks", found: "Pause", bend: bend{supports: func(c engine.Capability, err error) error {
			if c == engine.CanPause {
				return nil
			}
			return err
		}}},
		{name: "another ID", found: "Lifecycle", bend: wrap(func(b *bent) { b.id = "touchstone-other" })},
		{name: "requests beside its step", found: "Steps", bend: wrap(func(b *bent) {
			b.start = func(ctx context.Context) error {
				engine.Trace(ctx, "request")
				return engine.Call(ctx, func() error { return b.Container.Start(ctx) })
			}
		})},
		{name: "deletes nothing", found: "Lifecycle", limit: 100 * time.Millisecond, bend: wrap(func(b *bent) {
			b.delete = func(context.Context) error { return nil }
		})},
		{name: "deletes once", found: "Lifecycle", bend: wrap(func(b *bent) {
			calls := 0
			d := b.delete
			b.delete = func(ctx context.Context) error {
				if calls++; calls > 1 {
					return errors.New("the container does not exist")
				}
				return d(ctx)
			}
		})},
		{name: "deletes only stopped containers", found: "DeleteRunning", bend: wrap(func(b *bent) {
			d := b.delete
			b.delete = func(ctx context.Context) error {
				if state, err := b.state(ctx); err == nil && state == engine.Running {
					_ = b.kill(ctx, syscall.SIGKILL) // so that the next removal works
					_, _ = b.wait(ctx)
					return errors.New("the container is running")
				}
				return d(ctx)
			}
		})},
		{name: "wrong exit code", found: "ExitCode", bend: wrap(func(b *bent) {
			w := b.wait
			b.wait = func(ctx context.Context) (engine.Exit, error) {
				exit, err := w(ctx)
				exit.Code = 0
				return exit, err
			}
		})},
		{name: "signal as a code", found: "Lifecycle", bend: wrap(func(b *bent) {
			w := b.wait
			b.wait = func(ctx context.Context) (engine.Exit, error) {
				exit, err := w(ctx)
				if exit.Signal != 0 {
					exit = engine.Exit{Code: 128 + int(exit.Signal)}
				}
				return exit, err
			}
		})},
		{name: "waits once", found: "WaitIsShared", bend: wrap(func(b *bent) {
			first := make(chan struct{}, 1)
			w := b.wait
			b.wait = func(ctx context.Context) (engine.Exit, error) {
				select {
				case first <- struct{}{}:
					return w(ctx)
				default:
					return engine.Exit{}, errors.New("no child processes")
				}
			}
		})},
		{name: "waits beyond its context", found: "CancelledWait", limit: 100 * time.Millisecond, bend: wrap(func(b *bent) {
			w := b.wait
			b.wait = func(context.Context) (engine.Exit, error) { return w(context.Background()) }
		})},
		{name: "fails to kill an exited process", found: "KillAfterExit", bend: wrap(func(b *bent) {
			k := b.kill
			b.kill = func(ctx context.Context, signal syscall.Signal) error {
				if state, err := b.state(ctx); err != nil || state == engine.Stopped {
					return errors.New("no such process")
				}
				return k(ctx, signal)
			}
		})},
		{name: "one signal for all", found: "SIGTERM", bend: wrap(func(b *bent) {
			k := b.kill
			b.kill = func(ctx context.Context, _ syscall.Signal) error { return k(ctx, syscall.SIGKILL) }
		})},
		{name: "stays created", found: "Lifecycle", bend: wrap(func(b *bent) {
			b.state = func(context.Context) (engine.State, error) { return engine.Created, nil }
		})},
		{name: "starts on creation", found: "Lifecycle", bend: bend{create: func(ctx context.Context, e engine.Engine, spec engine.Spec) (engine.Container, error) {
			c, err := e.Create(ctx, spec)
			if err != nil {
				return nil, err
			}
			if err := c.Start(ctx); err != nil {
				return nil, errors.Join(err, c.Delete(context.WithoutCancel(ctx)))
			}
			b := &bent{Container: c, id: c.ID(), kill: c.Kill, wait: c.Wait, state: c.State, delete: c.Delete}
			b.start = func(context.Context) error { return nil }
			return b, nil
		}}},
		{name: "output cut off", found: "OutputIsWhole", bend: bend{spec: func(s *engine.Spec) {
			if s.Process.Stdout != nil {
				s.Process.Stdout = &cut{w: s.Process.Stdout, left: 600}
			}
		}}},
		{name: "output without an end", found: "OutputIsWhole", bend: bend{spec: func(s *engine.Spec) {
			if s.Process.Stdout != nil {
				s.Process.Stdout = struct{ io.Writer }{s.Process.Stdout}
			}
		}}},
		{name: "one output", found: "OutputsAreSeparate", bend: bend{spec: func(s *engine.Spec) { s.Process.Stderr = s.Process.Stdout }}},
		{name: "no error of a missing program", found: "MissingProgram", bend: bend{spec: func(s *engine.Spec) {
			if s.Process.Args[0] != "/probe" {
				s.Process.Args = []string{"/probe", "exit", "127"}
			}
		}}},
		{name: "an error without a reason", found: "MissingProgram", bend: bend{create: func(ctx context.Context, e engine.Engine, spec engine.Spec) (engine.Container, error) {
			c, err := e.Create(ctx, spec)
			if err != nil && ctx.Err() == nil {
				err = errors.New("exit status 1")
			}
			return c, err
		}}},
		{name: "accepts an ID twice", found: "DuplicateID", bend: bend{create: func(ctx context.Context, e engine.Engine, spec engine.Spec) (engine.Container, error) {
			c, err := e.Create(ctx, spec)
			if err != nil && strings.Contains(err.Error(), "exists") {
				spec.ID += "-again"
				return e.Create(ctx, spec)
			}
			return c, err
		}}},
		{name: leavesContainer, found: "CancelledCreate", bend: bend{create: func(ctx context.Context, e engine.Engine, spec engine.Spec) (engine.Container, error) {
			c, err := e.Create(context.WithoutCancel(ctx), spec)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return c, err
		}}},
		{name: "pulls nothing", found: "Pull", bend: bend{pull: func(context.Context, engine.Puller, string) error { return nil }}},
		{name: "an error of pull without the image", found: "Pull", bend: bend{pull: func(ctx context.Context, p engine.Puller, ref string) error {
			if p.Pull(ctx, ref) != nil {
				return errors.New("not found")
			}
			return nil
		}}},
		{name: "removes no image", found: "Pull", bend: bend{remove: func(context.Context, engine.Puller, string) error { return nil }}},
		{name: "removes only existing images", found: "Pull", bend: bend{remove: func() func(context.Context, engine.Puller, string) error {
			refs := map[string]bool{}
			return func(ctx context.Context, p engine.Puller, ref string) error {
				if refs[ref] {
					return errors.New("there is no such image")
				}
				refs[ref] = true
				return p.RemoveImage(ctx, ref)
			}
		}()}},
		{name: "ignores mounts", found: "Mount", bend: bend{spec: func(s *engine.Spec) { s.Mounts = nil }}},
		{name: "ignores read-only", found: "ReadOnlyMount", bend: bend{spec: func(s *engine.Spec) {
			s.Mounts = slices.Clone(s.Mounts)
			for i := range s.Mounts {
				s.Mounts[i].ReadOnly = false
			}
		}}},
		{name: "writable root", found: "ReadOnlyRoot", bend: bend{spec: func(s *engine.Spec) {
			if i := slices.Index(s.Process.Args, "/"); i >= 0 {
				s.Process.Args[i] = "/tmp"
			}
		}}},
		{name: "host network is none", found: "HostNetwork", bend: bend{spec: func(s *engine.Spec) { s.Network = engine.NoNetwork }}},
		{name: "a writable root is read-only", found: "Writable", bend: bend{spec: func(s *engine.Spec) { s.Writable = false }}},
		{name: "every root is writable", found: "ReadOnlyRoot", bend: bend{spec: func(s *engine.Spec) { s.Writable = true }}},
		{name: "ignores tmpfs", found: "Tmpfs", bend: bend{spec: func(s *engine.Spec) {
			s.Mounts = slices.DeleteFunc(slices.Clone(s.Mounts), func(m engine.Mount) bool { return m.Source == "" })
		}}},
		{name: "ignores CPUs", found: "CPUSet", bend: bend{spec: func(s *engine.Spec) { s.Resources.CPUSet = "8191" }}},
		{name: "ignores process limits", found: "ProcessLimit", bend: bend{spec: func(s *engine.Spec) { s.Resources.PIDs = 0 }}},
		{name: "refuses CPUs although it must run", found: "CPUSet", must: true, bend: bend{create: func(ctx context.Context, e engine.Engine, spec engine.Spec) (engine.Container, error) {
			if spec.Resources.CPUSet != "" {
				return nil, &engine.UnsupportedError{What: "CPUs", Reason: "it lost them"}
			}
			return e.Create(ctx, spec)
		}}},
		{name: "limits nothing although it must run", found: "Limits", must: true},
		{name: "has no bridge although it must run", found: "Bridge", must: true},
		{name: "bridges without a network", found: "Bridge", bend: bend{supports: func(c engine.Capability, err error) error {
			if c == engine.NetworkBridge {
				return nil
			}
			return err
		}}},
		{name: "pauses nothing", found: "Pause", bend: bend{optional: true, container: func(c engine.Container) engine.Container {
			return idle{c, c.(engine.Execer), c.(engine.Updater)}
		}}},
		{name: "exec without an exit code", found: "Exec", bend: bend{optional: true, container: func(c engine.Container) engine.Container {
			return codeless{c, c.(engine.Execer), c.(engine.Pauser), c.(engine.Updater)}
		}}},
		{name: "exec without a reason", found: "Exec", bend: bend{optional: true, container: func(c engine.Container) engine.Container {
			return silent{c, &atomic.Int64{}, c.(engine.Execer), c.(engine.Pauser), c.(engine.Updater)}
		}}},
		{name: "closes once", found: "Close", bend: bend{close: func(calls int, err error) error {
			if calls > 1 {
				return errors.New("it is closed")
			}
			return err
		}}},
	}
}

// bent is a container with some methods replaced.
type bent struct {
	engine.Container
	id     string
	start  func(context.Context) error
	kill   func(context.Context, syscall.Signal) error
	wait   func(context.Context) (engine.Exit, error)
	state  func(context.Context) (engine.State, error)
	delete func(context.Context) error
}

func (b *bent) ID() string                                          { return b.id }
func (b *bent) Start(ctx context.Context) error                     { return b.start(ctx) }
func (b *bent) Kill(ctx context.Context, s syscall.Signal) error    { return b.kill(ctx, s) }
func (b *bent) Wait(ctx context.Context) (engine.Exit, error)       { return b.wait(ctx) }
func (b *bent) State(ctx context.Context) (s engine.State, e error) { return b.state(ctx) }
func (b *bent) Delete(ctx context.Context) error                    { return b.delete(ctx) }

// idle pauses nothing.
type idle struct {
	engine.Container
	engine.Execer
	engine.Updater
}

func (idle) Pause(context.Context) error  { return nil }
func (idle) Resume(context.Context) error { return nil }

// codeless loses the exit codes of executed processes.
type codeless struct {
	engine.Container
	execer engine.Execer
	engine.Pauser
	engine.Updater
}

func (c codeless) Exec(ctx context.Context, p engine.Process) (engine.Exit, error) {
	_, err := c.execer.Exec(ctx, p)
	return engine.Exit{}, err
}

// silent fails in the first three executed processes without a reason.
type silent struct {
	engine.Container
	calls  *atomic.Int64
	execer engine.Execer
	engine.Pauser
	engine.Updater
}

func (s silent) Exec(ctx context.Context, p engine.Process) (engine.Exit, error) {
	if s.calls.Add(1) <= 3 {
		p.CloseOutput()
		return engine.Exit{}, &runtimes.SilentExecError{Err: errors.New("EOF")}
	}
	return s.execer.Exec(ctx, p)
}

// cut loses all output after the first bytes.
type cut struct {
	w    io.Writer
	left int
}

func (c *cut) Write(p []byte) (int, error) {
	part := p[:min(len(p), c.left)]
	c.left -= len(part)
	if _, err := c.w.Write(part); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (c *cut) Close() error { return c.w.(io.Closer).Close() }

// bentEngine is an engine with a defect.
type bentEngine struct {
	engine.Engine
	bend   bend
	closed int
}

func (e *bentEngine) Info() engine.Info {
	info := e.Engine.Info()
	if e.bend.info != nil {
		e.bend.info(&info)
	}
	return info
}

func (e *bentEngine) Supports(c engine.Capability) error {
	err := e.Engine.Supports(c)
	if e.bend.supports != nil {
		return e.bend.supports(c, err)
	}
	return err
}

func (e *bentEngine) Create(ctx context.Context, spec engine.Spec) (engine.Container, error) {
	if e.bend.spec != nil {
		spec.Process.Args = slices.Clone(spec.Process.Args)
		e.bend.spec(&spec)
	}
	create := func(ctx context.Context, e engine.Engine, spec engine.Spec) (engine.Container, error) {
		return e.Create(ctx, spec)
	}
	if e.bend.create != nil {
		create = e.bend.create
	}
	c, err := create(ctx, e.Engine, spec)
	if err != nil || e.bend.container == nil {
		return c, err
	}
	return e.bend.container(c), nil
}

func (e *bentEngine) Pull(ctx context.Context, ref string) error {
	p := e.Engine.(engine.Puller)
	if e.bend.pull != nil {
		return e.bend.pull(ctx, p, ref)
	}
	return p.Pull(ctx, ref)
}

func (e *bentEngine) RemoveImage(ctx context.Context, ref string) error {
	p := e.Engine.(engine.Puller)
	if e.bend.remove != nil {
		return e.bend.remove(ctx, p, ref)
	}
	return p.RemoveImage(ctx, ref)
}

func (e *bentEngine) Close() error {
	e.closed++
	err := e.Engine.Close()
	if e.bend.close != nil {
		return e.bend.close(e.closed, err)
	}
	return err
}

// TestDefective is a helper process of TestSuiteFindsDefects, where it may fail, and no test.
func TestDefective(t *testing.T) {
	name, ok := os.LookupEnv(defectVariable)
	if !ok {
		t.Skip("run by TestSuiteFindsDefects")
	}
	var d defect
	if name != "" {
		i := slices.IndexFunc(defects(), func(d defect) bool { return d.name == name })
		d = defects()[i]
	}
	script := "fake/x"
	if d.bend.container != nil && !d.bend.optional || d.bend.create != nil || d.bend.supports != nil {
		script += "@no=exec+pause+update+stats"
	}
	if d.must {
		t.Setenv(enginetest.MustRun, script)
	}
	parsed, err := target.Parse(script)
	must.Do(t, err)
	driver := fake.NewDriver(fake.NewClock())
	registry := newRegistry(t)
	open := func(t *testing.T) engine.Engine {
		e, err := driver.Open(t.Context(), parsed, engine.Session{RunID: "run1", Registry: registry})
		must.Do(t, err)
		return &bentEngine{Engine: e, bend: d.bend}
	}
	enginetest.Run(t, open, enginetest.Options{RunID: "run1", Rootfs: "/rootfs", Registry: registry, Limit: d.limit, Leftovers: driver.Leftovers})
}

func newRegistry(t *testing.T) *image.Registry {
	t.Helper()
	r, err := image.NewRegistry(t.Context(), "run1")
	must.Do(t, err)
	t.Cleanup(func() { enginetest.Check(t, r.Close()) })
	return r
}

func TestSuiteFindsDefects(t *testing.T) {
	run := func(t *testing.T, name string, parallel int) (string, error) {
		t.Helper()
		self, err := os.Executable()
		must.Do(t, err)
		cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestDefective$", "-test.v", "-test.timeout=10m", fmt.Sprint("-test.parallel=", parallel))
		cmd.Env = append(os.Environ(), defectVariable+"="+name, record.Variable+"=") // defects are no repeats
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, parallel := range []int{1, 4} {
		t.Run(fmt.Sprint("none in ", parallel), func(t *testing.T) {
			if out, err := run(t, "", parallel); err != nil {
				t.Errorf("an engine without a defect: %v\n%s", err, out)
			}
		})
	}
	t.Run("leftovers of one among several", func(t *testing.T) {
		out, err := run(t, leavesContainer, 4)
		if err == nil || !strings.Contains(out, "-cancelledcreate-1 is left on the host; -parallel 1") {
			t.Errorf("the container is not found, or not with the name of its subtest: %v\n%s", err, out)
		}
	})
	t.Run("brief", func(t *testing.T) {
		t.Setenv(enginetest.AllBrief, "1")
		if out, err := run(t, "waits once", 1); err != nil || !strings.Contains(out, "--- SKIP: TestDefective/WaitIsShared (") {
			t.Errorf("a brief suite runs a subtest of the whole one: %v\n%s", err, out)
		}
	})
	for _, d := range defects() {
		t.Run(d.name, func(t *testing.T) {
			out, err := run(t, d.name, 1)
			var exit *exec.ExitError
			if !errors.As(err, &exit) || !strings.Contains(out, "--- FAIL: TestDefective/"+d.found+" (") || strings.Contains(out, "panic:") {
				t.Errorf("%s does not find it: %v\n%s", d.found, err, out)
			}
		})
	}
}
