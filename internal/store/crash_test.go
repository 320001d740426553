package store_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/store"
)

// childVariable names the function that TestMain calls in a second process of this program.
const childVariable = "TOUCHSTONE_STORE_CHILD"

func TestMain(m *testing.M) {
	switch name := os.Getenv(childVariable); name {
	case "":
		os.Exit(m.Run())
	case "append":
		exit(appendForever(context.Background(), os.Args[1]))
	case "mounts":
		// The test itself runs in the child, where it may mount.
		if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
			exit(fmt.Errorf("make mounts private: %w", err))
		}
		os.Exit(m.Run())
	default:
		exit(fmt.Errorf("there is no child %q", name))
	}
}

func exit(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// appendForever appends trials to run "a" and prints the seq of each recorded trial.
func appendForever(ctx context.Context, path string) error {
	s, err := store.Open(ctx, path)
	if err != nil {
		return err
	}
	run, err := s.Run(ctx, "a")
	if err != nil {
		return err
	}
	for seq := len(run.Trials) + 1; ; seq++ {
		if err := s.Append(ctx, "a", okTrial(seq)); err != nil {
			return err
		}
		if _, err := fmt.Println(seq); err != nil {
			return err
		}
	}
}

// TestKilledWriterLosesNoTrial kills a writing process several times on the same file. Every acknowledged trial is in the file, and
// every trial in the file is whole.
//
// Invariant trials-recorded: Every trial is recorded, however it ends, before the next begins.
func TestKilledWriterLosesNoTrial(t *testing.T) {
	path := newFile(t, 0)
	for _, trials := range []int{1, 2, 7, 30, 150} {
		ack := killAfter(t, path, trials)
		s, err := store.Open(t.Context(), path)
		must.Do(t, err)
		run, err := s.Run(t.Context(), "a")
		must.Do(t, err)
		last := run.Trials[len(run.Trials)-1].Seq
		// The kill may have come between the commit and its acknowledgement.
		if last != ack && last != ack+1 {
			t.Errorf("the last trial is %d, and %d was recorded last", last, ack)
		}
		checkTrials(t, s, "a", last)
		closeStore(t, s)
	}
}

// killAfter kills a writing process after some recorded trials, at an arbitrary moment. It returns the seq of the last acknowledged
// trial.
func killAfter(t *testing.T, path string, trials int) int {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0], path)
	child.Env = append(os.Environ(), childVariable+"=append")
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	must.Do(t, err)
	must.Do(t, child.Start())
	last := 0
	read := func(lines *bufio.Reader) error {
		line, err := lines.ReadString('\n')
		if err == nil {
			last, err = strconv.Atoi(strings.TrimSpace(line))
		}
		return err
	}
	lines := bufio.NewReader(out)
	for range trials {
		must.Do(t, read(lines))
	}
	must.Do(t, child.Process.Kill())
	for err == nil {
		err = read(lines)
	}
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := child.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the child was not killed: %v", err)
	}
	return last
}

// inMountNamespace runs the calling test in a child process that may mount. It reports whether the current process is this child.
func inMountNamespace(t *testing.T) bool {
	t.Helper()
	if os.Getenv(childVariable) != "" {
		return true
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	child.Env = append(os.Environ(), childVariable+"=mounts")
	child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		child.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		child.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		child.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	out, err := child.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		t.Errorf("in a mount namespace: %v\n%s", err, out)
	case err != nil:
		t.Skipf("mount namespaces are not available: %v", err)
	case !strings.Contains(string(out), "--- PASS: "+t.Name()):
		t.Errorf("the child did not run the test:\n%s", out)
	}
	return false
}

func mount(t *testing.T, source, dir, kind string, flags uintptr, data string) {
	t.Helper()
	if err := syscall.Mount(source, dir, kind, flags, data); err != nil {
		t.Fatalf("mount %s on %s: %v", kind, dir, err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
}

func TestFullDisk(t *testing.T) {
	if !inMountNamespace(t) {
		return
	}
	dir := t.TempDir()
	mount(t, "tmpfs", dir, "tmpfs", 0, "size=1m,mode=755")
	ballast := filepath.Join(dir, "ballast")
	must.Do(t, os.WriteFile(ballast, make([]byte, 256<<10), 0o600))
	path := filepath.Join(dir, "touchstone.db")
	s, err := store.Open(t.Context(), path)
	must.Do(t, err)
	record(t, s, emptyRun("a", 0), 0)
	n := fill(t, s, "a")
	must.Do(t, os.Remove(ballast))
	must.Do(t, s.Append(t.Context(), "a", okTrial(n+1)))
	checkTrials(t, s, "a", n+1)

	// A file loses nothing when it is closed and opened again on a full disk.
	n++
	for ; err == nil; n++ {
		err = s.Append(t.Context(), "a", okTrial(n+1))
	}
	if !errors.Is(err, store.ErrFull) {
		t.Fatal(err)
	}
	n--
	closeStore(t, s)
	checkTrials(t, openReader(t, path), "a", n)
}

func TestReadOnlyFolder(t *testing.T) {
	if !inMountNamespace(t) {
		return
	}
	dir := t.TempDir()
	path, source := filepath.Join(dir, "touchstone.db"), filepath.Join(dir, "dirty.db")
	s := open(t, path)
	record(t, s, emptyRun("a", 0), 3)
	// A copy made while the log holds the trials equals the files after a kill.
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(path + suffix)
		must.Do(t, err)
		must.Do(t, os.WriteFile(source+suffix, data, 0o600))
	}
	closeStore(t, s)
	mount(t, dir, dir, "", syscall.MS_BIND, "")
	must.Do(t, syscall.Mount("", dir, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))

	for _, path := range []string{path, filepath.Join(dir, "new.db")} {
		if _, err := store.Open(t.Context(), path); !errors.Is(err, store.ErrNotWritable) || !strings.Contains(err.Error(), "folder") {
			t.Errorf("Open in a folder that is read-only: %v", err)
		}
	}
	link := filepath.Join(t.TempDir(), "link.db")
	must.Do(t, os.Symlink(source, link))
	for _, path := range []string{source, link} {
		if _, err := store.OpenReadOnly(t.Context(), path); !errors.Is(err, store.ErrNotWritable) || !strings.Contains(err.Error(), "copy the file") {
			t.Errorf("OpenReadOnly of %s, whose log cannot be read in: %v", filepath.Base(path), err)
		}
	}
	checkTrials(t, openReader(t, path), "a", 3)
}
