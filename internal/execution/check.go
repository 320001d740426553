package execution

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/bench/catalogue"
	"github.com/touchstone-bench/touchstone/internal/cpuset"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/host"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner/guard"
	"github.com/touchstone-bench/touchstone/internal/store"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// UsageError is an error in the plan or in a request, as opposed to a failure of the execution.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }

func (e *UsageError) Unwrap() error { return e.Err }

// MachineError is an error that the machine causes, and no change of the plan or of the request would prevent.
type MachineError struct{ Err error }

func (e *MachineError) Error() string { return e.Err.Error() }

func (e *MachineError) Unwrap() error { return e.Err }

// Check resolves a plan to its work and checks that the plan fits this machine. Variables of from-env come from the environment of the
// process. The notes name settings of the plan that have no effect here.
func Check(p plan.Plan) (work []plan.Work, notes []string, err error) {
	if p, err = p.WithSecrets(os.LookupEnv); err != nil {
		return nil, nil, err
	}
	work, err = p.Resolve(catalogue.Catalogue{})
	if err != nil {
		return nil, nil, err
	}
	online, err := cpuset.Online("/")
	if err != nil {
		return nil, nil, &MachineError{err}
	}
	machine := plan.Machine{Online: online, Cores: cpuset.Cores("/", online), Root: isRoot()}
	if access, err := cpuset.ReadAccess(); err == nil { // without it the kernel refuses a CPU later
		machine.Usable, machine.Isolated = access.Usable(online), access.Isolated
	}
	notes, err = p.Check(machine)
	if p.DropCaches != nil && *p.DropCaches && !dropsCaches(p, work) {
		notes = append(notes, "drop-caches has no effect: nothing in this plan reads cold files; benchmarks with a parameter cache do with params: {cache: cold}")
	}
	if p.TracePaths && p.Trace == 0 && !slices.ContainsFunc(work, func(w plan.Work) bool { return w.Benchmark.Traced }) {
		notes = append(notes, "trace-paths has no effect: nothing in this plan is traced; the key trace adds traced trials")
	}
	if !slices.ContainsFunc(p.Targets, func(t plan.Pattern) bool { return isFake(t) || isPod(t) }) {
		notes = append(notes, lacking(work, readSupply(p.Pinning.Workload))...)
	}
	return work, notes, err
}

// lacking names the work that does not fit on this machine, whatever its targets cost.
func lacking(work []plan.Work, s guard.Supply) []string {
	var notes []string
	for _, w := range work {
		if err := s.Lack(w.Needs()); err != nil {
			notes = append(notes, fmt.Sprintf("%s is skipped: %v", strings.TrimSpace(w.Benchmark.Name+" "+w.Params.String()), err))
		}
	}
	return notes
}

func isFake(t plan.Pattern) bool { return t.Engine == fake.Name }

func isPod(t plan.Pattern) bool { return t.Engine == target.Kubernetes }

func isRoot() bool { return os.Geteuid() == 0 }

func dropsCaches(p plan.Plan, work []plan.Work) bool { return p.DropsCaches(isRoot(), work) }

// ResumedPlan returns the plan of a run that can be resumed on this machine.
func ResumedPlan(run result.Run) (plan.Plan, error) {
	switch run.State {
	case result.Complete:
		return plan.Plan{}, &UsageError{fmt.Errorf("run %s is complete; start a new one", run.ID)}
	case result.Running:
		return plan.Plan{}, fmt.Errorf("resume run %s: %w", run.ID, store.ErrUnderWay)
	case result.Interrupted, result.Killed:
	}
	facts := host.Facts("/")
	if run.Host.Node != nil {
		facts.Hostname = run.Host.Hostname // a pod has a name of its own, and its agent knows the node
	}
	if facts.Hostname != run.Host.Hostname || facts.Kernel != run.Host.Kernel || facts.CPU != run.Host.CPU || facts.Identity.Contradicts(run.Host.Identity) {
		return plan.Plan{}, fmt.Errorf("run %s was made on another machine, %s (%s, %s); its results would be mixed: start a new run",
			run.ID, run.Host.Hostname, run.Host.CPU, run.Host.Kernel)
	}
	// A run without root cannot read the tuning.
	if isRoot() && run.Host.Root && !slices.Equal(facts.Tuned, run.Host.Tuned) {
		return plan.Plan{}, fmt.Errorf("run %s was made %s, and the machine is now %s; its results would be mixed: use touchstone host tune or restore, or start a new run",
			run.ID, tuning(&run.Host), tuning(&facts))
	}
	p, err := plan.Parse("run "+run.ID, []byte(run.Plan))
	if err != nil {
		return plan.Plan{}, fmt.Errorf("read the plan of run %s: %w", run.ID, err)
	}
	return p, nil
}

// tuning describes the settings that touchstone host tune had changed.
func tuning(h *result.Host) string {
	if text := h.TunedText(); text != "" {
		return "tuned (" + text + ")"
	}
	return "not tuned"
}

// sameTargets checks that the targets are unchanged since the run started.
func sameTargets(record, state []result.Target) error {
	for _, t := range record {
		i := slices.IndexFunc(state, func(n result.Target) bool { return n.Name == t.Name })
		switch {
		case i < 0 || state[i].Unavailable != "" && t.Unavailable == "":
			return fmt.Errorf("%s worked when the run started and does not work now", t.Name)
		case state[i].Version != t.Version || state[i].Binary != t.Binary:
			return fmt.Errorf("%s was %s (%s) when the run started and is %s (%s) now", t.Name, t.Version, t.Binary, state[i].Version, state[i].Binary)
		}
	}
	return nil
}

// sameImages checks that the images are unchanged since the run started.
func sameImages(record, state []result.Image) error {
	for _, i := range record {
		index := slices.IndexFunc(state, func(n result.Image) bool { return n.Name == i.Name })
		switch {
		case i.Unavailable != "":
		case index < 0 || state[index].Unavailable != "":
			return fmt.Errorf("image %s was available when the run started and is not available now", i.Name)
		case state[index].Digest != i.Digest:
			return fmt.Errorf("image %s was %s when the run started and is %s now", i.Name, i.Digest, state[index].Digest)
		}
	}
	return nil
}
