package energy

import (
	"io/fs"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/host/hosttest"
	"github.com/touchstone-bench/touchstone/internal/host/machine"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/refusal"
)

// The trees have the files of a laptop (one socket with psys and the mmio view), a server with two sockets and memory zones,
// and an AMD machine.
var energyTrees = map[string]map[string]string{
	"one socket": {
		"sys/class/powercap/intel-rapl:0/name": "package-0", "sys/class/powercap/intel-rapl:0/energy_uj": "1000000", "sys/class/powercap/intel-rapl:0/max_energy_range_uj": "262143328850",
		"sys/class/powercap/intel-rapl:0:0/name": "core", "sys/class/powercap/intel-rapl:0:0/energy_uj": "400000", "sys/class/powercap/intel-rapl:0:0/max_energy_range_uj": "262143328850",
		"sys/class/powercap/intel-rapl:0:1/name": "uncore", "sys/class/powercap/intel-rapl:0:1/energy_uj": "100000",
		"sys/class/powercap/intel-rapl:1/name": "psys", "sys/class/powercap/intel-rapl:1/energy_uj": "9000000", "sys/class/powercap/intel-rapl:1/max_energy_range_uj": "262143328850",
		"sys/class/powercap/intel-rapl-mmio:0/name": "package-0", "sys/class/powercap/intel-rapl-mmio:0/energy_uj": "1000000",
		"sys/class/powercap/intel-rapl/enabled": "1", "sys/class/powercap/dtpm/name": "dtpm",
	},
	"two sockets": {
		"sys/class/powercap/intel-rapl:0/name": "package-0", "sys/class/powercap/intel-rapl:0/energy_uj": "1000000", "sys/class/powercap/intel-rapl:0/max_energy_range_uj": "65532610987",
		"sys/class/powercap/intel-rapl:0:0/name": "dram", "sys/class/powercap/intel-rapl:0:0/energy_uj": "700000",
		"sys/class/powercap/intel-rapl:1/name": "package-1", "sys/class/powercap/intel-rapl:1/energy_uj": "65532000000", "sys/class/powercap/intel-rapl:1/max_energy_range_uj": "65532610987",
	},
	"psys alone":      {"sys/class/powercap/intel-rapl:0/name": "psys", "sys/class/powercap/intel-rapl:0/energy_uj": "5"},
	"mmio alone":      {"sys/class/powercap/intel-rapl-mmio:0/name": "package-0", "sys/class/powercap/intel-rapl-mmio:0/energy_uj": "5"},
	"memory alone":    {"sys/class/powercap/intel-rapl:0/name": "dram", "sys/class/powercap/intel-rapl:0/energy_uj": "5"},
	"no number":       {"sys/class/powercap/intel-rapl:0/name": "package-0", "sys/class/powercap/intel-rapl:0/energy_uj": "n/a"},
	"no counter":      {"sys/class/powercap/intel-rapl:0/name": "package-0"},
	"none":            {"sys/class/power_supply/AC/type": "Mains"},
	"nothing at all":  {},
	"battery":         {"sys/class/power_supply/BAT0/type": "Battery", "sys/class/power_supply/BAT0/status": "Discharging", "sys/class/power_supply/BAT0/energy_now": "41000000", "sys/class/power_supply/BAT0/power_now": "9000000", "sys/class/power_supply/AC/type": "Mains", "sys/class/power_supply/hidpp_battery_0/type": "Battery", "sys/class/power_supply/hidpp_battery_0/scope": "Device", "sys/class/power_supply/hidpp_battery_0/status": "Charging"},
	"two batteries":   {"sys/class/power_supply/BAT0/type": "Battery", "sys/class/power_supply/BAT0/status": "Discharging", "sys/class/power_supply/BAT0/energy_now": "41000000", "sys/class/power_supply/BAT1/type": "Battery", "sys/class/power_supply/BAT1/status": "Discharging", "sys/class/power_supply/BAT1/charge_now": "3000000", "sys/class/power_supply/BAT1/voltage_now": "12000000"},
	"charging":        {"sys/class/power_supply/BAT0/type": "Battery", "sys/class/power_supply/BAT0/status": "Charging", "sys/class/power_supply/BAT0/energy_now": "41000000"},
	"power alone":     {"sys/class/power_supply/BAT0/type": "Battery", "sys/class/power_supply/BAT0/status": "Discharging", "sys/class/power_supply/BAT0/power_now": "9000000"},
	"missing battery": {"sys/class/power_supply/BAT0/type": "Battery", "sys/class/power_supply/BAT0/present": "0"},
}

