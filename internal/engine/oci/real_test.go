package oci_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/target"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

// quick are the targets of the tests here, which are about the engine and not the runtimes.
var quick = []string{"oci/runc", "oci/crun"}

// each runs a test on the quick targets.
func each(t *testing.T, test func(t *testing.T, s engine.Session, e engine.Engine)) {
	t.Helper()
	for _, name := range quick {
		t.Run(strings.ReplaceAll(name, "/", "_"), func(t *testing.T) {
			s := enginetest.Session(t, oci.Surroundings)
			parsed, err := target.Parse(name)
			if err != nil {
				t.Fatal(err)
			}
			e, err := oci.Driver{}.Open(t.Context(), parsed, s)
			enginetest.Require(t, name, err)
			t.Cleanup(func() {
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			})
			test(t, s, e)
		})
	}
}

// running gives a container with these limits whose process runs.
func running(t *testing.T, s engine.Session, e engine.Engine, limits engine.Resources) engine.Container {
	t.Helper()
	spec := enginetest.Spec(s, "real")
	spec.Resources = limits
	return enginetest.Running(t, e, spec)
}

func TestLimits(t *testing.T) {
	each(t, func(t *testing.T, s engine.Session, e engine.Engine) {
		if s.Cgroups == nil {
			t.Skip("needs the right to make cgroups: run as root, or in a delegated cgroup")
		}
		c := running(t, s, e, engine.Resources{CPU: 0.5, Memory: 64 << 20})
		if got, want := enginetest.Limits(t, s, engine.Prefix+s.RunID+"/"+c.ID()), fmt.Sprint("50000 100000 ", 64<<20); got != want {
			t.Errorf("limits at creation are %q, want %q", got, want)
		}
		for _, tt := range []struct {
			limits engine.Resources
			want   string
		}{
			{engine.Resources{CPU: 0.1}, fmt.Sprint("10000 100000 ", 64<<20)},
			{engine.Resources{CPU: 1.5, Memory: 96 << 20}, fmt.Sprint("150000 100000 ", 96<<20)},
			{engine.Resources{Memory: 48 << 20}, fmt.Sprint("150000 100000 ", 48<<20)},
		} {
			if err := c.(engine.Updater).Update(t.Context(), tt.limits); err != nil {
				t.Fatalf("Update(%+v): %v", tt.limits, err)
			}
			if got := enginetest.Limits(t, s, engine.Prefix+s.RunID+"/"+c.ID()); got != tt.want {
				t.Errorf("limits after Update(%+v) are %q, want %q", tt.limits, got, tt.want)
			}
		}
	})
}

// Somebody else's container of the same runtime, and of the same name, is left alone.
func TestForeignContainerIsLeftAlone(t *testing.T) {
	each(t, func(t *testing.T, s engine.Session, e engine.Engine) {
		mine := running(t, s, e, engine.Resources{})
		other := s
		other.RunID += "x"
		foreign, err := oci.Driver{}.Open(t.Context(), e.Info().Target, other)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := foreign.Close(); err != nil {
				t.Error(err)
			}
		})
		theirs, err := foreign.Create(t.Context(), engine.Spec{ID: mine.ID(), Rootfs: s.Rootfs, Process: engine.Process{Args: workload.Ready()}})
		if err != nil {
			t.Fatal(err)
		}
		if err := mine.Delete(t.Context()); err != nil {
			t.Error(err)
		}
		if state, err := theirs.State(t.Context()); err != nil || state != engine.Created {
			t.Errorf("the other container is %s, %v; want it as it was, created", state, err)
		}
		if err := theirs.Delete(t.Context()); err != nil {
			t.Error(err)
		}
		if s.Cgroups != nil {
			g, err := s.Cgroups.Open("/" + engine.Prefix + other.RunID)
			if err != nil {
				t.Fatal(err)
			}
			if err := g.Destroy(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

// What a runtime says when it fails is what the user reads.
func TestErrorsSayWhatTheRuntimeSaid(t *testing.T) {
	for _, name := range targets {
		if strings.Contains(name, "systrap") {
			continue // ptrace says the same
		}
		t.Run(strings.ReplaceAll(name, "/", "_"), func(t *testing.T) {
			s := enginetest.Session(t, oci.Surroundings)
			parsed, err := target.Parse(name)
			if err != nil {
				t.Fatal(err)
			}
			e, err := oci.Driver{}.Open(t.Context(), parsed, s)
			enginetest.Require(t, name, err)
			t.Cleanup(func() {
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			})
			c := running(t, s, e, engine.Resources{})
			_, err = c.(engine.Execer).Exec(t.Context(), engine.Process{Args: []string{"/no-such-program"}})
			if err == nil || !strings.Contains(err.Error(), "no-such-program") || strings.Contains(err.Error(), "backtrace") {
				t.Errorf("Exec of a program that is not there: %v", err)
			}
			if err := c.Start(t.Context()); err == nil || !strings.Contains(err.Error(), c.ID()) || strings.Contains(err.Error(), "backtrace") {
				t.Errorf("Start of a running container: %v", err)
			}
			_, err = e.Create(t.Context(), engine.Spec{
				ID: engine.Prefix + s.RunID + "-real-2", Rootfs: filepath.Join(s.State, "no-such-directory"), Process: engine.Process{Args: workload.Ready()},
			})
			// Not every runtime says which file there is not.
			prefix := fmt.Sprintf("create container %q with %s: ", engine.Prefix+s.RunID+"-real-2", name)
			if err == nil || !strings.HasPrefix(err.Error(), prefix) || len(err.Error()) < len(prefix)+20 || strings.Contains(err.Error(), "backtrace") {
				t.Errorf("Create without a root file system: %v", err)
			}
		})
	}
}

// Many lives leave no descriptors, no goroutines, no zombies and no files.
func TestNothingIsLeftOfManyLives(t *testing.T) {
	each(t, func(t *testing.T, s engine.Session, e engine.Engine) {
		enginetest.ManyLives(t, 50, s, e)
		for _, left := range enginetest.Leftovers(s) {
			t.Errorf("%s is left", left)
		}
	})
}

// Creations that are given up, at whatever moment, leave as little.
func TestNothingIsLeftOfCreationsThatAreGivenUp(t *testing.T) {
	each(t, func(t *testing.T, s engine.Session, e engine.Engine) {
		enginetest.Steady(t, 20, func(n int) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(n)*2*time.Millisecond)
			defer cancel()
			c, err := e.Create(ctx, engine.Spec{
				ID: fmt.Sprintf("%s%s-late-%03d", engine.Prefix, s.RunID, n), Rootfs: s.Rootfs, Process: engine.Process{Args: workload.Ready()},
			})
			switch {
			case err != nil && ctx.Err() == nil:
				t.Errorf("Create: %v", err)
			case err == nil:
				if err := c.Delete(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
		for _, left := range enginetest.Leftovers(s) {
			t.Errorf("%s is left", left)
		}
	})
}
