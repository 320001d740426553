package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/process"
	"github.com/touchstone-bench/touchstone/test/inventory"
	"github.com/touchstone-bench/touchstone/test/lab/job"
)

// path is the PATH of the steps: the job's own programs, and the PATH of a login on Debian.
const path = job.Dir + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// machine executes steps.
type machine struct {
	launcher *process.Launcher
	sessions map[string]*session // by user
	cpus     string              // see job.Job
}

// session is the environment of a logged-in user.
type session struct {
	id     syscall.Credential
	home   string
	env    []string
	cgroup string // the directory
}

// execute executes the steps of a job. The report contains the steps that failed to start as well.
func execute(work job.Job) (report job.Report, err error) {
	if err := os.Setenv("PATH", path); err != nil { // for exec.LookPath
		return report, err
	}
	launcher, err := process.New(process.Options{})
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, launcher.Close()) }()
	m := machine{launcher: launcher, sessions: map[string]*session{}, cpus: work.CPUs}
	for _, step := range work.Steps {
		if err := m.login(step.User); err != nil {
			return report, fmt.Errorf("log in %q: %w", step.User, err)
		}
	}
	baseline, err := resources()
	if err != nil {
		return report, err
	}
	for _, step := range work.Steps {
		say("step %s", step.Name)
		outcome := step.Execute(m.execute)
		if firstTry := outcome.Earlier; firstTry != nil {
			say("step %s failed with exit code %d after %v, and was repeated", step.Name, firstTry.Code, firstTry.Elapsed.Round(time.Millisecond))
		}
		if outcome.Error != "" {
			say("step %s: %s", step.Name, outcome.Error)
		} else {
			say("step %s ended with exit code %d after %v", step.Name, outcome.Code, outcome.Elapsed.Round(time.Millisecond))
		}
		if !outcome.OK() { // the machine may be lost before it writes the report
			for line := range strings.Lines(outcome.Output) {
				say("step %s: %s", step.Name, strings.TrimRight(line, "\n"))
			}
		}
		report.Steps = append(report.Steps, outcome)
	}
	state, err := resources()
	if err != nil {
		return report, err
	}
	report.Left = state.Beyond(baseline, work.Keep...)
	return report, nil
}

// resources lists all resources of the machine, without the lab's own files.
func resources() (inventory.Resources, error) {
	return inventory.List([]string{"/"}, "/proc", "/sys", job.Dir, job.Out)
}

// execute executes a step, and measures how much it wrote to the disk.
func (m *machine) execute(step job.Step) job.Outcome {
	outcome := job.Outcome{Name: step.Name, Code: -1}
	log := out(step.Name + ".log")
	start, err := written()
	if err == nil {
		err = m.run(step, log, &outcome)
	}
	end, errAfter := written()
	outcome.Written = end - start
	if err := errors.Join(err, errAfter); err != nil {
		outcome.Error = err.Error()
	}
	if outcome.Error == "" || outcome.Elapsed > 0 { // the program was started
		outcome.Output = tailOf(log)
	}
	return outcome
}

// run runs the program of a step until it exits.
func (m *machine) run(step job.Step, log string, outcome *job.Outcome) (err error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), step.Limit, fmt.Errorf("killed after its limit of %v", step.Limit))
	defer cancel()
	s := m.sessions[step.User]
	program, err := exec.LookPath(step.Args[0])
	if err != nil {
		return err
	}
	args := append([]string{program}, step.Args[1:]...)
	if m.cpus != "" {
		args = append([]string{"/usr/bin/taskset", "--cpu-list", m.cpus}, args...)
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env, cmd.Dir = append(append([]string{}, s.env...), step.Env...), s.home
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &s.id}
	output, err := os.Create(log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, output.Close()) }()
	cmd.Stdout, cmd.Stderr = output, output
	if step.Stdout != "" {
		file, err := os.Create(out(step.Stdout))
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }() // cannot fail on a tmpfs
		cmd.Stdout = file
	}
	dir, err := os.Open(s.cgroup)
	if err != nil {
		return err
	}
	if err := m.launcher.SetCgroup(nil, dir); err != nil {
		return err
	}
	start := time.Now()
	exits, err := m.launcher.Start(cmd)
	if err != nil {
		return err
	}
	exit := watch(cmd.Process.Pid, exits, &outcome.Memory)
	outcome.Elapsed = time.Since(start)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case exit.Status.Exited():
		outcome.Code = exit.Status.ExitStatus()
		return nil
	default:
		return &process.ExitError{Command: program, Exit: exit}
	}
}

