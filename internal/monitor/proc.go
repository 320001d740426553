package monitor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// gone tells whether err says that a process has ended.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH)
}

// status gives what the kernel says of a living process; ok is false if it has ended.
func status(pid int) (p process, ok bool, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if gone(err) {
		return process{}, false, nil
	}
	if err != nil {
		return process{}, false, err
	}
	return parseStat(string(text))
}

// arguments gives the command line of a process; that of one that has ended is empty.
func arguments(pid int) ([]string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil && !gone(err) {
		return nil, err
	}
	if args := strings.TrimRight(string(text), "\x00"); args != "" {
		return strings.Split(args, "\x00"), nil
	}
	return nil, nil
}

// parseStat reads a stat file of /proc; ok is false for a process that has ended and was not waited for.
func parseStat(text string) (p process, ok bool, err error) {
	number, rest, found := strings.Cut(text, " (")
	end := strings.LastIndex(rest, ") ") // a name may hold any of it
	if !found || end < 0 {
		return process{}, false, fmt.Errorf("a stat file of /proc is %q", text)
	}
	fields := strings.Fields(rest[end+2:])
	if len(fields) < 2 {
		return process{}, false, fmt.Errorf("a stat file of /proc ends after %q", text)
	}
	p.comm = rest[:end]
	if p.pid, err = strconv.Atoi(number); err != nil {
		return process{}, false, fmt.Errorf("the ID in a stat file of /proc: %w", err)
	}
	if p.ppid, err = strconv.Atoi(fields[1]); err != nil {
		return process{}, false, fmt.Errorf("the parent in a stat file of /proc: %w", err)
	}
	return p, fields[0] != "Z" && fields[0] != "X", nil
}

// running lists the IDs of all processes.
func running() ([]int, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(-1)
	if err := errors.Join(err, dir.Close()); err != nil {
		return nil, err
	}
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids, nil
}

// errNoPSS says that the kernel does not tell how much memory processes have of their own and share.
var errNoPSS = errors.New("the kernel was built without /proc/PID/smaps_rollup (CONFIG_PROC_PAGE_MONITOR)")

// pss gives the proportional set size of a process in bytes: its own memory, and of what it shares with others
// its share. It is 0 of one that has ended. proc is where the kernel tells of processes: /proc, but for tests.
func pss(proc string, pid int) (int64, error) {
	const file = "smaps_rollup"
	text, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), file))
	if errors.Is(err, fs.ErrNotExist) {
		// This process at least has not ended.
		if _, err := os.Stat(filepath.Join(proc, "self", file)); errors.Is(err, fs.ErrNotExist) {
			return 0, errNoPSS
		}
	}
	if gone(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return parsePSS(string(text))
}

// parsePSS reads a smaps_rollup file of /proc; that of a process which is just ending is empty.
func parsePSS(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	for line := range strings.Lines(text) {
		value, ok := strings.CutPrefix(line, "Pss:")
		if !ok {
			continue
		}
		value, ok = strings.CutSuffix(strings.TrimSpace(value), " kB")
		n, err := strconv.ParseInt(value, 10, 52)
		if !ok || err != nil || n < 0 {
			return 0, fmt.Errorf("the line %q of a smaps_rollup file of /proc", line)
		}
		return n << 10, nil
	}
	return 0, errors.New("a smaps_rollup file of /proc has no Pss")
}

// born gives the ID of the process or thread that was made last. Later ones have higher IDs, until they begin again
// at the bottom.
func born() (int, error) {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text))
	if len(fields) == 0 {
		return 0, errors.New("/proc/loadavg is empty")
	}
	pid, err := strconv.Atoi(fields[len(fields)-1])
	if err != nil {
		return 0, fmt.Errorf("/proc/loadavg is %q", text)
	}
	return pid, nil
}
