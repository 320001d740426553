package runner

import (
	"errors"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/footprint"
	"github.com/touchstone-bench/touchstone/internal/monitor"
)

// trialInstall implements bench.Install.
type trialInstall struct{ *trial }

func (t trialInstall) Footprint() (footprint.Footprint, error) {
	provider, ok := t.engine.(engine.Installed)
	if !ok || t.r.Footprint == nil {
		return footprint.Footprint{}, &engine.UnsupportedError{What: "the footprint", Reason: "this target has no programs on this host"}
	}
	programs, err := provider.Programs()
	if err != nil {
		return footprint.Footprint{}, err
	}
	f, err := t.r.Footprint(programs)
	var unreadable *footprint.UnreadableError
	if errors.As(err, &unreadable) {
		return f, &engine.UnsupportedError{What: "the packages of " + unreadable.Manager, Reason: unreadable.Err.Error(), Advice: unreadable.Advice}
	}
	return f, err
}

func (t trialInstall) HasDaemon() bool { return t.cost.daemonBacked }

func (t trialInstall) DaemonMemory() (int64, error) {
	if err := t.ownDaemon(); err != nil {
		return 0, err
	}
	memory, err := trialCost(t).Memory()
	if err != nil {
		return 0, err
	}
	bytes, found := memory[monitor.Daemon]
	if !found {
		return 0, &engine.UnsupportedError{What: "the daemon's memory", Reason: "no process of the daemon was found"}
	}
	return bytes, nil
}

func (t trialInstall) DaemonCPU() (time.Duration, error) {
	if err := t.ownDaemon(); err != nil {
		return 0, err
	}
	usage, err := t.cost.daemon.Cgroup.Usage()
	return usage.CPU, err
}

// ownDaemon returns an error unless the daemon serves only this run and is the one from the start of the trial.
func (t trialInstall) ownDaemon() error {
	if !t.cost.daemonBacked || len(t.cost.daemon.PIDs) == 0 || t.cost.daemon.Cgroup == nil {
		return &engine.UnsupportedError{
			What: "the daemon's cost", Reason: "the daemon is not the run's own, or shares its cgroup with other processes",
			Advice: "use --managed for a private daemon",
		}
	}
	return trialCost(t).sameDaemon()
}
