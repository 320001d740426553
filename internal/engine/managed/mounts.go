package managed

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/network"
	"github.com/touchstone-bench/touchstone/internal/process"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// The size of each file system in memory of a namespace: stateSpace, and containerSpace for each container. Engines, shims and runtimes write
// their state and their logs there. An engine was seen to use less than a quarter of each.
const (
	stateSpace     = 48 << 20
	containerSpace = 512 << 10
)

// privateDirs returns the options of "probe daemon" for an empty /run and /var/lib. Only these directories stay visible: the
// run's own, the directories of the needed files, of PATH and of /etc/resolv.conf, and the symbolic links that lead to them. The directories memory are
// in memory, and only the namespace sees their files.
func privateDirs(s engine.Session, needs, memory []string) ([]string, error) {
	v := visible{private: hiddenDirs("/")}
	for _, dir := range []string{s.State, s.Data} {
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return nil, err
		}
		v.add(real)
	}
	for _, path := range slices.Concat([]string{"/etc/resolv.conf", s.Probe}, needs, systemLinks, filepath.SplitList(os.Getenv("PATH"))) {
		if filepath.IsAbs(path) {
			v.addPath(path)
		}
	}
	var options []string
	for _, dir := range v.private {
		options = append(options, "--private", dir)
	}
	for _, path := range v.keep {
		options = append(options, "--keep", path)
	}
	for _, dir := range memory {
		options = append(options, "--memory", dir)
	}
	return append(options, "--size", strconv.Itoa(stateSpace+containerSpace*max(s.Containers, 1))), nil
}

// security is where the kernel offers its security modules.
const security = "/sys/kernel/security"

// hiddenDirs lists the directories of the machine at root that a private daemon sees empty. AppArmor is one of them: dockerd loads a profile
// into the kernel at its start, where it would stay after the run, and confines its containers with it, unlike the other engines. Docker
// looks for AppArmor in this directory before it uses it.
func hiddenDirs(root string) []string {
	private := []string{"/run", "/var/lib"}
	if _, err := os.Stat(filepath.Join(root, security, "apparmor")); err == nil {
		private = append(private, security)
	}
	return private
}

// Mounts is a mount namespace like a daemon's, for the commands of an engine without a daemon. An idle process holds it, so
// that mounts of one command are visible to the next. The kernel removes the namespace with its last process. Commands that make
// interfaces or pull images also use its network namespace.
type Mounts struct {
	session engine.Session
	mounts  *os.File // the namespaces, for commands to enter
	net     *os.File
	network *network.Namespace
	images  net.Listener // of the registry in the network namespace; nil without one
	holder  *os.Process
	ended   <-chan struct{}
	group   *cgroup.Group // nil without cgroups
}

// HoldMounts makes a mount namespace for the engine with this name. needs are the files and directories of the host that its
// commands use. The directories memory are in memory, with a limited size, and only the namespace sees their files.
func HoldMounts(ctx context.Context, s engine.Session, name string, needs, memory []string) (*Mounts, error) {
	m := &Mounts{session: s}
	if err := m.start(ctx, name, needs, memory); err != nil {
		return nil, errors.Join(fmt.Errorf("make a mount namespace for %s: %w", name, err), m.Close(ctx))
	}
	return m, nil
}

func (m *Mounts) start(ctx context.Context, name string, needs, memory []string) error {
	options, err := privateDirs(m.session, needs, memory)
	if err != nil {
		return err
	}
	if m.network, err = network.New(); err != nil {
		return err
	}
	if m.net, err = os.Open(m.network.Path()); err != nil {
		return err
	}
	if m.session.Registry != nil {
		if m.images, err = listen(ctx, m.network, m.session.Registry.Port()); err != nil {
			return err
		}
		m.session.Registry.Serve(m.images)
	}
	output, input, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = output.Close() }() // it is only read from
	args := append(append([]string{"daemon"}, options...), "--", m.session.Probe)
	//nolint:noctx // the process outlives this call; Close ends it
	cmd := exec.Command(m.session.Probe, append(args, probe.Ready()[1:]...)...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = []string{}, "/", input, input
	if m.session.Cgroups != nil {
		group := m.session.Cgroup() + "/" + name
		if m.group, err = m.session.Cgroups.Open(group); err == nil {
			err = m.session.SetCgroupParent(group)
		}
		if err != nil {
			return errors.Join(err, input.Close())
		}
	}
	done, err := m.session.Launcher.Start(cmd)
	if m.group != nil {
		err = errors.Join(err, m.session.SetCgroupParent(""))
	}
	err = errors.Join(err, input.Close())
	if done == nil {
		return err
	}
	end := make(chan struct{})
	m.holder, m.ended = cmd.Process, end
	go func() {
		<-done
		close(end)
	}()
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = output.Close() })
	defer stop()
	line, err := bufio.NewReader(output).ReadString('\n')
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil || strings.TrimSpace(line) != probe.ReadyLine {
		return fmt.Errorf("its process wrote %q, want %q", line, probe.ReadyLine)
	}
	m.mounts, err = os.Open(fmt.Sprintf("/proc/%d/ns/mnt", m.holder.Pid))
	return err
}

