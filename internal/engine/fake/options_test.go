package fake_test

import (
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/target"
)

func TestOpenRefusesBadOptions(t *testing.T) {
	for option, says := range map[string]string{
		"speed=1":          "a fake target has create, start, kill, delete, exec, pause, resume, update, stats, pull, remove, exit, ready, jitter, drift, wander, bimodal, seed, fail, hang, leak, die, lie, garbage, no, score, cpu, mem, slab",
		"create=10":        "want a duration",
		"create=-1ms":      "want a duration",
		"start=2h":         "want a duration",
		"jitter=-0.1":      "want a number",
		"jitter=NaN":       "want a number",
		"wander=11":        "want a number",
		"score=0":          "want a number",
		"bimodal=0.3":      "want SHARE:FACTOR",
		"bimodal=2:2":      "want SHARE:FACTOR",
		"bimodal=0.3:0":    "want SHARE:FACTOR",
		"seed=-1":          "seed=-1",
		"fail=creat":       "the calls are create, start, kill, wait",
		"fail=create#0":    "N from 1",
		"fail=create#":     "N from 1",
		"fail=create+":     `"" is not CALL`,
		"leak=start":       "the calls are create, delete",
		"die=create":       "the calls are start",
		"lie=create":       "the calls are start, delete, exec, pause, resume, update",
		"garbage=0":        "number of a process",
		"no=teleport":      "the capabilities are exec, pause, update, host-network, pull, stats, writable-root, tmpfs, bind-mount, bind-mount-of-memory, this-machine, processes-on-this-host, direct-calls, several",
		"no=exec+teleport": `"teleport" is not a capability`,
		"mem=8MB":          "number of bytes",
	} {
		name := "fake/x@" + option
		e, err := fake.NewDriver(fake.NewClock()).Open(t.Context(), enginetest.Parse(t, name), engine.Session{})
		if e != nil || err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), name) {
			t.Errorf("Open(%s) = %v, want an error with %q", name, err, says)
		}
		if engine.Unsupported(err) {
			t.Errorf("Open(%s): a mistake in a plan is an UnsupportedError: %v", name, err)
		}
	}
	if _, err := fake.NewDriver(fake.NewClock()).Open(t.Context(), enginetest.Parse(t, "oci/runc"), engine.Session{}); err == nil {
		t.Error("Open accepts another engine's target")
	}
}

func FuzzOptions(f *testing.F) {
	for _, seed := range []string{
		"create=10ms,start=5ms,jitter=0.05", "bimodal=0.3:2,drift=0.01,wander=0.1,seed=7", "fail=create#3+start,hang=kill#2",
		"leak=delete#1,die=start,garbage=1+2,lie=delete+exec#2", "no=exec+host-network,score=0.5,cpu=3ms,mem=1024", "ready=1us,exit=0s",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, options string) {
		name, err := target.Parse("fake/x@" + options)
		if err != nil {
			return
		}
		e, err := fake.NewDriver(fake.NewClock()).Open(t.Context(), name, engine.Session{RunID: "r"})
		if (e == nil) == (err == nil) {
			t.Fatalf("Open(%s) = %v, %v", name, e, err)
		}
	})
}
