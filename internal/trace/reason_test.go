package trace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/thread"
)

// Each cause of a refusal has a reason of its own, with a remedy.
func TestReasons(t *testing.T) {
	const (
		root     = "Name:\tx\nCapEff:\t000001ffffffffff\nSeccomp:\t0\n"
		user     = "Name:\tx\nCapEff:\t0000000000000000\nSeccomp:\t0\n"
		tracing  = "Name:\tx\nCapEff:\t000000c000000000\nSeccomp:\t0\n" // CAP_BPF and CAP_PERFMON
		half     = "Name:\tx\nCapEff:\t0000008000000000\nSeccomp:\t0\n" // CAP_BPF alone
		filtered = "Name:\tx\nCapEff:\t000001ffffffffff\nSeccomp:\t2\n"
	)
	verifier := &ebpf.VerifierError{Cause: unix.EINVAL}
	for _, tt := range []struct {
		name, release, status, lockdown string
		err                             error
		want                            Reason
		remedy                          string
	}{
		{"lockdown", "6.1.0", root, "none integrity [confidentiality]", unix.EPERM, Lockdown, "lockdown=integrity"},
		{"no capability", "6.1.0", user, "[none] integrity confidentiality", unix.EPERM, NoCapability, ""},
		{"half of the capabilities", "6.1.0", half, "", unix.EACCES, NoCapability, ""},
		{"filter", "6.1.0", filtered, "", unix.EPERM, Filtered, "--privileged"},
		{"filter that hides", "6.1.0", filtered, "", unix.ENOSYS, Filtered, "--privileged"},
		{"no bpf", "6.1.0", root, "", unix.ENOSYS, NoBPF, "CONFIG_BPF_SYSCALL"},
		{"verifier", "5.9.0", root, "", fmt.Errorf("load: %w", verifier), Verifier, "doctor"},
		{"denied in spite of rights", "6.1.0", tracing, "", unix.EPERM, Unexplained, "security module"},
		{"another error", "6.1.0", "", "", unix.ENOMEM, Unexplained, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := machine{t.TempDir(), tt.release}
			for name, content := range map[string]string{"proc/thread-self/status": tt.status, "sys/kernel/security/lockdown": tt.lockdown} {
				file := filepath.Join(m.root, name)
				must.Do(t, os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(content), 0o600))
			}
			err := m.explain(tt.err)
			if err.Reason != tt.want || err.Cause == "" || err.Remedy == "" || !strings.Contains(err.Error(), tt.remedy) {
				t.Errorf("%q (%s), want %s with %q", err, err.Reason, tt.want, tt.remedy)
			}
			if !errors.Is(err, tt.err) {
				t.Errorf("%v loses the kernel's error", err)
			}
		})
	}
}

// A kernel without a part is refused before anything is loaded.
func TestMissingParts(t *testing.T) {
	for _, tt := range []struct {
		release string
		hasBTF  bool
		want    Reason
	}{
		{"5.4.0-150-generic", true, OldKernel},
		{"4.19.0", true, OldKernel},
		{"5.8.0", false, NoBTF},
		{"6.18.44-fc", true, ""},
		{"10.0", true, ""},
		{"strange", true, ""},
	} {
		m := machine{t.TempDir(), tt.release}
		if tt.hasBTF {
			must.Do(t, os.MkdirAll(filepath.Join(m.root, types), 0o700))
		}
		err := m.check()
		reason, ok := errors.AsType[*Error](err)
		if tt.want == "" && err != nil || tt.want != "" && (!ok || reason.Reason != tt.want || m.explain(err).Reason != tt.want) {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}

// The kernel's own refusals have their reasons: for a thread without capabilities, and for one with a filter.
func TestRealRefusals(t *testing.T) {
	_ = start(t, monitor.Target{}).close() // skips the test on a machine that cannot trace
	for want, limit := range map[Reason]func() error{NoCapability: dropCapabilities, Filtered: filterBPF} {
		done := make(chan error, 2)
		thread.Go(func() {
			done <- limit()
			done <- Check()
		})
		must.Do(t, <-done)
		err := <-done
		if reason, ok := errors.AsType[*Error](err); !ok || reason.Reason != want {
			t.Errorf("the reason is not %q: %v", want, err)
		}
	}
}

// dropCapabilities removes all capabilities of the thread.
func dropCapabilities() error {
	return unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &make([]unix.CapUserData, 2)[0])
}

// filterBPF makes the system call bpf fail on the thread.
func filterBPF() error {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // the number of the call is at offset 0
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.SYS_BPF},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
}
