// Package enginetest is the conformance suite of the engines. It tests the promises of the contract in package engine. An
// engine joins with a test of this form:
//
//	func TestConformance(t *testing.T) {
//		targets := []string{"oci/runc", "oci/crun"}
//		enginetest.CheckMustRun(t, "oci", targets...)
//		for _, name := range targets {
//			t.Run(name, func(t *testing.T) {
//				s := enginetest.Session(t, oci.LauncherOptions)
//				host := enginetest.Open(t, native.Driver{}, target.Native, s)
//				enginetest.Conform(t, oci.Driver{}, name, s, enginetest.Options{Host: host})
//			})
//		}
//	}
//
// The suite requires only the contract. It skips a capability that Supports refuses with a reason. It measures nothing. The
// only use of time is a limit for each call, against engines that hang.
//
// The program in the containers is the probe. The suite checks that its output is complete, and ignores its results.
package enginetest

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/image"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
	"github.com/touchstone-bench/touchstone/test/record"
)

// Options are the suite's input.
type Options struct {
	// RunID is the run's ID in the engine's session. It must be unique on the host, so that suites can run in parallel.
	RunID string
	// Rootfs is the directory of a root file system with /probe.
	Rootfs string
	// Image is the reference of an image with the same file system, for engines that pull.
	Image string
	// Registry serves that image, and fresh ones to engines that can pull; nil if the engine cannot.
	Registry *image.Registry
	// TermFirst means that a SIGTERM precedes SIGKILL, and that a quick probe exits by itself. CRI-O has no other way to stop
	// a container.
	TermFirst bool
	// LateEvents means that the engine may show a resumed container as paused for a moment. dockerd handles the events of containerd
	// late: the event of the pause sets the state once more after the resume, until the event of the resume follows.
	LateEvents bool
	// Limit is the limit of a call against hanging; 0 is CallLimit.
	Limit time.Duration
	// Host is the native engine, for processes at the host's end of the engine's Link: of engines with bridged networks.
	Host engine.Engine
	// Limits reads the limits of a container below a cgroup from the host's cgroups, as the function Limits of this package does; nil if
	// the cgroups are not known.
	Limits func(t *testing.T, parent, id string) string
	// Overhead is added to the limits of a container in the host's cgroups: the part of a virtual machine.
	Overhead engine.Resources
	// Started counts the processes that the engine has started, as process.Launcher does; nil if it starts none.
	Started func() int64
	// OOMScore is the lowest OOM score that a process of the run may have, as process.Launcher gives it to its children.
	OOMScore int
	// Leftovers lists the objects of this run's containers on the host: processes, cgroups, bundles, mounts. No subtest
	// may add to the list. After Close the list must be the same as before the engine was opened. Objects of the session, such
	// as the run's own directory, are not in the list. If Leftovers is nil, nothing is checked.
	Leftovers func() []string
	// Gaps maps subtests to the reason why they are skipped although MustRun names the target. Without a gap such a target
	// must support CPU sets, limits and a bridged network. CPU sets and limits have no capability, and engines try a
	// bridged network only when it is needed.
	Gaps map[string]string
	// Brief skips the subtests that depend on the engine more than on the runtime, its options or the daemon's version. It is
	// for further targets of an engine with other targets in the whole suite. See also AllBrief.
	Brief bool
}

// CallLimit is the limit of one call of the suite against hanging. Calls of a working engine stay far below it, also with a virtual machine
// on an emulated CPU. A shorter limit would test the speed of the host.
const CallLimit = 4 * time.Minute

// AllBrief is the environment variable that sets Options.Brief for all targets if it is not empty. It is for slow hosts, where
// a container takes seconds.
const AllBrief = "TOUCHSTONE_BRIEF"

// subtest is a part of the suite.
type subtest struct {
	name string
	test func(*suite, *testing.T)
	// detail means that Options.Brief skips the subtest.
	detail bool
	// alone means that no other subtest may run in parallel.
	alone bool
}

