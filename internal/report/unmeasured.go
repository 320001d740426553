package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// Unmeasured is benchmarks that every target skipped for the same reasons.
type Unmeasured struct {
	Benchmarks []string
	Reasons    []Reason
}

// Reason is the reason why some targets skipped a benchmark. Targets is nil if it holds for all of them.
type Reason struct {
	Text    string
	Targets []string
}

// String spells the reason: "native, oci/runc: REASON".
func (r Reason) String() string {
	if r.Targets == nil {
		return r.Text
	}
	return strings.Join(r.Targets, ", ") + ": " + r.Text
}

// skipped reports whether every target skipped the benchmark.
func (s *Section) skipped() bool {
	return !slices.ContainsFunc(s.Targets, func(o Outcome) bool { return o.Skipped == 0 || o.OK+o.Failed+o.Timeout > 0 })
}

// leaveOut lists a benchmark as not measured.
func (r *Run) leaveOut(title string, s *Section) {
	var reasons []Reason
	for _, o := range s.Targets {
		r := place(&reasons, func(r *Reason) bool { return r.Text == o.Reason }, Reason{Text: o.Reason})
		r.Targets = append(r.Targets, o.Target)
	}
	switch len(reasons) {
	case 0:
		reasons = []Reason{{Text: "no target could run"}}
	case 1:
		reasons[0].Targets = nil
	}
	same := func(u *Unmeasured) bool {
		return slices.EqualFunc(u.Reasons, reasons, func(a, b Reason) bool { return a.Text == b.Text && slices.Equal(a.Targets, b.Targets) })
	}
	u := place(&r.Unmeasured, same, Unmeasured{Reasons: reasons})
	u.Benchmarks = append(u.Benchmarks, title)
}

// mostNames is how many names a text spells out if there is a full list elsewhere.
const mostNames = 3

// named lists the first names and the number of the other things.
func named(names []string, things string) string {
	if more := len(names) - mostNames; more > 1 {
		return fmt.Sprintf("%s and %d more %s", strings.Join(names[:mostNames], ", "), more, things)
	}
	return strings.Join(names, ", ")
}

// measured reports whether the gap belongs to a benchmark that was measured on some target.
func (r *Run) measured(miss Missing) bool {
	return miss.Status != result.Skipped || !slices.ContainsFunc(r.Unmeasured, func(u Unmeasured) bool { return slices.Contains(u.Benchmarks, miss.Title()) })
}
