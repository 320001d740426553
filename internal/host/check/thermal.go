package check

import (
	"fmt"
	"path"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/wording"
)

// thermalReading compares temperatures with the trip points where the kernel slows the CPU (passive, hot), and with the critical temperatures of
// the CPU's own sensors. It also counts how often the CPU slowed itself.
func (m state) thermalReading() reading {
	type sensor struct {
		name        string
		now, limit  float64 // °C
		hasHeadroom bool
	}
	var closest sensor
	consider := func(name string, temperature, limit float64) {
		if !closest.hasHeadroom || limit-temperature < closest.limit-closest.now {
			closest = sensor{name, temperature, limit, true}
		}
	}
	for _, zone := range m.Glob("sys/class/thermal/thermal_zone*") {
		temperature, ok := m.celsius(path.Join(zone, "temp"))
		if !ok {
			continue
		}
		for _, kind := range m.Glob(path.Join(zone, "trip_point_*_type")) {
			if k := m.Text(kind); k != "passive" && k != "hot" {
				continue
			}
			if limit, ok := m.celsius(strings.TrimSuffix(kind, "_type") + "_temp"); ok && limit > 0 { // a disabled one is 0 or below
				consider(m.Text(path.Join(zone, "type")), temperature, limit)
			}
		}
	}
	for _, dir := range m.Glob("sys/class/hwmon/hwmon*") {
		name := m.Text(path.Join(dir, "name"))
		if name != "coretemp" && name != "k10temp" {
			continue
		}
		for _, input := range m.Glob(path.Join(dir, "temp*_input")) {
			temperature, ok := m.celsius(input)
			limit, hasLimit := m.celsius(strings.TrimSuffix(input, "_input") + "_crit")
			if ok && hasLimit && limit > 0 {
				consider(name, temperature, limit)
			}
		}
	}
	throttled, hasCounter := int64(0), false
	for _, file := range m.ThrottleFiles() {
		if n := m.Number(file); n != nil {
			throttled, hasCounter = throttled+*n, true
		}
	}
	if !closest.hasHeadroom && !hasCounter {
		return unknown("the kernel has no temperature with a limit; in a virtual machine only the host has it")
	}
	var parts []string
	if closest.hasHeadroom {
		parts = append(parts, fmt.Sprintf("%.0f °C on %s, %.0f K below its limit", closest.now, closest.name, closest.limit-closest.now))
	}
	if hasCounter {
		parts = append(parts, fmt.Sprintf("throttled %s since boot", wording.Counted(int(throttled), "time")))
	}
	text := strings.Join(parts, ", ")
	if throttled == 0 && (!closest.hasHeadroom || closest.limit-closest.now >= headroomLeast) {
		return good(text)
	}
	return poor(text, "improve the cooling, let the machine cool down, or switch turbo off")
}

// celsius reads a temperature that the kernel gives in thousandths.
func (m state) celsius(name string) (float64, bool) {
	n := m.Number(name)
	if n == nil {
		return 0, false
	}
	return float64(*n) / 1000, true
}
