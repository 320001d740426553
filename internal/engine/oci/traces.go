package oci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

// exitGrace is the time in which the processes of a deleted sandbox must exit.
const exitGrace = 2 * time.Second

// inspectGroup notes the remains in a cgroup that the runtime has left. Some runtimes never remove it, and gVisor leaves it if the
// container was paused or did not start. c.mu is held.
func (c *container) inspectGroup(ctx context.Context) {
	if c.e.sweeps && c.ran && !c.frozen {
		c.left = append(c.left, "cgroup "+c.group.Path())
	}
	pids, err := c.group.Procs()
	if err != nil || len(pids) == 0 {
		return
	}
	limitCtx, cancel := context.WithTimeout(ctx, exitGrace)
	defer cancel()
	if err := c.group.Remove(limitCtx); err != nil && ctx.Err() == nil {
		c.left = append(c.left, "processes: "+err.Error())
	}
}

// Traces implements engine.Traced.
func (c *container) Traces(ctx context.Context) ([]string, error) {
	c.mu.Lock()
	searchable, left := c.deleted && c.created, slices.Clone(c.left)
	c.mu.Unlock()
	if !searchable {
		return nil, nil
	}
	fail := func(err error) ([]string, error) {
		return nil, fmt.Errorf("search for traces of container %q: %w", c.id, err)
	}
	state, err := c.knownAs(ctx)
	if err != nil {
		return fail(err)
	}
	if state != "" {
		left = append(left, fmt.Sprintf("the container in the runtime's state, as %s", state))
	}
	files, err := c.stateFiles()
	if err != nil {
		return fail(err)
	}
	for _, f := range files {
		left = append(left, "state directory "+f)
	}
	err = c.e.Session.Launcher.InNamespace(func() error {
		mounts, err := engine.MountsOf("/proc/thread-self", c.id)
		left = append(left, mounts...)
		return err
	})
	if err != nil {
		return fail(err)
	}
	return left, nil
}

// stateFiles lists the files and directories of the container in the runtime's root.
func (c *container) stateFiles() ([]string, error) {
	entries, err := os.ReadDir(c.e.root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // not every runtime makes it
		return nil, err
	}
	name := regexp.MustCompile(regexp.QuoteMeta(c.id) + `($|[^A-Za-z0-9-])`) // runsc has files such as runsc-ID.sock and ID_sandbox:ID.lock
	var files []string
	for _, e := range entries {
		if name.MatchString(e.Name()) {
			files = append(files, filepath.Join(c.e.root, e.Name()))
		}
	}
	return files, nil
}

// knownAs is the state of a deleted container if the runtime still knows it.
func (c *container) knownAs(ctx context.Context) (engine.State, error) {
	twin := &container{e: c.e, id: c.id, network: c.network, logName: c.id + "-state.log"}
	text, err := twin.call(ctx, "state", c.id)
	if rm := os.Remove(c.e.scratch.Path(twin.logName)); rm != nil && !errors.Is(rm, fs.ErrNotExist) {
		return "", rm
	}
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	var answer struct {
		ID     string
		Status engine.State
	}
	if err != nil || json.Unmarshal(text, &answer) != nil || answer.ID != c.id {
		return "", nil //nolint:nilerr // the error is the expected answer: the runtime does not know the container
	}
	return answer.Status, nil
}

// Limits implements engine.Limited. The first process is in the container's cgroup, and with gVisor its sandbox is.
func (c *container) Limits(context.Context) (engine.Resources, error) {
	if c.e.info.Isolation == engine.VM || c.e.Session.Cgroups == nil {
		return engine.Resources{}, engine.ErrHiddenLimits
	}
	return engine.LimitsOf(c.e.Session.Cgroups, c.init.Pid())
}
