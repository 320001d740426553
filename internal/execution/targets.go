package execution

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/engines"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/parts"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// available is true for a target that could be opened.
func available(t runner.Target) bool { return t.Engine != nil }

// openTargets opens the plan's targets. A target that does not work stays in the run with its reason.
func (e *Execution) openTargets(ctx context.Context) ([]result.Target, error) {
	var candidates []engine.Candidate
	if e.session != nil && needsCandidates(e.Plan) { // fake targets are not candidates
		candidates = e.drivers.Candidates(ctx, e.engineSession())
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	selection, err := selectTargets(e.Plan, e.drivers, candidates)
	if err != nil {
		return nil, err
	}
	if e.session != nil {
		e.session.Targets = selection
	}
	var facts []result.Target
	for _, t := range selection {
		e.report(Opening, t.String())
		target, failures, err := e.openTarget(ctx, t)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		info := engine.Info{Target: t}
		var open *engine.OpenError
		switch {
		case err == nil:
			info = target.Info()
		case t.Engine == fake.Name && !errors.As(err, &open):
			return nil, &UsageError{err} // its options are wrong
		case !engine.Unsupported(err):
			return nil, fmt.Errorf("open target %s: %w", t, err)
		default:
			if errors.As(err, &open) {
				info = open.Info
			}
			e.report(Skipped, err.Error())
			if e.names(t) {
				e.absent = append(e.absent, t.String())
			}
		}
		e.targets = append(e.targets, runner.Target{Name: t.String(), Engine: target, Err: err})
		fact := targetFacts(info, e.drivers.Describe(t.Engine).Kind, err)
		if err == nil {
			if fact.Installed, err = installedPrograms(target); err != nil {
				return nil, fmt.Errorf("read the origin of the programs of target %s: %w", t, err)
			}
		}
		if failed := len(failures); err == nil && failed > 0 {
			fact.FailedTries = failed
			e.report(Note, fmt.Sprintf("%d of the first %d containers of %s did not work: %v", failed, failed+1, t, failures[failed-1]))
		}
		facts = append(facts, fact)
	}
	return facts, nil
}

// installedPrograms returns the programs of a target that touchstone setup has installed. The programs of a user's daemon are not known.
func installedPrograms(target engine.Engine) ([]result.Installed, error) {
	files := []string{target.Info().Binary}
	if provider, ok := target.(engine.Installed); ok {
		if programs, err := provider.Programs(); err == nil {
			files = append(files, programs...)
		}
	}
	uses, err := parts.Uses(files)
	var list []result.Installed
	for _, u := range uses {
		list = append(list, result.Installed{
			Program: u.Program.Name, Part: u.Part.Name, Version: u.Part.Version, Origin: u.Part.Origin.Text(), Digest: "sha256:" + u.Program.SHA256,
		})
	}
	return list, err
}

// names reports whether the plan names a target, and does not only select it by a pattern. The record of a run has the targets and no patterns,
// so a resumed run names none.
func (e *Execution) names(t target.Target) bool {
	return e.Earlier == nil && slices.ContainsFunc(e.Plan.Targets, func(pattern plan.Pattern) bool {
		exact, ok := pattern.Exact()
		return ok && exact.String() == t.String()
	})
}

// A target whose first container does not work is opened again: a runtime may fail once in a few calls. An error that the next attempt repeats
// ends the attempts at once. mostTries is the number of attempts. No attempt begins later than triesLimit, because a target that hangs hangs again.
const (
	mostTries  = 3
	triesLimit = 20 * time.Second
)

// openTarget opens a target. It returns the errors of the first containers that did not work. An attempt that an outage explains does not count.
func (e *Execution) openTarget(ctx context.Context, t target.Target) (driver engine.Engine, failures []error, err error) {
	start := e.clock.Now()
	for outages := 0; ; {
		explain := cmp.Or[runner.Outages](e.Outages, runner.NoOutages{}).Begin(ctx)
		driver, err = e.drivers.Open(ctx, t, e.engineSession())
		var open *engine.OpenError
		if err == nil || !errors.As(err, &open) {
			return driver, failures, err
		}
		if reason := explain(ctx, err); reason != "" && outages < mostTries && ctx.Err() == nil {
			e.report(Note, fmt.Sprintf("%s is tried again after an outage: %s", t, reason))
			outages++
			start = e.clock.Now()
			continue
		}
		if !open.Transient {
			return driver, failures, err
		}
		failures = append(failures, err)
		if len(failures) == mostTries || e.clock.Now().Sub(start) >= triesLimit || ctx.Err() != nil {
			return driver, failures, err
		}
		e.report(Note, fmt.Sprintf("%s is tried again (%d of %d)", t, len(failures)+1, mostTries))
	}
}

func targetFacts(info engine.Info, kind engine.Kind, err error) result.Target {
	t := result.Target{
		Name: info.Target.String(), Kind: result.Kind(kind), Binary: info.Binary, Version: result.ConditionText(info.Version), Isolation: string(info.Isolation),
		Cgroup: info.Cgroup, Rootless: info.Rootless, Notes: info.Notes,
	}
	if kind != engine.HostProcess {
		t.Runtime = info.Target.RuntimeText()
	}
	if err != nil {
		reason, advice := Reason(err)
		if advice != "" {
			reason += "; " + advice
		}
		t.Unavailable = reason
	}
	return t
}

// Reason splits the error of a target into the reason and the advice, which may be empty. Neither names the
// target.
func Reason(err error) (reason, advice string) {
	var u *engine.UnsupportedError
	if errors.As(err, &u) {
		return u.Reason, u.Advice
	}
	return err.Error(), ""
}

// IsDefault is true for a candidate that a plan without targets measures: a runtime without options, called by an
// engine without a daemon or by an engine that the plan requests. A first run must neither start daemons
// nor take an hour. The description must be of the candidate's engine.
func IsDefault(p plan.Plan, d engine.Description, c engine.Candidate) bool {
	return c.Default && (d.Kind != engine.FullEngine || requested(p, d))
}

// requested is true if the plan requests the engine: by private daemons, or by the socket of its daemon. An address that may
// come from the environment is no request: DOCKER_HOST may be set for other programs.
func requested(p plan.Plan, d engine.Description) bool {
	_, ok := p.Engines.Sockets[d.Name]
	return p.Engines.Managed || ok && d.AddressVariable == ""
}

// needsCandidates is true if the plan's targets depend on the candidates of this machine.
func needsCandidates(p plan.Plan) bool {
	return p.Targets == nil || slices.ContainsFunc(p.Targets, func(pattern plan.Pattern) bool {
		_, exact := pattern.Exact()
		return !exact
	})
}

// selectTargets returns the targets of a plan on a machine with these candidates, each once.
//
// A target that the plan names is always in the run. A pattern selects the targets whose engine and runtime are both
// installed, also a pair that does not work together: the run then holds the reason. It leaves out a
// target whose engine or runtime is missing, because a report about containerd does not need a skip for each
// engine that is not installed. If nothing that a pattern matches is installed, all its matches are in the
// run with their reasons.
func selectTargets(p plan.Plan, drivers engines.Drivers, candidates []engine.Candidate) ([]target.Target, error) {
	isInstalled := installed(p, drivers, candidates)
	var selection []target.Target
	add := func(t target.Target) {
		if !slices.ContainsFunc(selection, func(s target.Target) bool { return s.String() == t.String() }) {
			selection = append(selection, t)
		}
	}
	if p.Targets == nil {
		for _, c := range candidates {
			if IsDefault(p, drivers.Describe(c.Target.Engine), c) && isInstalled(c) {
				add(c.Target)
			}
		}
	}
	for _, pattern := range p.Targets {
		if t, exact := pattern.Exact(); exact {
			add(t)
			continue
		}
		var found, missing []target.Target
		for _, c := range candidates {
			t, ok := pattern.Select(c.Target)
			switch {
			case !ok:
			case isInstalled(c):
				found = append(found, t)
			default:
				missing = append(missing, t)
			}
		}
		if len(found) == 0 {
			found = missing
		}
		if len(found) == 0 {
			return nil, &UsageError{fmt.Errorf("no target matches %s; touchstone targets lists the targets of this machine", pattern)}
		}
		for _, t := range found {
			add(t)
		}
	}
	if p.Baseline.Engine != "" {
		add(p.Baseline)
	}
	return selection, nil
}

// installed returns a function that is true for a candidate whose engine and runtime are both on this machine. An
// engine or a runtime is installed if some candidate with it may work, or if the plan has its path or
// socket. An engine without a daemon is also installed for a runtime that the plan defines.
func installed(p plan.Plan, drivers engines.Drivers, candidates []engine.Candidate) func(engine.Candidate) bool {
	names, runtimes := map[string]bool{}, map[string]bool{}
	for name := range p.Engines.Sockets {
		names[name] = true
	}
	for name := range p.Runtimes {
		runtimes[name] = true
	}
	for _, c := range candidates {
		if _, ok := p.Runtimes[c.Target.Runtime]; c.Err == nil || IsDefault(p, drivers.Describe(c.Target.Engine), c) && ok {
			names[c.Target.Engine], runtimes[c.Target.Runtime] = true, true
		}
	}
	return func(c engine.Candidate) bool { return names[c.Target.Engine] && runtimes[c.Target.Runtime] }
}