var subtests = []subtest{
	{name: "Info", test: (*suite).testInfo},
	{name: "Supports", test: (*suite).testSupports},
	{name: "Programs", test: (*suite).testPrograms},
	{name: "Lifecycle", test: (*suite).testLifecycle},
	{name: "ExitCode", test: (*suite).testExitCode},
	{name: "OutputIsWhole", test: (*suite).testOutputIsWhole, detail: true},
	{name: "OutputsAreSeparate", test: (*suite).testOutputsAreSeparate},
	{name: "NoWriters", test: (*suite).testNoWriters, detail: true},
	{name: "WaitIsShared", test: (*suite).testWaitIsShared, detail: true},
	{name: "KillAfterExit", test: (*suite).testKillAfterExit, detail: true},
	{name: "SIGTERM", test: (*suite).testSIGTERM},
	{name: "MissingProgram", test: (*suite).testMissingProgram},
	{name: "TwoContainers", test: (*suite).testTwoContainers, detail: true},
	{name: "DuplicateID", test: (*suite).testDuplicateID, detail: true},
	{name: "DeleteRunning", test: (*suite).testDeleteRunning},
	{name: "DeleteCreated", test: (*suite).testDeleteCreated, detail: true},
	{name: "CancelledCreate", test: (*suite).testCancelledCreate, detail: true},
	{name: "CancelledStart", test: (*suite).testCancelledStart, detail: true},
	{name: "CancelledWait", test: (*suite).testCancelledWait, detail: true},
	{name: "Mount", test: (*suite).testMount},
	{name: "ReadOnlyMount", test: (*suite).testReadOnlyMount, detail: true},
	{name: "ReadOnlyRoot", test: (*suite).testReadOnlyRoot},
	{name: "Writable", test: (*suite).testWritable},
	{name: "Tmpfs", test: (*suite).testTmpfs, detail: true},
	{name: "ReadonlyPaths", test: (*suite).testReadonlyPaths},
	{name: "CPUSet", test: (*suite).testCPUSet},
	{name: "ProcessLimit", test: (*suite).testProcessLimit},
	{name: "Bridge", test: (*suite).testBridge},
	{name: "HostEnd", test: (*suite).testHostEnd, detail: true},
	{name: "Exec", test: (*suite).testExec},
	{name: "Pause", test: (*suite).testPause},
	{name: "Update", test: (*suite).testUpdate},
	{name: "Stats", test: (*suite).testStats, detail: true},
	{name: "HostNetwork", test: (*suite).testHostNetwork},
	{name: "Outward", test: (*suite).testOutward},
	{name: "Pull", test: (*suite).testPull},
	{name: "OOMScore", test: (*suite).testOOMScore, alone: true}, // short calls of a runtime begin with another score
	{name: "Limits", test: (*suite).testLimits, alone: true},     // Options.Limits may expect one container only
	{name: "Steps", test: (*suite).testSteps, alone: true},       // Options.Started counts the processes of all containers
	{name: "ManyLives", test: (*suite).testManyLives, detail: true, alone: true},
	{name: "Close", test: (*suite).testClose, alone: true},
}

// Conform runs the suite on a target of a session. It completes the options by the session.
func Conform(t *testing.T, d Opener, name string, s engine.Session, opts Options) {
	t.Helper()
	opts.RunID, opts.Rootfs, opts.Image, opts.Registry = s.RunID, s.Rootfs, s.Registry.Probe(), s.Registry
	opts.Started, opts.OOMScore = s.Launcher.Started, s.Launcher.OOMScore()
	opts.Gaps = PlatformGaps(t, name, opts.Gaps)
	if opts.Limits == nil {
		opts.Limits = LimitsBy(s)
	}
	if opts.Leftovers == nil {
		opts.Leftovers = func() []string { return Leftovers(s) }
	}
	Run(t, func(t *testing.T) engine.Engine {
		e, err := Attempt(t, d, name, s)
		Require(t, name, err)
		t.Logf("%s, %s", e.Info().Version, strings.Join(e.Info().Notes, "; "))
		return e
	}, opts)
}

