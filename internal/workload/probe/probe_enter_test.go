package probe_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/image"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

func needRoot(t *testing.T, purpose string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to " + purpose)
	}
}

// rootfs writes the image's root file system to a directory that every user can reach.
func rootfs(t *testing.T) string {
	t.Helper()
	parent := t.TempDir()
	// Another user may pass the directory, and the directory above it is the test's too.
	must.Do(t, os.Chmod(parent, 0o755), os.Chmod(filepath.Dir(parent), 0o755))
	dir := filepath.Join(parent, "rootfs")
	if err := image.WriteRootfs(t.Context(), dir); err != nil {
		t.Fatal(err) // the error has the command that builds the probe
	}
	return dir
}

// enter gives the command that runs argv in root.
func enter(t *testing.T, root string, options []string, argv ...string) *exec.Cmd {
	t.Helper()
	args := append([]string{"enter", "--root", root}, options...)
	args = append(append(args, "--"), argv...)
	return exec.CommandContext(t.Context(), filepath.Join(root, "probe"), args...)
}

// gate gives a command descriptors 3 and 4. Closing them is the caller's.
func gate(t *testing.T, cmd *exec.Cmd) (ready io.ReadCloser, open io.WriteCloser) {
	t.Helper()
	readyR, readyW, err := os.Pipe()
	must.Do(t, err)
	goR, goW, err := os.Pipe()
	must.Do(t, err)
	cmd.ExtraFiles = []*os.File{readyW, goR}
	must.Do(t, cmd.Start())
	must.Do(t, errors.Join(readyW.Close(), goR.Close()))
	return readyR, goW
}

// pass waits until all is prepared, opens the gate, and gives what comes over
// descriptor 3 after that.
func pass(t *testing.T, ready io.ReadCloser, open io.WriteCloser) string {
	t.Helper()
	if _, err := io.ReadFull(ready, make([]byte, 1)); err != nil {
		t.Fatalf("wait until all is prepared: %v", err)
	}
	_, err := open.Write([]byte{'g'})
	must.Do(t, err)
	rest, err := io.ReadAll(ready)
	must.Do(t, errors.Join(err, ready.Close(), open.Close()))
	return string(rest)
}

func TestProbeEnterGate(t *testing.T) {
	needRoot(t, "change the root directory")
	root := rootfs(t)

	t.Run("opened", func(t *testing.T) {
		cmd := enter(t, root, []string{"--gate"}, probe.Ready()...)
		stdout, err := cmd.StdoutPipe()
		must.Do(t, err)
		ready, open := gate(t, cmd)
		if rest := pass(t, ready, open); rest != "" {
			t.Errorf("%q comes over descriptor 3 when the program runs", rest)
		}
		line := make([]byte, len(probe.ReadyLine)+1)
		if _, err := io.ReadFull(stdout, line); err != nil || string(line) != probe.ReadyLine+"\n" {
			t.Errorf("first line %q, %v", line, err)
		}
		for _, fd := range []string{"3", "4"} {
			if _, err := os.Lstat("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/fd/" + fd); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the program has inherited descriptor %s (%v)", fd, err)
			}
		}
		wantTermination(t, cmd)
	})
	t.Run("given up", func(t *testing.T) {
		cmd := enter(t, root, []string{"--gate"}, probe.Ready()...)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		ready, open := gate(t, cmd)
		must.Do(t, open.Close())
		if text, err := io.ReadAll(ready); err != nil || string(text) != "c" {
			t.Errorf("%q, %v over descriptor 3, want c", text, err)
		}
		if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 125 || stderr.Len() > 0 {
			t.Errorf("%v, %q; want code 125 and silence", err, &stderr)
		}
	})
	t.Run("no such program", func(t *testing.T) {
		cmd := enter(t, root, []string{"--gate"}, "/missing")
		var stderr strings.Builder
		cmd.Stderr = &stderr
		ready, open := gate(t, cmd)
		if rest := pass(t, ready, open); rest != "e" {
			t.Errorf("%q over descriptor 3 when the program cannot run, want e", rest)
		}
		if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 127 || stderr.String() != "enter: run /missing: ENOENT (2)\n" {
			t.Errorf("%v, %q; want code 127", err, &stderr)
		}
	})
	t.Run("no descriptors", func(t *testing.T) {
		got := run(t, enter(t, root, []string{"--gate"}, probe.Ready()...))
		if got.code != 126 || got.stderr != "enter: write to descriptor 3: EBADF (9)\n" {
			t.Errorf("%+v, want code 126", got)
		}
	})
}

func TestProbeEnterMounts(t *testing.T) {
	needRoot(t, "change the root directory")
	root := rootfs(t)
	files := func(dir string) []string { return []string{probe.Path, "files", "--dir", dir, "--ms", "1"} }
	unwritable := t.TempDir()
	tests := []struct {
		name    string
		options []string
		argv    []string
		code    int
		stderr  string
	}{
		{"a program of the new root alone", nil, []string{probe.Path, "exit", "0"}, 0, ""},
		{"system", []string{"--system"}, []string{probe.Path, "latency", "--ms", "1"}, 0, ""},
		{"no system", nil, []string{probe.Path, "latency", "--ms", "1"}, 1, "latency: open /dev/zero: ENOENT (2)\n"},
		{"bind", []string{"--read-only", "--bind", t.TempDir() + ":/data"}, files("/data"), 0, ""},
		{"two tmpfs", []string{"--read-only", "--tmpfs", "/tmp", "--tmpfs", "/data"}, files("/data"), 0, ""},
		{"tmpfs over bind", []string{"--bind", unwritable + ":/data:ro", "--tmpfs", "/data"}, files("/data"), 0, ""},
		{"bind over tmpfs", []string{"--tmpfs", "/data", "--bind", unwritable + ":/data:ro"}, files("/data"), 1, "files: make working directory touchstone-files: EROFS (30)\n"},
		{"no target of tmpfs", []string{"--tmpfs", "/missing"}, files("/"), 126, "enter: mount a tmpfs in the new root at /missing: ENOENT (2)\n"},
		{"no target", []string{"--bind", t.TempDir() + ":/missing"}, files("/"), 126, "enter: mount in the new root at /missing: ENOENT (2)\n"},
		{"no source", []string{"--bind", "/missing:/data"}, files("/"), 126, "enter: bind (Linux 5.2 or later is needed) /missing: ENOENT (2)\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := run(t, enter(t, root, test.options, test.argv...))
			if got.code != test.code || got.stderr != test.stderr {
				t.Errorf("code %d, %q; want %d, %q", got.code, got.stderr, test.code, test.stderr)
			}
		})
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(mounts), root) {
		t.Errorf("mounts have come back to the host (%v): %s", err, mounts)
	}
}

