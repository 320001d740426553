package enginetest

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/stats"
)

// The functions in this file compare Touchstone with its peers on the same private daemon, in alternating batches with another order in each
// round. docs/overhead.md has the figures, and scripts/bench-engines.sh makes them.

// peerRounds is the environment variable with the number of rounds. Without it the comparisons are skipped: they take minutes and mean nothing on
// a busy machine.
const peerRounds = "TOUCHSTONE_PEER_ROUNDS"

// PeerRounds returns the number of rounds, or skips the test.
func PeerRounds(t *testing.T) int {
	t.Helper()
	text := os.Getenv(peerRounds)
	if text == "" {
		t.Skipf("takes minutes on a quiet machine: set %s to the number of rounds", peerRounds)
	}
	rounds, err := strconv.Atoi(text)
	if err != nil || rounds < 1 {
		t.Fatalf("%s=%s is no number of rounds", peerRounds, text)
	}
	return rounds
}

// Side is one of the compared sides. It measures a batch and returns values by their names.
type Side struct {
	Name  string
	Batch func() map[string][]float64
}

// TakeTurns measures batches of all sides. The first round is a warm-up and does not count. The order of the sides changes from round to round.
func TakeTurns(rounds int, sides ...Side) map[string]map[string][]stats.Sample {
	samples := map[string]map[string][]stats.Sample{}
	for _, s := range sides {
		samples[s.Name] = map[string][]stats.Sample{}
	}
	for round := range rounds + 1 {
		for i := range sides {
			s := sides[(i+round)%len(sides)]
			for name, values := range s.Batch() {
				for _, v := range values {
					if round > 0 {
						samples[s.Name][name] = append(samples[s.Name][name], stats.Sample{Block: round, Value: v})
					}
				}
			}
		}
	}
	return samples
}

// Ratio spells the ratio of our value to a peer's, paired by round, with its interval if the number of rounds allows it.
func Ratio(peer, ours []stats.Sample) (float64, string) {
	c := stats.Compare(peer, ours, stats.Lower, 1)
	if c.CI == nil {
		return c.Ratio, fmt.Sprintf("%.2f", c.Ratio)
	}
	return c.Ratio, fmt.Sprintf("%.2f (%.2f to %.2f)", c.Ratio, c.CI.Lo, c.CI.Hi)
}

// Middle is the median of the values of all rounds.
func Middle(samples []stats.Sample) float64 {
	var values []float64
	for _, s := range samples {
		values = append(values, s.Value)
	}
	return stats.Summarize(values).Median
}

// ByRound splits samples by their rounds.
func ByRound(samples []stats.Sample) map[int][]stats.Sample {
	rounds := map[int][]stats.Sample{}
	for _, s := range samples {
		rounds[s.Block] = append(rounds[s.Block], s)
	}
	return rounds
}
