package main

import (
	"bytes"
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

	"github.com/touchstone-bench/touchstone/test/lab/job"
	"github.com/touchstone-bench/touchstone/internal/process"
)

// path is the PATH of steps: a login's on Debian, and the job's own programs.
const path = job.Dir + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// machine executes steps.
type machine struct {
	launcher *process.Launcher
	sessions map[string]*session // by user
}

// session is what a login gives a user.
type session struct {
	id   syscall.Credential
	home string
	env  []string
	dir  string // its cgroup
}

// execute executes the steps of a job. What cannot be executed is in the report.
func execute(work job.Job) (report job.Report, err error) {
	if err := os.Setenv("PATH", path); err != nil { // where programs are looked for
		return report, err
	}
	launcher, err := process.New(process.Options{})
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, launcher.Close()) }()
	m := machine{launcher, map[string]*session{}}
	for _, step := range work.Steps {
		if err := m.login(step.User); err != nil {
			return report, fmt.Errorf("log in %q: %w", step.User, err)
		}
	}
	before, err := inventory()
	if err != nil {
		return report, err
	}
	for _, step := range work.Steps {
		say("step %s", step.Name)
		outcome := m.execute(step)
		if outcome.Error != "" {
			say("step %s: %s", step.Name, outcome.Error)
		} else {
			say("step %s ended with exit code %d after %v", step.Name, outcome.Code, outcome.Elapsed.Round(time.Millisecond))
		}
		report.Steps = append(report.Steps, outcome)
	}
	now, err := inventory()
	if err != nil {
		return report, err
	}
	report.Left = before.left(now, work.Keep)
	return report, nil
}

// execute executes a step, and sees how much it wrote to the disk.
func (m *machine) execute(step job.Step) job.Outcome {
	outcome := job.Outcome{Name: step.Name, Code: -1}
	log := out(step.Name + ".log")
	before, err := written()
	if err == nil {
		err = m.run(step, log, &outcome)
	}
	after, errAfter := written()
	outcome.Written = after - before
	if err := errors.Join(err, errAfter); err != nil {
		outcome.Error = err.Error()
	}
	if outcome.Error == "" || outcome.Elapsed > 0 { // it was started
		outcome.Output = tailOf(log)
	}
	return outcome
}

// run runs the program of a step to its end.
func (m *machine) run(step job.Step, log string, outcome *job.Outcome) (err error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), step.Limit, fmt.Errorf("it took longer than its limit of %v, and was killed", step.Limit))
	defer cancel()
	s := m.sessions[step.User]
	program, err := exec.LookPath(step.Args[0])
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program, step.Args[1:]...)
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
		defer func() { _ = file.Close() }() // it is in memory
		cmd.Stdout = file
	}
	dir, err := os.Open(s.dir)
	if err != nil {
		return err
	}
	if err := m.launcher.Place(nil, dir); err != nil {
		return err
	}
	began := time.Now()
	ended, err := m.launcher.Start(cmd)
	if err != nil {
		return err
	}
	exit := watch(cmd.Process.Pid, ended, &outcome.Memory)
	outcome.Elapsed = time.Since(began)
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

// look is the time between two looks at a program's memory.
const look = 20 * time.Millisecond

// watch waits for the end of a process, and notes its peak of resident memory. That is gone with the process, and the peak of
// its rusage is that of its children as well: so it is looked at until then.
func watch(pid int, ended <-chan process.Exit, memory *int64) process.Exit {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		select {
		case exit := <-ended:
			return exit
		case <-ticker.C:
			if peak, ok := peakOf(pid); ok {
				*memory = peak
			}
		}
	}
}

// peakOf gives the high-water mark of a process's resident memory, in bytes: proc_pid_status(5).
func peakOf(pid int) (int64, bool) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, false
	}
	_, rest, ok := bytes.Cut(status, []byte("\nVmHWM:"))
	if !ok {
		return 0, false // it has ended, and is no longer more than its exit status
	}
	fields := strings.Fields(string(rest[:min(len(rest), 64)]))
	kibibytes, err := strconv.ParseInt(fields[0], 10, 64)
	return kibibytes << 10, err == nil
}

// written gives how much was written to the disk so far, in bytes, once nothing is to be written any more.
func written() (int64, error) {
	unix.Sync()
	text, err := os.ReadFile(filepath.Join("/sys/class/block", filepath.Base(rootDisk), "stat"))
	if err != nil {
		return 0, err
	}
	const sectors, sector = 6, 512 // Documentation/block/stat.rst
	fields := strings.Fields(string(text))
	if len(fields) <= sectors {
		return 0, fmt.Errorf("the statistics of %s are %q", rootDisk, text)
	}
	n, err := strconv.ParseInt(fields[sectors], 10, 64)
	return n * sector, err
}

// login makes what a user needs to run programs: directories, and a cgroup. Root's is a scope of systemd-logind, an ordinary
// user's is one that is delegated, as with systemd-run --user --scope.
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
		dir:  "/sys/fs/cgroup",
	}
	groups := []string{"user.slice", "user-0.slice", "session-1.scope"}
	if id != 0 {
		groups = []string{"user.slice", fmt.Sprintf("user-%d.slice", id), fmt.Sprintf("user@%d.service", id), "app.slice", "run-1.scope"}
	}
	for i, group := range groups {
		if i > 0 {
			if err := handDown(s.dir); err != nil {
				return err
			}
		}
		s.dir = filepath.Join(s.dir, group)
		if err := os.MkdirAll(s.dir, 0o755); err != nil {
			return err
		}
		if i >= 2 && id != 0 {
			if err := delegate(s.dir, id); err != nil {
				return err
			}
		}
	}
	m.sessions[name] = s
	return nil
}

// delegate gives a user the right to divide a cgroup: cgroups(7), "Cgroups delegation".
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