// A link in the new root must not lead a mount to the host.
func TestProbeEnterFollowsNoLinkOut(t *testing.T) {
	needRoot(t, "change the root directory")
	root, target := rootfs(t), t.TempDir()
	data := filepath.Join(root, "data")
	must.Do(t, errors.Join(os.Remove(data), os.Symlink(target, data)))
	got := run(t, enter(t, root, []string{"--bind", t.TempDir() + ":/data"}, probe.Exit(0)...))
	if want := "enter: mount in the new root at /data: ENOENT (2)\n"; got.code != 126 || got.stderr != want {
		t.Errorf("%+v, want code 126 and %q", got, want)
	}
}

func TestProbeEnterFails(t *testing.T) {
	needRoot(t, "change the root directory")
	root := rootfs(t)
	tests := []struct {
		name    string
		options []string
		code    int
		want    string
	}{
		{"no root", []string{"--root", "/missing"}, 126, "enter: change the root to /missing: ENOENT (2)"},
		{"no cgroup", []string{"--cgroup", "/missing/cgroup.procs"}, 126, "enter: open /missing/cgroup.procs: ENOENT (2)"},
		{"no network", []string{"--netns", "/missing"}, 126, "enter: open the network namespace /missing: ENOENT (2)"},
		{"another namespace", []string{"--netns", "/proc/self/ns/uts"}, 126, "enter: join the network namespace /proc/self/ns/uts: EINVAL (22)"},
		{"no such CPU", []string{"--cpus", "8191"}, 126, "enter: stay on the CPUs 8191: EINVAL (22)"},
		{"too large a CPU", []string{"--cpus", "0-8192"}, 2, "--cpus must be a list like 0-3,6, not 0-8192"},
		{"bind of one", []string{"--bind", "/tmp"}, 2, "--bind must be SRC:DST or SRC:DST:ro"},
		{"bind of four", []string{"--bind", "/tmp:/data:ro:x"}, 2, "has too many parts"},
		{"bind to a relative path", []string{"--bind", "/tmp:data"}, 2, "with DST from /"},
		{"too many binds", strings.Fields(strings.Repeat("--bind /tmp:/data ", 33)), 2, "too many of --bind"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := run(t, enter(t, root, test.options, probe.Exit(0)...))
			if got.code != test.code || !strings.Contains(got.stderr, test.want) {
				t.Errorf("%+v, want code %d and %q", got, test.code, test.want)
			}
		})
	}
}

// A cgroup is joined by writing "0" to its file, before all else.
//
// Invariant native-cgroup.
func TestProbeEnterJoinsCgroups(t *testing.T) {
	needRoot(t, "change the root directory")
	groups := []string{filepath.Join(t.TempDir(), "cgroup.procs"), filepath.Join(t.TempDir(), "tasks")}
	var options []string
	for _, file := range groups {
		must.Do(t, os.WriteFile(file, nil, 0o644))
		options = append(options, "--cgroup", file)
	}
	if got := run(t, enter(t, rootfs(t), options, probe.Exit(3)...)); got != (result{code: 3}) {
		t.Errorf("%+v", got)
	}
	for _, file := range groups {
		if content, err := os.ReadFile(file); err != nil || string(content) != "0" {
			t.Errorf("%q, %v in %s, want 0", content, err, filepath.Base(file))
		}
	}
}

// Without root, a user namespace gives the right to do the same.
func TestProbeEnterWithoutRoot(t *testing.T) {
	root, data := rootfs(t), t.TempDir()
	argv := []string{probe.Path, "files", "--dir", "/data", "--ms", "1"}
	cmd := enter(t, root, []string{"--userns", "--system", "--read-only", "--tmpfs", "/tmp", "--bind", data + ":/data"}, argv...)
	uid, gid := os.Geteuid(), os.Getegid()
	if uid == 0 {
		const nobody = 65534
		uid, gid = nobody, nobody
		must.Do(t, errors.Join(os.Chown(data, nobody, nobody), os.Chmod(filepath.Dir(data), 0o755)))
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID,
		UidMappings: []syscall.SysProcIDMap{{HostID: uid, Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: gid, Size: 1}},
		Credential: &syscall.Credential{NoSetGroups: true}, // root of the namespace
	}
	stdout, err := cmd.StdoutPipe()
	must.Do(t, err)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); errors.Is(err, syscall.EPERM) {
		t.Skipf("this host does not let users make user namespaces: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(stdout)
	if err := errors.Join(err, cmd.Wait()); err != nil {
		t.Errorf("%v: %s", err, &stderr)
	}
	if _, err := probe.Parse(text); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(root, "data", "touchstone-files")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the bind is not in the program's root: %v", err)
	}
}
