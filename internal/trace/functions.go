package trace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/refusal"
)

// The reasons why a kernel traces no functions of its own.
const (
	NoTracefs        Reason = "no tracefs"         // it is not mounted
	NoFunctionTracer Reason = "no function tracer" // the kernel was built without it
)

// CheckFunctions returns an *Error if the kernel does not trace its functions for this process. It only reads, because the function tracer may have another
// user. Touchstone counts no functions: see docs/benchmarks/surface.md.
func CheckFunctions() error { return thisMachine().checkFunctions() }

func (m machine) checkFunctions() error {
	dir := ""
	for _, path := range []string{"sys/kernel/tracing", "sys/kernel/debug/tracing"} {
		if _, err := os.Stat(filepath.Join(m.root, path, "available_tracers")); err == nil {
			dir = path
			break
		} else if errors.Is(err, fs.ErrPermission) {
			return &Error{NoCapability, "this process may not read /" + path, refusal.Rights("run as root"), err}
		}
	}
	if dir == "" {
		return &Error{NoTracefs, "no tracefs is mounted at /sys/kernel/tracing", "mount it: mount -t tracefs tracefs /sys/kernel/tracing", fs.ErrNotExist}
	}
	if !slices.Contains(strings.Fields(m.read(filepath.Join(dir, "available_tracers"))), "function") {
		return &Error{NoFunctionTracer, "the kernel " + m.release + " has no function tracer", "use a kernel with CONFIG_FUNCTION_TRACER=y", unix.ENOSYS}
	}
	list := filepath.Join(dir, "available_filter_functions")
	f, err := os.Open(filepath.Join(m.root, list))
	switch {
	case err == nil:
		return f.Close()
	case errors.Is(err, unix.EPERM):
		return &Error{Lockdown, fmt.Sprintf("the kernel refuses its function tracer: /%s: %v, with lockdown %q", list, unix.EPERM, strings.TrimSpace(m.read("sys/kernel/security/lockdown"))), "boot a kernel without lockdown and without a filter of tracefs", err}
	case errors.Is(err, fs.ErrPermission):
		return &Error{NoCapability, "this process may not read /" + list, refusal.Rights("run as root"), err}
	}
	return &Error{Unexplained, fmt.Sprintf("the function tracer of the kernel %s cannot be read: %v", m.release, err), refusal.Forbidden, err}
}