func TestEnergy(t *testing.T) {
	const zone, supply = "sys/class/powercap/intel-rapl", "sys/class/power_supply/"
	for _, tt := range []struct {
		tree, source string
		change       map[string]string
		joules       float64
	}{
		{"one socket", "RAPL package-0", map[string]string{zone + ":0/energy_uj": "3500000", zone + ":0:0/energy_uj": "9400000", zone + ":1/energy_uj": "99000000"}, 2.5},
		{"one socket", "RAPL package-0", nil, 0},
		// The second socket wraps around: 0.610987 J to the end of its range and 1 J after it.
		{"two sockets", "RAPL package-0 + package-1", map[string]string{zone + ":0/energy_uj": "2000000", zone + ":1/energy_uj": "1000000"}, 1 + 0.610987 + 1},
		{"psys alone", "RAPL psys", map[string]string{zone + ":0/energy_uj": "1000005"}, 1},
		{"mmio alone", "RAPL package-0", map[string]string{zone + "-mmio:0/energy_uj": "1000005"}, 1},
		{"battery", "battery BAT0", map[string]string{supply + "BAT0/energy_now": "40990000"}, 36},
		// 10 mWh and 1 mAh at a mean of 11.9 V.
		{"two batteries", "battery BAT0 + BAT1", map[string]string{supply + "BAT0/energy_now": "40990000", supply + "BAT1/charge_now": "2999000", supply + "BAT1/voltage_now": "11800000"}, 36 + 42.84},
	} {
		root := t.TempDir()
		hosttest.Write(t, root, energyTrees[tt.tree])
		e, err := Open(root)
		if err != nil {
			t.Errorf("%s: %v", tt.tree, err)
			continue
		}
		if e.Source() != tt.source {
			t.Errorf("%s: the source is %q, want %q", tt.tree, e.Source(), tt.source)
		}
		hosttest.Write(t, root, tt.change)
		for range 2 { // the second call adds nothing
			if joules, err := e.Joules(); err != nil || math.Abs(joules-tt.joules) > 1e-9 {
				t.Errorf("%s: %v J, %v; want %v J", tt.tree, joules, err, tt.joules)
			}
		}
	}
}

func TestNoEnergy(t *testing.T) {
	const noRAPL = "the kernel offers no RAPL counter in /sys/class/powercap"
	for tree, want := range map[string]string{
		"none":            noRAPL + ", and it has no battery",
		"nothing at all":  noRAPL + ", and it reports no battery",
		"memory alone":    "the RAPL zones in /sys/class/powercap have no package, and it reports no battery",
		"no number":       "/sys/class/powercap/intel-rapl:0/energy_uj holds no number",
		"no counter":      "read the RAPL counter",
		"charging":        `the battery BAT0 is "Charging" and not "Discharging": unplug the machine`,
		"power alone":     "the battery BAT0 reports neither its energy nor its charge with a voltage",
		"missing battery": noRAPL + ", and it has no battery",
	} {
		root := t.TempDir()
		hosttest.Write(t, root, energyTrees[tree])
		if _, err := Open(root); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want one with %q", tree, err, want)
		}
	}
}

// forbidden is a file system with a counter that only root may read.
type forbidden struct{ fs.FS }

func (f forbidden) Open(name string) (fs.File, error) {
	if strings.HasSuffix(name, "/energy_uj") {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return f.FS.Open(name)
}

func TestForbiddenEnergy(t *testing.T) {
	root := t.TempDir()
	hosttest.Write(t, root, energyTrees["one socket"])
	_, err := find(machine.Tree{FS: forbidden{os.DirFS(root)}})
	if err == nil || !strings.Contains(err.Error(), "CVE-2020-8694): "+refusal.Rights("run as root")) {
		t.Errorf("the error is %v", err)
	}
}

// A gauge that fails during a run gives no number.
func TestEnergyFailsLater(t *testing.T) {
	for name, tt := range map[string]struct {
		tree   string
		change map[string]string
		want   string
	}{
		"no range":   {"psys alone", map[string]string{"sys/class/powercap/intel-rapl:0/energy_uj": "1"}, "went from 5 back to 1, and its range is unknown"},
		"no number":  {"one socket", map[string]string{"sys/class/powercap/intel-rapl:0/energy_uj": ""}, "holds no number"},
		"plugged in": {"battery", map[string]string{"sys/class/power_supply/BAT0/status": "Charging"}, "unplug the machine"},
	} {
		root := t.TempDir()
		hosttest.Write(t, root, energyTrees[tt.tree])
		e, err := Open(root)
		must.Do(t, err)
		hosttest.Write(t, root, tt.change)
		if _, err := e.Joules(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: the error is %v, want one with %q", name, err, tt.want)
		}
	}
}
