package runner

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/monitor"
)

// cost is the state of a trial for computing its cost to the host.
type cost struct {
	daemonBacked bool
	daemon       engine.Daemon
	before       time.Duration // CPU time of an accountant, or of a daemon's cgroup, before the trial
	err          error         // the reason if before is unknown
	account      *monitor.Account
	notes        []string // the unknown parts of the cost, for people
}

// trialCost implements bench.Cost.
type trialCost struct{ *trial }

// beginCost reads the counters before the trial.
func (t *trial) beginCost() {
	c := &t.cost
	switch e := t.engine.(type) {
	case engine.DaemonBacked:
		c.daemonBacked, c.daemon = true, e.Daemon()
		if c.daemon.Cgroup != nil {
			usage, err := c.daemon.Cgroup.Usage()
			c.before, c.err = usage.CPU, err
		}
	case engine.Accountant:
		c.before = e.Usage().CPU
	}
	if t.r.Programs == nil || !t.work.Benchmark.Components || t.engine.Supports(engine.OnHost) != nil {
		return
	}
	target := t.observed()
	target.Procs, target.Search = t.procs, t.group == nil || c.daemonBacked && c.daemon.Cgroup == nil
	c.account = monitor.Begin(target)
}

// procs lists the processes in the cgroups of the trial and of the daemon that serves it.
func (t *trial) procs() ([]int, error) {
	var pids []int
	if t.group != nil {
		found, err := t.group.Procs()
		if err != nil {
			return nil, err
		}
		pids = found
	}
	if group := t.cost.daemon.Cgroup; group != nil {
		found, err := group.Procs()
		if err != nil {
			return nil, err
		}
		pids = append(pids, found...)
	}
	return pids, nil
}

// endCost ends the account, and adds the unknown parts of the cost to the run's caveats.
func (t *trial) endCost() error {
	for _, note := range t.cost.notes {
		if !slices.Contains(t.r.out.Caveats, note) {
			t.r.out.Caveats = append(t.r.out.Caveats, note)
		}
	}
	if t.cost.account == nil {
		return nil
	}
	return t.cost.account.Close()
}

// unmixed returns an error if the cost would include the processes outside the target.
func (t *trial) unmixed() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.costMixed {
		return unknown("without cgroups it would include the programs outside the target")
	}
	return nil
}

func (t trialCost) Usage() (engine.Usage, error) {
	if err := t.unmixed(); err != nil {
		return engine.Usage{}, err
	}
	a, ok := t.engine.(engine.Accountant)
	switch {
	case t.cost.daemonBacked:
		return t.daemonUsage()
	case t.group != nil:
		u, err := t.group.Usage()
		if err != nil {
			return engine.Usage{}, fmt.Errorf("read the usage of the trial: %w", err)
		}
		return engine.Usage{CPU: u.CPU, PeakMemory: u.PeakMemory}, nil
	case ok:
		u := a.Usage()
		return engine.Usage{CPU: u.CPU - t.cost.before, PeakMemory: u.PeakMemory}, nil
	default:
		return engine.Usage{}, unknown("without cgroups this engine does not report it")
	}
}

func unknown(reason string) error {
	return &engine.UnsupportedError{What: "the cost to the host", Reason: reason}
}

// daemonUsage adds the usage of the daemon's cgroup since the start of the trial. The trial's peak memory in that cgroup
// is unknown: the kernel keeps only the peak since the cgroup was made.
func (t trialCost) daemonUsage() (engine.Usage, error) {
	if err := t.sameDaemon(); err != nil {
		return engine.Usage{}, err
	}
	usage, err := t.group.Usage()
	if err != nil {
		return engine.Usage{}, fmt.Errorf("read the usage of the trial: %w", err)
	}
	daemon, err := t.cost.daemon.Cgroup.Usage()
	if err != nil {
		return engine.Usage{}, fmt.Errorf("read the usage of the daemon: %w", err)
	}
	return engine.Usage{CPU: usage.CPU + daemon.CPU - t.cost.before, IncludesDaemon: true}, nil
}

// sameDaemon returns an error if the daemon's cost for this trial cannot be separated from its earlier cost or from its
// cost for others.
func (t trialCost) sameDaemon() error {
	old, daemon := t.cost.daemon, t.engine.(engine.DaemonBacked).Daemon()
	switch {
	case t.group == nil || old.Cgroup == nil:
		return unknown("the daemon or its containers share a cgroup with other processes")
	case t.cost.err != nil:
		return unknown("the usage of the daemon before the trial is unknown: " + t.cost.err.Error())
	case daemon.Cgroup == nil || daemon.Cgroup.Path() != old.Cgroup.Path() || !slices.Equal(daemon.PIDs, old.PIDs):
		return unknown("the daemon was restarted during the trial")
	}
	return nil
}

