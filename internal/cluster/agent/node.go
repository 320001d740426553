package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/moby/sys/mountinfo"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/cluster"
	"github.com/touchstone-bench/touchstone/internal/cluster/record"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/execution"
	"github.com/touchstone-bench/touchstone/internal/image"
	"github.com/touchstone-bench/touchstone/internal/process"
	"github.com/touchstone-bench/touchstone/internal/workload/programs"
)

// A privileged agent measures its node like touchstone benchmark measures a machine. It stays in its pod, where it follows the annotations, and starts a
// delegate of itself on the node: in the namespaces of process 1 and outside of the cgroups of the pod. The delegate executes the plan, with its results
// file in a directory of the node, and writes the records to the agent, which passes them on to its log. The agent writes each change of the
// annotations to the delegate. The end of this stream, also by the death of the agent, ends the delegate in order.
//
// A delegate in the container with mounts of the node's directories was rejected: native would have the files, limits and filters of the container
// (docs/container.md).

// Limits of the end of a delegate.
const (
	// delegateLimit is the longest time for a delegate to end in order. It is shorter than the grace of the pod.
	delegateLimit = cluster.PrivilegedGrace - 10*time.Second
	// groupLimit is the longest wait for the delegate of a killed agent.
	groupLimit = 45 * time.Second
)

// wish is the part of the annotations that a delegate follows.
type wish struct {
	Renewal string `json:"renewal"`
	Replay  string `json:"replay"`
	End     string `json:"end"`
}

// delegate executes the plan on the node.
func (a *agent) delegate(ctx context.Context) error {
	env, err := a.delegateVariables(ctx)
	if err != nil {
		return errTerminated
	}
	d, err := process.StartOnMachine(a.Log, env, "agent", "node", strconv.Itoa(os.Getpid()))
	if err != nil {
		return errors.Join(a.log.Tell(record.Failure, err.Error()), a.pod.awaitRelease(ctx))
	}
	exits := make(chan error, 1)
	go func() { exits <- d.Wait() }()
	wishes := json.NewEncoder(d.Input)
	var last wish
	for {
		change := a.pod.changes()
		if w := a.pod.wish(); w != last {
			last = w
			_ = wishes.Encode(w) // a delegate that does not read has ended
		}
		select {
		case <-change:
		case err := <-exits:
			return endOfDelegate(err)
		case <-ctx.Done():
			_ = d.Input.Close() // it is written to in order
			return endOfDelegate(awaitDelegate(ctx, d, exits))
		}
	}
}

// delegateVariables are the variables of a delegate. Only the API server knows the image of the pod, and the delegate has no access to it.
func (a *agent) delegateVariables(ctx context.Context) ([]string, error) {
	pod, err := execution.PodImage(ctx, a.pods())
	if err != nil {
		return nil, err
	}
	facts, err := json.Marshal(pod)
	variables := []string{"HOME=" + a.nodeDir(), "TMPDIR=" + a.nodeDir(), cluster.ImageVariable + "=" + string(facts)}
	for _, name := range []string{cluster.NodeVariable, cluster.PodVariable, cluster.UIDVariable, cluster.FactVariable} {
		variables = append(variables, name+"="+a.Getenv(name))
	}
	return variables, err
}

// awaitDelegate waits for the end of a delegate in order, and kills it if it lasts too long.
func awaitDelegate(ctx context.Context, d *process.Delegate, exits <-chan error) error {
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), delegateLimit)
	defer cancel()
	select {
	case err := <-exits:
		return err
	case <-limit.Done():
		return errors.Join(fmt.Errorf("it did not end in %v, and was killed", delegateLimit), d.Kill(), <-exits)
	}
}

func endOfDelegate(err error) error {
	if err != nil {
		return fmt.Errorf("measure the node: %w", err)
	}
	return nil
}

// nodeDir is the directory of the cluster run on the node.
func (a *agent) nodeDir() string { return filepath.Join(cluster.NodeDir, a.fleet.ID) }

// RunOnNode is the program of a delegate: it executes the plan of the agent with a process ID, in the namespaces of the node. Wishes has the annotations of
// the agent's pod.
func RunOnNode(ctx context.Context, config Config, wishes io.Reader) (err error) {
	a := &agent{Config: config, log: record.NewWriter(config.Log), isOnNode: true}
	if a.Execute == nil {
		a.Execute = execute
	}
	if err := a.read(); err != nil {
		return err
	}
	if err := process.ResetOOMScore(); err != nil {
		if err := a.log.Tell(record.Note, err.Error()); err != nil {
			return err
		}
	}
	leave, err := joinGroup(ctx, a.fleet.ID)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, leave()) }()
	ctx, end := context.WithCancel(ctx)
	defer end()
	a.pod = newPod(nil, "", a.fleet.Lease, nil)
	go func() {
		defer end()
		a.pod.hear(wishes)
	}()
	err = a.work(ctx, a.nodeDir(), a.pod.expire)
	switch {
	case err != nil:
		return err
	case !a.pod.released():
		return errTerminated // the directory is for the next agent
	}
	return removeNodeDir(a.fleet.ID)
}

