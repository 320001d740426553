// Package monitor splits the cost of a target to the host into components: its daemon, shims, runtime calls,
// sandboxes, network plug-ins, and the container itself.
//
// CPU time comes from the kernel's taskstats, which send a record of each thread that exits. The records wait in a
// socket until the timed regions are over, so nothing runs during a measurement. Memory is the proportional set size
// of living processes. A process belongs to a component by its name, the file that it executes, or its ancestors, and counts only if it
// descends from Touchstone or the target's daemon. docs/adr/0013 gives the reasons.
//
// The package does not guess. CPU times are not known if the kernel provides no records, if it is too old, or if the
// socket overflowed. The package reads no clock and judges nothing.
package monitor

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Target describes how to find and classify the processes of a target.
type Target struct {
	// Daemons are the IDs of the target's daemon processes.
	Daemons []int
	// Programs are the programs of components.
	Programs Programs
	// Runtimes are further names of the runtime's program.
	Runtimes []string
	// Binary is the path of the runtime's program; empty if it is not known.
	Binary string
	// Procs lists processes that are known to be the target's.
	Procs func() ([]int, error)
	// Search also looks for the target's processes among all processes of the host, by their parents. It is for
	// targets that have processes outside their own cgroups.
	Search bool
}

// Account tracks a target's processes during a trial. Its methods may be called from several goroutines, and wait for
// each other.
type Account struct {
	Target

	mu     sync.Mutex
	proc   string // /proc, except in tests
	self   int
	last   int                   // ID of the last process before the account began
	before map[int]time.Duration // CPU time of the processes that lived then
	seen   map[int]process       // processes that were seen alive, by ID

	executable executed // of the runtime
	exits      []record // records of exited threads so far

	err    error // the reason why CPU times are not known
	events *conn // receives the records
	query  *conn
}

// Begin begins an account. It costs some system calls, and nothing more until CPU or Census is called.
func Begin(t Target) *Account {
	a := newAccount(t, "/proc")
	a.err = a.begin()
	return a
}

// newAccount returns an account that has not begun. proc is /proc, except in tests.
func newAccount(t Target, proc string) *Account {
	a := &Account{Target: t, proc: proc, self: os.Getpid(), before: map[int]time.Duration{}, seen: map[int]process{}}
	if t.Binary != "" {
		a.executable = executable(t.Binary)
	}
	return a
}

func (a *Account) begin() (err error) {
	if a.last, err = lastPID(); err != nil {
		return err
	}
	if a.query, err = open(0); err != nil {
		return err
	}
	if err := a.query.self(); err != nil {
		return err
	}
	if a.events, err = open(a.query.family); err != nil {
		return err
	}
	if err := a.events.subscribe(queued); err != nil {
		return err
	}
	if len(a.Daemons) == 0 {
		return nil // no process of the target runs yet
	}
	processes, err := a.timed()
	if err != nil {
		return err
	}
	for _, p := range processes {
		a.before[p.pid] = p.cpu
	}
	return nil
}

// timed lists the living processes of the target with their CPU times.
func (a *Account) timed() ([]process, error) {
	processes, err := a.living()
	if err != nil {
		return nil, err
	}
	var list []process
	for _, p := range processes {
		cpu, err := a.query.process(p.pid)
		if errors.Is(err, unix.ESRCH) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("query the CPU time of process %d: %w", p.pid, err)
		}
		p.cpu = cpu
		list = append(list, p)
	}
	return list, nil
}

// Close ends the account. It is idempotent.
func (a *Account) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	var errs []error
	for _, c := range []**conn{&a.events, &a.query} {
		if *c != nil {
			errs = append(errs, (*c).close())
			*c = nil
		}
	}
	return errors.Join(errs...)
}

// living lists the living processes of the target.
func (a *Account) living() ([]process, error) {
	pids, err := a.Procs()
	if err != nil {
		return nil, err
	}
	processes, err := a.statuses(slices.Concat(a.Daemons, pids))
	if err != nil {
		return nil, err
	}
	if a.Search {
		if processes, err = a.search(processes); err != nil {
			return nil, err
		}
	}
	for i := range processes {
		p := &processes[i]
		if p.args, err = arguments(a.proc, p.pid); err != nil {
			return nil, err
		}
		p.exe = executes(a.proc, p.pid)
		a.seen[p.pid] = *p
	}
	return processes, nil
}

// statuses reads the kernel's records of the living processes among some IDs, without this program.
func (a *Account) statuses(pids []int) ([]process, error) {
	slices.Sort(pids)
	var processes []process
	for _, pid := range slices.Compact(pids) {
		if pid == 0 || pid == a.self {
			continue
		}
		p, ok, err := status(a.proc, pid)
		if err != nil {
			return nil, err
		}
		if ok {
			processes = append(processes, p)
		}
	}
	return processes, nil
}