// memoryInterval is the time between two reads of a program's peak memory.
const memoryInterval = 20 * time.Millisecond

// watch waits until a process exits, and records its peak of resident memory. The kernel drops that value when the process exits,
// and the peak in rusage includes the children. So watch reads it repeatedly.
func watch(pid int, exits <-chan process.Exit, memory *int64) process.Exit {
	ticker := time.NewTicker(memoryInterval)
	defer ticker.Stop()
	for {
		select {
		case exit := <-exits:
			return exit
		case <-ticker.C:
			if peak, ok := peakOf(pid); ok {
				*memory = peak
			}
		}
	}
}

// peakOf returns the high-water mark of a process's resident memory, in bytes: proc_pid_status(5).
func peakOf(pid int) (int64, bool) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // empty after an error
	_, rest, _ := strings.Cut(string(status), "\nVmHWM:")         // a zombie has no memory
	var kibibytes int64
	_, err := fmt.Sscan(rest, &kibibytes)
	return kibibytes << 10, err == nil
}

// written flushes all caches to the disk, and returns the number of bytes written to it since boot.
func written() (int64, error) {
	unix.Sync()
	text, err := os.ReadFile(filepath.Join("/sys/class/block", filepath.Base(rootDisk), "stat"))
	if err != nil {
		return 0, err
	}
	const sectors, sector = 6, 512 // Documentation/block/stat.rst
	fields := strings.Fields(string(text))
	if len(fields) <= sectors {
		return 0, fmt.Errorf("unknown statistics of %s: %q", rootDisk, text)
	}
	n, err := strconv.ParseInt(fields[sectors], 10, 64)
	return n * sector, err
}

// login creates a user's session: directories, and a cgroup. Root gets a scope like systemd-logind's. An ordinary user gets a delegated
// scope, like with systemd-run --user --scope.
func (m *machine) login(name string) error {
	if m.sessions[name] != nil {
		return nil
	}
	id, home, login := 0, "/root", "root"
	if name != "" {
		u, err := user.Lookup(name)
		if err != nil {
			return err
		}
		if id, err = strconv.Atoi(u.Uid); err != nil {
			return err
		}
		home, login = u.HomeDir, name
	}
	runtimeDir := fmt.Sprintf("/run/user/%d", id)
	for _, dir := range []string{home, runtimeDir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := errors.Join(os.Chown(dir, id, id), os.Chmod(dir, 0o700)); err != nil {
			return err
		}
	}
	s := &session{
		id:   syscall.Credential{Uid: uint32(id), Gid: uint32(id)},
		home: home,
		env:  []string{"PATH=" + path, "HOME=" + home, "USER=" + login, "LOGNAME=" + login, "XDG_RUNTIME_DIR=" + runtimeDir, "LANG=C.UTF-8"},

		cgroup: "/sys/fs/cgroup",
	}
	groups := []string{"user.slice", "user-0.slice", "session-1.scope"}
	if id != 0 {
		groups = []string{"user.slice", fmt.Sprintf("user-%d.slice", id), fmt.Sprintf("user@%d.service", id), "app.slice", "run-1.scope"}
	}
	for i, group := range groups {
		if i > 0 {
			if err := enableControllers(s.cgroup); err != nil {
				return err
			}
		}
		s.cgroup = filepath.Join(s.cgroup, group)
		if err := os.MkdirAll(s.cgroup, 0o755); err != nil {
			return err
		}
		if i >= 2 && id != 0 {
			if err := delegate(s.cgroup, id); err != nil {
				return err
			}
		}
	}
	m.sessions[name] = s
	return nil
}

// delegate delegates a cgroup to a user: cgroups(7), "Cgroups delegation".
func delegate(group string, id int) error {
	files, err := os.ReadFile("/sys/kernel/cgroup/delegate")
	if err != nil {
		return err
	}
	errs := []error{os.Chown(group, id, id)}
	for _, name := range []string{"cgroup.procs", "cgroup.threads", "cgroup.subtree_control"} {
		if strings.Contains("\n"+string(files), "\n"+name+"\n") {
			errs = append(errs, os.Chown(filepath.Join(group, name), id, id))
		}
	}
	return errors.Join(errs...)
}
