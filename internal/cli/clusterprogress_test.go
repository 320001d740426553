package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/cluster"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// The reason of a missing target is printed once, and not for each of its trials.
func TestFleetProgressSaysAReasonOnce(t *testing.T) {
	var out bytes.Buffer
	p := newFleetProgress(status{env: Environment{Stderr: &out}}, &cluster.Fleet{})
	const reason = "no runtime for \"ghost\" is configured"
	p.Note("n1", "skipped: k8s/ghost: "+reason)
	p.Note("n1", "skipped: k8s/spirit: another reason")
	for _, benchmark := range []string{"pods.start", "pods.delete"} {
		p.Trial("n1", result.Trial{Cell: result.Cell{Benchmark: benchmark, Target: "k8s/ghost"}, Status: result.Skipped, Reason: reason})
	}
	p.Trial("n2", result.Trial{Cell: result.Cell{Benchmark: "pods.start", Target: "k8s/ghost"}, Status: result.Skipped, Reason: reason})
	if count := strings.Count(out.String(), reason); count != 2 {
		t.Errorf("the reason is printed %d times, want once for each node:\n%s", count, out.String())
	}
	if !strings.Contains(out.String(), "n1: skipped: pods.delete on k8s/ghost\n") {
		t.Errorf("the output is\n%s", out.String())
	}
}
