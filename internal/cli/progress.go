package cli

import (
	"fmt"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
)

// plainInterval is how often a line of progress is printed where it cannot be redrawn.
const plainInterval = 10 * time.Second

// progress shows how far a run is: one line that is redrawn on a terminal, now and
// then a plain line otherwise. What goes wrong gets a line of its own.
type progress struct {
	env   Environment
	clock runner.Clock
	last  time.Time
}

func newProgress(env Environment, clock runner.Clock) *progress {
	return &progress{env: env, clock: clock, last: clock.Now()}
}

func (p *progress) Started(t result.Trial, at runner.Progress) {
	line := fmt.Sprintf("%3d%%  trial %d of %d  %s  %s", 100*at.Done/max(at.Total, 1), at.Done+1, at.Total, name(t.Cell), t.Target)
	if t.Warmup {
		line += "  warm-up"
	}
	if at.Left > 0 {
		line += fmt.Sprintf("  %v left", at.Left.Round(time.Second))
	}
	if p.env.Live {
		p.redraw(line)
		return
	}
	if now := p.clock.Now(); now.Sub(p.last) >= plainInterval {
		p.last = now
		fmt.Fprintln(p.env.Stderr, line)
	}
}

// Pulling is told before a target gets an image, which takes its time.
func (p *progress) Pulling(target string, image bench.Image) {
	line := fmt.Sprintf("getting image %s ready on %s …", image, target)
	if !p.env.Live {
		fmt.Fprintln(p.env.Stderr, line)
		return
	}
	p.redraw(line)
}

// redraw puts a line in the place of the one before.
func (p *progress) redraw(line string) {
	if runes := []rune(line); p.env.Width > 0 && len(runes) >= p.env.Width {
		line = string(runes[:p.env.Width-1])
	}
	fmt.Fprintf(p.env.Stderr, "\r\x1b[K%s", line)
}

func (p *progress) Ended(t result.Trial) {
	if t.Status == result.OK {
		return
	}
	clear := ""
	if p.env.Live {
		clear = "\r\x1b[K"
	}
	fmt.Fprintf(p.env.Stderr, "%s%s: %s on %s: %s\n", clear, t.Status, name(t.Cell), t.Target, printable(t.Reason))
}

// done clears the line.
func (p *progress) done() {
	if p.env.Live {
		fmt.Fprint(p.env.Stderr, "\r\x1b[K")
	}
}

// name is a benchmark with its parameters.
func name(c result.Cell) string {
	if c.Params == "" {
		return c.Benchmark
	}
	return c.Benchmark + " " + c.Params
}
