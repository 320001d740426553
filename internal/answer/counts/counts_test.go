package counts_test

import (
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	answer "github.com/touchstone-bench/touchstone/internal/answer/counts"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/render/text"
	"github.com/touchstone-bench/touchstone/internal/report/counts"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// side is n traces of a runtime.
func side(target string, n int, calls func(i int64) map[string]int64) counts.Side {
	s := counts.Side{Target: target}
	for i := range n {
		s.Traces = append(s.Traces, &result.Trace{Counts: []result.TraceCounts{{Step: "create", Component: "runtime", Calls: calls(int64(i))}}})
	}
	return s
}

// TestSection holds the text of a comparison: each change with its remark, and the calls that decide nothing.
func TestSection(t *testing.T) {
	a := side("oci/runc-a", counts.ShownBy, func(i int64) map[string]int64 { return map[string]int64{"mount": 33, "futex": 250 + i, "mmap": 9} })
	b := side("oci/runc-b", counts.ShownBy, func(i int64) map[string]int64 {
		return map[string]int64{"mount": 34, "futex": 251 + i, "mmap": 20 + i%2}
	})
	cell := counts.Compare(analysis.Key{Name: "operations.container.lifecycle"}, a, b, nil)
	var out strings.Builder
	must.Do(t, text.Write(&out, &document.Document{Blocks: answer.Section(counts.New([]counts.Cell{cell}, nil))}, text.Options{Width: 100}))
	expect.Equal(t, "the text", `
Counts
  Counts differ in 1 of 1 traced benchmark.

  operations.container.lifecycle on oci/runc-a, oci/runc-b

  STEP       COMPONENT  CALL   A   B      REMARK
  create     runtime    mmap   9   20–21  varies
  create     runtime    mount  33  34
  all steps  runtime    mmap   9   20–21  varies

  Not compared, because these counts vary from trace to trace
  - operations.container.lifecycle on oci/runc-a, oci/runc-b: runtime futex
`, out.String())
	if blocks := answer.Section(nil); blocks != nil {
		t.Errorf("without counts the section is %v", blocks)
	}
}
