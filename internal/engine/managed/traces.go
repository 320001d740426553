package managed

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

// stateDirs are the parents of the state directories of engines, shims and runtimes below /run.
var stateDirs = []string{"containerd", "docker", "containers", "crio", "libpod", "runc", "crun", "youki", "runsc", "kata", "kata-containers", "vc"}

// stateDepth is the depth of a container's state directory below one of stateDirs, or below the directory of a private daemon.
const stateDepth = 5

// stateFile ends the name of the file in which gVisor keeps the state of a container. Other files, such as the exit files of conmon and locks,
// belong to no container.
const stateFile = ".state"

// The engine may still remove a directory or a mount when it has answered. After settleRounds searches with settlePause in between, the
// remaining objects are traces.
const (
	settleRounds = 40
	settlePause  = 50 * time.Millisecond
)

// Traces lists the state directories and the mounts with one of these IDs in their paths that the daemon or its runtimes have left. The
// IDs are unique on the host.
func (d *Daemon) Traces(ctx context.Context, ids ...string) ([]string, error) {
	d.mu.Lock()
	pid := d.process.Pid
	d.mu.Unlock()
	return traces(ctx, fmt.Sprintf("/proc/%d", pid), d.dirs.State, ids)
}

// Traces is Daemon.Traces for an engine without a daemon, whose state is in a directory.
func (m *Mounts) Traces(ctx context.Context, state string, ids ...string) ([]string, error) {
	return traces(ctx, fmt.Sprintf("/proc/%d", m.holder.Pid), state, ids)
}

// HostTraces is Daemon.Traces for the user's daemon.
func HostTraces(ctx context.Context, ids ...string) ([]string, error) {
	return traces(ctx, "/proc/self", "", ids)
}

// traces searches in the mount namespace of a process. State is an additional directory of the namespace.
func traces(ctx context.Context, proc, state string, ids []string) ([]string, error) {
	ids = slices.DeleteFunc(ids, func(id string) bool { return id == "" })
	for round := 0; ; round++ {
		left, err := search(proc, state, ids)
		if err != nil || len(left) == 0 || round == settleRounds {
			return left, err
		}
		pause, end := context.WithTimeout(ctx, settlePause)
		<-pause.Done()
		end()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
}

func search(proc, state string, ids []string) (left []string, err error) {
	root := filepath.Join(proc, "root")
	parents := []string{}
	for _, dir := range stateDirs {
		parents = append(parents, filepath.Join(root, "/run", dir))
	}
	if state != "" {
		parents = append(parents, filepath.Join(root, state))
	}
	for _, parent := range parents {
		_ = filepath.WalkDir(parent, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return fs.SkipDir // it does not exist, or has just been removed
			}
			for _, id := range ids {
				if path == parent || !strings.Contains(e.Name(), id) {
					continue
				}
				if e.IsDir() {
					left = append(left, "state directory "+strings.TrimPrefix(path, root))
					return fs.SkipDir
				}
				if strings.HasSuffix(path, stateFile) {
					left = append(left, "state file "+strings.TrimPrefix(path, root))
				}
			}
			rel, err := filepath.Rel(parent, path)
			if err == nil && e.IsDir() && (strings.Count(rel, "/")+1 >= stateDepth || isFiles(path)) {
				return fs.SkipDir
			}
			return nil
		})
	}
	for _, id := range ids {
		mounts, err := engine.MountsOf(proc, id)
		if err != nil {
			return nil, err
		}
		left = append(left, mounts...)
	}
	return left, nil
}

// isFiles reports whether a directory holds the files of a container, and no state.
func isFiles(dir string) bool {
	name := filepath.Base(dir)
	if name == "rootfs" || name == "merged" {
		return true
	}
	_, err := os.Lstat(filepath.Join(dir, "rootfs"))
	return err == nil
}
