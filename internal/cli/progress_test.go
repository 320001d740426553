package cli

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/execution"
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
