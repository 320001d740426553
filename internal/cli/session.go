package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/engines"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/image"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/process"
	"github.com/touchstone-bench/touchstone/internal/workdir"
)

// closeLimit bounds the removal of what a run has on the host.
const closeLimit = 30 * time.Second

// abandonLimit is the same when the user would not wait any more.
const abandonLimit = 3 * time.Second

// session is what a verb that talks to engines has on the host.
type session struct {
	engine.Session
	dir *workdir.Dir
}

// open sweeps what dead runs left and makes the surroundings of a new one, with the runtimes and
// engines of its plan.
func (a *App) open(ctx context.Context, runID string, p plan.Plan) (*session, error) {
	roots, err := workdir.HostRoots()
	if err != nil {
		return nil, err
	}
	groups, err := hostCgroups()
	if err != nil {
		return nil, err
	}
	if err := a.sweep(ctx, roots, groups); err != nil {
		return nil, err
	}
	dir, err := workdir.Create(roots, runID)
	if err != nil {
		return nil, err
	}
	s := &session{dir: dir, Session: engine.Session{
		RunID: runID, State: dir.State, Data: dir.Data, Cgroups: groups,
		Runtimes: p.Runtimes, Engines: p.Engines.Binaries, Sockets: p.Engines.Sockets, Managed: p.Engines.Managed,
		EngineCPUs: p.Pinning.Engines, Rootfs: filepath.Join(dir.Data, "rootfs"), Probe: filepath.Join(dir.Data, "probe"),
	}}
	a.onAbandon(func() {
		ctx, cancel := context.WithTimeout(context.Background(), abandonLimit)
		defer cancel()
		if s.Launcher != nil && groups != nil {
			// Our own thread must be out of the cgroups that are to go.
			_ = s.SetCgroupParent("")
		}
		if err := dir.Remove(ctx, groups); err != nil {
			fmt.Fprintf(a.env.Stderr, "touchstone: %v; touchstone cleanup removes the rest\n", err)
		}
	})
	err = s.prepare(ctx)
	if err == nil {
		err = process.Pin(p.Pinning.Touchstone)
	}
	if err != nil {
		return nil, errors.Join(err, a.close(s))
	}
	return s, nil
}

func (s *session) prepare(ctx context.Context) error {
	if err := image.WriteRootfs(s.Rootfs); err != nil {
		return err
	}
	if err := image.WriteProbe(s.Probe); err != nil {
		return err
	}
	surroundings := oci.Surroundings(s.Cgroups)
	launcher, err := process.New(surroundings)
	if err != nil {
		return err
	}
	s.Launcher, s.Hidden = launcher, surroundings.Hide
	s.Registry, err = image.NewRegistry(ctx, s.RunID)
	return err
}

// close removes all that the session has on the host.
func (a *App) close(s *session) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	err := s.dir.Remove(ctx, s.Cgroups)
	a.onAbandon(nil)
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

// hostCgroups gives the cgroups of the host, nil if this user may make none.
func hostCgroups() (*cgroup.Hierarchy, error) {
	groups, err := cgroup.Detect("/")
	if err != nil {
		return nil, err
	}
	if groups.Base() == "" {
		return nil, nil
	}
	return groups, nil
}

// askDaemon has a daemon of the user's remove what a run left with it.
func askDaemon(ctx context.Context, runID, engineName, address string) (int, error) {
	s := engine.Session{RunID: runID, Sockets: map[string]string{engineName: address}}
	return engines.All(fake.NewClock(), s.Sockets).Sweep(ctx, s, engineName)
}

// sweep removes what killed runs left, and says so.
func (a *App) sweep(ctx context.Context, roots workdir.Roots, groups *cgroup.Hierarchy) error {
	swept, err := workdir.Sweep(ctx, roots, groups, askDaemon)
	for _, s := range swept {
		fmt.Fprintf(a.env.Stderr, "removed what a killed run had left: %v\n", s)
	}
	return err
}

// writable makes a folder and makes sure that files can be written there, before anything
// is measured.
func writable(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the output folder: %w; give another with -d", err)
	}
	f, err := os.CreateTemp(dir, ".touchstone-*")
	if err != nil {
		return fmt.Errorf("write to the output folder: %w; give another with -d", err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