// Run runs the suite on an engine, which it opens once and closes.
//
// Subtests run in parallel, as many as go test's -parallel allows: most of their time is waiting. Leftovers are then checked
// at the end, and with -parallel 1 after each subtest.
func Run(t *testing.T, open func(t *testing.T) engine.Engine, opts Options) {
	t.Helper()
	if opts.Limit == 0 {
		opts.Limit = CallLimit
	}
	opts.Brief = opts.Brief || os.Getenv(AllBrief) != ""
	s := &suite{Options: opts}
	s.before = s.leftovers()
	s.engine = open(t)
	if networker, ok := s.engine.(engine.Networker); ok && s.engine.Supports(engine.NetworkBridge) == nil {
		// The network belongs to the engine, and is no leftover of a test.
		if _, err := networker.Link(s.context(t)); err != nil && !engine.Unsupported(err) {
			t.Errorf("Link: %v", err)
		}
	}
	workers, err := strconv.Atoi(flag.Lookup("test.parallel").Value.String())
	must.Do(t, err)
	if workers > 1 {
		baseline := s.leftovers()
		next := make(chan subtest)
		var pool sync.WaitGroup
		for range workers {
			pool.Go(func() {
				for c := range next {
					s.run(t, c, false)
				}
			})
		}
		for _, c := range subtests {
			if !c.alone {
				next <- c
			}
		}
		close(next)
		pool.Wait()
		for _, left := range s.beyond(baseline) {
			t.Errorf("%s is left on the host; -parallel 1 shows the subtest", left)
		}
	}
	for _, c := range subtests {
		if workers == 1 || c.alone {
			s.run(t, c, true)
		}
	}
}

// run runs a subtest, serially or in parallel with others.
func (s *suite) run(t *testing.T, c subtest, serial bool) {
	t.Run(c.name, func(t *testing.T) {
		if reason, ok := s.Gaps[c.name]; ok {
			t.Skip(reason)
		}
		if s.Brief && c.detail {
			t.Skip("only for targets in the whole suite")
		}
		if serial {
			s.checkLeftovers(t)
		}
		c.test(&suite{Options: s.Options, engine: s.engine, before: s.before, name: strings.ToLower(c.name)}, t)
	})
}

// suite is the state of a subtest.
type suite struct {
	Options
	engine engine.Engine
	before []string     // leftovers before the engine was opened
	name   string       // of the subtest, a part of its containers' names
	made   atomic.Int64 // number of specs so far
}

// context is for one call. The test's own context would end before its clean-up.
func (s *suite) context(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(context.Background(), s.Limit,
		fmt.Errorf("the call took longer than the suite's limit of %v", s.Limit))
	t.Cleanup(cancel)
	return ctx
}

// checkLeftovers fails the test at its end, after the deletion of its containers, if the host has more leftovers than
// before.
//
// Invariant no-leftovers: A run leaves nothing, also when it is interrupted.
func (s *suite) checkLeftovers(t *testing.T) {
	t.Helper()
	baseline := s.leftovers()
	t.Cleanup(func() {
		for _, left := range s.beyond(baseline) {
			t.Errorf("%s is left on the host", left)
		}
	})
}

// leftovers lists the objects of this run's containers on the host.
func (s *suite) leftovers() []string {
	if s.Leftovers == nil {
		return nil
	}
	return s.Leftovers()
}

// beyond lists the leftovers that are not in baseline.
func (s *suite) beyond(baseline []string) []string {
	return Surplus(baseline, s.leftovers())
}

// testContainer is a container with the output of its process.
type testContainer struct {
	engine.Container
	stdout, stderr *output
}

