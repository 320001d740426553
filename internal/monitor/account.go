// Package monitor tells apart what the components of a target cost the host: its daemon, shims, calls of the
// runtime, sandboxes, network plug-ins, and the container itself.
//
// CPU time is from the kernel's taskstats, a record of each thread that ends, which wait in a socket until the timed
// regions are over: nothing runs while something is measured. Memory is the proportional set size of what lives. A
// process belongs to a component by its name, or by what it descends from, and counts only if it descends from
// Touchstone or the target's daemon. docs/adr/0013 says why so.
//
// It refuses to guess: where the records are not to be had, are of an old kernel, or were more than the socket
// holds, CPU times are not known. It keeps no time, and judges nothing.
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

// Target says where the processes of a target are found.
type Target struct {
	// Daemons are the IDs of the processes that serve it.
	Daemons []int
	// Runtimes are names that the program of its runtime may have, beside those that are known.
	Runtimes []string
	// Procs lists processes that are known to be the target's.
	Procs func() ([]int, error)
	// Search tells that it may have others, to be found among all processes of the host by their parents:
	// where not all that the target runs is in cgroups of its own.
	Search bool
}

// Account keeps account of a target's processes during a trial. Its methods may be called from several
// goroutines, and wait for each other.
type Account struct {
	Target

	mu     sync.Mutex
	self   int
	born   int                   // the last process that was made before
	before map[int]time.Duration // what living processes had used
	seen   map[int]process       // what was ever seen alive, by ID

	ends []record // what the kernel said of ends so far

	err    error // why CPU times are not known
	events *conn // what the kernel says of ends
	query  *conn
}

// Begin begins to keep account. It costs some system calls, and nothing more until CPU or Memory is called.
func Begin(t Target) *Account {
	a := &Account{Target: t, self: os.Getpid(), before: map[int]time.Duration{}, seen: map[int]process{}}
	a.err = a.begin()
	return a
}

func (a *Account) begin() (err error) {
	if a.born, err = born(); err != nil {
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
		return nil // nothing of the target runs yet
	}
	living, err := a.look()
	if err != nil {
		return err
	}
	if living, err = a.times(living); err != nil {
		return err
	}
	for _, p := range living {
		a.before[p.pid] = p.cpu
	}
	return nil
}

// times adds the CPU times of processes, and leaves out those that have ended.
func (a *Account) times(living []process) ([]process, error) {
	var timed []process
	for _, p := range living {
		cpu, err := a.query.process(p.pid)
		if errors.Is(err, unix.ESRCH) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("ask for the CPU time of process %d: %w", p.pid, err)
		}
		p.cpu = cpu
		timed = append(timed, p)
	}
	return timed, nil
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

// look lists the living processes of the target.
func (a *Account) look() ([]process, error) {
	pids, err := a.Procs()
	if err != nil {
		return nil, err
	}
	var living []process
	for _, pid := range slices.Concat(a.Daemons, pids) {
		if pid == 0 || pid == a.self || slices.ContainsFunc(living, func(p process) bool { return p.pid == pid }) {
			continue
		}
		p, ok, err := status(pid)
		if err != nil {
			return nil, err
		}
		if ok {
			living = append(living, p)
		}
	}
	if a.Search {
		if living, err = a.search(living); err != nil {
			return nil, err
		}
	}
	for i := range living {
		p := &living[i]
		if p.args, err = arguments(p.pid); err != nil {
			return nil, err
		}
		a.seen[p.pid] = *p
	}
	return living, nil
}

// search adds the relatives of processes.
func (a *Account) search(known []process) ([]process, error) {
	pids, err := running()
	if err != nil {
		return nil, err
	}
	var all []process
	for _, pid := range pids {
		p, ok, err := status(pid)
		if err != nil {
			return nil, err
		}
		if ok && pid != a.self {
			all = append(all, p)
		}
	}
	last, err := born()
	if err != nil {
		return nil, err
	}
	return relatives(known, all, func(p process) bool { return p.ppid == a.self && a.since(p.pid, last) }), nil
}

// relatives adds to known those of all that keep the known ones (shims and the like, by their names), those that
// are ours by themselves, and all that have one of them for a parent.
func relatives(known, all []process, ours func(process) bool) []process {
	has := map[int]bool{}
	for _, p := range known {
		has[p.pid] = true
	}
	keeps := func(p process) bool {
		_, ok := component(p.comm)
		return ok && slices.ContainsFunc(known, func(k process) bool { return k.ppid == p.pid })
	}
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if !has[p.pid] && (has[p.ppid] || ours(p) || keeps(p)) {
				known = append(known, p)
				has[p.pid], grown = true, true
			}
		}
	}
	return known
}

// accounted tells whether it is known what a process used before the account began.
func (a *Account) accounted(pid, last int) bool {
	_, was := a.before[pid]
	return was || a.since(pid, last)
}

// since tells whether a process was made during the account, if last was made now: IDs are given out in turn.
func (a *Account) since(pid, last int) bool {
	if last < a.born {
		return pid > a.born || pid <= last
	}
	return pid > a.born
}

