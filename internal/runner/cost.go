package runner

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/monitor"
)

// cost is what a trial needs to know of what it costs the host.
type cost struct {
	daemonBacked bool
	daemon       engine.Daemon
	before       time.Duration // CPU time that an accountant, or a service's cgroup, had used
	err          error         // why before is not known
	account      *monitor.Account
	notes        []string // what of the cost cannot be known, for people
}

// beginCost notes what was used before the trial.
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
	if t.r.Programs == nil || !t.work.Benchmark.Components {
		return
	}
	info := t.engine.Info()
	c.account = monitor.Begin(monitor.Target{
		Daemons: c.daemon.PIDs, Programs: t.r.Programs, Runtimes: []string{filepath.Base(info.Binary), info.Target.Runtime},
		Procs: t.procs, Search: t.group == nil || c.daemonBacked && c.daemon.Cgroup == nil,
	})
}

// procs lists the processes in the cgroups of the trial and of what serves it.
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

// endCost ends the account, and lets the run tell what of the cost cannot be known.
func (t *trial) endCost() error {
	for _, note := range t.cost.notes {
		if !slices.Contains(t.r.out.Cut, note) {
			t.r.out.Cut = append(t.r.out.Cut, note)
		}
	}
	if t.cost.account == nil {
		return nil
	}
	return t.cost.account.Close()
}

// unmixed tells why the cost would be that of the target and of the host's end together.
func (t *trial) unmixed() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mixed {
		return unknown("without cgroups that of the programs at the host's end of the network cannot be told from it")
	}
	return nil
}

func (t *trial) Usage() (engine.Usage, error) {
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
			return engine.Usage{}, fmt.Errorf("read what the trial has used: %w", err)
		}
		return engine.Usage{CPU: u.CPU, PeakMemory: u.PeakMemory}, nil
	case ok:
		u := a.Usage()
		return engine.Usage{CPU: u.CPU - t.cost.before, PeakMemory: u.PeakMemory}, nil
	default:
		return engine.Usage{}, unknown("without cgroups it is not known for this engine")
	}
}

func unknown(reason string) error {
	return &engine.UnsupportedError{What: "the cost to the host", Reason: reason}
}

// daemonUsage adds what the daemon's cgroup has used since the trial began. The highest memory of the trial in that
// cgroup is not known: the kernel keeps that of all times.
func (t *trial) daemonUsage() (engine.Usage, error) {
	if err := t.sameDaemon(); err != nil {
		return engine.Usage{}, err
	}
	own, err := t.group.Usage()
	if err != nil {
		return engine.Usage{}, fmt.Errorf("read what the trial has used: %w", err)
	}
	daemon, err := t.cost.daemon.Cgroup.Usage()
	if err != nil {
		return engine.Usage{}, fmt.Errorf("read what the daemon has used: %w", err)
	}
	return engine.Usage{CPU: own.CPU + daemon.CPU - t.cost.before, IncludesDaemon: true}, nil
}

// sameDaemon tells why what the daemon costs cannot be told from what it cost before, or costs others.
func (t *trial) sameDaemon() error {
	before, now := t.cost.daemon, t.engine.(engine.DaemonBacked).Daemon()
	switch {
	case t.group == nil || before.Cgroup == nil:
		return unknown("the daemon or its containers are in no cgroup of their own, and others may be there too")
	case t.cost.err != nil:
		return unknown("what the daemon used before the trial is not known: " + t.cost.err.Error())
	case now.Cgroup == nil || now.Cgroup.Path() != before.Cgroup.Path() || !slices.Equal(now.PIDs, before.PIDs):
		return unknown("the daemon was started again during the trial")
	}
	return nil
}

func (t *trial) Throttled() (int64, error) {
	if t.group == nil {
		return 0, unknown("without cgroups it is not known how often a limit held it back")
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

func (t *trial) CPU() (map[monitor.Component]time.Duration, error) {
	if t.cost.account == nil {
		return nil, unknown("the target's processes are not on this host")
	}
	if err := t.unmixed(); err != nil {
		return nil, t.note("CPU time", err)
	}
	if t.cost.daemonBacked {
		if err := t.sameDaemon(); err != nil {
			return nil, t.note("CPU time", err)
		}
	}
	cpu, err := t.cost.account.CPU()
	return cpu, t.note("CPU time", err)
}

func (t *trial) Memory() (map[monitor.Component]int64, error) {
	if t.cost.account == nil {
		return nil, unknown("the target's processes are not on this host")
	}
	if err := t.unmixed(); err != nil {
		return nil, t.note("memory", err)
	}
	memory, err := t.cost.account.Memory()
	return memory, t.note("memory", err)
}

// note keeps why a cost is not known by component, and gives it as an *engine.UnsupportedError.
func (t *trial) note(what string, err error) error {
	if err == nil {
		return nil
	}
	var unsupported *engine.UnsupportedError
	if !errors.As(err, &unsupported) {
		unsupported = &engine.UnsupportedError{What: what + " by component", Reason: err.Error()}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cost.notes = append(t.cost.notes, fmt.Sprintf("%s by component is missing from trials on %s: %s", what, t.engine.Info().Target, unsupported.Reason))
	return unsupported
}
