package enginetest

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

// markVariable marks the process of a container for HostStatus.
const markVariable = "TOUCHSTONE_TEST"

// Ready starts a container, and waits for the first byte of its program. HostStatus finds its process.
func Ready(t *testing.T, e engine.Engine, spec engine.Spec) engine.Container {
	t.Helper()
	in, out := io.Pipe()
	spec.Process.Stdout = out
	spec.Process.Env = append(spec.Process.Env, markVariable+"="+spec.ID)
	c := Running(t, e, spec)
	if _, err := io.ReadFull(in, make([]byte, 1)); err != nil {
		t.Fatalf("read the output of container %s: %v", spec.ID, err)
	}
	go func() { _, _ = io.Copy(io.Discard, in) }()
	return c
}

// HostStatus returns the fields of /proc/PID/status of the process of a container that Ready has started, as the host sees it. It is
// nil for a container whose process is none of the host's.
func HostStatus(t *testing.T, id string) map[string]string {
	t.Helper()
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range environments {
		environment, _ := os.ReadFile(file) // the process may have exited
		if !bytes.Contains(environment, []byte(markVariable+"="+id+"\x00")) {
			continue
		}
		status, err := os.ReadFile(filepath.Join(filepath.Dir(file), "status"))
		if err != nil {
			t.Fatal(err)
		}
		fields := map[string]string{}
		for line := range strings.Lines(string(status)) {
			name, value, _ := strings.Cut(line, ":")
			fields[name] = strings.TrimSpace(value)
		}
		return fields
	}
	return nil
}

// Seccomp checks the filters of a target for each setting of a plan. byEngine reports whether the engine has a filter without the
// setting. The kernel shows a filter as mode 2 in the status of the process.
func Seccomp(t *testing.T, d Opener, name string, s engine.Session, byEngine bool) {
	t.Helper()
	own, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(own), "\nSeccomp:\t0\n") {
		t.Skip("this process has a seccomp filter itself, which its containers inherit")
	}
	for _, c := range []struct {
		set    engine.Seccomp
		filter bool
	}{{engine.EnginesSeccomp, byEngine}, {engine.DefaultSeccomp, true}, {engine.Unconfined, false}} {
		t.Run(cmp.Or(string(c.set), "unset"), func(t *testing.T) { // a daemon may keep the setting of its first target
			s.Seccomp = c.set
			e := Open(t, d, name, s)
			spec := Spec(s, "seccomp-"+string(c.set)+"-x")
			Ready(t, e, spec)
			info := e.Info()
			want := map[bool]string{true: "2", false: "0"}[c.filter && info.Isolation != engine.NoIsolation]
			status := HostStatus(t, spec.ID)
			shared := info.Isolation == engine.SharedKernel || info.Isolation == engine.NoIsolation
			if status["Seccomp"] != want && (shared || status != nil) {
				t.Errorf("the process has the seccomp mode %q, want %s", status["Seccomp"], want)
			}
			condition := string(c.set)
			switch {
			case info.Isolation == engine.NoIsolation && condition != "":
				condition = string(engine.Unconfined)
			case c.set == engine.DefaultSeccomp && !shared:
				condition += ", without effect"
			}
			got, has := info.Conditions[engine.SeccompCondition]
			if has != (c.set != engine.EnginesSeccomp) || !strings.HasPrefix(got, condition) {
				t.Errorf("the condition is %q, want %q", got, condition)
			}
		})
	}
}

// graceOfTest is the grace period in Pods.
const graceOfTest = 2 * time.Second

// Pods checks the PID namespace and the grace period of pods. Its program has no handler for SIGTERM, so it ignores the signal as the first
// process of a PID namespace, and ends by it as another process. gVisor does not protect the first process.
func Pods(t *testing.T, d Opener, name string, s engine.Session) {
	t.Helper()
	for n, c := range []struct {
		pods  engine.Pods
		exit  syscall.Signal
		least time.Duration // from the kill to the exit
	}{
		{engine.Pods{}, syscall.SIGKILL, 0},
		{engine.Pods{Grace: graceOfTest}, syscall.SIGKILL, graceOfTest},
		{engine.Pods{SharePIDs: true, Grace: graceOfTest}, syscall.SIGTERM, 0},
	} {
		s.Pods = c.pods
		e := Open(t, d, name, s)
		spec := Spec(s, fmt.Sprintf("pods-%d", n))
		spec.Process.Args = []string{workload.Probe, "stream", "--mib", "1", "--ms", "600000", "--lines"}
		b := Ready(t, e, spec)
		// The last number is the ID in the innermost namespace.
		if ids := strings.Fields(HostStatus(t, spec.ID)["NSpid"]); len(ids) > 0 {
			if first := ids[len(ids)-1] == "1"; first == c.pods.SharePIDs {
				t.Errorf("%s with %+v: the process has the IDs %v", name, c.pods, ids)
			}
		} else if e.Info().Isolation == engine.SharedKernel {
			t.Errorf("%s: the process is not found on the host", name)
		}
		if e.Info().Isolation == engine.UserKernel && (c.pods.Grace > 0 || d.(engine.Driver).Describe().Name == "crio") { // CRI-O always begins with SIGTERM
			c.exit, c.least = syscall.SIGTERM, 0
		}
		began := time.Now()
		if err := b.Kill(t.Context(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		exit, err := b.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		took := time.Since(began)
		if exit.Signal != c.exit || took < c.least {
			t.Errorf("%s with %+v: the program ended with %v after %v, want signal %d after at least %v", name, c.pods, exit, took, c.exit, c.least)
		}
		t.Logf("%s with %+v: %v after %v, conditions %v", name, c.pods, exit, took, e.Info().Conditions)
		if conditions := len(e.Info().Conditions); (conditions == 0) != (c.pods == engine.Pods{}) {
			t.Errorf("%s with %+v has %d conditions", name, c.pods, conditions)
		}
		if err := b.Delete(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
