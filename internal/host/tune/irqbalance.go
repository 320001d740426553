package tune

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/host/machine"
	"github.com/touchstone-bench/touchstone/internal/refusal"
)

// Names and states of processes.
const (
	irqbalance = "irqbalance"
	stopped    = "stopped"
	running    = "running"
)

// daemon is a process with the name of a daemon. The start, in ticks since boot, distinguishes it from a later process with its number.
type daemon struct {
	pid, start string
	state      string // stopped or running
}

// daemons returns the processes of irqbalance, without zombies.
func (t host) daemons() ([]daemon, error) {
	// A /proc with hidepid shows only own processes.
	if !t.Exists("proc/1/comm") {
		return nil, errors.New("/proc does not show the processes of other users")
	}
	var daemons []daemon
	for _, file := range t.Glob("proc/[0-9]*/comm") {
		pid := path.Base(path.Dir(file))
		if t.Text(file) != irqbalance || !t.ofRoot(pid) {
			continue
		}
		if d, ok := t.process(pid); ok {
			daemons = append(daemons, d)
		}
	}
	return daemons, nil
}

// ofRoot reports whether a process has no other user than root. Any user can give a process the name of a daemon.
func (t host) ofRoot(pid string) bool {
	for _, line := range t.Lines("proc/" + pid + "/status") {
		if ids, ok := strings.CutPrefix(line, "Uid:"); ok {
			return !slices.ContainsFunc(strings.Fields(ids), func(id string) bool { return id != "0" })
		}
	}
	return true // a copy of /proc
}

// process reads a process. It is false if the process does not exist or has ended.
func (t host) process(pid string) (daemon, bool) {
	// pid (name) state …, and the start is field 22 of all. The name may contain brackets and blanks.
	const state, start = 0, 19
	text := t.Text("proc/" + pid + "/stat")
	fields := strings.Fields(text[strings.LastIndex(text, ")")+1:])
	if len(fields) <= start || strings.Contains("ZX", fields[state]) {
		return daemon{}, false
	}
	d := daemon{pid: pid, start: fields[start], state: running}
	if fields[state] == "T" {
		d.state = stopped
	}
	return d, true
}

// poorDaemons stops irqbalance by a signal. The service manager keeps the process, and the interrupts stay on their CPUs. A stop of
// the service was rejected: its restart after a crash depends on the service manager, and a new process moves the interrupts at once.
func (t *Tuner) poorDaemons() ([]Change, error) {
	daemons, err := t.daemons()
	if err != nil {
		return nil, err
	}
	var changes []Change
	for _, d := range daemons {
		if d.state != stopped {
			changes = append(changes, Change{irqbalance, d.pid + "@" + d.start, running, stopped})
		}
	}
	return changes, nil
}

func ownsDaemon(key string) bool {
	pid, start, ok := strings.Cut(key, "@")
	n, err := strconv.Atoi(pid)
	_, err2 := strconv.ParseUint(start, 10, 64)
	return ok && err == nil && err2 == nil && n > 1
}

func (t *Tuner) readDaemon(key string) (string, error) {
	pid, start, _ := strings.Cut(key, "@")
	d, ok := t.process(pid)
	if !ok || d.start != start {
		return "", errGone
	}
	return d.state, nil
}

// setDaemon sends a signal and waits until the process has the state. The kernel sends no event for it.
func (t *Tuner) setDaemon(key, state string) error {
	const tries, interval = 200, 5 * time.Millisecond
	signal := unix.SIGCONT
	if state == stopped {
		signal = unix.SIGSTOP
	}
	if err := t.signal(key, signal); err != nil {
		return err
	}
	for range tries {
		if current, err := t.readDaemon(key); err != nil || current == state {
			return err
		}
		time.Sleep(interval)
	}
	return nil // change finds the wrong state
}

// signalDaemon sends a signal to the process of a key. The process cannot be exchanged between the checks and the signal, because a pidfd
// holds it. A process that is not irqbalance of root gets none.
func signalDaemon(key string, s unix.Signal) error {
	pid, _, _ := strings.Cut(key, "@")
	n, err := strconv.Atoi(pid)
	if err != nil {
		return err
	}
	fd, err := unix.PidfdOpen(n, 0)
	if errors.Is(err, unix.ESRCH) {
		return errGone
	}
	if refusal.Refused(err) {
		return fmt.Errorf("hold process %d: %w", n, refusal.SystemCall("pidfd_open", "5.3", err))
	}
	if err != nil {
		return fmt.Errorf("hold process %d: %w", n, err)
	}
	defer func() { _ = unix.Close(fd) }()
	machine := &Tuner{root: "/", host: host{machine.At("/")}}
	if _, err := machine.readDaemon(key); err != nil {
		return err
	}
	if !machine.ofRoot(pid) {
		return fmt.Errorf("process %d belongs to another user", n)
	}
	program, err := os.Readlink("/proc/" + pid + "/exe")
	if err != nil {
		return fmt.Errorf("find the program of process %d: %w", n, err)
	}
	// An upgrade removes the program of a process.
	if name := path.Base(strings.TrimSuffix(program, " (deleted)")); name != irqbalance {
		return fmt.Errorf("process %d executes %.100q and not %s", n, program, irqbalance)
	}
	if err := unix.PidfdSendSignal(fd, s, nil, 0); refusal.Refused(err) {
		return fmt.Errorf("signal process %d: %w", n, refusal.SystemCall("pidfd_send_signal", "5.1", err))
	} else if err != nil {
		return fmt.Errorf("signal process %d: %w", n, err)
	}
	return nil
}

// Irqbalance returns the state of the daemon on a machine, and a remedy if it runs. The error is a [machine.Unknown] if /proc does not show the daemon.
func Irqbalance(t machine.Tree) (state, remedy string, err error) {
	daemons, err := host{t}.daemons()
	if err != nil {
		return "", "", machine.Unknown(err.Error())
	}
	running := slices.DeleteFunc(daemons, func(d daemon) bool { return d.state == stopped })
	switch {
	case len(daemons) == 0:
		return "not running", "", nil
	case len(running) == 0:
		return stopped, "", nil
	}
	return "running", "stop it during runs (systemctl stop irqbalance)", nil
}

// host reads the state of the settings that are not in one file.
type host struct{ machine.Tree }
