package surface

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// drills tries what a container should not be able to do. The answers are the kernel's, or the sandbox's in its place.
//
// The control is the same call of a process outside of every container, with all rights of Touchstone. A drill whose control is refused too shows
// nothing on this machine, for example because the kernel has no modules.
func drills() bench.Benchmark {
	return bench.Benchmark{
		Name:       "surface.drills",
		Summary:    "calls that a container should not be able to make, each without an effect, and the kernel's answers",
		Source:     "peers (amicontained, the default seccomp profile of Docker); method: probe/drills.c",
		Metrics:    []result.Metric{count("Permitted", fmt.Sprintf("drills of %d that the kernel permits", len(probe.DrillNames())))},
		Statements: slices.Insert(probe.DrillNames(), 0, permits),
		Run: func(ctx context.Context, t bench.Trial) error {
			out, err := ask(ctx, t, t.Spec(probe.Drills()...))
			if err != nil {
				return err
			}
			control, err := t.Host.Control(ctx, probe.Drills())
			if err != nil && !engine.Unsupported(err) {
				return err
			}
			var reference probe.Output
			if err == nil {
				reference, err = probe.Parse(control)
			}
			if err != nil && !engine.Unsupported(err) {
				return fmt.Errorf("read the output of the control: %w", err)
			}
			var permitted []string
			for _, name := range probe.DrillNames() {
				answer, err := single(out, name)
				if err != nil {
					return err
				}
				if answer == probe.Permitted {
					permitted = append(permitted, name)
				}
				t.Condition(name, verdict(answer, reference.Texts(name), t.Info.Isolation))
			}
			t.Condition(permits, "permits "+cmp.Or(strings.Join(permitted, ", "), "nothing"))
			t.Record("Permitted", float64(len(permitted)))
			return nil
		},
	}
}

// permits is the statement with the drills that are permitted.
const permits = "permits"

// verdict is the answer to a drill, with the answer to its control if that is no permission. controls is empty without a control. A kernel of the
// container's own grants what it has, and not the host's.
func verdict(answer string, controls []string, i engine.Isolation) string {
	if answer == probe.Permitted && (i == engine.UserKernel || i == engine.VM) {
		return answer + " by the kernel of the sandbox, within it"
	}
	if answer == probe.Permitted {
		return answer
	}
	answer = "refused: " + answer
	if len(controls) == 0 {
		return answer + ", without a control"
	}
	if controls[0] != probe.Permitted {
		return answer + ", but the host refuses it too: " + controls[0]
	}
	return answer
}
