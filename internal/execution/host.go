package execution

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/cpuset"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/footprint"
	"github.com/touchstone-bench/touchstone/internal/host/binfmt"
	"github.com/touchstone-bench/touchstone/internal/host/energy"
	"github.com/touchstone-bench/touchstone/internal/host/facts"
	"github.com/touchstone-bench/touchstone/internal/host/noise"
	"github.com/touchstone-bench/touchstone/internal/host/supply"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
	"github.com/touchstone-bench/touchstone/internal/runner/guard"
	"github.com/touchstone-bench/touchstone/internal/target"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// hostNoise is the real host's noise.
type hostNoise struct{ *noise.Sampler }

func (n hostNoise) Begin() func([]bench.Medium) result.Disturbance {
	start := n.Sampler.Begin()
	return func(waits []bench.Medium) result.Disturbance {
		var loads []noise.Resource
		for _, m := range waits {
			switch m {
			case bench.Disk:
				loads = append(loads, noise.IO)
			case bench.Memory:
				loads = append(loads, noise.Memory)
			}
		}
		return n.End(start, loads...)
	}
}

// pageCache counts the drops of the host's page cache during the run.
type pageCache struct {
	drops   atomic.Int64
	refused string // why the host does not allow a drop that the plan allows; empty otherwise
}

// caveats states for the run's record what happened to the page cache.
func (c *pageCache) caveats() []string {
	var notes []string
	if n := c.drops.Load(); n > 0 {
		notes = append(notes, fmt.Sprintf("the page cache of the whole machine was dropped %s, each right before a cold read", wording.Counted(int(n), "time")))
	}
	if c.refused != "" {
		notes = append(notes, "the page cache was not dropped, although the plan allows it: "+c.refused)
	}
	return notes
}

// useMachine gives the runner the resources that any process can read.
func (e *Execution) useMachine(config *runner.Config) {
	config.Supply = readSupply(e.Plan.Pinning.Workload)
	if e.Pods != nil {
		config.Supply = podSupply()
	}
	if _, err := supply.Meminfo("/"); err == nil {
		config.Meminfo = func() (map[string]int64, error) { return supply.Meminfo("/") }
	}
	if _, err := supply.OOMKills("/"); err == nil {
		config.OOMKills = func() (int64, error) { return supply.OOMKills("/") }
	}
	if online, err := cpuset.Online("/"); err == nil {
		config.CPUs = len(online)
	}
	if gauge, err := energy.Open("/"); err == nil {
		config.Energy = gauge
	} else {
		config.NoEnergy = err.Error()
	}
}

// useHost gives the runner the host's directories and page cache, as far as the plan allows.
func (e *Execution) useHost(config *runner.Config) {
	config.Memory = e.session.dir.Memory
	config.Footprint = footprint.NewHost("/", e.session.dir.Data).Of
	config.Emulator = emulator
	config.WorkloadCPUs, config.HostCPUs = e.Plan.Pinning.Workload, e.Plan.Pinning.Touchstone
	if !dropsCaches(e.Plan, e.work) {
		return
	}
	caches := supply.NewCaches("/")
	if err := caches.Check(); err != nil {
		e.caches.refused = err.Error()
		e.report(Note, fmt.Sprintf("the page cache is not dropped: %v", err))
		return
	}
	e.report(Note, "the page cache of this whole machine is dropped before each cold read; --drop-caches=false prevents it")
	config.DropCaches = func(ctx context.Context) error {
		e.caches.drops.Add(1)
		return caches.Drop(ctx)
	}
}

// readSupply reads the host's resources for containers on CPUs in the kernel's notation, all if empty. A resource that cannot be read now
// is unknown, for example in a /proc without the kernel's files. A limit of the cgroup that holds the run's cgroups counts, too.
func readSupply(cpus string) guard.Supply {
	groups, err := cgroup.Detect("/")
	if err != nil {
		groups = &cgroup.Hierarchy{Mode: cgroup.None}
	}
	return guard.Supply{
		Disk:   func(dir string) (guard.Amount, error) { return amount(supply.Space(dir)) },
		Memory: known(func() (guard.Amount, error) { return within(groups.Memory, supply.Memory) }),
		Tasks:  known(func() (guard.Amount, error) { return within(groups.Tasks, supply.Tasks) }),
		Files:  known(func() (guard.Amount, error) { return amount(supply.Files()) }),
		CPUs:   usableCPUs(cpus),
	}
}

func amount(free, total int64, err error) (guard.Amount, error) {
	return guard.Amount{Free: free, Total: total}, err
}

