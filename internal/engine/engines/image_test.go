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
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// pulling are targets of each engine that pulls. The targets of one engine share a session, its daemon and the pulled images.
var pulling = [][]string{
	{"containerd/runc", "containerd/crun", "containerd/runsc"},
	{"crio/runc", "crio/runsc"},
	{"docker/runc", "docker/runsc"},
	{"podman/runc", "podman/runsc"},
}

// Images other than the probe's are pulled, and programs run from them.
func TestImages(t *testing.T) {
	_, programs := enginetest.Workload(t)
	base, err := image.Build(runtime.GOARCH)
	must.Do(t, err)
	configured, err := mutate.Config(base, v1.Config{
		Entrypoint: []string{"/no/such/entrypoint", "--flag"}, Cmd: []string{"no", "such", "command"},
		User: "1000:1000", WorkingDir: "/data", Env: []string{"PATH=/no/such/path", "LD_PRELOAD="}, StopSignal: "SIGUSR1",
	})
	must.Do(t, err)
	for _, names := range pulling {
		engineName, _, _ := strings.Cut(names[0], "/")
		t.Run(engineName, func(t *testing.T) {
			s := enginetest.Session(t, oci.LauncherOptions)
			s.Managed = true
			for _, name := range names {
				s.Targets = append(s.Targets, enginetest.Parse(t, name))
			}
			drivers := engines.All(fake.NewClock(), nil)
			enginetest.Hold(t, drivers, names[0], s)
			for _, name := range names {
				t.Run(strings.ReplaceAll(name, "/", "_"), func(t *testing.T) {
					e := enginetest.Open(t, drivers, name, s)
					t.Run("configured", func(t *testing.T) { runConfigured(t, s, e, configured) })
					t.Run("workload", func(t *testing.T) { runPrograms(t, s, e, programs) })
				})
			}
		})
	}
}

// runConfigured runs a program from an image with a configuration, like a user's own. The configuration has no effect: the
// program runs as root, in the root directory, with only its own arguments.
func runConfigured(t *testing.T, s engine.Session, e engine.Engine, configured v1.Image) {
	spec := enginetest.Spec(s, "configured")
	spec.Image, spec.Writable = pulled(t, s, e, "configured:latest", configured), true
	// Only from the root directory does this path lead to a directory, and only root can write there.
	run(t, e, spec, probe.Write("data/../written"))
}

// runPrograms runs programs of the workload image, which is large.
func runPrograms(t *testing.T, s engine.Session, e engine.Engine, programs v1.Image) {
	ref := pulled(t, s, e, "workload:latest", programs)
	for n, args := range [][]string{{"/usr/bin/7z", "i"}, {"/usr/bin/redis-server", "--version"}} {
		spec := enginetest.Spec(s, fmt.Sprint("program", n))
		spec.Image = ref
		if out := run(t, e, spec, args); out == "" {
			t.Errorf("%q prints nothing", args)
		}
	}
}

// run runs a program, which must succeed, and returns its output.
func run(t *testing.T, e engine.Engine, spec engine.Spec, args []string) string {
	t.Helper()
	var out, complaint bytes.Buffer
	spec.Process = engine.Process{Args: args, Stdout: &out, Stderr: &complaint}
	c := enginetest.Running(t, e, spec)
	exit, err := c.Wait(t.Context())
	if err := c.Delete(t.Context()); err != nil { // after that the output is complete
		t.Error(err)
	}
	if err != nil || !exit.OK() {
		t.Errorf("%q: %v, %v, output %q and %q", args, exit, err, out.String(), complaint.String())
	}
	return out.String()
}

// pulled publishes an image for the duration of the test, and pulls it.
func pulled(t *testing.T, s engine.Session, e engine.Engine, name string, img v1.Image) string {
	t.Helper()
	ref, err := s.Registry.Publish(t.Context(), name, img)
	must.Do(t, err)
	t.Cleanup(func() { s.Registry.Forget(ref) })
	p, ok := e.(engine.Puller)
	if !ok {
		t.Fatalf("%s does not pull", e.Info().Target)
	}
	must.Do(t, p.Pull(t.Context(), ref))
	return ref
}
