// Package managed runs private daemons of engines for a run. They run beside the user's own daemon of the same engine,
// and leave no trace on the host.
//
// A private daemon has directories of the run for its state and data, a cgroup of the run, and its own mount and network
// namespaces. It sees an empty /run and /var/lib, where engines have sockets, locks and state at fixed paths. Its
// bridges, addresses and iptables rules are in its own network. The kernel removes mounts and network when the last
// process exits, so they cannot be left behind, however the run ends. The run's image registry also listens in that
// network, at the same address. If the session has CPUs for engines, the daemon's cgroup has a cpuset with them. An
// affinity would be inherited by the containers, and not every runtime resets it.
//
// A daemon that exits is restarted once, before the next trial. A daemon that does not answer after a timeout is killed for that. Its output goes to a log, and every error about the
// daemon contains the end of the log. A daemon whose programs need the system's log has a socket of its own for them, in
// its namespace (Config.Syslog).
//
// Invariant daemon-namespaces: A private daemon leaves no mount, interface or rule on the host, however it ends, because its namespaces have no name.
package managed

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/network"
	"github.com/touchstone-bench/touchstone/internal/process"
)

// startLimit is the deadline for a daemon to become ready.
const startLimit = 60 * time.Second

// stopLimit is the deadline for a daemon to exit by itself. Then it is killed, which is no error: its cgroup,
// namespaces and directories are removed in any case. It is a variable for tests.
var stopLimit = 10 * time.Second

var errSlowStart = fmt.Errorf("it was not ready within %v", startLimit)

// Dirs are the directories of one daemon.
type Dirs struct {
	// State is for sockets and files with the daemon's lifetime. Data, on disk, is for images and containers.
	State, Data string
}

// DirsOf returns the directories of the daemon with this name, and makes them if they are missing.
func DirsOf(s engine.Session, name string) (Dirs, error) {
	d := Dirs{State: filepath.Join(s.State, name), Data: filepath.Join(s.Data, name)}
	for _, dir := range []string{d.State, d.Data} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return Dirs{}, fmt.Errorf("make the directories of %s: %w", name, err)
		}
	}
	return d, nil
}

