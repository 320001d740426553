package enginetest

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/image"
	"github.com/touchstone-bench/touchstone/internal/image/debian"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/process"
	"github.com/touchstone-bench/touchstone/test/record"
)

// Session makes a session for real engines as in a run: directories, the probe's root file system, cgroups and a launcher. The
// end of the test removes them. The test fails if containers have left something.
func Session(t *testing.T, launcherOptions func(*cgroup.Hierarchy) process.Options) engine.Session {
	t.Helper()
	if testing.Short() {
		t.Skip("makes containers on this host; -short skips that")
	}
	groups, err := cgroup.Detect("/")
	must.Do(t, err)
	if groups.Base() == "" {
		if os.Geteuid() == 0 {
			t.Fatalf("root may not make cgroups here: the mode is %s with the hierarchies %v; mount them for writing", groups.Mode, groups.Mounts)
		}
		groups = nil
	}
	state, err := os.MkdirTemp("", "ts") //nolint:usetesting // t.TempDir's paths are too long for the sockets of runtimes
	must.Do(t, err)
	data := t.TempDir()
	s := engine.Session{
		RunID: "test-" + strings.ToLower(rand.Text()[:6]), State: state, Data: data, Cgroups: groups,
		Rootfs: filepath.Join(data, "rootfs"), Probe: filepath.Join(data, "probe"),
	}
	must.Do(t, image.WriteRootfs(t.Context(), s.Rootfs))
	must.Do(t, image.WriteProbe(s.Probe))
	options := launcherOptions(groups)
	if s.Launcher, err = process.New(options); err != nil {
		t.Fatal(err)
	}
	s.Hidden = options.Hide
	if s.Registry, err = image.NewRegistry(t.Context(), s.RunID); err != nil {
		t.Fatal(err)
	}
	stop := removeAtTermination(s)
	t.Cleanup(func() {
		stop()
		for _, left := range Leftovers(s) {
			t.Errorf("%s is left on the host", left)
		}
		Check(t, errors.Join(destroyGroup(s), s.Registry.Close(), s.Launcher.Close(), os.RemoveAll(state)))
	})
	return s
}

// OtherRun returns a session of another run with the same directories.
func OtherRun(t *testing.T, s engine.Session) engine.Session {
	t.Helper()
	s.RunID += "x"
	t.Cleanup(func() { Check(t, destroyGroup(s)) })
	return s
}

// destroyGroup kills all processes of a session, and removes its cgroups. The launcher's thread leaves them before.
func destroyGroup(s engine.Session) error {
	if s.Cgroups == nil {
		return nil
	}
	if err := s.SetCgroupParent(""); err != nil {
		return err
	}
	group, err := s.Cgroups.Open("/" + engine.Prefix + s.RunID)
	if err != nil {
		return err
	}
	return group.Destroy(context.Background())
}

// removeAtTermination removes the objects of a session before SIGTERM or SIGINT ends the program, as an interrupted suite ends its tests. No cleanup of a
// test runs then. stop gives up the signals.
func removeAtTermination(s engine.Session) (stop func()) {
	signals, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT)
	go func() {
		select {
		case received := <-signals:
			s.Launcher.Halt() // the tests go on until the program ends
			// A test may have made another cgroup meanwhile. The program ends, and has no place for an error.
			_ = errors.Join(destroyGroup(s), os.RemoveAll(s.State), destroyGroup(s))
			signal.Reset(received)
			_ = unix.Kill(os.Getpid(), received.(unix.Signal))
		case <-done:
		}
	}()
	return func() {
		signal.Stop(signals)
		close(done)
	}
}

// Leftovers lists the objects of the session's containers on the host: cgroups with their processes, bundles, the runtime's
// state, written files and their mounts, and network namespaces.
func Leftovers(s engine.Session) []string {
	var left []string
	if s.Cgroups != nil {
		for _, m := range s.Cgroups.Mounts {
			dirs, _ := filepath.Glob(filepath.Join(m.Dir, s.Cgroups.Base(), engine.Prefix+s.RunID, engine.Prefix+"*"))
			for _, d := range dirs {
				left = append(left, "cgroup "+d)
			}
		}
	}
	for _, pattern := range []string{
		filepath.Join(s.State, "oci/*/bundles/*"), filepath.Join(s.State, "oci/*/root/*"+s.RunID+"*"),
		filepath.Join(s.Data, "oci/*/*"), filepath.Join(s.Data, "native/*"),
	} {
		files, _ := filepath.Glob(pattern)
		for _, f := range files {
			left = append(left, "file "+f)
		}
	}
	left = append(left, layersLeft(s)...)
	return append(left, namespacesLeft()...)
}

// Surplus lists the leftovers in state that are not in baseline. Others may have been removed meanwhile.
func Surplus(baseline, state []string) []string {
	return slices.DeleteFunc(state, func(left string) bool { return slices.Contains(baseline, left) })
}

// layersLeft lists the mounts below the directories of writable roots, in the mount namespaces of all threads.
func layersLeft(s engine.Session) []string {
	var left []string
	tables, _ := filepath.Glob("/proc/self/task/*/mountinfo")
	for _, table := range tables {
		f, err := os.Open(table)
		if err != nil {
			continue // the thread has ended
		}
		mounts, _ := mountinfo.GetMountsFromReader(f, mountinfo.PrefixFilter(filepath.Join(s.Data, "oci")))
		_ = f.Close()
		for _, m := range mounts {
			if what := "mount " + m.Mountpoint; !slices.Contains(left, what) {
				left = append(left, what)
			}
		}
	}
	return left
}

// namespacesLeft lists the network namespaces that this program holds open. Only this program keeps them and their
// interfaces.
func namespacesLeft() []string {
	var left []string
	files, _ := filepath.Glob("/proc/self/fd/*")
	for _, f := range files {
		if link, err := os.Readlink(f); err == nil && strings.HasPrefix(link, "net:[") {
			left = append(left, "network namespace "+link)
		}
	}
	return left
}

// workloadLock serialises parallel tests, because a process can have only one launcher.
var workloadLock sync.Mutex

// Workload returns the workload image for the host, and a directory with its file system, which is for reading only. If the
// cache has no image, Workload builds it. If that fails the test is skipped, or fails if MustRun names some target. With
// -short it is skipped. Workload must be called before Session, because a process can have only one launcher.
func Workload(t testing.TB) (rootfs string, img v1.Image) {
	t.Helper()
	if testing.Short() {
		t.Skip("makes the workload image, which -short is not for")
	}
	workloadLock.Lock()
	defer workloadLock.Unlock()
	rootfs, img, err := workloadImage(t)
	switch {
	case err == nil:
	case os.Getenv(MustRun) != "":
		t.Fatalf("%s is set and requires the workload image: %v", MustRun, err)
	default:
		record.Skip(t, err.Error())
	}
	return rootfs, img
}

func workloadImage(t testing.TB) (rootfs string, img v1.Image, err error) {
	options := debian.Options{Progress: func(step string) { t.Logf("workload image: %s", step) }}
	debianImage, err := debian.Cached(options)
	if err != nil {
		return "", nil, err
	}
	if debianImage == nil {
		launcher, err := process.New(process.Options{})
		if err != nil {
			return "", nil, err
		}
		defer func() {
			Check(t, launcher.Close())
		}()
		options.Launcher = launcher
		if debianImage, err = debian.Build(t.Context(), options); err != nil {
			return "", nil, err
		}
	}
	rootfs, err = debianImage.Rootfs(t.Context())
	return rootfs, debianImage.OCI(), err
}
