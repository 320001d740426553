package process_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/process"
)

func allocated(t *testing.T, file *os.File) int64 {
	t.Helper()
	var stat unix.Stat_t
	must.Do(t, unix.Fstat(int(file.Fd()), &stat))
	return stat.Blocks * 512
}

// flood writes 64 MiB to standard output and to standard error, and goes on after an error.
const flood = `yes flood | head -c 33554432; yes flood | head -c 33554432 >&2; exit 3`

// Output of a command takes a limited part of memory, with and without a private mount namespace.
//
// Invariant bounded-logs: The output and the logs of a runtime or a daemon are bounded where they are written.
func TestFloodInBlank(t *testing.T) {
	for name, test := range map[string]struct {
		options process.Options
		most    int64
	}{"mounted": {process.Options{Private: true}, 17 << 20}, "directory": {process.Options{}, 1 << 20}} {
		t.Run(name, func(t *testing.T) {
			if test.options.Private && os.Geteuid() != 0 {
				t.Skip("needs root: makes mounts")
			}
			l := launcher(t, test.options)
			dir := filepath.Join(t.TempDir(), "scratch")
			s, err := l.NewScratch(dir)
			must.Do(t, err)
			file, err := s.Blank()
			must.Do(t, err)
			exit, err := l.Call(t.Context(), shell(flood, file))
			if err != nil || exit.Status.ExitStatus() != 3 {
				t.Errorf("Call() = %+v, %v; want exit code 3", exit, err)
			}
			if size := allocated(t, file); size > test.most {
				t.Errorf("the output takes %d bytes, want at most %d", size, test.most)
			}
			if text := s.Printed(file); len(text) != 1<<20 || !strings.HasPrefix(string(text), "flood\nflood\n") {
				t.Errorf("Printed() returns %d bytes, want 1 MiB", len(text))
			}
			// A later command gets an empty file.
			file, err = s.Blank()
			must.Do(t, err)
			if _, err := l.Call(t.Context(), shell("echo short", file)); err != nil {
				t.Error(err)
			}
			if text := s.Printed(file); string(text) != "short\n" {
				t.Errorf("Printed() = %q after a short output", text)
			}
			must.Do(t, errors.Join(s.Close(), s.Close()))
			if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the directory exists after Close: %v", err)
			}
		})
	}
}

// scratch returns a launcher with a mount namespace of its own, and a scratch directory in it.
func scratch(t *testing.T) (*process.Launcher, *process.Scratch) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes mounts")
	}
	l := launcher(t, process.Options{Private: true})
	s, err := l.NewScratch(filepath.Join(t.TempDir(), "scratch"))
	must.Do(t, err)
	t.Cleanup(func() { must.Do(t, s.Close()) })
	return l, s
}

// A named file in the directory, such as a log, is limited too. This program sees it, and the host does not.
//
// Invariant bounded-logs.
func TestFloodInScratch(t *testing.T) {
	l, s := scratch(t)
	log := filepath.Join(s.Dir(), "log")
	cmd := exec.Command("/bin/sh", "-c", `yes flood | head -c 33554432 >>"$0"; :`, log)
	must.Do(t, l.Run(t.Context(), cmd))
	if info, err := os.Stat(s.Path("log")); err != nil || info.Size() == 0 || info.Size() > 17<<20 {
		t.Errorf("the log: %+v, %v; want at most 17 MiB", info, err)
	}
	if _, err := os.Stat(log); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the host sees the log: %v", err)
	}
}

// A script that opens /dev/stderr again must work.
func TestBlankCanBeReopened(t *testing.T) {
	l, s := scratch(t)
	file, err := s.Blank()
	must.Do(t, err)
	exit, err := l.Call(t.Context(), shell("set -e; echo one >/dev/stderr; echo two >>/dev/stderr", file))
	if err != nil || exit.Status != 0 {
		t.Errorf("Call() = %+v, %v", exit, err)
	}
	if text := s.Printed(file); string(text) != "one\ntwo\n" {
		t.Errorf("Printed() = %q", text)
	}
}
