// Package energy reads the energy that a machine takes, from the counters of its processors or from its batteries.
package energy

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/touchstone-bench/touchstone/internal/host/machine"
	"github.com/touchstone-bench/touchstone/internal/refusal"
)

// Gauge is a gauge of the energy that a machine takes. Its methods may be called from several goroutines.
//
// On machines with RAPL it adds up the packages: each package's counter includes its cores and its graphics, and on most
// machines not its memory. The zone psys of some laptops is used only without packages, because it includes them, and some
// vendors leave it uncalibrated. The zones of intel-rapl-mmio are a second view of the same packages. AMD's processors use
// the same files. Other machines can measure with their battery, which includes everything, while it discharges.
type Gauge struct {
	source string

	mu    sync.Mutex
	parts []counter
	total float64 // joules
}

// counter is one counter of energy.
type counter interface {
	// used returns the joules since the call before, or since the gauge was opened.
	used() (float64, error)
}

// powercap is the directory of RAPL's zones; powerSupply holds batteries.
const (
	powercap    = "sys/class/powercap"
	powerSupply = "sys/class/power_supply"
)

// raplZones are the kinds of zones, the first with a match counts. A zone's name has one number, and each part of it has
// another one: intel-rapl:0:0.
var raplZones = []struct{ directory, name *regexp.Regexp }{
	{regexp.MustCompile(`^intel-rapl:\d+$`), regexp.MustCompile(`^package-`)},
	{regexp.MustCompile(`^intel-rapl-mmio:\d+$`), regexp.MustCompile(`^package-`)},
	{regexp.MustCompile(`^intel-rapl:\d+$`), regexp.MustCompile(`^psys$`)},
}

// Open finds the gauge of a machine. root is the root of its file system. The error is the reason why it has none.
func Open(root string) (*Gauge, error) { return find(machine.At(root)) }

func find(t machine.Tree) (*Gauge, error) {
	var reasons []string
	for _, open := range []func(machine.Tree) (*Gauge, error){openRAPL, openBatteries} {
		e, err := open(t)
		if err == nil {
			return e, nil
		}
		reasons = append(reasons, err.Error())
	}
	return nil, errors.New(strings.Join(reasons, ", and "))
}

// Source describes the gauge.
func (e *Gauge) Source() string { return e.source }

// Joules returns the energy since the gauge was opened. Only differences have a meaning. A counter of RAPL wraps around
// after some minutes at the power of a large processor, so calls whose difference matters must be at most a minute apart.
func (e *Gauge) Joules() (float64, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range e.parts {
		joules, err := p.used()
		if err != nil {
			return 0, err
		}
		e.total += joules
	}
	return e.total, nil
}

// rapl is the counter of one zone.
type rapl struct {
	machine.Tree
	dir  string
	last uint64 // microjoules
	most uint64 // the value before the counter wraps to 0; 0 if unknown
}

func openRAPL(t machine.Tree) (*Gauge, error) {
	entries, err := fs.ReadDir(t.FS, powercap)
	if err != nil || len(entries) == 0 {
		return nil, fmt.Errorf("the kernel offers no RAPL counter in /%s", powercap)
	}
	for _, kind := range raplZones {
		var names []string
		var parts []counter
		for _, entry := range entries {
			dir := path.Join(powercap, entry.Name())
			name := t.Text(path.Join(dir, "name"))
			if !kind.directory.MatchString(entry.Name()) || !kind.name.MatchString(name) {
				continue
			}
			zone := &rapl{Tree: t, dir: dir}
			zone.most, _ = count(t, path.Join(dir, "max_energy_range_uj")) // 0 without a range
			if zone.last, err = count(t, path.Join(dir, "energy_uj")); err != nil {
				if errors.Is(err, fs.ErrPermission) {
					err = fmt.Errorf("%w: only root may read it, because it reveals secrets of other programs (CVE-2020-8694): %s", err, refusal.Rights("run as root"))
				}
				return nil, fmt.Errorf("read the RAPL counter: %w", err)
			}
			names, parts = append(names, name), append(parts, zone)
		}
		if len(parts) > 0 {
			slices.Sort(names)
			return &Gauge{source: "RAPL " + strings.Join(names, " + "), parts: parts}, nil
		}
	}
	return nil, fmt.Errorf("the RAPL zones in /%s have no package", powercap)
}

