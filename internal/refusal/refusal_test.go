package refusal

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestSystemCall(t *testing.T) {
	for _, tt := range []struct {
		name, since string
		err         error
		filtered    bool
		want        []string // parts of the message
		not         string
	}{
		{"clone3", "5.7", unix.EPERM, true, []string{"clone3: ", "the seccomp filter of the container", "--security-opt"}, "Linux 5.7"},
		{"clone3", "5.7", unix.ENOSYS, true, []string{"clone3: ", "the seccomp filter of the container"}, "Linux 5.7"},
		{"pidfd_open", "5.3", unix.EPERM, false, []string{"pidfd_open: operation not permitted", "a seccomp filter, a security module"}, "root"},
		{"pidfd_send_signal", "5.1", unix.EACCES, false, []string{"pidfd_send_signal: ", "a seccomp filter"}, "root"},
		{"open_tree", "5.2", unix.ENOSYS, false, []string{"open_tree: function not implemented", "use Linux 5.2 or later"}, "root"},
		{"clone3", "5.7", unix.E2BIG, false, []string{"clone3: ", "use Linux 5.7 or later"}, "root"},
	} {
		err := systemCall(tt.name, tt.since, tt.err, tt.filtered)
		for _, part := range tt.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s, %v: %q lacks %q", tt.name, tt.err, err, part)
			}
		}
		if strings.Contains(err.Error(), tt.not) {
			t.Errorf("%s, %v: %q has %q", tt.name, tt.err, err, tt.not)
		}
		if !errors.Is(fmt.Errorf("start: %w", err), tt.err) {
			t.Errorf("%v loses the kernel's error", err)
		}
	}
}

func TestRefused(t *testing.T) {
	for err, want := range map[error]bool{
		unix.ENOSYS: true, unix.EPERM: true, unix.EACCES: true, unix.ESRCH: false, unix.EINVAL: false, unix.EMFILE: false, nil: false,
	} {
		if got := Refused(err); got != want {
			t.Errorf("Refused(%v) = %v", err, got)
		}
	}
}

// Messages of runtimes under a filter, as they were seen.
//
// Invariant refused-calls.
func TestSuspect(t *testing.T) {
	pidfd, clone := SystemCall("pidfd_open", "5.3", unix.EPERM), SystemCall("clone3", "5.7", unix.EPERM)
	for message, want := range map[string]string{
		"crun: pidfd_open: Operation not permitted":                            "pidfd_open is refused to Touchstone too",
		"failed to clone3: ENOSYS":                                             "clone3 is refused to Touchstone too",
		"runtime/cgo: pthread_create failed: Operation not permitted\nSIGABRT": "the reason may be pidfd_open or clone3",
		"open /run/x: permission denied":                                       "the reason may be pidfd_open or clone3",
		"no such file or directory":                                            "",
	} {
		if got := Suspect(message, []*Error{pidfd, clone}); !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("%q: %q, want %q", message, got, want)
		}
		if got := Suspect(message, []*Error{SystemCall("clone3", "5.7", unix.ENOSYS)}); strings.Contains(got, "may be") {
			t.Errorf("%q on a kernel without clone3: %q", message, got)
		}
		if got := Suspect(message, nil); got != "" {
			t.Errorf("%q without a refused call: %q", message, got)
		}
	}
}

// root is never advised to become root.
//
// Invariant refused-calls.
func TestRights(t *testing.T) {
	const user = "run as root, or as a member of the group kvm"
	if got := rights(1000, user); got != user {
		t.Errorf("an ordinary user is advised: %s", got)
	}
	if got := rights(0, user); strings.Contains(got, "run as root") || !strings.Contains(got, "--privileged") {
		t.Errorf("root is advised: %s", got)
	}
}
