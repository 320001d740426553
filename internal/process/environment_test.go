package process_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/process"
)

// poison are variables that change programs: Go's runtime, the dynamic linker, the C library, socket activation, clients of
// engines, proxies, the locale, and any other one.
var poison = map[string]string{
	"GOMAXPROCS": "1", "GODEBUG": "gctrace=1", "GOGC": "off", "GOTRACEBACK": "crash",
	"LD_PRELOAD": "/no/such.so", "LD_LIBRARY_PATH": "/no/such", "GLIBC_TUNABLES": "glibc.malloc.arena_max=1", "MALLOC_ARENA_MAX": "1",
	"LISTEN_FDS": "1", "LISTEN_PID": "1", "NOTIFY_SOCKET": "/no/such", "DOCKER_HOST": "tcp://192.0.2.1", "CONTAINER_HOST": "tcp://192.0.2.1",
	"CONTAINERD_NAMESPACE": "poison", "STORAGE_DRIVER": "vfs", "_CONTAINERS_USERNS_CONFIGURED": "done", "RUST_LOG": "trace",
	"http_proxy": "http://192.0.2.1", "NO_PROXY": "*", "LC_ALL": "tr_TR.UTF-8", "TMPDIR": "/no/such", "TOUCHSTONE_ANY": "poison",
}

func setPoison(t *testing.T) {
	t.Helper()
	for name, value := range poison {
		t.Setenv(name, value)
	}
}

// poisoned returns the lines of an environment that come from poison.
func poisoned(text string) []string {
	var found []string
	for line := range strings.Lines(text) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), "=")
		if _, ok := poison[name]; ok {
			found = append(found, name)
		}
	}
	return found
}

// Each way to start a program gives it the clean environment.
//
// Invariant clean-environment: No variable and no open file of the caller reaches a program that Touchstone starts, except a closed list
// (ADR 44).
func TestStartersHaveCleanEnvironment(t *testing.T) {
	dir := t.TempDir() // before TMPDIR changes
	setPoison(t)
	l := launcher(t, process.Options{})
	program := func() (*exec.Cmd, *os.File) {
		file, err := os.Create(filepath.Join(dir, "environment"))
		must.Do(t, err)
		t.Cleanup(func() { _ = file.Close() })
		cmd := exec.CommandContext(t.Context(), "env")
		cmd.Stdout = file
		return cmd, file
	}
	for name, start := range map[string]func(*exec.Cmd, *os.File) error{
		"Run": func(cmd *exec.Cmd, _ *os.File) error { return l.Run(t.Context(), cmd) },
		"Spawn": func(cmd *exec.Cmd, _ *os.File) error {
			p, err := l.Spawn(cmd)
			if err == nil {
				p.Wait()
			}
			return err
		},
		"Start": func(cmd *exec.Cmd, _ *os.File) error {
			done, err := l.Start(cmd)
			if err == nil {
				<-done
			}
			return err
		},
		"Call": func(cmd *exec.Cmd, file *os.File) error {
			_, err := l.Call(t.Context(), process.Program{Args: []string{cmd.Path}, Stdout: file, Stderr: file})
			return err
		},
	} {
		cmd, file := program()
		if err := start(cmd, file); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		text, err := os.ReadFile(file.Name())
		must.Do(t, err)
		if found := poisoned(string(text)); len(found) > 0 {
			t.Errorf("%s passes %q on", name, found)
		}
		for _, variable := range []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")} {
			if !strings.Contains("\n"+string(text), "\n"+variable+"\n") {
				t.Errorf("%s does not pass %s on: %q", name, variable, text)
			}
		}
	}
}

// Invariant clean-environment.
func TestEnvironment(t *testing.T) {
	setPoison(t)
	t.Setenv("PATH", "/a:/b")
	t.Setenv("HOME", "/home/user")
	t.Setenv("XDG_RUNTIME_DIR", "/run/user/1000")
	want := []string{"PATH=/a:/b", "HOME=/data", "TMPDIR=/data/tmp"}
	if os.Geteuid() != 0 {
		want = slices.Insert(want, 2, "XDG_RUNTIME_DIR=/run/user/1000")
	}
	if got := process.Environment("HOME=/root", "TMPDIR=/data/tmp", "HOME=/data"); !slices.Equal(got, want) {
		t.Errorf("Environment() = %q, want %q", got, want)
	}
	download := process.DownloadEnvironment()
	for _, proxy := range []string{"http_proxy=http://192.0.2.1", "NO_PROXY=*"} {
		if !slices.Contains(download, proxy) {
			t.Errorf("DownloadEnvironment() = %q, without %s", download, proxy)
		}
	}
	if found := poisoned(strings.Join(download, "\n")); len(found) != 2 {
		t.Errorf("DownloadEnvironment() has %q", found)
	}
	t.Setenv("PATH", "")
	if got := process.Environment(); !strings.HasPrefix(got[0], "PATH=/usr/local/sbin:") {
		t.Errorf("without PATH, Environment() = %q", got)
	}
}

func TestTuning(t *testing.T) {
	for _, name := range []string{"GOMAXPROCS", "GOGC", "GOMEMLIMIT", "GODEBUG"} {
		t.Setenv(name, "")
	}
	if got := process.Tuning(); got != nil {
		t.Errorf("Tuning() = %q without a variable", got)
	}
	t.Setenv("GOMAXPROCS", "1")
	t.Setenv("GODEBUG", "gctrace=1")
	if got, want := process.Tuning(), []string{"GOMAXPROCS=1", "GODEBUG=gctrace=1"}; !slices.Equal(got, want) {
		t.Errorf("Tuning() = %q, want %q", got, want)
	}
}

// A program does not get the files of this program's caller, such as sockets of LISTEN_FDS.
//
// Invariant clean-environment.
func TestInheritedFilesStayHere(t *testing.T) {
	r, w, err := os.Pipe()
	must.Do(t, err)
	defer func() { _, _ = r.Close(), w.Close() }()
	// As the caller leaves it to this program.
	_, err = unix.FcntlInt(w.Fd(), unix.F_SETFD, 0)
	must.Do(t, err)
	l := launcher(t, process.Options{})
	script := fmt.Sprintf("! [ -e /proc/self/fd/%d ]", w.Fd())
	if err := l.Run(t.Context(), exec.CommandContext(t.Context(), "/bin/sh", "-c", script)); err != nil {
		t.Errorf("a program has an inherited file of this program: %v", err)
	}
}