// CPU gives the CPU time by component since the account began. A component that never was there is not in it. It
// lacks what a process costs while it ends, since the kernel gives its record before it takes its memory back, and what
// it used since the scheduler last counted, less than a tick. The error says why it cannot be known.
func (a *Account) CPU() (map[Component]time.Duration, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil {
		return nil, a.err
	}
	living, err := a.look()
	if err != nil {
		return nil, err
	}
	// Before the records are read: who ends in between is in them.
	if living, err = a.times(living); err != nil {
		return nil, err
	}
	records, err := a.events.drain()
	if err != nil {
		return nil, err
	}
	a.ends = append(a.ends, records...)
	last, err := born()
	if err != nil {
		return nil, err
	}
	ended := a.ended(a.ends)
	has := map[int]bool{}
	for _, p := range ended {
		has[p.pid] = true
	}
	living = slices.DeleteFunc(living, func(p process) bool { return has[p.pid] })
	return a.sum(ended, living, last), nil
}

// sum adds up what the target's processes among those that ended, and those that live, used since the account
// began. last is the ID of the process that was made last.
func (a *Account) sum(ended, living []process, last int) map[Component]time.Duration {
	cpu := map[Component]time.Duration{}
	f := a.family(ended, living)
	for i, p := range slices.Concat(ended, living) {
		if !a.accounted(p.pid, last) {
			f.placed[i] = place{} // another target's, of a trial before: and so is what it starts
		}
	}
	for i, p := range slices.Concat(ended, living) {
		if at := f.place(i); at.ours {
			cpu[at.component] += p.cpu - a.before[p.pid]
		}
	}
	return cpu
}

// ended makes processes of the records of threads, in the order of their ends.
func (a *Account) ended(records []record) []process {
	var all []*life
	latest := map[int]*life{} // by process ID
	for _, r := range records {
		l := latest[r.tgid]
		if l == nil || l.over && (r.last || slices.Contains(l.threads, r.pid)) { // the ID again
			l = &life{}
			latest[r.tgid] = l
		}
		l.add(r)
		if r.last {
			all = append(all, l)
		}
	}
	var ended []process
	for _, l := range all {
		p := l.process
		p.args = a.seen[p.pid].args
		ended = append(ended, p)
	}
	return ended
}

// life is what the records say of one process.
type life struct {
	process
	threads []int
	sum     time.Duration // of the threads
	over    bool          // the last thread's record has come
}

// add adds a record. That of the last thread has the sum of all threads there ever were, but need not be the last record, nor its
// sum the whole: a thread that ends at the same time on another CPU may come into both later. What the records add
// up to may lack threads that ended before there were records. Neither is ever too much.
func (l *life) add(r record) {
	if r.last {
		name := r.comm
		if slices.Contains(l.threads, r.tgid) {
			name = l.comm // its first thread's, after which it is called
		}
		l.process = process{pid: r.tgid, ppid: r.ppid, comm: name, cpu: max(l.cpu, r.whole)}
		l.over = true
	} else if r.pid == r.tgid {
		l.comm = r.comm
	}
	l.threads = append(l.threads, r.pid)
	l.sum += r.cpu
	l.cpu = max(l.cpu, l.sum)
}

// family is all that is known of who descends from whom.
type family struct {
	*Account
	ended, living []process     // numbered as one list
	numbers       map[int][]int // by process ID
	placed        map[int]place
}

func (a *Account) family(ended, living []process) *family {
	f := &family{Account: a, ended: ended, living: living, numbers: map[int][]int{}, placed: map[int]place{}}
	for i := range len(ended) + len(living) {
		pid := f.process(i).pid
		f.numbers[pid] = append(f.numbers[pid], i)
	}
	return f
}

// place is whose a process is.
type place struct {
	component Component
	ours      bool
}

func (f *family) process(i int) process {
	if i < len(f.ended) {
		return f.ended[i]
	}
	return f.living[i-len(f.ended)]
}

// place tells of the ith process whose it is.
func (f *family) place(i int) place {
	if at, ok := f.placed[i]; ok {
		return at
	}
	f.placed[i] = place{} // IDs that were given out twice may make a circle
	p := f.process(i)
	at := place{}
	_, at.ours = f.seen[p.pid]
	switch parent := f.parent(i); {
	case slices.Contains(f.Daemons, p.pid):
		at = place{Daemon, true}
	case p.ppid == f.self:
		at = place{classify(p, "", nil, f.Runtimes), true}
	case parent >= 0:
		of := f.place(parent)
		at = place{classify(p, of.component, f.process(parent).called(), f.Runtimes), at.ours || of.ours}
	case at.ours:
		at.component = classify(p, "", nil, f.Runtimes)
	}
	f.placed[i] = at
	return at
}

// parent gives the number of the parent of the ith process; -1 if it is not known. A parent mostly ends after its
// children, so that of two processes with the same ID the later one is the parent. But the first process of a PID
// namespace ends before the others, which it takes with it.
func (f *family) parent(i int) int {
	same := f.numbers[f.process(i).ppid]
	before := -1
	for _, n := range same {
		if n > i {
			return n
		}
		if n < i {
			before = n
		}
	}
	return before
}

// Memory gives the memory of the target's living processes by component, in bytes, as proportional set size: memory
// that processes share is divided among them.
func (a *Account) Memory() (map[Component]int64, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	living, err := a.look()
	if err != nil {
		return nil, err
	}
	memory := map[Component]int64{}
	f := a.family(nil, living)
	for i, p := range living {
		bytes, err := pss("/proc", p.pid)
		if err != nil {
			return nil, err
		}
		if bytes > 0 { // it has not just ended
			memory[f.place(i).component] += bytes
		}
	}
	return memory, nil
}