// search adds the relatives of the known processes.
func (a *Account) search(members []process) ([]process, error) {
	pids, err := running()
	if err != nil {
		return nil, err
	}
	candidates, err := a.statuses(pids)
	if err != nil {
		return nil, err
	}
	last, err := lastPID()
	if err != nil {
		return nil, err
	}
	return a.relatives(members, candidates, func(p process) bool { return p.ppid == a.self && a.since(p.pid, last) }), nil
}

// relatives adds three sorts of processes from candidates to members: the parents of members that are programs of
// components (such as shims), the processes that ours selects, and all descendants.
func (t Target) relatives(members, candidates []process, ours func(process) bool) []process {
	has := map[int]bool{}
	for _, p := range members {
		has[p.pid] = true
	}
	isShim := func(p process) bool {
		_, ok := t.Programs.component(p.comm)
		return ok && slices.ContainsFunc(members, func(k process) bool { return k.ppid == p.pid })
	}
	for grows := true; grows; {
		grows = false
		for _, p := range candidates {
			if !has[p.pid] && (has[p.ppid] || ours(p) || isShim(p)) {
				members = append(members, p)
				has[p.pid], grows = true, true
			}
		}
	}
	return members
}

// since reports whether a process started during the account. The ID last is the newest now. The kernel assigns IDs in
// ascending order, and wraps around.
func (a *Account) since(pid, last int) bool {
	if last < a.last {
		return pid > a.last || pid <= last
	}
	return pid > a.last
}

// CPU returns the CPU time by component since the account began. Components without a process are absent. Two parts are
// missing: the cost of a process's exit, because the kernel sends the record before it frees the memory, and the time
// since the scheduler last counted, which is less than a tick. The error is the reason why the time is not known.
func (a *Account) CPU() (map[Component]time.Duration, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil {
		return nil, a.err
	}
	// This precedes the reading of the records, which then include every process that exits in between.
	processes, err := a.timed()
	if err != nil {
		return nil, err
	}
	records, err := a.events.drain()
	if err != nil {
		return nil, err
	}
	a.exits = append(a.exits, records...)
	last, err := lastPID()
	if err != nil {
		return nil, err
	}
	lives := a.ended(a.exits)
	processes = slices.DeleteFunc(processes, func(p process) bool {
		return slices.ContainsFunc(lives, func(e process) bool { return e.pid == p.pid })
	})
	return a.sum(slices.Concat(lives, processes), last), nil
}

// Processes returns the target's living processes that began during the account, without its daemons, each with its component.
func (a *Account) Processes() (map[int]Component, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil {
		return nil, a.err
	}
	processes, err := a.living()
	if err != nil {
		return nil, err
	}
	members := map[int]Component{}
	f := a.family(processes)
	for i, p := range processes {
		if _, was := a.before[p.pid]; !was && !slices.Contains(a.Daemons, p.pid) {
			members[p.pid] = f.membership(i).component
		}
	}
	return members, nil
}

// Spent is the CPU time of living processes since their start. It is not known once one of them has exited. The last part,
// less than a tick, is missing like in CPU.
func (a *Account) Spent(pids []int) (time.Duration, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil {
		return 0, a.err
	}
	var sum time.Duration
	for _, pid := range pids {
		cpu, err := a.query.process(pid)
		if errors.Is(err, unix.ESRCH) {
			return 0, errors.New("a process exited while its CPU time was followed") // without its ID: each trial has the same caveat
		}
		if err != nil {
			return 0, fmt.Errorf("query the CPU time of process %d: %w", pid, err)
		}
		sum += cpu
	}
	return sum, nil
}

// sum adds up the CPU time of the target's processes since the account began. processes lists the exited ones in order of exit, and then the
// living ones. last is the ID of the newest process.
func (a *Account) sum(processes []process, last int) map[Component]time.Duration {
	cpu := map[Component]time.Duration{}
	f := a.family(processes)
	for i, p := range processes {
		if _, was := a.before[p.pid]; !was && !a.since(p.pid, last) {
			f.known[i] = membership{} // a process of the trial before, as are its children
		}
	}
	for i, p := range processes {
		if m := f.membership(i); m.ours {
			cpu[m.component] += p.cpu - a.before[p.pid]
		}
	}
	return cpu
}

// ended combines the records of threads into processes, in order of exit.
func (a *Account) ended(records []record) []process {
	var lives []*life
	latest := map[int]*life{} // by process ID
	for _, r := range records {
		l := latest[r.tgid]
		if l == nil || l.over && (r.last || slices.Contains(l.threads, r.pid)) { // the ID again
			l = &life{}
			latest[r.tgid] = l
		}
		l.add(r)
		if r.last {
			lives = append(lives, l)
		}
	}
	var processes []process
	for _, l := range lives {
		p := l.process
		p.args = a.seen[p.pid].args
		processes = append(processes, p)
	}
	return processes
}

// life is the combination of one process's records.
type life struct {
	process
	threads []int
	sum     time.Duration // of the threads
	over    bool          // the last thread's record has arrived
}