// Enter makes a command run in the mount namespace, in its directory there. It costs one more exec, some tenths of a millisecond.
func (m *Mounts) Enter(cmd *exec.Cmd) { m.enter(cmd, option{"--mounts", m.mounts}) }

// EnterBoth makes a command run in the mount namespace and in the network namespace.
func (m *Mounts) EnterBoth(cmd *exec.Cmd) {
	m.enter(cmd, option{"--network", m.net}, option{"--mounts", m.mounts})
}

// option is an option of "probe daemon" that takes a namespace.
type option struct {
	name string
	ns   *os.File
}

func (m *Mounts) enter(cmd *exec.Cmd, options ...option) {
	args := []string{m.session.Probe, "daemon"}
	for _, o := range options {
		args = append(args, o.name, strconv.Itoa(3+len(cmd.ExtraFiles)))
		cmd.ExtraFiles = append(cmd.ExtraFiles, o.ns)
	}
	if cmd.Dir != "" {
		args = append(args, "--dir", cmd.Dir)
	}
	cmd.Args = append(append(args, "--", cmd.Path), cmd.Args[1:]...)
	cmd.Path = m.session.Probe
}

// Link describes the link from the network namespace to a container's address there.
func (m *Mounts) Link(addr netip.Addr) (engine.Link, error) { return linkFrom(m.network, addr) }

// Close ends all processes in the mount namespace. It is idempotent.
func (m *Mounts) Close(ctx context.Context) error {
	if m.holder != nil {
		_ = m.holder.Signal(unix.SIGKILL) // it fails if the process has exited
		<-m.ended
	}
	err := m.endOthers(ctx)
	if m.images != nil {
		if bad := m.images.Close(); !errors.Is(bad, net.ErrClosed) {
			err = errors.Join(err, bad)
		}
	}
	for _, ns := range []*os.File{m.mounts, m.net} {
		if ns == nil {
			continue
		}
		if bad := ns.Close(); !errors.Is(bad, os.ErrClosed) {
			err = errors.Join(err, bad)
		}
	}
	if m.network != nil {
		err = errors.Join(err, m.network.Close())
	}
	if m.group != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
		defer cancel()
		err = errors.Join(err, m.group.Destroy(ctx))
	}
	if err != nil {
		return fmt.Errorf("end a mount namespace: %w", err)
	}
	return nil
}

// endOthers kills the processes that are left in the mount namespace. The conmon of a cancelled command is one, and so is the clean-up that it
// calls: it writes files that the caller of Close is about to remove.
func (m *Mounts) endOthers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
	defer cancel()
	for {
		left := m.processes()
		if len(left) == 0 {
			return nil
		}
		if ctx.Err() != nil { // the launcher may have given a process up that waits in the kernel
			return notExited(left[0])
		}
		processes := map[int]*process.Process{}
		for _, pid := range left {
			p := m.session.Launcher.Adopt(pid)       // while it runs, so that its exit is reported
			if unix.Kill(pid, unix.SIGKILL) == nil { // it fails if the process has exited
				processes[pid] = p
			}
		}
		for pid, p := range processes {
			if engine.Await(ctx, p.Done()) != nil && unix.Kill(pid, 0) == nil {
				return notExited(pid)
			}
		}
		pause, end := context.WithTimeout(ctx, endPause)
		<-pause.Done()
		end()
	}
}

// endPause is the time between two looks at the processes of a mount namespace.
const endPause = time.Millisecond

func notExited(pid int) error {
	return fmt.Errorf("process %d was killed and has not exited within %v", pid, stopLimit)
}

// processes lists the processes in the mount namespace. A thread that has exited has no namespace, and the first one may exit before the others.
func (m *Mounts) processes() (pids []int) {
	if m.mounts == nil {
		return nil
	}
	self, err := m.mounts.Stat()
	if err != nil {
		return nil // it was closed before
	}
	links, _ := filepath.Glob("/proc/[0-9]*/task/[0-9]*/ns/mnt")
	for _, link := range links {
		pid, err := strconv.Atoi(strings.Split(link, "/")[2])
		if err != nil || slices.Contains(pids, pid) {
			continue
		}
		if info, err := os.Stat(link); err == nil && os.SameFile(self, info) {
			pids = append(pids, pid)
		}
	}
	return pids
}