// WriteFiles writes files of a configuration to a directory, which it makes if it is missing.
func WriteFiles(dir string, files map[string]string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (d Dirs) remove() error { return errors.Join(os.RemoveAll(d.State), os.RemoveAll(d.Data)) }

// Config describes a daemon.
type Config struct {
	// Name is the engine's name. The directories and the cgroup have it too.
	Name string
	// Args are the absolute path of the daemon's binary and its arguments.
	Args []string
	// Needs are files and directories of the host that the daemon uses, such as the binaries of runtimes.
	Needs []string
	// Memory are directories for state that the daemon's programs write. They are in memory, with a limited size: a program that logs without end
	// must not fill the host's /run. Only the daemon's namespace sees their files, and a restarted daemon finds them empty.
	Memory []string
	// Env are variables in addition to PATH, HOME and TMPDIR, which every daemon has.
	Env []string
	// Syslog gives the programs in the daemon's namespace a socket of the system's log, from the time that the daemon is ready.
	Syslog bool
	// SharedMounts propagates the daemon's mounts to mount namespaces that its programs make. Nothing propagates to the host.
	SharedMounts bool
	// Cgroups are top-level cgroups that the daemon's programs make and leave behind. Stop removes those that did not exist before.
	Cgroups []string
	// Dirs are directories of the host that the daemon's programs make and leave behind empty. A directory precedes its parent. Stop removes
	// those that did not exist before.
	Dirs []string
	// Ready waits until the daemon serves requests, or until the context ends.
	Ready func(context.Context) error
	// Answers sends a cheap request to a daemon that was ready before, and returns when it is answered or when the context ends.
	Answers func(context.Context) error
}

// Daemon is a running daemon. Its methods may be called from several goroutines.
type Daemon struct {
	session engine.Session
	config  Config
	dirs    Dirs
	network *network.Namespace
	group   *cgroup.Group // nil without cgroups
	log     *daemonLog    // nil if it could not be opened

	mu        sync.Mutex
	process   *os.Process
	exited    chan struct{}
	exit      *process.Exit // once exited is closed
	restarted bool
	children  []int
	syslog    *syslog // nil without Config.Syslog
}

// Start starts a daemon and returns when it is ready. An error contains the end of its log, and nothing is left behind.
func Start(ctx context.Context, s engine.Session, c Config) (*Daemon, error) {
	dirs, err := DirsOf(s, c.Name)
	if err != nil {
		return nil, err
	}
	d := &Daemon{session: s, config: c, dirs: dirs}
	if s.EngineCPUs != "" && s.Cgroups == nil {
		return nil, errors.Join(fmt.Errorf("start %s on CPUs %s: this program may not make cgroups", c.Name, s.EngineCPUs), dirs.remove())
	}
	if err = errors.Join(s.RecordForeignCgroups(c.Cgroups...), s.RecordForeignDirs(c.Dirs...)); err == nil {
		d.network, err = network.New()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", c.Name, err), dirs.remove())
	}
	d.log, err = openLog(filepath.Join(dirs.Data, "log"))
	if err == nil && s.Registry != nil {
		var l net.Listener
		if l, err = listen(ctx, d.network, s.Registry.Port()); err == nil {
			s.Registry.Serve(l)
		}
	}
	if err == nil && s.Cgroups != nil {
		d.group, err = s.Cgroups.Open(d.groupName())
	}
	if err != nil {
		err = fmt.Errorf("start %s: %w", c.Name, err)
	} else {
		err = d.start(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, d.Stop(ctx))
	}
	return d, nil
}

func (d *Daemon) groupName() string { return d.session.Cgroup() + "/" + d.config.Name }

// start starts the process and waits until it is ready.
func (d *Daemon) start(ctx context.Context) error {
	if err := d.launch(); err != nil {
		return fmt.Errorf("start %s: %w", d.config.Name, err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, errSlowStart)
	defer cancel()
	ready := make(chan error, 1)
	go func() { ready <- d.config.Ready(ctx) }()
	var err error
	select {
	case err = <-ready:
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	case <-d.exited:
		cancel()
		<-ready
	}
	if exitErr := d.Err(); exitErr != nil {
		return exitErr
	}
	if err != nil {
		return fmt.Errorf("start %s: %w%s", d.config.Name, err, d.logEnd())
	}
	if err := d.openSyslog(); err != nil {
		return fmt.Errorf("start %s: %w", d.config.Name, err)
	}
	d.mu.Lock()
	d.children = childrenOf(d.process.Pid)
	d.mu.Unlock()
	return nil
}

// openSyslog makes the daemon's system log, in the place of an earlier one.
func (d *Daemon) openSyslog() error {
	if !d.config.Syslog {
		return nil
	}
	err := d.closeSyslog()
	if err != nil {
		return err
	}
	log, err := openSyslog(d.process.Pid, filepath.Join(d.dirs.State, "syslog"))
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.syslog = log
	return nil
}

func (d *Daemon) closeSyslog() error {
	d.mu.Lock()
	log := d.syslog
	d.syslog = nil
	d.mu.Unlock()
	if log == nil {
		return nil
	}
	return log.close()
}

// Complaints returns the last errors that the programs in the daemon's namespace have written to the system's log since the last
// call, for the end of an error. It is empty without any.
func (d *Daemon) Complaints() string {
	d.mu.Lock()
	log := d.syslog
	d.mu.Unlock()
	if log == nil {
		return ""
	}
	return log.take()
}

// launch starts the process in its namespaces and its cgroup. After an error no process runs.
func (d *Daemon) launch() error {
	args, err := privateDirs(d.session, append([]string{d.config.Args[0]}, d.config.Needs...), d.config.Memory)
	if err != nil {
		return err
	}
	args = append([]string{"daemon", "--network", "3"}, args...)
	if d.config.SharedMounts {
		args = append(args, "--share")
	}
	args = append(append(args, "--"), d.config.Args...)
	ns, err := os.Open(d.network.Path())
	if err != nil {
		return err
	}
	defer func() { _ = ns.Close() }() // the daemon has its own copy
	first, err := d.enterCgroup()
	if err != nil {
		return err
	}
	//nolint:noctx // the process outlives this call; Stop ends it
	cmd := exec.Command(d.session.Probe, append(first, args...)...)
	cmd.Env = process.Environment(append([]string{"HOME=" + d.dirs.Data, "TMPDIR=" + d.dirs.Data}, d.config.Env...)...)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = d.log.write, d.log.write
	cmd.ExtraFiles = []*os.File{ns}
	done, err := d.session.Launcher.Start(cmd)
	var left error
	if d.group != nil {
		left = d.session.SetCgroupParent("")
	}
	if err != nil {
		return errors.Join(err, left)
	}
	exitSignal, exit := make(chan struct{}), new(process.Exit)
	d.mu.Lock()
	d.process, d.exited, d.exit = cmd.Process, exitSignal, exit
	d.mu.Unlock()
	go func() {
		*exit = <-done
		close(exitSignal)
	}()
	if left != nil {
		_ = cmd.Process.Kill() // it fails if the process has exited
		<-exitSignal
	}
	return left
}

// enterCgroup makes the launcher's next process begin in the daemon's cgroup, with the session's CPUs for engines. It returns
// the first arguments of the probe, which may have to join a further cgroup.
func (d *Daemon) enterCgroup() (first []string, err error) {
	if d.group == nil {
		return nil, nil
	}
	if err := d.session.SetCgroupParent(d.groupName()); err != nil {
		return nil, err
	}
	if d.session.EngineCPUs == "" {
		return nil, nil
	}
	join, err := d.group.SetCPUs(d.session.EngineCPUs)
	if err != nil {
		return nil, errors.Join(err, d.session.SetCgroupParent(""))
	}
	if join != "" {
		first = []string{"enter", "--cgroup", join, "--root", "/", "--", d.session.Probe}
	}
	return first, nil
}

// Log returns the end of the daemon's log, for a report about a failure.
func (d *Daemon) Log() string {
	_, text, _ := strings.Cut(d.logEnd(), "\n")
	return text
}

// logEnd returns the end of the daemon's log, for an error.
func (d *Daemon) logEnd() string {
	if d.log == nil {
		return ""
	}
	return d.log.tail()
}

// Err returns the daemon's exit as an error; nil while it runs.
func (d *Daemon) Err() error {
	d.mu.Lock()
	exitSignal, exit := d.exited, d.exit
	d.mu.Unlock()
	if !engine.Ended(exitSignal) {
		return nil
	}
	return fmt.Errorf("%s: %w%s", d.config.Name, &process.ExitError{Command: d.config.Args[0], Exit: *exit}, d.logEnd())
}

// Exited returns a channel that is closed when the daemon has exited. After a restart there is another one.
func (d *Daemon) Exited() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.exited
}

// lostLimit is the deadline for the exit of a daemon after its connections broke. A busy host may need seconds.
const lostLimit = 5 * time.Second

// Lost is for a call whose connection broke. When a daemon exits, its connections break a moment before the exit is known. Lost
// waits for the exit and returns it as an error; nil if the daemon still runs.
func (d *Daemon) Lost(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lostLimit)
	defer cancel()
	_ = engine.Await(ctx, d.Exited())
	return d.Err()
}

