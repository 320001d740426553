package fake

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// Engine is an open fake target.
type Engine struct {
	engine.Missing
	target  target.Target
	script  *script
	clock   *Clock
	host    *host
	session engine.Session
	prefix  string // of all IDs

	mu        sync.Mutex
	closed    bool
	calls     map[op]int
	processes int
	created   int
	alive     int
	usage     engine.Usage
	random    map[string]*rand.Rand
	run       float64 // the factor of this run, by the option wander
}

var (
	_ engine.Driver     = (*Driver)(nil)
	_ engine.Engine     = (*Engine)(nil)
	_ engine.Accountant = (*Engine)(nil)
	_ engine.Puller     = (*Engine)(nil)
	_ engine.Simulation = (*Engine)(nil)
	_ engine.Stager     = (*Engine)(nil)
)

// Info implements engine.Engine. Its notes warn that all numbers are made up.
func (e *Engine) Info() engine.Info {
	info := engine.Info{
		Target:    e.target,
		Version:   "fake 1",
		Isolation: engine.NoIsolation,
		Cgroup:    "none",
		Rootless:  true,
		Notes: []string{
			"all numbers are made up by a script; nothing was measured",
			"no cgroup, because no process runs",
		},
	}
	return info.WithCondition(engine.SeccompCondition, string(e.session.Seccomp)).WithPods(e.session.Pods)
}

// Create makes a container of the probe.
func (e *Engine) Create(ctx context.Context, spec engine.Spec) (engine.Container, error) {
	c, err := e.create(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("create container %q: %w", spec.ID, err)
	}
	return c, nil
}

func (e *Engine) create(ctx context.Context, spec engine.Spec) (*container, error) {
	if err := e.check(spec); err != nil {
		return nil, err
	}
	e.mu.Lock()
	index, isClosed := e.created, e.closed
	e.mu.Unlock()
	if isClosed {
		return nil, fmt.Errorf("the engine is closed")
	}
	call, err := e.enter(ctx, opCreate, index)
	if err != nil {
		return nil, err
	}
	program, err := e.host.loadProgram(spec.Process.Args, spec)
	if err != nil {
		return nil, err
	}
	if err := e.clock.spend(ctx, call.took); err != nil {
		return nil, err
	}
	if call.fault != nil {
		return nil, call.fault
	}
	c := &container{
		engine: e, spec: spec, program: program, index: index, state: engine.Created, changed: make(chan struct{}), limits: spec.Resources,
	}
	if err := e.host.add(c); err != nil {
		return nil, err
	}
	e.mu.Lock()
	e.created++
	if e.alive == 0 {
		e.usage.PeakMemory = 0 // of the trial before
	}
	e.alive++
	e.usage.PeakMemory = max(e.usage.PeakMemory, int64(e.alive)*e.script.memory)
	e.mu.Unlock()
	if hits(e.script.leak, opCreate, call.n) {
		return nil, fmt.Errorf("scripted fault: call %d of create leaves its container behind", call.n)
	}
	return c, nil
}

// check refuses a Spec that no engine could run, so that tests find mistakes above the engines.
func (e *Engine) check(spec engine.Spec) error {
	switch {
	case !strings.HasPrefix(spec.ID, e.prefix):
		return fmt.Errorf("the ID does not begin with %q, the mark of this run", e.prefix)
	case spec.Rootfs == "":
		return fmt.Errorf("the root file system is not given")
	case spec.Image != "" && !e.host.hasImage(image{e, spec.Image}):
		return fmt.Errorf("image %s is missing: pull it first", spec.Image)
	case spec.Join != "":
		return fmt.Errorf("a fake container cannot join the network namespace %s", spec.Join)
	}
	var needs []engine.Capability
	switch spec.Network {
	case engine.NoNetwork:
	case engine.HostNet:
		needs = append(needs, engine.NetworkHost)
	case engine.Bridged:
		needs = append(needs, engine.NetworkBridge)
	default:
		return fmt.Errorf("unknown network %q", spec.Network)
	}
	if spec.Writable {
		needs = append(needs, engine.CanWrite)
	}
	for _, m := range spec.Mounts {
		if !path.IsAbs(m.Target) {
			return fmt.Errorf("mount %q at %q: want an absolute target", m.Source, m.Target)
		}
		if m.Source == "" {
			needs = append(needs, engine.CanTmpfs)
		} else if e.Supports(engine.CanBindMemory) != nil { // imagined directories are on no medium
			needs = append(needs, engine.CanBind)
		}
	}
	for _, need := range needs {
		if err := e.Supports(need); err != nil {
			return err
		}
	}
	return checkResources(spec.Resources)
}

func checkResources(r engine.Resources) error {
	if r.CPU < 0 || r.Memory < 0 || r.PIDs < 0 {
		return fmt.Errorf("limits of %v CPUs, %d bytes and %d processes: a limit is not negative", r.CPU, r.Memory, r.PIDs)
	}
	return nil
}

// Ping implements engine.Stager.
func (e *Engine) Ping(ctx context.Context) error { return e.clock.spend(ctx, time.Millisecond) }

// Stages implements engine.Stager: an imagined node reports all stages at once.
func (*Engine) Stages() []engine.Stage {
	return []engine.Stage{
		engine.StageAccepted, engine.StageScheduled, engine.StageSandboxed, engine.StagePrepared, engine.StageFirstLine,
		engine.StageRunning, engine.StageReady, engine.StageStopping, engine.StageLastLine, engine.StageTerminated, engine.StageDeleted,
	}
}

