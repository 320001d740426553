package enginetest

import (
	"bytes"
	"cmp"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/must"
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
	must.Do(t, err)
	for _, file := range environments {
		environment, _ := os.ReadFile(file) // the process may have exited
		if !bytes.Contains(environment, []byte(markVariable+"="+id+"\x00")) {
			continue
		}
		status, err := os.ReadFile(filepath.Join(filepath.Dir(file), "status"))
		must.Do(t, err)
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
	status, err := os.ReadFile("/proc/self/status")
	must.Do(t, err)
	if !strings.Contains(string(status), "\nSeccomp:\t0\n") {
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
			sharesKernel := info.Isolation == engine.SharedKernel || info.Isolation == engine.NoIsolation
			if status["Seccomp"] != want && (sharesKernel || status != nil) {
				t.Errorf("the process has the seccomp mode %q, want %s", status["Seccomp"], want)
			}
			condition := string(c.set)
			switch {
			case info.Isolation == engine.NoIsolation && condition != "":
				condition = string(engine.Unconfined)
			case c.set == engine.DefaultSeccomp && !sharesKernel:
				condition += ", without effect"
			}
			got, has := info.Conditions[engine.SeccompCondition]
			if has != (c.set != engine.EnginesSeccomp) || !strings.HasPrefix(got, condition) {
				t.Errorf("the condition is %q, want %q", got, condition)
			}
		})
	}
}
