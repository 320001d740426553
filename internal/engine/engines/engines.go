// Package engines lists the engines there are and opens targets through them.
package engines

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/cri"
	"github.com/touchstone-bench/touchstone/internal/engine/docker"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/engine/native"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/engine/podman"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// Drivers are the engines there are, in the order in which their targets are shown.
type Drivers []engine.Driver

// All lists every engine: those there are, and one for each further name that has a socket, which speaks
// CRI. The clock is that of the fake one.
func All(clock *fake.Clock, sockets map[string]string) Drivers {
	all := Drivers{
		native.Driver{}, oci.Driver{}, cri.NewContainerd(), cri.NewCRIO(), docker.NewDriver(), podman.Driver{}, fake.NewDriver(clock),
	}
	for _, name := range slices.Sorted(maps.Keys(sockets)) {
		if !slices.ContainsFunc(all, func(d engine.Driver) bool { return d.Name() == name }) {
			all = append(all, cri.New(name))
		}
	}
	return all
}

// Candidates lists the targets that may be on this machine.
func (d Drivers) Candidates(ctx context.Context, s engine.Session) []engine.Candidate {
	var all []engine.Candidate
	for _, driver := range d {
		all = append(all, driver.Candidates(ctx, s)...)
	}
	return all
}

// Open makes a target live. A target of an engine that there is not is an
// *engine.UnsupportedError too: a plan may name what other versions have.
func (d Drivers) Open(ctx context.Context, t target.Target, s engine.Session) (engine.Engine, error) {
	var names []string
	for _, driver := range d {
		if driver.Name() == t.Engine {
			return driver.Open(ctx, t, s)
		}
		names = append(names, driver.Name())
	}
	return nil, &engine.UnsupportedError{
		What:   t.String(),
		Reason: fmt.Sprintf("this version has no engine %q, only %s", t.Engine, strings.Join(names, ", ")),
		Advice: fmt.Sprintf("measure the runtime itself with oci/%s", t.Runtime),
	}
}

// Sweep has the daemon at s.Sockets[engineName] remove what run s.RunID has left with it, and
// tells how many objects that were.
func (d Drivers) Sweep(ctx context.Context, s engine.Session, engineName string) (int, error) {
	for _, driver := range d {
		if sweeper, ok := driver.(engine.Sweeper); ok && driver.Name() == engineName {
			return sweeper.Sweep(ctx, s)
		}
	}
	return 0, fmt.Errorf("this version has no engine %q that could remove it", engineName)
}