// spec describes a container that runs a program.
func (s *suite) spec(args []string) engine.Spec {
	return engine.Spec{
		ID:      fmt.Sprintf("%s%s-%s-%d", engine.Prefix, s.RunID, s.name, s.made.Add(1)),
		Rootfs:  s.Rootfs,
		Image:   s.Image,
		Process: engine.Process{Args: args, Stdout: newOutput(), Stderr: newOutput()},
	}
}

// create makes a container. The end of the test deletes it if the test does not.
func (s *suite) create(t *testing.T, spec engine.Spec) testContainer {
	t.Helper()
	return s.createOn(t, s.engine, spec)
}

func (s *suite) createOn(t *testing.T, e engine.Engine, spec engine.Spec) testContainer {
	t.Helper()
	c, err := repeatUnsealed(t, func() (engine.Container, error) { return e.Create(s.context(t), spec) })
	if spec.Resources.CPUSet != "" && engine.Unsupported(err) {
		s.lacks(t, "CPU set", err)
	}
	if spec.Resources.PIDs > 0 && engine.Unsupported(err) {
		s.lacks(t, "process limit", err)
	}
	if err != nil {
		t.Fatalf("Create: %v", err)
	}
	s.deleteAfter(t, c)
	if c.ID() != spec.ID || !strings.HasPrefix(c.ID(), engine.Prefix+s.RunID) {
		t.Errorf("ID() = %q; want the spec's %q", c.ID(), spec.ID)
	}
	return newTestContainer(c, spec)
}

func newTestContainer(c engine.Container, spec engine.Spec) testContainer {
	b := testContainer{Container: c}
	b.stdout, _ = spec.Process.Stdout.(*output)
	b.stderr, _ = spec.Process.Stderr.(*output)
	return b
}

func (s *suite) deleteAfter(t *testing.T, c engine.Container) {
	t.Helper()
	t.Cleanup(func() { s.delete(t, c) })
}

// start makes a container and starts it. A container whose start failed by chance is replaced.
func (s *suite) start(t *testing.T, spec engine.Spec) testContainer {
	t.Helper()
	var b testContainer
	_, err := repeatEnded(t, func() (struct{}, error) {
		if b.Container != nil {
			s.delete(t, b)
			spec.Process.Stdout, spec.Process.Stderr = emptied(spec.Process.Stdout), emptied(spec.Process.Stderr)
		}
		b = s.create(t, spec)
		return struct{}{}, b.Start(s.context(t))
	})
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	return b
}

// emptied is a new output in the place of a used one. Another writer stays.
func emptied(w io.Writer) io.Writer {
	if _, ok := w.(*output); ok {
		return newOutput()
	}
	return w
}

// started starts a container.
func (s *suite) started(t *testing.T, b testContainer) testContainer {
	t.Helper()
	if err := b.Start(s.context(t)); err != nil {
		t.Fatalf("Start: %v", err)
	}
	return b
}

// complete runs a program that must exit with code 0, and deletes its container.
func (s *suite) complete(t *testing.T, spec engine.Spec) testContainer {
	t.Helper()
	b := s.start(t, spec)
	s.wantExit(t, b, engine.Exit{})
	s.delete(t, b)
	return b
}

// startReady starts the probe's command ready and waits for its first line.
func (s *suite) startReady(t *testing.T) testContainer {
	t.Helper()
	b := s.start(t, s.spec(probe.Ready()))
	s.wantReady(t, b)
	return b
}

func (s *suite) wantReady(t *testing.T, b testContainer) {
	t.Helper()
	line, err := b.stdout.firstLine(s.context(t))
	if err != nil || line != probe.ReadyLine {
		t.Fatalf("first line of output = %q, %v; want %q; Stderr: %s", line, err, probe.ReadyLine, b.stderr)
	}
}

// wantReport checks that the output of a measuring program is complete.
func wantReport(t *testing.T, stdout *output) {
	t.Helper()
	if _, err := probe.Parse([]byte(stdout.String())); err != nil {
		t.Errorf("the output is incomplete: %v", err)
	}
}