// CleanNode removes the leftovers of a cluster run and of all killed runs on the node. It is the program of a delegate.
func CleanNode(ctx context.Context, fleet string) error {
	groups, err := cgroup.Detect("/")
	if err == nil && groups.Base() != "" {
		err = removeGroup(ctx, groups, fleet)
	}
	_, sweepErr := execution.Sweep(ctx, func(string) {})
	return errors.Join(err, sweepErr, removeNodeDir(fleet))
}

// removeNodeDir removes the directory of a cluster run from the node, and the directory above it if no other run has one.
func removeNodeDir(fleet string) error {
	err := os.RemoveAll(filepath.Join(cluster.NodeDir, fleet))
	_ = os.Remove(cluster.NodeDir) // it may not be empty
	return err
}

// groupName is the cgroup of the delegate of a cluster run.
func groupName(fleet string) string { return "/" + engine.Prefix + "agent-" + fleet }

// joinGroup moves this program out of the cgroups of the pod into a group of its own, which leave removes. A node without cgroups is no error.
func joinGroup(ctx context.Context, fleet string) (leave func() error, err error) {
	groups, err := cgroup.Detect("/")
	if err != nil {
		return nil, err
	}
	if groups.Base() == "" {
		return func() error { return nil }, nil
	}
	if err := removeGroup(ctx, groups, fleet); err != nil {
		return nil, err
	}
	group, err := groups.Create(groupName(fleet))
	if err != nil {
		return nil, err
	}
	leave = func() error {
		if err := groups.Leave(); err != nil {
			return err
		}
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), groupLimit)
		defer cancel()
		return group.Destroy(limit)
	}
	if err := group.Enter(); err != nil {
		return nil, errors.Join(err, leave())
	}
	return leave, nil
}

// removeGroup removes the cgroup of an earlier delegate. A delegate whose agent was killed is ending; after the limit it is killed.
func removeGroup(ctx context.Context, groups *cgroup.Hierarchy, fleet string) error {
	group, err := groups.Open(groupName(fleet))
	if err != nil || !group.Exists() {
		return err
	}
	limit, cancel := context.WithTimeout(ctx, groupLimit)
	defer cancel()
	if group.Remove(limit) == nil || ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return group.Destroy(ctx)
}

// onNode configures the execution on the node.
func (a *agent) onNode(config *execution.Config) {
	config.Folder = a.nodeDir()
	// Another run on the node ends some time. The record of this run mentions nothing then.
	config.Concurrency = execution.Wait
	config.Programs, config.Images = a.programs, a.images
}

// programs makes the workload image from the files of the agent's image.
func (a *agent) programs(ctx context.Context, dir string) (v1.Image, error) {
	if _, err := os.Stat(filepath.Join(a.Root, programs.Busybox)); errors.Is(err, fs.ErrNotExist) {
		return nil, &engine.UnsupportedError{
			What: "the workload image", Reason: "the image of this cluster run holds only the probe", Advice: "make it with touchstone cluster image, without --probe-only",
		}
	}
	mounts, err := mountPoints(filepath.Join(filepath.Dir(a.Root), "mountinfo"))
	if err != nil {
		return nil, err
	}
	return image.FromTree(ctx, a.Root, dir, func(name string) bool { return name == cluster.Program[1:] || mounts[name] })
}

// mountPoints reads the mount points of a process, relative to its root.
func mountPoints(file string) (map[string]bool, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it is only read from
	points := map[string]bool{}
	infos, err := mountinfo.GetMountsFromReader(f, nil)
	for _, info := range infos {
		if info.Mountpoint != "/" {
			points[info.Mountpoint[1:]] = true
		}
	}
	return points, err
}

// Clean is the program of a pod that removes the leftovers of a cluster run from its node.
func Clean(ctx context.Context, fleet string) error {
	d, err := process.StartOnMachine(io.Discard, nil, "agent", "clean-node", fleet)
	if err != nil {
		return err
	}
	exits := make(chan error, 1)
	go func() { exits <- d.Wait() }()
	select {
	case err = <-exits:
	case <-ctx.Done():
		err = awaitDelegate(ctx, d, exits)
	}
	if err != nil {
		return fmt.Errorf("clean the node: %w", err)
	}
	return nil
}
