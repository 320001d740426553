package noise

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/touchstone-bench/touchstone/internal/host/hosttest"
	"github.com/touchstone-bench/touchstone/internal/host/machine"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// quiet is the disturbance on the machine "server-v2" if its files do not change.
func quiet() result.Disturbance {
	return result.Disturbance{
		Steal: new(0.0), CPUPressure: new(0.0), MemoryPressure: new(0.0), IOPressure: new(0.0),
		Load: new(0.0), MHz: new(2800.0), Throttled: new(int64(0)),
	}
}

func TestSampler(t *testing.T) {
	tests := []struct {
		name    string
		machine string
		before  hosttest.Files // written before Begin
		changes hosttest.Files // written between Begin and End
		elapsed time.Duration
		loads   []Resource
		want    func(d *result.Disturbance)
	}{
		{name: "nothing happens", elapsed: time.Second, want: func(*result.Disturbance) {}},
		{
			name: "steal", elapsed: 10 * time.Second,
			changes: hosttest.Files{"proc/stat": "cpu  10123 45 8123 998123123 123 0 45 1600 0 0\n"},
			want: func(d *result.Disturbance) {
				d.Steal = new(0.05) // 16 s of 32 CPUs × 10 s
				d.Marks = []string{"the hypervisor withheld 5.0 % of the CPU time"}
			},
		},
		{
			name: "one tick of steal is no evidence", elapsed: 10 * time.Millisecond,
			changes: hosttest.Files{"proc/stat": "cpu  10123 45 8123 998123123 123 0 45 1 0 0\n"},
			want:    func(d *result.Disturbance) { d.Steal = new(0.03125) },
		},
		{
			name: "steal that goes back", elapsed: time.Second,
			before:  hosttest.Files{"proc/stat": "cpu  1 0 1 1 0 0 0 9 0 0\n"},
			changes: hosttest.Files{"proc/stat": "cpu  1 0 1 1 0 0 0 8 0 0\n"},
			want:    func(d *result.Disturbance) { d.Steal = nil },
		},
		{
			name: "CPU pressure is recorded and not marked", elapsed: 2 * time.Second,
			changes: hosttest.Files{"proc/pressure/cpu": "some avg10=0.00 avg60=0.00 avg300=0.00 total=2234567\n"},
			want:    func(d *result.Disturbance) { d.CPUPressure = new(0.5) },
		},
		{
			name: "memory and I/O pressure", elapsed: 2 * time.Second,
			changes: hosttest.Files{
				"proc/pressure/memory": "some avg10=0.00 avg60=0.00 avg300=0.00 total=101000\n",
				"proc/pressure/io":     "some avg10=0.00 avg60=0.00 avg300=0.00 total=5500000\n",
			},
			want: func(d *result.Disturbance) {
				d.MemoryPressure, d.IOPressure = new(0.05), new(0.25)
				d.Marks = []string{"programs waited for memory 5.0 % of the time", "programs waited for I/O 25.0 % of the time"}
			},
		},
		{
			name: "a trial that does I/O", elapsed: 2 * time.Second, loads: []Resource{IO},
			changes: hosttest.Files{
				"proc/pressure/memory": "some avg10=0.00 avg60=0.00 avg300=0.00 total=101000\n",
				"proc/pressure/io":     "some avg10=0.00 avg60=0.00 avg300=0.00 total=5500000\n",
			},
			want: func(d *result.Disturbance) {
				d.MemoryPressure, d.IOPressure = new(0.05), new(0.25)
				d.Marks = []string{"programs waited for memory 5.0 % of the time"}
			},
		},
		{
			name: "pressure just below the marks", elapsed: time.Second,
			changes: hosttest.Files{
				"proc/pressure/memory": "some avg10=0.00 avg60=0.00 avg300=0.00 total=11000\n",
				"proc/pressure/io":     "some avg10=0.00 avg60=0.00 avg300=0.00 total=5050000\n",
			},
			want: func(d *result.Disturbance) { d.MemoryPressure, d.IOPressure = new(0.01), new(0.05) },
		},
		{
			name: "shares do not exceed one", elapsed: time.Millisecond,
			changes: hosttest.Files{"proc/pressure/cpu": "some avg10=0.00 avg60=0.00 avg300=0.00 total=2234567\n"},
			want:    func(d *result.Disturbance) { d.CPUPressure = new(1.0) },
		},
		{
			name: "no time has passed", elapsed: 0,
			want: func(d *result.Disturbance) {
				d.Steal, d.CPUPressure, d.MemoryPressure, d.IOPressure = nil, nil, nil, nil
			},
		},
		{
			name: "throttling is counted once for a core and once for a package", elapsed: time.Second,
			changes: hosttest.Files{
				hosttest.CPUs + "cpu0/thermal_throttle/core_throttle_count":    "2\n",
				hosttest.CPUs + "cpu1/thermal_throttle/core_throttle_count":    "1\n",
				hosttest.CPUs + "cpu0/thermal_throttle/package_throttle_count": "4\n",
				hosttest.CPUs + "cpu1/thermal_throttle/package_throttle_count": "4\n",
			},
			want: func(d *result.Disturbance) {
				d.Throttled = new(int64(7))
				d.Marks = []string{"CPUs were throttled 7 times because they were too hot"}
			},
		},
		{
			name: "the ceiling falls", elapsed: time.Second,
			changes: hosttest.Files{hosttest.CPUs + "cpufreq/policy1/scaling_max_freq": "2600000\n"},
			want: func(d *result.Disturbance) {
				d.Marks = []string{"the highest frequency the CPUs may take fell from 2800 to 2700 MHz"}
			},
		},
		{
			name: "slower than nominal", elapsed: time.Second,
			changes: hosttest.Files{hosttest.CPUs + "cpufreq/policy0/scaling_cur_freq": "2000000\n"},
			want: func(d *result.Disturbance) {
				d.MHz = new(2400.0)
				d.Marks = []string{"the CPUs ran at 2400 MHz, below their nominal 2800 MHz"}
			},
		},
		{
			name: "an idle CPU may be slow under other governors", elapsed: time.Second,
			before: hosttest.Files{
				hosttest.CPUs + "cpufreq/policy0/scaling_governor": "schedutil\n",
				hosttest.CPUs + "cpufreq/policy1/scaling_governor": "schedutil\n",
			},
			changes: hosttest.Files{hosttest.CPUs + "cpufreq/policy0/scaling_cur_freq": "400000\n"},
			want:    func(d *result.Disturbance) { d.MHz = new(1600.0) },
		},
		{
			name: "load", elapsed: time.Second,
			changes: hosttest.Files{"proc/loadavg": "12.50 3.00 1.00 4/512 3333\n"},
			want:    func(d *result.Disturbance) { d.Load = new(12.5) },
		},
		{
			name: "a machine that offers little", machine: "raspberry-pi-4", elapsed: time.Second,
			want: func(d *result.Disturbance) {
				*d = result.Disturbance{
					Steal: new(0.0), Load: new(0.08), MHz: new(600.0),
					Marks: []string{"the power supply's voltage was too low"},
				}
			},
		},
		{
			name: "CPUs of two kinds at their own nominal frequencies", machine: "rock-5b", elapsed: time.Second,
			want: func(d *result.Disturbance) {
				*d = result.Disturbance{Steal: new(0.0), CPUPressure: new(0.0), Load: new(0.12), MHz: new(2100.0)}
			},
		},
		{
			name: "a machine without frequency policies", machine: "vm-hybrid", elapsed: time.Second,
			want: func(d *result.Disturbance) {
				d.Load, d.MHz, d.Throttled = new(0.5), new(2299.998), nil
			},
		},
		{
			name: "an ARM machine without a known frequency", machine: "vm-arm64", elapsed: time.Second,
			changes: hosttest.Files{"proc/pressure/io": "some avg10=0.03 avg60=0.02 avg300=0.09 total=1670634\n"},
			want: func(d *result.Disturbance) {
				d.Load, d.MHz, d.Throttled, d.IOPressure = new(2.78), nil, nil, new(0.1)
				d.Marks = []string{"programs waited for I/O 10.0 % of the time"}
			},
		},
		{
			name: "times that are too few", elapsed: time.Second,
			changes: hosttest.Files{"proc/stat": "cpu  1 2 3 4\n"}, want: func(d *result.Disturbance) { d.Steal = nil },
		},
		{
			name: "a time that is no number, and no total of pressure", elapsed: time.Second,
			changes: hosttest.Files{"proc/stat": "cpu  1 2 3 4 5 6 7 x\n", "proc/pressure/cpu": "full avg10=0.00 total=7\n", "proc/pressure/io": "some avg10=0.00\n"},
			want:    func(d *result.Disturbance) { d.Steal, d.CPUPressure, d.IOPressure = nil, nil, nil },
		},
		{
			name: "nothing to read", machine: "nothing", elapsed: time.Second,
			want: func(d *result.Disturbance) { *d = result.Disturbance{} },
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			switch tt.machine {
			case "nothing":
			case "":
				root = hosttest.Unpack(t, "../testdata/server-v2.txtar")
			default:
				root = hosttest.Unpack(t, "../testdata/"+tt.machine+".txtar")
			}
			rewrite(t, root, tt.before)
			s := NewSampler(root)
			defer s.Close()
			clock := time.Hour
			s.now = func() time.Duration { return clock }
			b := s.Begin()
			rewrite(t, root, tt.changes)
			clock += tt.elapsed
			got := s.End(b, tt.loads...)
			want := quiet()
			tt.want(&want)
			if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
				t.Errorf("disturbance (-want +got):\n%s", diff)
			}
		})
	}
}