// Revive restarts the daemon if it has exited, once. It must not be called while containers exist, because they exit with the
// daemon.
func (d *Daemon) Revive(ctx context.Context) error {
	exitErr := d.Err()
	if exitErr == nil {
		return nil
	}
	d.mu.Lock()
	isRepeat := d.restarted
	d.restarted = true
	d.mu.Unlock()
	if isRepeat {
		return fmt.Errorf("%w; it was restarted once before", exitErr)
	}
	if d.group != nil {
		// Its remaining children are killed with the cgroup.
		if err := d.group.Destroy(ctx); err != nil {
			return fmt.Errorf("restart %s: %w", d.config.Name, err)
		}
	}
	return d.start(ctx)
}

// answerLimit is the deadline for an answer after a timeout. It is a variable for tests.
var answerLimit = 5 * time.Second

// Recover is for the time after a request has exceeded its limit, when no container is needed any more. It kills a daemon that does not answer, and
// then restarts it like Revive. An answer with an error is an answer.
func (d *Daemon) Recover(ctx context.Context) (isKilled bool, err error) {
	if d.Err() == nil {
		askCtx, cancel := context.WithTimeout(ctx, answerLimit)
		defer cancel()
		if err := d.config.Answers(askCtx); err == nil || askCtx.Err() == nil || ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		if err := d.kill(ctx); err != nil {
			return true, fmt.Errorf("kill %s, which does not answer: %w", d.config.Name, err)
		}
		isKilled = true
	}
	return isKilled, d.Revive(ctx)
}