// known returns the function if it works now, and nil if it does not.
func known(read func() (guard.Amount, error)) func() (guard.Amount, error) {
	if _, err := read(); err != nil {
		return nil
	}
	return read
}

// within returns the amount of the machine, or the allowance of the cgroup if less of it is free.
func within(allowance func() (cgroup.Allowance, bool, error), has func(root string) (free, total int64, err error)) (guard.Amount, error) {
	machine, err := amount(has("/"))
	if err != nil {
		return guard.Amount{}, err
	}
	limit, ok, err := allowance()
	if err != nil || !ok || limit.Free >= machine.Free {
		return machine, err
	}
	return guard.Amount{Free: limit.Free, Total: limit.Total}, nil
}

// usableCPUs counts the CPUs of a list, or the CPUs of this process if the list is empty.
func usableCPUs(list string) int {
	if cpus, err := cpuset.Parse(list); err == nil && list != "" {
		return len(cpus)
	}
	return runtime.NumCPU()
}

// emulator returns the interpreter that this host's kernel starts for a program.
func emulator(program []byte) bench.Emulator {
	h, err := binfmt.Find("/", program)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return bench.Emulator{}
	case err != nil:
		return bench.Emulator{Unknown: err.Error()}
	}
	return bench.Emulator{Name: h.Name, Interpreter: h.Interpreter, Fixed: strings.Contains(h.Flags, "F")}
}

// storage describes the file systems of the run. Fake targets use only the file system of the results. The directories of an agent are not the node's.
func (e *Execution) storage() []result.Storage {
	if e.Pods != nil {
		return nil
	}
	places := []result.Storage{{Use: "results", FileSystem: facts.FileSystem(e.Folder)}, {Use: "root", FileSystem: facts.FileSystem("/")}}
	if e.session != nil {
		places = append(places, result.Storage{Use: "containers", FileSystem: facts.FileSystem(e.session.Data)},
			result.Storage{Use: "state", FileSystem: facts.FileSystem(e.session.State)})
	}
	return slices.DeleteFunc(places, func(s result.Storage) bool { return s.FileSystem == "" })
}

// pinned states for the run's record the CPUs of the parts of the run.
func (e *Execution) pinned() []string {
	var notes []string
	p := e.Plan.Pinning
	if p.Engines != "" && !slices.ContainsFunc(e.targets, hasPrivateDaemon) {
		p.Engines = ""
		const note = "pinning: engines has no effect: the run has no private daemon"
		e.report(Note, note)
		notes = append(notes, note)
	}
	for _, part := range []struct{ what, cpus string }{
		{"containers, and programs on native,", p.Workload},
		{"private daemons", p.Engines},
		{"Touchstone, with the peer programs on the host,", p.Touchstone},
	} {
		if part.cpus != "" {
			notes = append(notes, fmt.Sprintf("%s stayed on CPUs %s", part.what, part.cpus))
		}
	}
	return notes
}

// tuned states for the run's record the variables of the caller's environment that change Touchstone itself.
func tuned(variables []string) []string {
	if len(variables) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("Touchstone itself ran with %s of its caller, which changes the time that it takes; no other program has it", strings.Join(variables, " "))}
}

// hasPrivateDaemon is true if a daemon of the run serves the target. Only a private daemon has a cgroup of its own.
func hasPrivateDaemon(t runner.Target) bool {
	e, ok := t.Engine.(engine.DaemonBacked)
	return ok && e.Daemon().Cgroup != nil
}

// openHostEngine opens the engine for programs outside the targets: the peer programs on the host, and the aggressors of
// benchmarks that keep them apart. It returns nil if the run has neither.
func (e *Execution) openHostEngine(ctx context.Context) (engine.Engine, error) {
	needs := slices.ContainsFunc(e.work, func(w plan.Work) bool {
		return w.Benchmark.Needs != nil && w.Benchmark.Needs(w.Params).Host
	})
	bridged := slices.ContainsFunc(e.targets, func(t runner.Target) bool {
		return available(t) && t.Engine.Supports(engine.NetworkBridge) == nil
	})
	if !needs && !bridged {
		return nil, nil
	}
	native, err := e.drivers.Open(ctx, target.Target{Engine: target.Native}, e.engineSession())
	if engine.Unsupported(err) { // benchmarks that need such a program are skipped
		e.report(Note, fmt.Sprintf("no program runs outside of the targets: %v", err))
		return nil, nil
	}
	return native, err
}
