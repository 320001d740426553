package analysis

import (
	"github.com/touchstone-bench/touchstone/internal/result"
)

// FailedCalls counts the failures of one call of a target over a whole run, with warm-up. A runtime that fails now and then is no slow
// runtime: the share of its failures is a result of its own.
type FailedCalls struct {
	Target string `json:"target" doc:"Name of the target."`
	Call   string `json:"call" doc:"The call: \"create\", \"start\" and so on, or \"first container\" for the containers before the first trial."`
	Failed int    `json:"failed" schema:"minimum=1" doc:"Number of calls that failed or exceeded their limit."`
	Total  int    `json:"of" schema:"minimum=1" doc:"Number of all calls."`
}

// FirstContainer is the Call of the containers that a target must run before its first trial.
const FirstContainer = "first container"

// calls are the calls of engines, as the phases of trials name them, in the order of a container's life.
func calls() []string {
	return []string{"pull", "create", "start", "exec", "pause", "resume", "update", "kill", "delete", "remove"}
}

// failedCalls counts the failures of all targets.
func failedCalls(run *result.Run) []FailedCalls {
	type key struct{ target, call string }
	failed, total := map[key]int{}, map[key]int{}
	for i := range run.Trials {
		trial := &run.Trials[i]
		for name, n := range trial.FailedCalls {
			failed[key{trial.Target, name}] += n
		}
	}
	for i := range run.Trials {
		if len(failed) == 0 {
			break
		}
		trial := &run.Trials[i]
		for _, p := range trial.Phases {
			total[key{trial.Target, p.Name}]++
		}
	}
	var counts []FailedCalls
	for _, t := range run.Targets {
		if n := t.FailedTries; n > 0 {
			counts = append(counts, FailedCalls{t.Name, FirstContainer, n, n + 1})
		}
		for _, call := range calls() {
			if n := failed[key{t.Name, call}]; n > 0 {
				counts = append(counts, FailedCalls{t.Name, call, n, n + total[key{t.Name, call}]})
			}
		}
	}
	return counts
}
