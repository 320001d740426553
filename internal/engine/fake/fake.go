// Package fake is an engine without containers. Its calls take the time that a script sets, on a clock of its own, and fail
// as the script says. It needs no root and starts no process, so all packages above the engines are tested with it. It
// ships in the binary, so that a new user can try the whole tool before a runtime is installed.
//
// The script is the target's options; the runtime's name is free:
//
//	fake/fast@create=10ms,start=5ms,jitter=0.05
//	fake/flaky@fail=create#3,hang=start#5+kill#7
//
// Latencies:
//
//	create start kill delete exec pause resume update stats   duration of the call
//	pull remove   duration of the call for an image of any size
//	ready     from the call of start to the first byte of the process; half of start
//	          unless set. Start returns after that byte, so a ready longer than start
//	          prolongs it: a byte from another goroutine would come at a time that
//	          the scheduler chooses
//	exit      from the kill, or the end of the program's work, to the process's exit
//	jitter    relative standard deviation of all latencies and of all values that
//	          programs report (lognormal, mean 1)
//	drift     relative growth of the same with each container created before
//	wander    relative standard deviation of a factor of the same, which each run
//	          draws by its ID
//	bimodal   SHARE:FACTOR, the share of all calls that takes FACTOR times as long
//	seed      of the random numbers, which also depend on the target's name: the
//	          nth call of a kind takes the same time in each run
//
// Faults, each as CALL or CALL#N (the Nth call of its kind on the engine), joined by +. The
// calls are those above, wait and state:
//
//	fail      takes its time, has no effect and returns an error; also of open, the
//	          first container of the target
//	hang      has no effect and waits until its context ends; a limit on the fake
//	          clock ends it at once
//	leak      create: returns an error and leaves the container behind.
//	          delete: the first removal of the container returns an error
//	          and has no effect, the next one works
//	die       start: SIGKILL kills the process before its first byte
//	lie       start, delete, exec, pause, resume, update: takes its time,
//	          has no effect and returns success
//	garbage   N: the Nth process writes garbage instead of its program's output
//
// Further options: no=CAPABILITY[+CAPABILITY] removes capabilities (host-network has a dash). score multiplies the rates
// that programs report and divides their latencies. cpu and mem are the cost of a container to the host, as a duration and
// in bytes, and slab is the kernel's memory for it.
//
// An image exists if the session's registry has it; without a registry every image exists. Containers can be created from
// a pulled image until it is removed.
//
// The arguments select the imitated program of a container. They must be the probe's, and the program's values are made up.
// Other programs are echo, which writes its arguments, env, which writes its environment, and the programs that a test adds with [Driver.Install].
//
// Time passes only in calls. Output is written, and closed, when some call moves the clock past its moment, in that call's
// goroutine. So a writer must neither block nor call the container, and a caller that waits for the end of the output must
// have called Wait before. Parallel calls pass one after the other, see [Clock].
package fake

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// Name is the engine's name in targets.
const Name = "fake"

// Driver opens fake targets. All its engines share a clock and a host. The IDs of containers are unique on the host.
type Driver struct {
	clock *Clock
	host  *host

	mu    sync.Mutex
	opens map[string]int // by target
}

// NewDriver returns a driver whose engines use the clock.
func NewDriver(clock *Clock) *Driver {
	return &Driver{clock: clock, opens: map[string]int{}, host: &host{
		containers: map[string]*container{}, images: map[image]bool{}, programs: map[string]Program{"echo": echo, "/bin/echo": echo, "/bin/env": env},
	}}
}

// Install adds a program to the root file system of all containers. The name is its first argument.
func (d *Driver) Install(name string, p Program) {
	d.host.mu.Lock()
	defer d.host.mu.Unlock()
	d.host.programs[name] = p
}

// Describe declares an engine without processes.
func (d *Driver) Describe() engine.Description {
	return engine.Description{Name: Name, Kind: engine.FullEngine}
}

// Candidates is empty: a plan has fake targets only by name.
func (d *Driver) Candidates(context.Context, engine.Session) []engine.Candidate { return nil }

// Open opens t. It fails for unknown or malformed options, and for the scripted faults of open.
func (d *Driver) Open(ctx context.Context, t target.Target, s engine.Session) (engine.Engine, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("open target %q: %w", t, context.Cause(ctx))
	}
	if t.Engine != Name {
		return nil, fmt.Errorf("open target %q: it is not a target of the fake engine", t)
	}
	script, err := parseScript(t)
	if err != nil {
		return nil, err
	}
	e := &Engine{
		Missing: script.missing,
		target:  t, script: script, clock: d.clock, host: d.host, session: s, prefix: engine.Prefix + s.RunID,
		calls: map[op]int{}, random: map[string]*rand.Rand{}, run: script.factor(t, s.RunID),
	}
	if n := d.opened(t); hits(script.fail, opOpen, n) {
		return nil, &engine.OpenError{Info: e.Info(), Transient: true, Err: &engine.UnsupportedError{
			What: t.String(), Reason: fmt.Sprintf("scripted fault: call %d of open fails", n),
		}}
	}
	return e, nil
}

// opened counts the calls of Open for a target from 1.
func (d *Driver) opened(t target.Target) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.opens[t.String()]++
	return d.opens[t.String()]
}

// Leftovers lists the IDs of all containers and the references of all images that exist on the
// driver's host, whichever of its engines made them, sorted.
func (d *Driver) Leftovers() []string { return append(d.host.list(nil), d.host.listImages()...) }

// host is the machine of the fake containers.
type host struct {
	mu         sync.Mutex
	containers map[string]*container
	images     map[image]bool
	programs   map[string]Program
	busy       atomic.Int64 // running programs with Lines
}

// image is an image that an engine has pulled.
type image struct {
	engine *Engine
	ref    string
}

// setImage adds or removes an image.
func (h *host) setImage(i image, exists bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if exists {
		h.images[i] = true
	} else {
		delete(h.images, i)
	}
}

func (h *host) hasImage(i image) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.images[i]
}

func (h *host) listImages() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var refs []string
	for i := range h.images {
		refs = append(refs, i.ref)
	}
	slices.Sort(refs)
	return refs
}

// add adds a container, and refuses an existing ID.
func (h *host) add(c *container) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, exists := h.containers[c.spec.ID]; exists {
		return fmt.Errorf("a container with this ID exists")
	}
	h.containers[c.spec.ID] = c
	return nil
}

func (h *host) remove(c *container) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.containers[c.spec.ID] == c {
		delete(h.containers, c.spec.ID)
	}
}

// list returns the IDs of the containers of e, or of all engines if e is nil.
func (h *host) list(e *Engine) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var ids []string
	for id, c := range h.containers {
		if e == nil || c.engine == e {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, strings.Compare)
	return ids
}
