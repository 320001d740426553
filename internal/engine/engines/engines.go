// Package engines is the list of engines. It opens targets through their drivers.
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
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// Drivers are engines in display order.
type Drivers []engine.Driver

// All lists every engine. A name in sockets that no engine has becomes a further engine, which speaks CRI. The fake engine
// uses the clock.
func All(clock *fake.Clock, sockets map[string]string) Drivers {
	drivers := Drivers{
		native.Driver{}, oci.Driver{}, cri.NewContainerd(), cri.NewCRIO(), docker.NewDriver(), podman.Driver{}, fake.NewDriver(clock),
	}
	for _, name := range slices.Sorted(maps.Keys(sockets)) {
		if drivers.find(name) == nil {
			drivers = append(drivers, cri.New(name))
		}
	}
	return drivers
}

// find returns the driver of an engine, or nil.
func (d Drivers) find(name string) engine.Driver {
	for _, driver := range d {
		if driver.Describe().Name == name {
			return driver
		}
	}
	return nil
}

// Describe returns the description of an engine. It is empty for an unknown one.
func (d Drivers) Describe(name string) engine.Description {
	if driver := d.find(name); driver != nil {
		return driver.Describe()
	}
	return engine.Description{}
}

// Descriptions lists the descriptions of all engines.
func (d Drivers) Descriptions() []engine.Description {
	var descriptions []engine.Description
	for _, driver := range d {
		descriptions = append(descriptions, driver.Describe())
	}
	return descriptions
}

// Programs returns the programs of all engines and runtimes, for the accounting of their cost.
func (d Drivers) Programs() monitor.Programs {
	programs := runtimes.Programs()
	for _, driver := range d {
		programs.Add(driver.Describe().Programs)
	}
	return programs
}

// Candidates lists the targets that may be on this machine.
func (d Drivers) Candidates(ctx context.Context, s engine.Session) []engine.Candidate {
	var candidates []engine.Candidate
	for _, driver := range d {
		candidates = append(candidates, driver.Candidates(ctx, s)...)
	}
	return candidates
}

// Open opens a target. An unknown engine is an *engine.UnsupportedError too, because a plan may name engines of other
// versions.
func (d Drivers) Open(ctx context.Context, t target.Target, s engine.Session) (engine.Engine, error) {
	if driver := d.find(t.Engine); driver != nil {
		return driver.Open(ctx, t, s)
	}
	var names []string
	for _, driver := range d {
		names = append(names, driver.Describe().Name)
	}
	return nil, &engine.UnsupportedError{
		What:   t.String(),
		Reason: fmt.Sprintf("this version has no engine %q, only %s", t.Engine, strings.Join(names, ", ")),
		Advice: fmt.Sprintf("measure the runtime itself with oci/%s", t.Runtime),
	}
}

// Sweep removes the objects that run s.RunID has left with the daemon at s.Sockets[engineName], and returns their number.
func (d Drivers) Sweep(ctx context.Context, s engine.Session, engineName string) (int, error) {
	if sweeper, ok := d.find(engineName).(engine.Sweeper); ok {
		return sweeper.Sweep(ctx, s)
	}
	return 0, fmt.Errorf("this version has no engine %q that could remove its objects", engineName)
}