func (s *suite) wantState(t *testing.T, c engine.Container, want ...engine.State) {
	t.Helper()
	state, err := c.State(s.context(t))
	if err != nil {
		t.Errorf("State: %v; want %v", err, want)
	} else if !slices.Contains(want, state) {
		t.Errorf("State() = %s, want %v", state, want)
	}
}

// awaitState queries the state until it is the wanted one.
func (s *suite) awaitState(t *testing.T, c engine.Container, want engine.State) {
	t.Helper()
	var last engine.State
	for ctx := s.context(t); last != want; {
		state, err := c.State(ctx)
		if err != nil {
			t.Errorf("State: %v; want %s, and it was %q before", err, want, last)
			return
		}
		last = state
	}
}

// wantGone accepts a stopped container, and a container that the runtime has removed.
func (s *suite) wantGone(t *testing.T, c engine.Container) {
	t.Helper()
	if state, err := c.State(s.context(t)); err == nil && state != engine.Stopped {
		t.Errorf("State() = %s after the process has exited, want %s or an error", state, engine.Stopped)
	}
}

func (s *suite) wantExit(t *testing.T, b testContainer, want engine.Exit) {
	t.Helper()
	exit, err := b.Wait(s.context(t))
	if err != nil {
		t.Fatalf("Wait: %v", err)
	}
	if !s.isExit(exit, want) {
		t.Errorf("Wait() = %v, want %v; Stderr: %s", exit, want, b.stderr)
	}
}

// isExit reports whether an exit is the wanted one.
func (s *suite) isExit(exit, want engine.Exit) bool {
	return exit == want || s.TermFirst && want == killed && exit.OK()
}

func (s *suite) kill(t *testing.T, b testContainer, want engine.Exit) {
	t.Helper()
	err := b.Kill(s.context(t), sigkill)
	// After the signal Podman waits a few seconds for conmon's file with the exit. A busy host makes conmon late; wantExit waits longer.
	if err != nil && strings.Contains(err.Error(), "timed out waiting for file") {
		record.Repeat(t, fmt.Sprintf("Podman has not waited for the exit: %v", err))
		err = nil
	}
	if err != nil {
		t.Fatalf("Kill: %v", err)
	}
	s.wantExit(t, b, want)
}

// Invariant lying-calls.
func (s *suite) delete(t *testing.T, c engine.Container) {
	t.Helper()
	if err := c.Delete(s.context(t)); err != nil {
		t.Errorf("Delete: %v", err)
		return
	}
	if b, ok := c.(testContainer); ok {
		c = b.Container
	}
	if traced, ok := c.(engine.Traced); ok {
		if left, err := traced.Traces(s.context(t)); err != nil || len(left) > 0 {
			t.Errorf("Traces of a deleted container = %q, %v; want none", left, err)
		}
	}
}

// output keeps the output of a process.
type output struct {
	mu    sync.Mutex
	data  bytes.Buffer
	line  chan struct{} // closed with the first line
	ended chan struct{} // closed with the output
	end   sync.Once
}

func newOutput() *output {
	return &output{line: make(chan struct{}), ended: make(chan struct{})}
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	had := bytes.IndexByte(o.data.Bytes(), '\n') >= 0
	o.data.Write(p)
	if !had && bytes.IndexByte(p, '\n') >= 0 {
		close(o.line)
	}
	return len(p), nil
}

func (o *output) Close() error {
	o.end.Do(func() { close(o.ended) })
	return nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.data.String()
}

// isClosed reports whether Close was called.
func (o *output) isClosed() bool {
	select {
	case <-o.ended:
		return true
	default:
		return false
	}
}

// firstLine waits for the first line and returns it without the newline.
func (o *output) firstLine(ctx context.Context) (string, error) {
	select {
	case <-o.line:
	case <-o.ended:
	case <-ctx.Done():
		return o.String(), context.Cause(ctx)
	}
	line, _, found := strings.Cut(o.String(), "\n")
	if !found {
		return line, io.ErrUnexpectedEOF
	}
	return line, nil
}
