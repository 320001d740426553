package monitor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/refusal"
)

// ticksPerSecond is the unit of CPU times in /proc/PID/stat, USER_HZ. It is 100 on all architectures that Go supports.
const ticksPerSecond = 100

// largestStat is an upper bound of /proc/PID/stat and /proc/meminfo, in bytes.
const largestStat = 8 << 10

// ErrHidden reports processes whose files in /proc are hidden. Sums without them would be too small.
var ErrHidden = errors.New("the kernel hides processes of the target (mount option hidepid of /proc); mount /proc with hidepid=0, or " +
	refusal.Rights("run as root"))

// Sampler reads the memory of the host, and the CPU time and memory of a target's processes, many times during a trial. One
// sample must be cheap: the files of a process are read without Go's poller, and each process is classified once. It
// reads no clock. Its methods must not be called at the same time.
//
// An [Account] in its place would measure more exactly, but each query would read the records of all processes that have
// exited so far. A sampler misses the CPU time of a process between its last sample and its exit.
type Sampler struct {
	proc    string
	account *Account // knows the family of the processes
	meminfo int
	buf     [largestStat]byte
	living  []member
	known   map[int]member
	sampled bool
}

// member is a living process of the target in a sample.
type member struct {
	process
	start     uint64 // time of its start, in ticks since boot
	rss       int64  // bytes
	component Component
}

// NewSampler opens the files of the host. proc is /proc, except in tests.
func NewSampler(t Target, proc string) (*Sampler, error) {
	s := &Sampler{
		proc: proc, known: map[int]member{}, account: newAccount(t, proc),
	}
	var err error
	if t.Search {
		if s.account.last, err = lastPID(); err != nil {
			return nil, err
		}
	}
	s.meminfo, err = unix.Open(filepath.Join(proc, "meminfo"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: filepath.Join(proc, "meminfo"), Err: err}
	}
	return s, nil
}

// Close closes the files.
func (s *Sampler) Close() error { return os.NewSyscallError("close", unix.Close(s.meminfo)) }

// Host returns the memory of the host by part, in bytes. Parts that the kernel does not report are absent.
func (s *Sampler) Host() (map[HostPart]int64, error) {
	n, err := unix.Pread(s.meminfo, s.buf[:], 0)
	if err != nil {
		return nil, fmt.Errorf("read /proc/meminfo: %w", err)
	}
	return parseMeminfo(s.buf[:n])
}

// CPU returns the CPU time by component since the call before. The first call returns zero times. Components without a process are absent.
// The kernel counts in units of 10 ms. The time of a process between its last sample and its exit is missing. The error is
// ErrHidden if processes are hidden.
func (s *Sampler) CPU() (map[Component]time.Duration, error) {
	if err := s.list(); err != nil {
		return nil, err
	}
	cpu := map[Component]time.Duration{}
	members := make(map[int]member, len(s.living))
	for _, m := range s.living {
		usage := m.cpu // of a new process
		if previous := s.known[m.pid]; previous.start == m.start {
			usage = max(0, m.cpu-previous.cpu)
		}
		if !s.sampled {
			usage = 0
		}
		cpu[m.component] += usage
		members[m.pid] = m
	}
	s.known, s.sampled = members, true
	return cpu, nil
}

// Memory returns the memory by component of the processes of the last call of CPU, in bytes. It is the proportional set size, and
// costs in proportion to the mapped memory. rss is set if the kernel does not offer that size for some process: the resident set size
// is then used for it, which counts shared memory in each process.
func (s *Sampler) Memory() (memory map[Component]int64, rss bool, err error) {
	memory = map[Component]int64{}
	spaces := spaces{}
	for _, m := range s.living {
		size, extent, err := rollup(s.proc, m.pid)
		bytes := size.PSS
		switch {
		case errors.Is(err, errNoPSS) || errors.Is(err, fs.ErrPermission):
			bytes, rss = m.rss, true
		case err != nil:
			return nil, false, err
		}
		if bytes > 0 && (extent == "" || !spaces.counted(m.pid, extent)) {
			memory[m.component] += bytes
		}
	}
	return memory, rss, nil
}

// list reads the living processes of the target, and classifies them.
func (s *Sampler) list() error {
	a := s.account
	pids, err := a.Procs()
	if err != nil {
		return err
	}
	if s.living, err = s.stats(slices.Concat(a.Daemons, pids)); err != nil {
		return err
	}
	if a.Search {
		if err := s.search(); err != nil {
			return err
		}
	}
	hasChanged := false
	for i := range s.living {
		m := &s.living[i]
		if k, ok := s.known[m.pid]; ok && k.start == m.start && k.comm == m.comm && k.ppid == m.ppid {
			m.args, m.exe, m.component = k.args, k.exe, k.component
			continue
		}
		hasChanged = true
		if m.args, err = arguments(s.proc, m.pid); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
		m.exe = executes(s.proc, m.pid)
	}
	if hasChanged || len(s.living) != len(s.known) {
		s.classify()
	}
	return nil
}

// classify finds the component of each process from the whole family, because it follows from the parents.
func (s *Sampler) classify() {
	processes := make([]process, len(s.living))
	clear(s.account.seen)
	for i, m := range s.living {
		processes[i] = m.process
		s.account.seen[m.pid] = m.process
	}
	f := s.account.family(processes)
	for i := range s.living {
		s.living[i].component = f.membership(i).component
	}
}

// search adds the relatives of the known processes.
func (s *Sampler) search() error {
	members := make([]process, len(s.living))
	for i, m := range s.living {
		members[i] = m.process
	}
	relatives, err := s.account.search(members)
	if err != nil {
		return err
	}
	pids := make([]int, len(relatives))
	for i, p := range relatives {
		pids[i] = p.pid
	}
	s.living, err = s.stats(pids)
	return err
}

// stats reads the state of the living processes among some IDs, without this program.
func (s *Sampler) stats(pids []int) ([]member, error) {
	slices.Sort(pids)
	members := make([]member, 0, len(pids))
	for _, pid := range slices.Compact(pids) {
		if pid == 0 || pid == s.account.self {
			continue
		}
		m, ok, err := s.stat(pid)
		if err != nil {
			return nil, err
		}
		if ok {
			members = append(members, m)
		}
	}
	return members, nil
}

// stat reads the state of a process; ok is false if it has exited.
func (s *Sampler) stat(pid int) (m member, ok bool, err error) {
	n, err := s.read(pid, "stat")
	switch {
	case exited(err) && hidden(s.proc, pid), errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return member{}, false, ErrHidden
	case exited(err):
		return member{}, false, nil
	case err != nil:
		return member{}, false, fmt.Errorf("read the state of process %d: %w", pid, err)
	}
	return parseMember(string(s.buf[:n]))
}

// read reads a small file of a process into buf.
func (s *Sampler) read(pid int, file string) (n int, err error) {
	fd, err := unix.Open(s.proc+"/"+strconv.Itoa(pid)+"/"+file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	n, err = unix.Read(fd, s.buf[:])
	return max(n, 0), errors.Join(err, unix.Close(fd))
}

// parseMember reads a stat file of /proc; ok is false for a zombie. The fields have the numbers of proc(5).
func parseMember(text string) (m member, ok bool, err error) {
	if m.process, ok, err = parseStat(text); err != nil {
		return member{}, false, err
	}
	fields := statFields(text)
	ticks := fields.number(14, &err) + fields.number(15, &err)
	m.cpu = time.Duration(ticks) * (time.Second / ticksPerSecond)
	m.start = fields.number(22, &err)
	m.rss = int64(fields.number(24, &err)) * int64(os.Getpagesize())
	return m, ok, err
}
