package cli

import (
	"fmt"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// isDefault tells whether a plan without targets measures a candidate: a runtime as it is, by an engine without
// a daemon or by one that was asked for. A first look is not to start daemons, nor to take an hour.
func isDefault(p plan.Plan, c engine.Candidate) bool {
	return c.Default && (c.Target.Engine == target.Native || c.Target.Engine == oci.Driver{}.Name() || askedFor(p, c.Target.Engine))
}

// askedFor tells whether the user wants daemons used: private ones, or this one at a socket. Docker's
// address says only where it is: DOCKER_HOST may be set for other purposes.
func askedFor(p plan.Plan, engineName string) bool {
	_, named := p.Engines.Sockets[engineName]
	return p.Engines.Managed || named && engineName != "docker"
}

// needsCandidates tells whether the plan's targets depend on what is found.
func needsCandidates(p plan.Plan) bool {
	return p.Targets == nil || slices.ContainsFunc(p.Targets, func(pattern plan.Pattern) bool {
		_, exact := pattern.Exact()
		return !exact
	})
}

// selectTargets gives the targets of a plan on a machine with these candidates, each once.
//
// What is named is in the run, whatever becomes of it. Of what is not named, a target whose engine and
// runtime are both there is in the run, if only to say why the two do not go together. One whose engine or
// runtime is missing is not: a report about containerd has no use for a skip of each engine that
// is not installed. But a pattern never selects nothing without a word: if all that it stands for is
// missing, that is in the run, with the reasons.
func selectTargets(p plan.Plan, candidates []engine.Candidate) ([]target.Target, error) {
	there := present(p, candidates)
	var selected []target.Target
	add := func(t target.Target) {
		if !slices.ContainsFunc(selected, func(s target.Target) bool { return s.String() == t.String() }) {
			selected = append(selected, t)
		}
	}
	if p.Targets == nil {
		for _, c := range candidates {
			if isDefault(p, c) && there(c) {
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
			case there(c):
				found = append(found, t)
			default:
				missing = append(missing, t)
			}
		}
		if len(found) == 0 {
			found = missing
		}
		if len(found) == 0 {
			return nil, usage(fmt.Errorf("no target is like %s; touchstone targets shows those there are", pattern))
		}
		for _, t := range found {
			add(t)
		}
	}
	if p.Baseline.Engine != "" {
		add(p.Baseline)
	}
	return selected, nil
}

// present tells of a candidate whether its engine and its runtime are on this machine, each by itself: it
// works in some target as far as that shows without trying, or the user has said where it is. An
// engine without a daemon is there for a runtime of the user's too.
func present(p plan.Plan, candidates []engine.Candidate) func(engine.Candidate) bool {
	engines, runtimes := map[string]bool{}, map[string]bool{}
	for name := range p.Engines.Sockets {
		engines[name] = true
	}
	for name := range p.Runtimes {
		runtimes[name] = true
	}
	for _, c := range candidates {
		if _, named := p.Runtimes[c.Target.Runtime]; c.Err == nil || isDefault(p, c) && named {
			engines[c.Target.Engine], runtimes[c.Target.Runtime] = true, true
		}
	}
	return func(c engine.Candidate) bool { return engines[c.Target.Engine] && runtimes[c.Target.Runtime] }
}