func (r *rapl) used() (float64, error) {
	counter, err := count(r.Tree, path.Join(r.dir, "energy_uj"))
	if err != nil {
		return 0, fmt.Errorf("read the RAPL counter: %w", err)
	}
	last := r.last
	r.last = counter
	switch {
	case counter >= last:
		return float64(counter-last) / 1e6, nil
	case last <= r.most:
		return float64(r.most-last+counter) / 1e6, nil
	}
	return 0, fmt.Errorf("read the RAPL counter: /%s/energy_uj went from %d back to %d, and its range is unknown", r.dir, last, counter)
}

// count reads a file with one whole number.
func count(t machine.Tree, name string) (uint64, error) {
	b, err := fs.ReadFile(t.FS, name)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("/%s holds no number: %w", name, err)
	}
	return n, nil
}

// battery is the gauge of a battery.
type battery struct {
	machine.Tree
	dir     string
	charge  bool // the gauge counts charge and not energy
	last    uint64
	voltage uint64 // microvolts, of a gauge of charge
}

func openBatteries(t machine.Tree) (*Gauge, error) {
	entries, err := fs.ReadDir(t.FS, powerSupply)
	if err != nil {
		return nil, errors.New("it reports no battery")
	}
	var names []string
	var parts []counter
	for _, entry := range entries {
		dir := path.Join(powerSupply, entry.Name())
		// The scope of a mouse's or keyboard's battery is Device.
		if t.Text(path.Join(dir, "type")) != "Battery" || t.Text(path.Join(dir, "scope")) == "Device" || t.Text(path.Join(dir, "present")) == "0" {
			continue
		}
		b := &battery{Tree: t, dir: dir}
		if err := b.discharging(); err != nil {
			return nil, err
		}
		if b.last, err = count(t, path.Join(dir, "energy_now")); errors.Is(err, fs.ErrNotExist) {
			b.charge = true
			b.last, b.voltage, err = b.chargeAndVoltage()
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("the battery %s reports neither its energy nor its charge with a voltage; its present power is no energy", entry.Name())
		case err != nil:
			return nil, fmt.Errorf("read the battery %s: %w", entry.Name(), err)
		}
		names, parts = append(names, entry.Name()), append(parts, b)
	}
	if len(parts) == 0 {
		return nil, errors.New("it has no battery")
	}
	return &Gauge{source: "battery " + strings.Join(names, " + "), parts: parts}, nil
}

// discharging returns an error unless the machine runs on the battery.
func (b *battery) discharging() error {
	if status := b.Text(path.Join(b.dir, "status")); status != "Discharging" {
		return fmt.Errorf("the battery %s is %q and not \"Discharging\": unplug the machine", path.Base(b.dir), status)
	}
	return nil
}

// chargeAndVoltage reads µAh and µV.
func (b *battery) chargeAndVoltage() (charge, voltage uint64, err error) {
	if charge, err = count(b.Tree, path.Join(b.dir, "charge_now")); err == nil {
		voltage, err = count(b.Tree, path.Join(b.dir, "voltage_now"))
	}
	return charge, voltage, err
}

const secondsPerHour = 3600

func (b *battery) used() (joules float64, err error) {
	if err := b.discharging(); err != nil {
		return 0, err
	}
	charge, voltage := uint64(0), uint64(0)
	if b.charge {
		charge, voltage, err = b.chargeAndVoltage()
	} else {
		charge, err = count(b.Tree, path.Join(b.dir, "energy_now")) // µWh
	}
	if err != nil {
		return 0, fmt.Errorf("read the battery %s: %w", path.Base(b.dir), err)
	}
	// A correction of the gauge can raise it a little, so the difference may be negative.
	joules = (float64(b.last) - float64(charge)) / 1e6 * secondsPerHour
	if b.charge {
		joules *= (float64(b.voltage) + float64(voltage)) / 2 / 1e6
	}
	b.last, b.voltage = charge, voltage
	return joules, nil
}