// Pull pulls an image of the registry.
func (e *Engine) Pull(ctx context.Context, ref string) error {
	err := e.Supports(engine.CanPull)
	if err == nil {
		err = e.do(ctx, opPull, 0)
	}
	if r := e.session.Registry; err == nil && r != nil && !r.Has(ref) {
		err = fmt.Errorf("the registry does not have the image")
	}
	if err != nil {
		return fmt.Errorf("pull %s: %w", ref, err)
	}
	e.host.setImage(image{e, ref}, true)
	return nil
}

// RemoveImage removes an image. A missing one is no error, and takes no time.
func (e *Engine) RemoveImage(ctx context.Context, ref string) error {
	if !e.host.hasImage(image{e, ref}) {
		return nil
	}
	if err := e.do(ctx, opRemove, 0); err != nil {
		return fmt.Errorf("remove image %s: %w", ref, err)
	}
	e.host.setImage(image{e, ref}, false)
	return nil
}

// Close fails while containers of the engine exist.
func (e *Engine) Close() error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	if left := e.host.list(e); len(left) > 0 {
		return fmt.Errorf("close target %q: %d containers exist, such as %q: delete them first", e.target, len(left), left[0])
	}
	return nil
}

// Usage counts the deleted containers. The peak is the highest memory since the engine last had no container.
func (e *Engine) Usage() engine.Usage {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.usage
}

// imagined is the memory of the imagined host, in bytes.
const imagined = 16 << 30

// Census implements engine.Simulation: each container that exists is a process with the memory of the option mem.
func (e *Engine) Census() monitor.Census {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := monitor.Census{Memory: map[monitor.Component]monitor.Memory{}, Tasks: e.alive}
	if bytes := int64(e.alive) * e.script.memory; bytes > 0 {
		c.Memory[monitor.Container] = monitor.Memory{PSS: bytes, Anonymous: bytes}
	}
	return c
}

// Meminfo implements engine.Simulation: the host has 16 GiB, and the kernel needs the memory of the option slab for each container.
func (e *Engine) Meminfo() map[string]int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	anonymous, slab := int64(e.alive)*e.script.memory, int64(e.alive)*e.script.slab
	free := max(0, imagined-anonymous-slab)
	return map[string]int64{
		"MemTotal": imagined, "MemFree": free, "MemAvailable": free, "AnonPages": anonymous, "SUnreclaim": slab,
		"Shmem": 0, "PageTables": 0, "KernelStack": 0, "Percpu": 0, "SwapTotal": 0, "SwapFree": 0,
	}
}

// charge adds the cost of a deleted container.
func (e *Engine) charge(index int) {
	cost := time.Duration(float64(e.script.cpu) * e.noise("cpu", index))
	e.mu.Lock()
	defer e.mu.Unlock()
	e.alive--
	e.usage.CPU += cost
}

// call is the script's plan for one call.
type call struct {
	n     int // counts the calls of its kind from 1
	took  time.Duration
	fault error
	lie   bool // it returns success and does nothing
}

// enter counts a call of o on the container with the given index. A hanging call returns when its context has ended. The caller
// spends the time.
func (e *Engine) enter(ctx context.Context, o op, index int) (call, error) {
	if ctx.Err() != nil {
		return call{}, context.Cause(ctx)
	}
	e.mu.Lock()
	e.calls[o]++
	c := call{n: e.calls[o]}
	e.mu.Unlock()
	if hits(e.script.hang, o, c.n) {
		return c, e.clock.hang(ctx)
	}
	if latency := e.script.latency[o]; latency > 0 {
		c.took = time.Duration(float64(latency) * e.noise(string(o), index))
	}
	if hits(e.script.fail, o, c.n) {
		c.fault = fmt.Errorf("scripted fault: call %d of %s fails", c.n, o)
	}
	c.lie = hits(e.script.lie, o, c.n)
	return c, nil
}

// do makes a whole call: it takes the call's time and returns its fault.
func (e *Engine) do(ctx context.Context, o op, index int) error {
	_, err := e.pretend(ctx, o, index)
	return err
}

// pretend is do for a call that a script can make a lie. Such a call has no effect.
func (e *Engine) pretend(ctx context.Context, o op, index int) (lie bool, err error) {
	call, err := e.enter(ctx, o, index)
	if err != nil {
		return false, err
	}
	if err := e.clock.spend(ctx, call.took); err != nil {
		return false, err
	}
	return call.lie, call.fault
}

// nextProcess counts the processes from 1.
func (e *Engine) nextProcess() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.processes++
	return e.processes
}

// noise returns the random factor of a latency of the given kind. Each kind has its own sequence of random numbers, so the
// nth call of a kind takes the same time regardless of other calls.
func (e *Engine) noise(kind string, index int) float64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := e.random[kind]
	if r == nil {
		h := fnv.New64a()
		_, _ = fmt.Fprintf(h, "%s %s", e.target, kind)
		r = rand.New(rand.NewPCG(e.script.seed, h.Sum64()))
		e.random[kind] = r
	}
	factor := e.run * (1 + e.script.drift*float64(index))
	if r.Float64() < e.script.bimodal.share {
		factor *= e.script.bimodal.factor
	}
	return factor * lognormal(r, e.script.jitter)
}

// lognormal returns a random number with mean 1 and this relative standard deviation j: σ² = ln(1+j²) and µ = −σ²/2.
func lognormal(r *rand.Rand, j float64) float64 {
	variance := math.Log1p(j * j)
	return math.Exp(math.Sqrt(variance)*r.NormFloat64() - variance/2)
}

// factor returns the factor of a run, by the option wander.
func (s *script) factor(t target.Target, runID string) float64 {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s %s", t, runID)
	return lognormal(rand.New(rand.NewPCG(s.seed, h.Sum64())), s.wander)
}
