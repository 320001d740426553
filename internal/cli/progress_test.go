package cli

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/touchstone-bench/touchstone/internal/execution"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
)

// A live line replaces the one before, within the width of the terminal. A log has whole lines.
func TestProgressIsShown(t *testing.T) {
	step := func(a *App) {
		(&progress{status: a.status}).Report(execution.Event{Kind: execution.Step, Text: "getting image workload ready on docker/runc"})
	}
	trial := func(state runner.Progress) func(*App) {
		state.Done, state.Total = 1, 4
		return func(a *App) {
			(&progress{status: a.status}).Started(result.Trial{Cell: result.Cell{Benchmark: "a.b", Target: "fake/a"}}, state)
		}
	}
	const live, second = "\r\x1b[K", " 25%  trial 2 of 4  a.b  fake/a"
	for _, tt := range []struct {
		env  Environment
		show func(*App)
		want string
	}{
		{Environment{}, func(a *App) { a.step("encoding") }, "encoding\n"},
		{Environment{Live: true}, func(a *App) { a.step("encoding") }, live + "encoding …"},
		{Environment{}, step, "getting image workload ready on docker/runc\n"},
		{Environment{Live: true}, step, live + "getting image workload ready on docker/runc …"},
		{Environment{Live: true, Width: 20}, step, live + "getting image workl"},
		{Environment{Live: true}, trial(runner.Progress{}), live + second},
		{Environment{Live: true}, trial(runner.Progress{Left: time.Minute, Least: time.Minute}), live + second + "  1m0s left"},
		{Environment{Live: true}, trial(runner.Progress{Left: time.Minute, AtMost: true}), live + second + "  at most 1m0s left"},
		{
			Environment{Live: true},
			trial(runner.Progress{Left: time.Minute, Least: 20 * time.Second, AtMost: true}),
			live + second + "  at most 1m0s left, at least 20s",
		},
	} {
		var out bytes.Buffer
		tt.env.Stderr = &out
		if tt.show(New(tt.env)); out.String() != tt.want {
			t.Errorf("the progress is %q, want %q", out.String(), tt.want)
		}
	}
}

// A slow step is shown on a terminal after two seconds, and its line is removed at its end.
func TestSlowStepIsShown(t *testing.T) {
	for _, tt := range []struct {
		live     bool
		duration time.Duration
		want     string
	}{
		{true, time.Second, ""},
		{true, 3 * time.Second, "\r\x1b[Kreading …\r\x1b[K"},
		{false, 3 * time.Second, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			end := New(Environment{Live: tt.live, Stderr: &out}).slow("reading")
			time.Sleep(tt.duration)
			synctest.Wait()
			end()
			end()
			if out.String() != tt.want {
				t.Errorf("a step of %v prints %q, want %q", tt.duration, out.String(), tt.want)
			}
		})
	}
}
