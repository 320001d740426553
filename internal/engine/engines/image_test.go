package engines_test

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/engines"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/image"
	"github.com/touchstone-bench/touchstone/internal/target"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

// pulling are targets of each engine that pulls.
var pulling = []string{
	"containerd/runc", "containerd/crun", "containerd/runsc", "crio/runc", "crio/runsc", "docker/runc", "docker/runsc", "podman/runc", "podman/runsc",
}

// A program runs from a user's own image as it does from ours, whatever that image is configured to run: as root, in the
// root directory, with its arguments alone.
func TestImageWithAConfiguration(t *testing.T) {
	base, err := image.Build(runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	configured, err := mutate.Config(base, v1.Config{
		Entrypoint: []string{"/no/such/entrypoint", "--flag"}, Cmd: []string{"no", "such", "command"},
		User: "1000:1000", WorkingDir: "/data", Env: []string{"PATH=/no/such/path", "LD_PRELOAD="}, StopSignal: "SIGUSR1",
	})
	if err != nil {
		t.Fatal(err)
	}
	eachPulling(t, func(t *testing.T, s engine.Session, e engine.Engine) {
		ref, err := s.Registry.Publish(t.Context(), "configured:latest", configured)
		if err != nil {
			t.Fatal(err)
		}
		pulled(t, s, e, ref)
		spec := enginetest.Spec(s, "configured")
		spec.Image, spec.Writable = ref, true
		var out, complaint bytes.Buffer
		// This leads from the root directory alone to a directory, to which only root can write.
		spec.Process = engine.Process{Args: workload.Write("data/../written"), Stdout: &out, Stderr: &complaint}
		c := enginetest.Running(t, e, spec)
		exit, err := c.Wait(t.Context())
		if err != nil || !exit.OK() {
			t.Errorf("Wait = %v, %v; %s", exit, err, complaint.String())
		}
		if err := c.Delete(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// The workload image, which is large, is pulled and its programs run.
func TestWorkloadImage(t *testing.T) {
	_, programs := enginetest.Workload(t)
	eachPulling(t, func(t *testing.T, s engine.Session, e engine.Engine) {
		ref, err := s.Registry.Publish(t.Context(), "workload:latest", programs)
		if err != nil {
			t.Fatal(err)
		}
		pulled(t, s, e, ref)
		for n, args := range [][]string{
			{"/usr/bin/sysbench", "--version"}, {"/usr/bin/7z", "i"}, {"/usr/bin/fio", "--version"}, {"/usr/bin/redis-server", "--version"},
		} {
			spec := enginetest.Spec(s, fmt.Sprint("program", n))
			spec.Image = ref
			var out, complaint bytes.Buffer
			spec.Process = engine.Process{Args: args, Stdout: &out, Stderr: &complaint}
			c := enginetest.Running(t, e, spec)
			exit, err := c.Wait(t.Context())
			if err := c.Delete(t.Context()); err != nil {
				t.Error(err)
			}
			if err != nil || !exit.OK() || out.Len() == 0 {
				t.Errorf("%q: %v, %v, it says %q and %q", args, exit, err, out.String(), complaint.String())
			}
		}
	})
}

// eachPulling runs a test on each target whose engine pulls.
func eachPulling(t *testing.T, test func(*testing.T, engine.Session, engine.Engine)) {
	for _, name := range pulling {
		t.Run(strings.ReplaceAll(name, "/", "_"), func(t *testing.T) {
			s := enginetest.Session(t, oci.Surroundings)
			parsed, err := target.Parse(name)
			if err != nil {
				t.Fatal(err)
			}
			s.Managed, s.Targets = true, []target.Target{parsed}
			e, err := engines.All(fake.NewClock(), nil).Open(t.Context(), parsed, s)
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

// pulled lets the engine pull an image for the time of the test.
func pulled(t *testing.T, s engine.Session, e engine.Engine, ref string) {
	t.Helper()
	p, ok := e.(engine.Puller)
	if !ok {
		t.Fatalf("%s does not pull", e.Info().Target)
	}
	if err := p.Pull(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Registry.Forget(ref) })
}