func rewrite(t *testing.T, root string, changes hosttest.Files) {
	t.Helper()
	for name, text := range changes {
		must.Do(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
}

func TestSamplerOfThisMachine(t *testing.T) {
	s := NewSampler("/")
	b := s.Begin()
	// Some time must pass between Begin and End.
	for s.now() == b.at {
	}
	d := s.End(b)
	for name, v := range map[string]*float64{"steal": d.Steal, "cpu": d.CPUPressure, "memory": d.MemoryPressure, "io": d.IOPressure} {
		if v != nil && (*v < 0 || *v > 1) {
			t.Errorf("%s = %v, not a share", name, *v)
		}
	}
	if d.Steal == nil || d.Load == nil {
		t.Errorf("the disturbance lacks values that every Linux has: %+v", d)
	}
	for range 2 {
		s.Close()
	}
	if d := s.End(b); d.Load != nil {
		t.Errorf("a closed sampler reads %+v", d)
	}
}

// On a machine with many policies the sampler reads a few, evenly spread over all.
func TestPoliciesAreSpreadOut(t *testing.T) {
	root := t.TempDir()
	const count = 40
	for i := range count {
		dir := filepath.Join(root, hosttest.CPUs, "cpufreq", "policy"+string(rune('A'+i)))
		must.Do(t, os.MkdirAll(dir, 0o700))
		must.Do(t, os.WriteFile(filepath.Join(dir, "scaling_cur_freq"), []byte("1000000\n"), 0o600))
	}
	s := NewSampler(root)
	defer s.Close()
	if len(s.speed) != maxPolicies || s.meanSpeed() != 1000 {
		t.Errorf("%d policies with a mean of %v MHz, want %d and 1000", len(s.speed), s.meanSpeed(), maxPolicies)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("cpu  49901 0 7988 126872 370 0 91 51 0 0\ncpu0 24287 0 3902 64369 45 0 13 22 0 0\n"))
	f.Add([]byte("some avg10=1.36 avg60=0.93 avg300=4.29 total=141585275\n"))
	f.Add([]byte("processor\t: 0\ncpu MHz\t\t: 2299.998\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if times, ok := machine.ParseCPUTimes(text); !ok && times != (machine.CPUTimes{}) {
			t.Errorf("parseCPUTimes fails and returns %v", times)
		}
		parsePressure(text)
		if mhz := parseMHz(text); mhz < 0 {
			t.Errorf("parseMHz = %v", mhz)
		}
	})
}

// BenchmarkSampler measures the cost of the sampler for each trial. The goal is less than 100 µs.
func BenchmarkSampler(b *testing.B) {
	s := NewSampler("/")
	defer s.Close()
	for b.Loop() {
		s.End(s.Begin())
	}
}
