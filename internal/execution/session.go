package execution

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/engines"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/host/check"
	"github.com/touchstone-bench/touchstone/internal/host/facts"
	"github.com/touchstone-bench/touchstone/internal/image"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/process"
	"github.com/touchstone-bench/touchstone/internal/workdir"
)

// closeLimit bounds the clean-up of a session.
const closeLimit = 30 * time.Second

// abandonLimit bounds the clean-up when the user does not wait any longer.
const abandonLimit = 3 * time.Second

// Session holds the resources of engines on the host: directories with a lock, cgroups, the launcher of processes
// and an image registry.
type Session struct {
	engine.Session
	pinning plan.Pinning

	mu  sync.Mutex   // guards dir and Launcher against Abandon
	dir *workdir.Dir // nil unless the session is open
}

// NewSession returns a session for the runtimes and engines of a plan. It is not open yet.
func NewSession(runID string, p plan.Plan) *Session {
	return &Session{pinning: p.Pinning, Session: engine.Session{
		RunID: runID, Runtimes: p.Runtimes, Engines: p.Engines.Binaries, Sockets: p.Engines.Sockets, Managed: p.Engines.Managed,
		EngineCPUs: p.Pinning.Engines, Seccomp: p.Seccomp, Pods: p.Pods.Engine(),
	}}
}

// Open first removes the leftovers of killed runs, and returns a list of them, also with an error. Then it creates the
// resources of the session. After an error no resource remains. report receives the reason of a long wait.
func (s *Session) Open(ctx context.Context, report func(reason string)) ([]workdir.Swept, error) {
	roots, groups, err := places()
	if err != nil {
		return nil, err
	}
	s.Cgroups = groups
	leftovers, err := workdir.Sweep(ctx, roots, s.Cgroups, workdir.Daemons{Empty: sweepDaemon, Waiting: report})
	// Runs of other hosts stay, and each of them may be under way. Only touchstone cleanup lists them.
	leftovers = slices.DeleteFunc(leftovers, func(s workdir.Swept) bool { return s.Host != "" })
	if err != nil {
		return leftovers, err
	}
	dir, err := workdir.Create(roots, s.RunID)
	if err != nil {
		return leftovers, err
	}
	s.mu.Lock()
	s.dir = dir
	s.mu.Unlock()
	s.State, s.Data, s.Memory, s.Rootfs, s.Probe = dir.State, dir.Data, dir.Memory, filepath.Join(dir.Data, "rootfs"), filepath.Join(dir.Data, "probe")
	s.Container = facts.Container("/")
	s.ContainerRemedy = check.ContainerRemedy(s.Container)
	err = s.prepare(ctx)
	if err == nil {
		err = process.Pin(s.pinning.Touchstone)
	}
	if err != nil {
		return leftovers, errors.Join(err, s.Close())
	}
	return leftovers, nil
}

func (s *Session) prepare(ctx context.Context) error {
	if err := image.WriteRootfs(ctx, s.Rootfs); err != nil {
		return err
	}
	if err := image.WriteProbe(s.Probe); err != nil {
		return err
	}
	options := oci.LauncherOptions(s.Cgroups)
	launcher, err := process.New(options)
	if errors.Is(err, fs.ErrPermission) { // EPERM or EACCES, as root in a container
		// A user's daemon may need no namespace of this program. The other targets report the reason.
		s.Confined, options = err, process.Options{}
		launcher, err = process.New(options)
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.Launcher, s.Hidden = launcher, options.Hide
	s.mu.Unlock()
	s.Registry, err = image.NewRegistry(ctx, s.RunID)
	return err
}

// Close removes all resources of the session.
func (s *Session) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	err := s.dir.Remove(ctx, s.Cgroups)
	s.mu.Lock()
	s.dir = nil
	s.mu.Unlock()
	if s.Registry != nil {
		err = errors.Join(err, s.Registry.Close())
	}
	if s.Launcher != nil {
		err = errors.Join(err, s.Launcher.Close())
	}
	err = errors.Join(err, process.Pin("")) // the next plan may have other CPUs
	if err != nil {
		return fmt.Errorf("clean up: %w; touchstone cleanup may remove the rest", err)
	}
	return nil
}

// Abandon removes the cgroups, processes and files of the session at once, without waiting for anything in
// them. It may be called from another goroutine at any time; the program must end right after.
func (s *Session) Abandon() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dir == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), abandonLimit)
	defer cancel()
	if s.Launcher != nil {
		s.Launcher.Halt() // the clean-up under way would start programs outside the cgroups
	}
	if s.Launcher != nil && s.Cgroups != nil {
		// The launcher's thread must leave the cgroups before they are removed. It may be blocked.
		left := make(chan struct{})
		go func() {
			_ = s.SetCgroupParent("")
			close(left)
		}()
		_ = engine.Await(ctx, left)
	}
	if err := s.dir.Remove(ctx, s.Cgroups); err != nil {
		return fmt.Errorf("%w; touchstone cleanup removes the rest", err)
	}
	return nil
}

// Sweep removes the leftovers of killed runs on this machine. report receives the reason of a long wait.
func Sweep(ctx context.Context, report func(reason string)) ([]workdir.Swept, error) {
	roots, groups, err := places()
	if err != nil {
		return nil, err
	}
	return workdir.Sweep(ctx, roots, groups, workdir.Daemons{Empty: sweepDaemon, Waiting: report})
}

// places returns the directories for runs, and the cgroups of the host: nil if this user may create none.
func places() (workdir.Roots, *cgroup.Hierarchy, error) {
	roots := workdir.HostRoots()
	groups, err := cgroup.Detect("/")
	if err != nil || groups.Base() == "" {
		return roots, nil, err
	}
	return roots, groups, nil
}

// sweepDaemon removes the leftovers of a killed run in a daemon of the user's.
func sweepDaemon(ctx context.Context, runID, engineName, address string) (int, error) {
	s := engine.Session{RunID: runID, Sockets: map[string]string{engineName: address}}
	return engines.All(fake.NewClock(), s.Sockets).Sweep(ctx, s, engineName)
}
