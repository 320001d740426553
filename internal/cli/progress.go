package cli

import (
	"fmt"
	"time"

	"github.com/touchstone-bench/touchstone/internal/execution"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
	"github.com/touchstone-bench/touchstone/internal/runner/meter"
)

// The first and the longest time between lines of progress where a line cannot be redrawn. Each time is twice as long as the one before, so that
// the log of a long run stays short.
const (
	plainInterval   = 10 * time.Second
	longestInterval = 5 * time.Minute
)

// progress shows the events of an execution. On a terminal it redraws the status line. Elsewhere it prints plain
// lines. Failures, skips and notes always get a line of their own.
type progress struct {
	status
	clock    meter.Clock
	last     time.Time // of the last plain line, or of the first trial
	interval time.Duration
}

func (p *progress) Started(t result.Trial, state runner.Progress) {
	if state.Traces {
		p.show(fmt.Sprintf("trace %d of %d  %s  %s", state.Done+1, state.Total, name(t.Cell), t.Target))
		return
	}
	line := fmt.Sprintf("%3d%%  trial %d of %d  %s  %s", 100*state.Done/max(state.Total, 1), state.Done+1, state.Total, name(t.Cell), t.Target)
	if t.Warmup {
		line += "  warm-up"
	}
	if state.Left > 0 {
		prefix := ""
		if state.AtMost {
			prefix = "at most "
		}
		line += fmt.Sprintf("  %s%v left", prefix, state.Left.Round(time.Second))
		if state.AtMost && state.Least > 0 {
			line += fmt.Sprintf(", at least %v", state.Least.Round(time.Second))
		}
	}
	if p.env.Live {
		p.show(line)
		return
	}
	moment := p.clock.Now()
	if p.last.IsZero() {
		p.last, p.interval = moment, plainInterval
	}
	if moment.Sub(p.last) >= p.interval {
		p.last, p.interval = moment, min(2*p.interval, longestInterval)
		fmt.Fprintln(p.env.Stderr, line)
	}
}

func (p *progress) Ended(t result.Trial) {
	if t.Status != result.OK {
		p.line(fmt.Sprintf("%s: %s on %s: %s", t.Status, name(t.Cell), t.Target, quantity.OneLine(t.Why())))
	}
}

func (p *progress) Report(e execution.Event) {
	text := quantity.OneLine(e.Text)
	switch e.Kind {
	case execution.Opening:
		p.show("trying " + text + " …")
	case execution.Step:
		p.step(text)
	case execution.Skipped:
		p.line("skipped: " + text)
	case execution.Swept:
		p.line("removed leftovers of a killed run: " + text)
	case execution.Estimate, execution.Ended:
		p.line(text)
	case execution.Note:
		p.line("note: " + text)
	}
}

// name is a benchmark with its parameters.
func name(c result.Cell) string {
	if c.Params == "" {
		return c.Benchmark
	}
	return c.Benchmark + " " + c.Params
}
