package cli

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/execution"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
)

func TestStepsAreShown(t *testing.T) {
	for live, want := range map[bool]string{true: "\r\x1b[Kencoding …", false: "encoding\n"} {
		var out bytes.Buffer
		New(Environment{Stderr: &out, Live: live}).step("encoding")
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("live %v (-want +got):\n%s", live, diff)
		}
	}
}

func TestTimeLeftIsShown(t *testing.T) {
	for _, tt := range []struct {
		at   runner.Progress
		want string
	}{
		{runner.Progress{Done: 1, Total: 4}, " 25%  trial 2 of 4  a.b  fake/a"},
		{runner.Progress{Done: 1, Total: 4, Left: time.Minute, Least: time.Minute}, " 25%  trial 2 of 4  a.b  fake/a  1m0s left"},
		{runner.Progress{Done: 1, Total: 4, Left: time.Minute, AtMost: true}, " 25%  trial 2 of 4  a.b  fake/a  at most 1m0s left"},
		{runner.Progress{Done: 1, Total: 4, Left: time.Minute, Least: 20 * time.Second, AtMost: true}, " 25%  trial 2 of 4  a.b  fake/a  at most 1m0s left, at least 20s"},
	} {
		var out bytes.Buffer
		p := &progress{status: New(Environment{Live: true, Stderr: &out}).status}
		p.Started(result.Trial{Cell: result.Cell{Benchmark: "a.b", Target: "fake/a"}}, tt.at)
		if want := "\r\x1b[K" + tt.want; out.String() != want {
			t.Errorf("the progress is %q, want %q", out.String(), want)
		}
	}
}

func TestStepIsShown(t *testing.T) {
	for _, tt := range []struct {
		env  Environment
		want string
	}{
		{Environment{}, "getting image workload ready on docker/runc\n"},
		{Environment{Live: true}, "\r\x1b[Kgetting image workload ready on docker/runc …"},
		{Environment{Live: true, Width: 20}, "\r\x1b[Kgetting image workl"},
	} {
		var out bytes.Buffer
		tt.env.Stderr = &out
		(&progress{status: New(tt.env).status}).Report(execution.Event{Kind: execution.Step, Text: "getting image workload ready on docker/runc"})
		if out.String() != tt.want {
			t.Errorf("the progress is %q, want %q", out.String(), tt.want)
		}
	}
}
