package monitor

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// exited reports whether err means that a process has exited.
func exited(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH)
}

// status reads the kernel's record of a living process; ok is false if the process has exited.
func status(pid int) (p process, ok bool, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if exited(err) {
		return process{}, false, nil
	}
	if err != nil {
		return process{}, false, err
	}
	if p, ok, err = parseStat(string(text)); err == nil {
		p.threads, p.resident, err = parseSizes(string(text))
	}
	return p, ok, err
}

// parseSizes reads the number of threads and the resident set size, in bytes, from a stat file of /proc: fields 20 and 24 of
// proc(5).
func parseSizes(text string) (threads int, resident int64, err error) {
	const first, threadsField, residentField = 3, 20, 24 // first follows the name
	fields := strings.Fields(text[strings.LastIndex(text, ") ")+2:])
	if len(fields) <= residentField-first {
		return 0, 0, fmt.Errorf("parse /proc/PID/stat: no field %d in %q", residentField, text)
	}
	threads, err = strconv.Atoi(fields[threadsField-first])
	if err != nil {
		return 0, 0, fmt.Errorf("parse /proc/PID/stat: number of threads: %w", err)
	}
	pages, err := strconv.ParseInt(fields[residentField-first], 10, 44)
	if err != nil {
		return 0, 0, fmt.Errorf("parse /proc/PID/stat: resident set size: %w", err)
	}
	return threads, pages * int64(os.Getpagesize()), nil
}

// arguments returns the command line of a process. It is empty for a process that has exited.
func arguments(pid int) ([]string, error) { return argumentsIn("/proc", pid) }

func argumentsIn(proc string, pid int) ([]string, error) {
	text, err := os.ReadFile(fmt.Sprintf("%s/%d/cmdline", proc, pid))
	if err != nil && !exited(err) {
		return nil, err
	}
	if args := strings.TrimRight(string(text), "\x00"); args != "" {
		return strings.Split(args, "\x00"), nil
	}
	return nil, nil
}

// parseStat reads a stat file of /proc; ok is false for a zombie.
func parseStat(text string) (p process, ok bool, err error) {
	number, rest, found := strings.Cut(text, " (")
	end := strings.LastIndex(rest, ") ") // a name may contain both separators
	if !found || end < 0 {
		return process{}, false, fmt.Errorf("parse /proc/PID/stat: no process name in %q", text)
	}
	p.comm = rest[:end]
	var state string
	if _, err := fmt.Sscan(number+" "+rest[end+2:], &p.pid, &state, &p.ppid); err != nil {
		return process{}, false, fmt.Errorf("parse /proc/PID/stat: %w in %q", err, text)
	}
	return p, state != "Z" && state != "X", nil
}

// running lists the IDs of all processes.
func running() ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// errNoPSS reports a kernel without proportional set sizes.
var errNoPSS = errors.New("the kernel was built without /proc/PID/smaps_rollup (CONFIG_PROC_PAGE_MONITOR)")

// pss returns the proportional set size of a process in bytes, like rollup.
func pss(proc string, pid int) (int64, error) {
	m, err := rollup(proc, pid)
	return m.PSS, err
}

// rollup returns the memory of a process: its private memory and its share of shared memory. It is 0 for a process that has
// exited. proc is /proc, except in tests.
func rollup(proc string, pid int) (Memory, error) {
	const file = "smaps_rollup"
	text, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), file))
	if errors.Is(err, fs.ErrNotExist) {
		// The process may have exited, but this one has not.
		if _, err := os.Stat(filepath.Join(proc, "self", file)); errors.Is(err, fs.ErrNotExist) {
			return Memory{}, errNoPSS
		}
	}
	if exited(err) {
		return Memory{}, nil
	}
	if err != nil {
		return Memory{}, err
	}
	return parseRollup(string(text))
}

// parseRollup reads a smaps_rollup file of /proc. The file of a process that is just exiting is empty.
func parseRollup(text string) (Memory, error) {
	if text == "" {
		return Memory{}, nil
	}
	var m Memory
	found := false
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, ":")
		var to *int64
		switch name {
		case "Pss":
			to, found = &m.PSS, true
		case "Pss_Anon":
			to = &m.Anonymous
		case "Pss_File":
			to = &m.File
		case "Pss_Shmem":
			to = &m.Shared
		default:
			continue
		}
		value, ok := strings.CutSuffix(strings.TrimSpace(value), " kB")
		n, err := strconv.ParseInt(value, 10, 52)
		if !ok || err != nil || n < 0 {
			return Memory{}, fmt.Errorf("parse /proc/PID/smaps_rollup: %q is not a size in kB", line)
		}
		*to = n << 10
	}
	if !found {
		return Memory{}, errors.New("parse /proc/PID/smaps_rollup: no line Pss")
	}
	return m, nil
}

// lastPID returns the ID of the newest process or thread. Later ones have higher IDs, until the kernel wraps around.
func lastPID() (int, error) {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text[bytes.LastIndexByte(text, ' ')+1:])))
	if err != nil {
		return 0, fmt.Errorf("/proc/loadavg is %q", text)
	}
	return pid, nil
}