// add adds a record. The last thread's record contains the sum of all threads, but it need not arrive last, and its sum need
// not be complete: a thread that exits at the same time on another CPU may enter both later. The sum of the records in
// turn lacks threads that exited before the account began. Both are lower bounds, so the larger one counts.
func (l *life) add(r record) {
	if r.last {
		name := r.comm
		if slices.Contains(l.threads, r.tgid) {
			name = l.comm // the process has the name of its first thread
		}
		l.process = process{pid: r.tgid, ppid: r.ppid, comm: name, exe: r.exe, cpu: max(l.cpu, r.whole)}
		l.over = true
	} else if r.pid == r.tgid {
		l.comm = r.comm
	}
	l.threads = append(l.threads, r.pid)
	l.sum += r.cpu
	l.cpu = max(l.cpu, l.sum)
}

// family is the tree of all known processes.
type family struct {
	*Account
	all     []process
	numbers map[int][]int // by process ID
	known   map[int]membership
}

func (a *Account) family(processes []process) *family {
	f := &family{Account: a, all: processes, numbers: map[int][]int{}, known: map[int]membership{}}
	for i, p := range processes {
		f.numbers[p.pid] = append(f.numbers[p.pid], i)
	}
	return f
}

// membership is a process's component, and whether the process is the target's.
type membership struct {
	component Component
	ours      bool
}

// membership classifies the ith process.
func (f *family) membership(i int) membership {
	if m, ok := f.known[i]; ok {
		return m
	}
	f.known[i] = membership{} // reused IDs may form a cycle
	p := f.all[i]
	var m membership
	_, m.ours = f.seen[p.pid]
	switch parent := f.parent(i); {
	case slices.Contains(f.Daemons, p.pid):
		m = membership{Daemon, true}
	case p.ppid == f.self:
		m = membership{f.classify(p, "", nil), true}
	case parent >= 0:
		base := f.membership(parent)
		m = membership{f.classify(p, base.component, f.all[parent].names()), m.ours || base.ours}
	case m.ours:
		m.component = f.classify(p, "", nil)
	}
	f.known[i] = m
	return m
}

// parent returns the number of the ith process's parent, or -1 if it is not known. A parent usually exits after its
// children, so the later one of two processes with the same ID is the parent. The first process of a PID namespace is an
// exception: it exits before the others, which the kernel then kills.
func (f *family) parent(i int) int {
	parent := -1
	for _, n := range f.numbers[f.all[i].ppid] { // in ascending order
		if n != i && parent < i {
			parent = n
		}
	}
	return parent
}

// Census is the living processes of a target at one time.
type Census struct {
	// Memory is the memory by component.
	Memory map[Component]Memory
	// Tasks is the number of processes and threads.
	Tasks int
	// Resident is set if the kernel has no proportional set size. The memory is then the resident set size, which counts shared
	// memory once for each process.
	Resident bool
}

// Memory is the memory of processes in bytes.
type Memory struct {
	// PSS is the proportional set size: shared memory is divided among the processes that share it.
	PSS int64
	// Anonymous, File and Shared are its parts: private memory, pages of files, and memory of tmpfs or between processes. They
	// are 0 before Linux 5.4.
	Anonymous, File, Shared int64
}

func (m Memory) plus(o Memory) Memory {
	return Memory{PSS: m.PSS + o.PSS, Anonymous: m.Anonymous + o.Anonymous, File: m.File + o.File, Shared: m.Shared + o.Shared}
}

// ByComponent is the proportional set size by component, in bytes.
func (c Census) ByComponent() map[Component]int64 {
	memory := map[Component]int64{}
	for component, m := range c.Memory {
		memory[component] = m.PSS
	}
	return memory
}

// Census counts the living processes. The error wraps ErrHidden if the kernel hides some of them.
func (a *Account) Census() (Census, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	processes, err := a.living()
	if err != nil {
		return Census{}, err
	}
	census := Census{Memory: map[Component]Memory{}}
	f := a.family(processes)
	spaces := spaces{}
	for i, p := range processes {
		m, extent, err := rollup(a.proc, p.pid)
		if errors.Is(err, errNoPSS) {
			census.Resident = true
			m.PSS, err = p.resident, nil
		}
		if err != nil {
			return Census{}, err
		}
		if m.PSS == 0 {
			continue // the process has just exited
		}
		census.Tasks += p.threads
		if extent != "" && spaces.counted(p.pid, extent) {
			continue
		}
		c := f.membership(i).component
		census.Memory[c] = census.Memory[c].plus(m)
	}
	return census, nil
}

// Own is the anonymous memory of this program in bytes: the resident memory without pages of files.
func Own() (int64, error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	var size, resident, sharedPages int64
	if _, err := fmt.Sscan(string(text), &size, &resident, &sharedPages); err != nil {
		return 0, fmt.Errorf("parse /proc/self/statm: %w in %q", err, text)
	}
	return (resident - sharedPages) * int64(os.Getpagesize()), nil
}
