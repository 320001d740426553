package oci

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// The logs were written by runc 1.1.5, crun 1.8.1, youki 0.7.0 and a runsc of 2026.
func TestLastError(t *testing.T) {
	for name, want := range map[string]string{
		"runc":    `runc create failed: unable to start container process: exec: "/nope": stat /nope: no such file or directory`,
		"crun":    "executable file `/nope` not found in $PATH: No such file or directory",
		"youki":   "error in executing command: container state directory does not exist\n\nCaused by:\n    0: oci spec error",
		"runsc":   `creating container: cannot create gofer process: creating gofer filestore files: failed to open directory "/rootfs": no such file or directory`,
		"warning": "",
		"missing": "",
	} {
		if got := lastError(filepath.Join("testdata", "log", name+".json")); got != want {
			t.Errorf("last error of %s = %q, want %q", name, got, want)
		}
	}
}

func TestLastErrorOfOtherText(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "",
		"panic: out of memory\n":    "",
		"null\n[]\n42\n\"error\"\n": "",
		`{"level":"error","msg":"a"}` + "\ngarbage\n" + `{"level":"info","msg":"b"}`:                      "a",
		`{"level":"fatal","msg":"a"}` + "\n" + strings.Repeat("x", 1<<20):                                 "a",
		`{"level":"error","msg":7}` + "\n" + `{"level":"error","msg":"b"}` + "\n" + `{"level":"error","m`: "b",
	} {
		file := filepath.Join(t.TempDir(), "log")
		must.Do(t, os.WriteFile(file, []byte(text), 0o600))
		if got := lastError(file); got != want {
			t.Errorf("last error of %.60q = %q, want %q", text, got, want)
		}
	}
}

func TestExitOf(t *testing.T) {
	for status, want := range map[syscall.WaitStatus]engine.Exit{
		0:        {},
		128 << 8: {Code: 128}, // runsc's own failure
		255 << 8: {Code: 255},
		9:        {Signal: syscall.SIGKILL},
		6 | 0x80: {Signal: syscall.SIGABRT}, // with a core
		137 << 8: {Signal: syscall.SIGKILL}, // a sandbox speaks as a shell does
		192 << 8: {Signal: 64},
		193 << 8: {Code: 193},
	} {
		if got := exitOf(status); got != want {
			t.Errorf("exitOf(%#x) = %v, want %v", int(status), got, want)
		}
	}
}
