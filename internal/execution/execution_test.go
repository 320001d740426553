package execution

import (
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
)

// recorder is an Observer that keeps the events.
type recorder struct{ events []Event }

func (*recorder) Started(result.Trial, runner.Progress) {}
func (*recorder) Ended(result.Trial)                    {}
func (*recorder) Pulling(string, bench.Image)           {}
func (r *recorder) Report(e Event)                      { r.events = append(r.events, e) }

// mentions reports whether some event contains text.
func (r *recorder) mentions(text string) bool {
	return slices.ContainsFunc(r.events, func(e Event) bool { return strings.Contains(e.Text, text) })
}
