package trace

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/thread"
	"github.com/touchstone-bench/touchstone/test/record"
)

// Each missing part of the function tracer has a reason of its own, with a remedy.
func TestFunctionTracer(t *testing.T) {
	const dir, debug, list, functions = "sys/kernel/tracing", "sys/kernel/debug/tracing", "/available_filter_functions_addrs", "ffffffff81000000 vfs_read\n"
	const description = "\x00" + manyProbes + "\x00"
	for name, tt := range map[string]struct {
		files  map[string]string
		want   Reason
		remedy string
	}{
		"not mounted":  {map[string]string{types: description}, NoTracefs, "mount -t tracefs"},
		"no BTF":       {map[string]string{dir + "/available_tracers": "function\n"}, NoBTF, "CONFIG_DEBUG_INFO_BTF"},
		"not built":    {map[string]string{types: description, dir + "/available_tracers": "blk nop\n"}, NoFunctionTracer, "CONFIG_FUNCTION_TRACER"},
		"no fprobe":    {map[string]string{types: "\x00vfs_read\x00", dir + "/available_tracers": "blk function nop\n", dir + list: functions}, NoManyProbes, "CONFIG_FPROBE"},
		"no addresses": {map[string]string{types: description, dir + "/available_tracers": "blk function nop\n"}, OldKernel, "Linux 6.5"},
		"broken list":  {map[string]string{types: description, dir + "/available_tracers": "function\n", dir + list: "vfs_read\n"}, Unexplained, ""},
		"works":        {map[string]string{types: description, dir + "/available_tracers": "blk function nop\n", dir + list: functions}, "", ""},
		"in debugfs":   {map[string]string{types: description, debug + "/available_tracers": "function\n", debug + list: functions}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := machine{t.TempDir(), "6.1.0"}
			for file, content := range tt.files {
				path := filepath.Join(m.root, file)
				must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600))
			}
			_, err := m.sites()
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
	dir, btf := filepath.Join(m.root, "sys/kernel/tracing"), filepath.Join(m.root, types)
	must.Do(t, os.MkdirAll(dir, 0o700), os.MkdirAll(filepath.Dir(btf), 0o700), os.WriteFile(btf, []byte("\x00"+manyProbes+"\x00"), 0o600), os.WriteFile(filepath.Join(dir, "available_tracers"), []byte("function\n"), 0o600), os.WriteFile(filepath.Join(dir, "available_filter_functions_addrs"), nil, 0o000))
	done := make(chan error, 2)
	thread.Go(func() {
		done <- dropCapabilities()
		_, err := m.sites()
		done <- err
	})
	must.Do(t, <-done)
	err := <-done
	if reason, ok := errors.AsType[*Error](err); !ok || reason.Reason != NoCapability {
		t.Errorf("the reason is not %q: %v", NoCapability, err)
	}
}

// A process enters functions of the kernel, by subsystem. The tracer's own functions and the work before Attach do not count. Only some kernels allow it: the
// lab's do.
func TestFunctions(t *testing.T) {
	if err := CheckFunctions(); err != nil {
		record.Skip(t, "no functions of the kernel: "+err.Error())
	}
	f, err := StartFunctions(monitor.Target{})
	must.Do(t, err, f.Step("step"))
	run(t, "/bin/true before")
	count, took, err := f.Attach()
	must.Do(t, err)
	run(t, "read line </proc/self/stat")
	counts, err := f.Stop()
	must.Do(t, err)
	t.Logf("%d functions in %v", count, took)
	functions, calls := map[string]int64{}, 0
	for _, c := range counts {
		calls += len(c.Calls)
		maps.Copy(functions, c.Functions)
	}
	if count < 10000 || took <= 0 || calls != 0 || functions["fs/vfs_read"] == 0 || functions["net/sock_sendmsg"] != 0 {
		t.Errorf("%d functions in %v, with %d calls: %v", count, took, calls, functions)
	}
	for name := range functions {
		if strings.Contains(name, "/bpf_") {
			t.Errorf("the tracer counts its own function %s", name)
		}
	}
}