func (t trialCost) Throttled() (int64, error) {
	if t.group == nil {
		return 0, unknown("throttling is counted by cgroups, and this trial has none")
	}
	if t.cost.daemonBacked {
		if err := t.sameDaemon(); err != nil {
			return 0, err
		}
	}
	n, err := t.group.Throttled()
	if errors.Is(err, errors.ErrUnsupported) {
		return 0, unknown(err.Error())
	}
	return n, err
}

func (t trialCost) CPU() (cpu map[monitor.Component]time.Duration, err error) {
	if t.cost.account == nil {
		return nil, t.notHere()
	}
	err = t.unmixed()
	if err == nil && t.cost.daemonBacked {
		err = t.sameDaemon()
	}
	if err == nil {
		cpu, err = t.cost.account.CPU()
	}
	return cpu, t.note("CPU time", err)
}

func (t trialCost) Memory() (map[monitor.Component]int64, error) {
	if t.cost.account == nil {
		return nil, t.notHere()
	}
	census, err := t.Census()
	if err != nil {
		return nil, err
	}
	return census.ByComponent(), nil
}

func (t trialCost) Census() (census monitor.Census, err error) {
	if s, ok := t.engine.(engine.Simulation); ok {
		return s.Census(), nil
	}
	if t.cost.account == nil {
		return monitor.Census{}, t.notHere()
	}
	if err = t.unmixed(); err == nil {
		census, err = t.cost.account.Census()
	}
	if census.Resident {
		t.caveat("memory by component is the resident set size, which counts shared memory once for each process: the kernel has no proportional set size (CONFIG_PROC_PAGE_MONITOR)")
	}
	return census, t.note("memory", err)
}

func (t trialCost) Host() (bench.HostMemory, error) {
	if s, ok := t.engine.(engine.Simulation); ok {
		return s.Meminfo(), nil
	}
	if err := t.engine.Supports(engine.OnMachine); err != nil {
		return nil, err
	}
	if t.r.Meminfo == nil {
		return nil, &engine.UnsupportedError{What: "the memory of the host", Reason: "/proc/meminfo cannot be read"}
	}
	memory, err := t.r.Meminfo()
	if err != nil {
		return nil, err
	}
	usage, err := monitor.Own()
	if err != nil {
		return nil, fmt.Errorf("read the memory of this program: %w", err)
	}
	for name, sign := range map[string]int64{"MemFree": 1, "MemAvailable": 1, "AnonPages": -1} {
		if value, ok := memory[name]; ok {
			memory[name] = value + sign*usage
		}
	}
	return memory, nil
}

func (t trialCost) Tasks() (int64, error) {
	if err := t.engine.Supports(engine.OnMachine); err != nil {
		return 0, err
	}
	if _, ok := t.engine.(engine.Simulation); ok || t.r.Supply.Tasks == nil {
		return 0, &engine.UnsupportedError{What: "the number of processes of the host", Reason: "it is not known on this target or host"}
	}
	tasks, err := t.r.Supply.Tasks()
	return tasks.Free, err
}

// notHere is the reason for a missing account.
func (t *trial) notHere() error {
	if err := t.engine.Supports(engine.OnHost); err != nil {
		return err
	}
	return errNotHere
}

const notHere = "the target's processes are not on this host"

var errNotHere = unknown(notHere)

func (t trialCost) Processes() (processes map[int]monitor.Component, err error) {
	if t.cost.account == nil {
		return nil, t.notHere()
	}
	if err = t.unmixed(); err == nil {
		processes, err = t.cost.account.Processes()
	}
	return processes, t.note("CPU time", err)
}

func (t trialCost) Spent(processes []int) (cpu time.Duration, err error) {
	if t.cost.account == nil {
		return 0, t.notHere()
	}
	cpu, err = t.cost.account.Spent(processes)
	return cpu, t.note("CPU time", err)
}

// note records why the cost by component is unknown, and returns the reason as an *engine.UnsupportedError.
func (t *trial) note(what string, err error) error {
	if err == nil {
		return nil
	}
	var unsupported *engine.UnsupportedError
	if !errors.As(err, &unsupported) {
		unsupported = &engine.UnsupportedError{What: what + " by component", Reason: err.Error()}
	}
	t.lacks(what+" by component", unsupported.Reason)
	return unsupported
}

// lacks records why a part of the trial's results is missing.
func (t *trial) lacks(what, reason string) {
	t.caveat(fmt.Sprintf("%s is missing from trials on %s: %s", what, t.engine.Info().Target, reason))
}

// caveat adds a caveat to the run.
func (t *trial) caveat(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cost.notes = append(t.cost.notes, text)
}
