package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/engines"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// TestTrial: an engine of setup is tried with one runtime that works, and a runtime by itself. Without any trial nothing is proved.
func TestTrial(t *testing.T) {
	drivers, openings, _ := lab(t, nil)
	for _, d := range drivers {
		for i := range d.(stub).candidates {
			c := &d.(stub).candidates[i]
			c.Default = len(c.Target.Options) == 0
		}
	}
	for _, c := range []struct {
		trial    target.Target
		openings string
		want     string
	}{
		{target.Target{Engine: "containerd"}, "containerd/runc", ""},
		{target.Target{Engine: "oci", Runtime: "runsc"}, "oci/runsc", ""},
		{target.Target{Engine: "oci", Runtime: "runsc"}.With("platform", "kvm"), "oci/runsc@platform=kvm", "no answer within"},
		{target.Target{Engine: "crio"}, "", "no runtime is here to try crio with; install one first: touchstone setup runc crio"},
	} {
		*openings = nil
		err := tryOn(t.Context(), drivers, c.trial, &engine.Session{RunID: "r"})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) || strings.Join(*openings, " ") != c.openings {
			t.Errorf("%s: %v after %q, want %q after %q", c.trial, err, *openings, c.want, c.openings)
		}
	}
	// The reasons of all runtimes are the reason of the engine.
	daemon := drivers[1].(stub)
	daemon.candidates = slices.DeleteFunc(slices.Clone(daemon.candidates), func(c engine.Candidate) bool { return c.Err == nil })
	if err := tryOn(t.Context(), engines.Drivers{daemon}, target.Target{Engine: "containerd"}, &engine.Session{}); err == nil || !strings.Contains(err.Error(), "crun is not on PATH") {
		t.Errorf("without a runtime: %v", err)
	}
}

// TestTimedSteps: a long step has a line each half minute, until the next step.
func TestTimedSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		steps := &timedSteps{status: New(Environment{Stderr: &out}).status}
		steps.begin("building x")
		time.Sleep(70 * time.Second) // of the bubble's clock
		steps.begin("running a container with x")
		time.Sleep(time.Second)
		steps.end()
		steps.end()
		if want := "building x\nbuilding x, 30 s so far\nbuilding x, 60 s so far\nrunning a container with x\n"; out.String() != want {
			t.Errorf("got %q, want %q", out.String(), want)
		}
	})
}