// kill kills the daemon and waits for its exit.
func (d *Daemon) kill(ctx context.Context) error {
	d.mu.Lock()
	running, exitSignal := d.process, d.exited
	d.mu.Unlock()
	_ = running.Kill() // it fails if the process has exited
	ctx, cancel := context.WithTimeout(ctx, stopLimit)
	defer cancel()
	return engine.Await(ctx, exitSignal)
}

// Dial connects to an address in the daemon's network, which is the host network of its containers.
// The host of the address must be an IP address, because other threads look up names.
func (d *Daemon) Dial(ctx context.Context, kind, address string) (conn net.Conn, err error) {
	err = d.network.Do(func() (err error) {
		var dialer net.Dialer
		conn, err = dialer.DialContext(ctx, kind, address)
		return err
	})
	return conn, err
}

// Daemon returns the daemon's process, its children that do not belong to containers, and the cgroup of all of them.
func (d *Daemon) Daemon() engine.Daemon {
	d.mu.Lock()
	defer d.mu.Unlock()
	return engine.Daemon{PIDs: append([]int{d.process.Pid}, d.children...), Cgroup: d.group}
}

// Notes are the daemon's special settings, for Info.Notes.
func (d *Daemon) Notes() []string {
	if d.session.EngineCPUs == "" {
		return nil
	}
	return []string{"the daemon and its processes outside of containers stay on CPUs " + d.session.EngineCPUs}
}

// childrenOf lists the children of a process. The kernel's own list, /proc/PID/task/TID/children, is missing if the kernel was
// built without CONFIG_PROC_CHILDREN.
func childrenOf(pid int) []int {
	files, _ := filepath.Glob("/proc/[0-9]*/status")
	parent := fmt.Sprintf("\nPPid:\t%d\n", pid)
	var children []int
	for _, file := range files {
		text, _ := os.ReadFile(file) // the process may have exited
		if child, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil && strings.Contains(string(text), parent) {
			children = append(children, child)
		}
	}
	return children
}

// awaitKilled waits for the exit of the killed daemon. A daemon that waits in the kernel does not exit.
func (d *Daemon) awaitKilled(ctx context.Context, exitSignal <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, stopLimit)
	defer cancel()
	if engine.Await(ctx, exitSignal) != nil {
		return fmt.Errorf("stop %s: it was killed and has not exited within %v, because it waits in the kernel", d.config.Name, stopLimit)
	}
	return nil
}

// Stop ends the daemon and removes all its traces from the host. It is idempotent.
func (d *Daemon) Stop(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	d.mu.Lock()
	running, exitSignal := d.process, d.exited
	d.mu.Unlock()
	var errs []error
	if running != nil {
		_ = running.Signal(unix.SIGTERM) // it fails if the process has exited
		stop, cancel := context.WithTimeout(ctx, stopLimit)
		if engine.Await(stop, exitSignal) != nil {
			_ = running.Kill()
			if err := d.awaitKilled(ctx, exitSignal); err != nil {
				errs = append(errs, err)
			}
		}
		cancel()
	}
	if d.group != nil {
		remove, cancel := context.WithTimeout(ctx, stopLimit)
		defer cancel()
		if err := d.group.Destroy(remove); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", d.config.Name, err))
		}
	}
	if _, err := engine.RemoveForeign(d.session.State); err != nil {
		errs = append(errs, fmt.Errorf("stop %s: %w", d.config.Name, err))
	}
	if err := d.closeSyslog(); err != nil {
		errs = append(errs, fmt.Errorf("stop %s: %w", d.config.Name, err))
	}
	if err := d.network.Close(); err != nil {
		errs = append(errs, fmt.Errorf("stop %s: %w", d.config.Name, err))
	}
	if d.log != nil {
		if err := d.log.close(); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", d.config.Name, err))
		}
	}
	if err := d.dirs.remove(); err != nil {
		errs = append(errs, fmt.Errorf("remove the files of %s: %w", d.config.Name, err))
	}
	return errors.Join(errs...)
}
