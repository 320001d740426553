package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// Unmeasured is benchmarks without a single number that no target was even tried on, for the same reasons.
type Unmeasured struct {
	Benchmarks []string
	Reasons    []Reason
}

// Reason is why some targets were not tried; Targets is nil if it holds for all.
type Reason struct {
	Text    string
	Targets []string
}

// untried tells whether every target was skipped.
func (b *Benchmark) untried() bool {
	return !slices.ContainsFunc(b.Targets, func(o Outcome) bool { return o.Skipped == 0 || o.OK+o.Failed+o.Timeout > 0 })
}

// leaveOut notes that a benchmark was not measured.
func (m *Model) leaveOut(b Benchmark) {
	var reasons []Reason
	for _, o := range b.Targets {
		at := slices.IndexFunc(reasons, func(r Reason) bool { return r.Text == o.Reason })
		if at < 0 {
			reasons, at = append(reasons, Reason{Text: o.Reason}), len(reasons)
		}
		reasons[at].Targets = append(reasons[at].Targets, o.Target)
	}
	switch len(reasons) {
	case 0:
		reasons = []Reason{{Text: "no target could run"}}
	case 1:
		reasons[0].Targets = nil
	}
	same := func(u Unmeasured) bool {
		return slices.EqualFunc(u.Reasons, reasons, func(a, b Reason) bool { return a.Text == b.Text && slices.Equal(a.Targets, b.Targets) })
	}
	at := slices.IndexFunc(m.Unmeasured, same)
	if at < 0 {
		m.Unmeasured, at = append(m.Unmeasured, Unmeasured{Reasons: reasons}), len(m.Unmeasured)
	}
	m.Unmeasured[at].Benchmarks = append(m.Unmeasured[at].Benchmarks, b.Title())
}

// mostNames is how many benchmarks are named where there is a list of them elsewhere.
const mostNames = 3

// named names benchmarks, or the first of them and how many more there are.
func named(names []string) string {
	if more := len(names) - mostNames; more > 1 {
		return fmt.Sprintf("%s and %d more benchmarks", strings.Join(names[:mostNames], ", "), more)
	}
	return strings.Join(names, ", ")
}

// measured leaves out what is missing of benchmarks that were not measured at all: those stand by themselves.
func (m *Model) measured(miss Missing) bool {
	return miss.Status != result.Skipped || !slices.ContainsFunc(m.Unmeasured, func(u Unmeasured) bool { return slices.Contains(u.Benchmarks, miss.Title()) })
}
