package trace

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/thread"
)

// Each missing part of the function tracer has a reason of its own, with a remedy.
func TestFunctionTracer(t *testing.T) {
	const dir = "sys/kernel/tracing"
	for name, tt := range map[string]struct {
		files  map[string]string
		want   Reason
		remedy string
	}{
		"not mounted": {nil, NoTracefs, "mount -t tracefs"},
		"not built":   {map[string]string{dir + "/available_tracers": "blk nop\n"}, NoFunctionTracer, "CONFIG_FUNCTION_TRACER"},
		"no list":     {map[string]string{dir + "/available_tracers": "blk function nop\n"}, Unexplained, ""},
		"works":       {map[string]string{dir + "/available_tracers": "blk function nop\n", dir + "/available_filter_functions": "vfs_read\n"}, "", ""},
		"in debugfs":  {map[string]string{"sys/kernel/debug/tracing/available_tracers": "function\n", "sys/kernel/debug/tracing/available_filter_functions": ""}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := machine{t.TempDir(), "6.1.0"}
			for file, content := range tt.files {
				path := filepath.Join(m.root, file)
				must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600))
			}
			err := m.checkFunctions()
			reason, ok := errors.AsType[*Error](err)
			if tt.want == "" && err != nil || tt.want != "" && (!ok || reason.Reason != tt.want || reason.Remedy == "" || !strings.Contains(err.Error(), tt.remedy)) {
				t.Errorf("%v, want %q with %q", err, tt.want, tt.remedy)
			}
		})
	}
}

// A file that only root may read is no lockdown.
func TestFunctionTracerWithoutRights(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to lose its rights")
	}
	m := machine{t.TempDir(), "6.1.0"}
	dir := filepath.Join(m.root, "sys/kernel/tracing")
	must.Do(t, os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "available_tracers"), []byte("function\n"), 0o600), os.WriteFile(filepath.Join(dir, "available_filter_functions"), nil, 0o000))
	done := make(chan error, 2)
	thread.Go(func() {
		done <- dropCapabilities()
		done <- m.checkFunctions()
	})
	must.Do(t, <-done)
	err := <-done
	if reason, ok := errors.AsType[*Error](err); !ok || reason.Reason != NoCapability {
		t.Errorf("the reason is not %q: %v", NoCapability, err)
	}
}
