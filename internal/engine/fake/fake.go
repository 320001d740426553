// Package fake is an engine without containers: its calls take the time that a
// script says, on a clock of its own, and go wrong where the script says so. It needs no
// root and starts no process, so all that stands above the engines is tested with
// it, and it ships in the binary so that a newcomer can walk the whole tool before
// a runtime is installed.
//
// The script is the target's options; the runtime's name is only a name:
//
//	fake/fast@create=10ms,start=5ms,jitter=0.05
//	fake/flaky@fail=create#3,hang=start#5+kill#7
//
// Latencies:
//
//	create start kill delete exec pause resume update   how long the call takes
//	pull remove   the same of an image, whatever its size
//	ready     from the call of start to the first byte the process writes; half of
//	          start unless set. Start returns after that byte, so a ready
//	          longer than start prolongs it: a byte that came from a goroutine of
//	          its own would come at a time the scheduler chooses
//	exit      from the kill, or the end of the program's work, to the end of the process
//	jitter    relative standard deviation of all latencies and of all that programs
//	          report (lognormal, mean 1)
//	drift     relative growth of the same with each container created before
//	bimodal   SHARE:FACTOR, the share of all calls that takes FACTOR times as long
//	seed      of the random numbers, which also depend on the target's spelling: the
//	          nth call of a kind takes the same time in each run
//
// Faults, each as CALL or CALL#N (the Nth call of its kind on the engine), several
// joined by +; the calls are those above and wait and state:
//
//	fail      takes its time, does nothing and returns an error
//	hang      does nothing until its context ends; a limit set on the fake clock ends
//	          it at once
//	leak      create: returns an error and leaves the container behind.
//	          delete: the container's first removal returns an error
//	          and removes nothing, its next one works
//	die       start: the process is killed by SIGKILL before its first byte
//	garbage   N: the Nth process writes something else than its program would
//
// And: no=CAPABILITY[+CAPABILITY] takes capabilities away (host-network is spelled
// with a dash), score multiplies the rates that programs report and divides their latencies,
// cpu and mem are what a container costs the host, as a duration and in bytes.
//
// An image is there if the session's registry has it; without a registry every one is. What was pulled can be
// created from, until it is removed.
//
// The process of a container is imitated from its arguments, which must be the
// probe's; what it reports is made up. Beside it there is echo, which writes its arguments, and
// what a test puts there with [Driver.Install].
//
// Time passes in calls only. Output is written, and closed, while some call moves the
// clock past its moment, in that call's goroutine: a writer must neither block
// nor call the container, and whoever waits for the end of output must have called Wait
// before. Calls made in parallel pass one after the other, see [Clock].
package fake

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// Name is the engine's name in targets.
const Name = "fake"

// Driver makes fake targets live. All its engines share a clock and a host, on which
// the IDs of containers are unique.
type Driver struct {
	clock *Clock
	host  *host
}

// NewDriver gives a driver whose engines live on clock.
func NewDriver(clock *Clock) *Driver {
	return &Driver{clock: clock, host: &host{
		containers: map[string]*container{}, images: map[image]bool{}, programs: map[string]Program{"echo": echo, "/bin/echo": echo},
	}}
}

// Install puts a program into the root file system of all containers, by the first argument that calls it.
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

// Open makes t live. It fails only on options that are unknown or wrong.
func (d *Driver) Open(ctx context.Context, t target.Target, s engine.Session) (engine.Engine, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("open target %q: %w", t, context.Cause(ctx))
	}
	if t.Engine != Name {
		return nil, fmt.Errorf("open target %q: it is not a target of the fake engine", t)
	}
	e, err := d.open(t, s)
	if err != nil {
		return nil, err
	}
	return e, nil
}

func (d *Driver) open(t target.Target, s engine.Session) (*Engine, error) {
	script, err := parseScript(t)
	if err != nil {
		return nil, err
	}
	return newEngine(t, script, d.clock, d.host, s), nil
}

// Leftovers lists the IDs of all containers and the references of all images that exist on the
// driver's host, whichever of its engines made them, sorted.
func (d *Driver) Leftovers() []string { return append(d.host.list(nil), d.host.listImages()...) }

// host is the machine on which fake containers exist.
type host struct {
	mu         sync.Mutex
	containers map[string]*container
	images     map[image]bool
	programs   map[string]Program
}

// image is an image that an engine has pulled.
type image struct {
	engine *Engine
	ref    string
}

// setImage says whether there is an image.
func (h *host) setImage(i image, there bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if there {
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

// add refuses an ID that exists.
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

// list gives the IDs of the containers of e, or of all engines if it is nil.
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
