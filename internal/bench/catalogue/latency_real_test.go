package catalogue_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/test/cells"
)

// Each benchmark of the suite keeps all samples of a real target: their number, and the largest ones.
func TestRealLatency(t *testing.T) {
	cells.Need(t, "catalogue/latency")
	for _, tt := range realTargets {
		t.Run(strings.ReplaceAll(tt.name, "/", "_"), func(t *testing.T) {
			l := newProbeHarness(t, tt.name, tt.driver)
			for _, name := range []string{"latency.exec", "latency.start", "latency.syscall"} {
				b := find(t, name)
				l.calm(t, b, bench.Params{"samples": "40"}, func(trial result.Trial) error {
					if err := succeeded(trial); err != nil {
						return err
					}
					if len(trial.Distributions) != 1 {
						return fmt.Errorf("%s has %d distributions", name, len(trial.Distributions))
					}
					d := trial.Distributions[0]
					var count uint64
					for _, n := range d.Counts {
						count += n
					}
					if count != 40 || len(d.Tail.Values) != 40 {
						return fmt.Errorf("%s has %d samples and a tail of %d, want 40 of each", name, count, len(d.Tail.Values))
					}
					middle, largest := trial.Values(d.Metric), trial.Values(d.Metric+"Max")
					if len(middle) != 1 || len(largest) != 1 || !(middle[0] > 0) || largest[0] != slices.Max(d.Tail.Values) || largest[0] < middle[0] {
						return fmt.Errorf("%s has the median %v and the maximum %v", name, middle, largest)
					}
					return nil
				})
			}
		})
	}
}
