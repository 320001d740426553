package chaos

import (
	"fmt"
	"sync"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/test/cells"
	"github.com/touchstone-bench/touchstone/test/chaos/script"
)

// TestLies: a runtime exits with code 0 and does nothing. No trial with such a call may have a result.
func TestLies(t *testing.T) {
	cells.Need(t, "chaos/lies")
	onHost(t, 6, "a runtime that returns success and does nothing", func(h *host) {
		h.need("runc")
		h.watch()
		var wg sync.WaitGroup
		for _, lie := range []struct {
			verb, benchmark string
			from            int // after the calls of the container that tries the target
		}{
			{"create", lifecycle, 2},
			{"start", lifecycle, 2},
			{"kill", lifecycle, 1},
			{"delete", lifecycle, 2},
			{"exec", "operations.container.exec", 1},
			{"pause", "operations.container.pause", 1},
			{"resume", "operations.container.pause", 1},
			{"update", "operations.container.update", 1},
		} {
			w := h.wrap(script.Rule{Verb: lie.verb, From: lie.from, Fault: script.Lie})
			wg.Go(func() {
				p := h.plan(fmt.Sprintf("targets: [oci/liar]\nruntimes: {liar: %s}\nbenchmarks: [%s]\nblocks: 2\nwarmup: 0\ntimeout: {trial: 10s, call: 4s}\n", w.path, lie.benchmark))
				p.ends(3)
				h.tried(1)
				for _, trial := range h.run(p.dir).Trials {
					if trial.Status == result.OK || len(trial.Samples) > 0 {
						h.wrong("%s lies: a trial of %s is %s with %d samples", lie.verb, lie.benchmark, trial.Status, len(trial.Samples))
					}
					if trial.Status != result.OK && trial.Reason == "" {
						h.wrong("%s lies: a trial of %s is %s without a reason", lie.verb, lie.benchmark, trial.Status)
					}
				}
				if len(w.calls(lie.verb)) < lie.from {
					h.wrong("the runtime was not called to %s, so the case shows nothing", lie.verb)
				}
			})
		}
		wg.Wait()
	})
}
