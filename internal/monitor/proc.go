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
// The error is ErrHidden for a process that the kernel hides.
func status(proc string, pid int) (p process, ok bool, err error) {
	text, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "stat"))
	switch {
	case exited(err) && hidden(proc, pid), errors.Is(err, fs.ErrPermission):
		return process{}, false, ErrHidden
	case exited(err):
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

// hidden reports whether a process without files in /proc exists. With hidepid=2 a process of another user looks like one that has
// exited, but it can be signalled, or not be signalled for lack of permission.
func hidden(proc string, pid int) bool {
	if err := unix.Kill(pid, 0); errors.Is(err, unix.ESRCH) {
		return false
	}
	_, err := os.Stat(filepath.Join(proc, strconv.Itoa(pid), "stat")) // its ID may belong to a new process by now
	return exited(err)
}

// parseSizes reads the number of threads and the resident set size, in bytes, from a stat file of /proc.
func parseSizes(text string) (threads int, resident int64, err error) {
	fields := statFields(text)
	threads = int(fields.number(20, &err))
	resident = int64(fields.number(24, &err)) * int64(os.Getpagesize())
	return threads, resident, err
}

// stat is the fields of a stat file of /proc from the third, which follows the name.
type stat []string

func statFields(text string) stat {
	return strings.Fields(text[strings.LastIndex(text, ") ")+2:])
}

// number reads a field by its number in proc(5), unless there is an error already.
func (s stat) number(field int, err *error) (n uint64) {
	const first = 3
	if *err == nil && len(s) <= field-first {
		*err = fmt.Errorf("parse /proc/PID/stat: no field %d in %q", field, []string(s))
	}
	if *err != nil {
		return 0
	}
	n, failed := strconv.ParseUint(s[field-first], 10, 44)
	if failed != nil {
		*err = fmt.Errorf("parse /proc/PID/stat: field %d: %w", field, failed)
	}
	return n
}

// arguments returns the command line of a process. It is empty for a process that has exited.
func arguments(proc string, pid int) ([]string, error) {
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

// rollup returns the memory of a process: its private memory and its share of shared memory. It is 0 for a process that has
// exited. extent is the first and the last address of its address space. proc is /proc, except in tests.
func rollup(proc string, pid int) (m Memory, extent string, err error) {
	const file = "smaps_rollup"
	text, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), file))
	if errors.Is(err, fs.ErrNotExist) {
		// The process may have exited, but this one has not.
		if _, err := os.Stat(filepath.Join(proc, "self", file)); errors.Is(err, fs.ErrNotExist) {
			return Memory{}, "", errNoPSS
		}
	}
	if exited(err) {
		return Memory{}, "", nil
	}
	if err != nil {
		return Memory{}, "", err
	}
	m, err = parseRollup(string(text))
	extent, _, _ = strings.Cut(string(text), " ")
	return m, extent, err
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
		var field *int64
		switch name {
		case "Pss":
			field, found = &m.PSS, true
		case "Pss_Anon":
			field = &m.Anonymous
		case "Pss_File":
			field = &m.File
		case "Pss_Shmem":
			field = &m.Shared
		default:
			continue
		}
		value, ok := strings.CutSuffix(strings.TrimSpace(value), " kB")
		n, err := strconv.ParseInt(value, 10, 52)
		if !ok || err != nil || n < 0 {
			return Memory{}, fmt.Errorf("parse /proc/PID/smaps_rollup: %q is not a size in kB", line)
		}
		*field = n << 10
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
