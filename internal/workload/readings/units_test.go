package readings_test

import (
	"math"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/workload/readings"
	"github.com/touchstone-bench/touchstone/internal/workload/workloadtest"
)

func auto(t testing.TB, unit string) readings.Scale {
	t.Helper()
	unit, binary := strings.CutSuffix(unit, " binary")
	scale, err := readings.Auto(unit, binary)
	must.Do(t, err)
	return scale
}

// Programs that choose the unit by the size of the number are read in one unit.
//
// Invariant custom-units: A number of a custom program counts only with its unit: the expression contains the unit, or `scale: auto` converts it.
func TestUnitsThatSwitch(t *testing.T) {
	const hyperfine, iperf, wrk = `Time \(.*mean.*σ.*\): +(?:\x1b\[[0-9;]*m)? *([0-9.]+)`, `sec +[0-9.]+ [KMGT]?Bytes +([0-9.]+)`, `Latency +([0-9.]+)`
	for _, tt := range []struct {
		file, expression, unit string
		want                   float64
	}{
		{"hyperfine-ms.txt", hyperfine, "s", 0.0216},
		{"hyperfine-colour.txt", hyperfine, "s", 635.2e-6},
		{"iperf-gbits.txt", iperf, "bit/s", 1.02e9},
		{"iperf-gbits.txt", `sec +([0-9.]+ [KMGT]?Bytes)`, "B binary", 1.19 * (1 << 30)},
		{"iperf3-gbits.txt", iperf + ` [^\n]* receiver`, "bit/s", 12.8e9},
		{"wrk-us.txt", wrk, "s", 635.91e-6},
		{"wrk-s.txt", wrk, "s", 1.02},
		{"wrk-us.txt", `Req/Sec +([0-9.]+)`, "1/s", 56200},
		{"wrk-us.txt", `Transfer/sec: +([0-9.]+)`, "B/s binary", 606.33 * (1 << 20)},
		{"ab.txt", `Transfer rate: +([0-9.]+)`, "B/s binary", 13430.40 * (1 << 10)},
		{"ab.txt", `(?m)Time per request: +([0-9.]+) .*\(mean\)$`, "s", 0.621e-3},
		{"ab.txt", `Requests per second: +([0-9.]+) \[#(?P<unit>/sec)`, "1/s", 16103.90},
		{"perf-c.txt", `([0-9.]+) (?P<unit>\w+) task-clock`, "s", 0.42e-3},
		{"perf-c.txt", `cycles +# +([0-9.]+)`, "1/s", 2.132e9},
		{"fio-usec.txt", `IOPS=([0-9.]+)`, "1/s", 128000},
		{"fio-usec.txt", `BW=([0-9.]+)`, "B/s", 500 << 20},
		{"fio-msec.txt", `BW=\S+ \(([0-9.]+)`, "B/s", 398e3},
		{"fio-usec.txt", `clat \((?P<unit>\w+)\): .*avg= *([0-9.]+)`, "s", 7.21e-6},
		{"sysbench-memory.txt", `transferred \(([0-9.]+)`, "B/s", 8932.11 * (1 << 20)},
		{"sysbench-fileio.txt", `read, (?P<unit>\S+): +([0-9.]+)`, "B/s", 50.71 * (1 << 20)},
		{"sysbench-memory.txt", `Latency \((?P<unit>ms)\):[^9]*95th percentile: +([0-9.]+)`, "s", 0.15e-3},
		{"dd-mb.txt", `copied, [0-9.]+ s, ([0-9.]+)`, "B/s", 724e6},
		{"criterion-us.txt", `time: +\[[0-9.]+ \S+ ([0-9.]+)`, "s", 8.5698e-6},
		{"time-bash.txt", `real\s+(\S+)`, "s", 62.345},
		{"time-bash.txt", `real\s+([0-9.]+)`, "s", 0}, // the minutes alone
	} {
		r, err := readings.Regex("A", tt.expression, auto(t, tt.unit))
		must.Do(t, err)
		values, err := readings.Program(nil, nil, r).Parse(workloadtest.Read(t, "switched/"+tt.file))
		switch value := values["A"]; {
		case tt.want == 0 && err == nil:
			t.Errorf("%s with %s is %v, want an error", tt.file, tt.expression, value)
		case tt.want != 0 && (err != nil || math.Abs(value-tt.want) > 1e-12*tt.want):
			t.Errorf("%s with %s is %v, %v; want %v", tt.file, tt.expression, value, err, tt.want)
		}
	}
}

// The same programs with a factor: an expression that does not contain the unit is refused, also if it contains anything else in its place.
//
// Invariant custom-units.
func TestUnitsThatNoExpressionContains(t *testing.T) {
	const unit, digits = "follows the number", "a part of a number"
	for _, tt := range []struct{ file, expression, want string }{
		{"hyperfine-ms.txt", `Time \(mean ± σ\): +([0-9.]+)`, unit},
		{"hyperfine-s.txt", `Time \(mean ± σ\): +([0-9.]+).*`, unit},
		{"hyperfine-s.txt", `Time \(mean ± σ\): +([0-9.]+) (?:ms|s)`, unit},
		{"hyperfine-s.txt", `Time \(mean ± σ\): +([0-9.]+) m?s`, unit},
		{"hyperfine-ms.txt", `Time \(mean ± σ\): +([0-9.]+) m`, unit},
		{"hyperfine-colour.txt", `: +\S+ ([0-9.]+)`, unit},
		{"hyperfine-s.txt", `Time \(mean ± σ\): +([0-9.]+) s`, ""},
		{"iperf-gbits.txt", `Bytes +([0-9.]+) [KMG]bits/sec`, unit},
		{"wrk-us.txt", `Requests/sec: +([0-9.]+)`, ""},
		{"ab.txt", `Transfer rate: +([0-9.]+) \[Kbytes/sec\]`, ""},
		{"ab-groups.txt", `Transfer rate: +([0-9.]+)`, digits},
		{"ab-groups.txt", `Transfer rate: +([0-9.]+).*`, digits},
		{"ab-groups.txt", `Transfer rate:.*?([0-9.]+) \[Kbytes/sec\]`, digits},
		{"ab-groups.txt", `([0-9.]+) \[Kbytes/sec\]`, digits},
		{"ab-groups.txt", `Transfer rate: +([0-9 ]+) \[Kbytes/sec\]`, "digits in groups"},
		{"perf-c.txt", `([0-9]+) +cycles`, ""},
		{"perf-c.txt", `([0-9.]+) [mnu]?sec task-clock`, unit},
		{"perf-en.txt", `([0-9]+) +cycles`, digits},
		{"perf-fr.txt", `([0-9]+) +cycles`, digits},
		{"fio-usec.txt", `IOPS=([0-9.]+)`, unit},
		{"fio-msec.txt", `IOPS=([0-9.]+)`, ""},
		{"sysbench-fileio.txt", `reads/s: +([0-9.]+)`, ""},
		{"go-bench.txt", `BenchmarkParse-2\s+[0-9]+\s+([0-9.]+) ns/op`, ""},
	} {
		_, err := readings.Program(nil, nil, regex(t, "A", tt.expression, 1)).Parse(workloadtest.Read(t, "switched/"+tt.file))
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s on %s: %v; want %q", tt.expression, tt.file, err, tt.want)
		}
	}
}

func TestQuantities(t *testing.T) {
	for _, tt := range []struct {
		unit, text string
		want       any
	}{
		{"s", "5 ns", 5e-9},
		{"s", "5 µs", 5e-6},
		{"s", "5 μs", 5e-6},
		{"s", "1.5 min", 90.0},
		{"s", "1h 2m 3.5s", 3723.5},
		{"s", "3.154E7 ns", 0.03154},
		{"s", "5\u00a0ms", 5e-3},
		{"s", "5\u202fms", 5e-3},
		{"s", "12 milliseconds", 12e-3},
		{"B", "2 KB", 2e3},
		{"B", "2 KiB", 2048.0},
		{"B", "7 bytes", 7.0},
		{"B binary", "2 KB", 2048.0},
		{"B binary", "2 MBytes", 2.0 * (1 << 20)},
		{"bit/s", "9 Mbps", 9e6},
		{"bit/s", "9 Gb/s", 9e9},
		{"bit/s", "2 Kibit/s", 2048.0},
		{"B/s", "9 MBytes/sec", 9e6},
		{"1/s", "9 kHz", 9e3},
		{"1/s", "9", 9.0},
		{"1/s", "9 Mops/s", 9e6},
		{"1/s", "9 req/sec", 9.0},
		{"count", "1.2M", 1.2e6},
		{"count", "4Ki", 4096.0},
		{"ratio", "12.5%", 0.125},
		{"J", "3 kWh", 10.8e6},
		{"FLOP/s", "2 GFLOPS", 2e9},

		{"s", "12", "no unit follows it"},
		{"s", "12 furlongs", `the unit "furlongs" is not known for a metric in s; known are ps, ns, us, ms, s, m, h, d`},
		{"B", "12 kb", `"kb" is not known`},
		{"B/s", "12 Mbit/s", `"Mbit/s" is not known`},
		{"ratio", "0.5", "no unit follows it"},
		{"s", "1,5 ms", "no unit follows it"},
		{"s", "1.5h 3m", "more than one number"},
		{"count", "1k 2", "more than one number"},
		{"s", "nan s", "is not a number"},
		{"s", "0x10 s", `the unit "x" is not known`},
		{"s", "", "is not a number"},
		{"s", "-5 ms", "below 0"},
	} {
		r, err := readings.JSON("A", "a", auto(t, tt.unit))
		must.Do(t, err)
		values, err := readings.Program(nil, nil, r).Parse([]byte(`{"a":"` + tt.text + `"}`))
		switch want := tt.want.(type) {
		case float64:
			if value := values["A"]; err != nil || math.Abs(value-want) > 1e-12*want {
				t.Errorf("%q in %s is %v, %v; want %v", tt.text, tt.unit, value, err, want)
			}
		case string:
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q in %s is %v, %v; want %s", tt.text, tt.unit, values, err, want)
			}
		}
	}
}

func TestUnitsWithoutMultiples(t *testing.T) {
	for _, unit := range []string{"score", "B·s", "auto", ""} {
		if _, err := readings.Auto(unit, false); err == nil || !strings.Contains(err.Error(), "the units are s, B, ") {
			t.Errorf("Auto(%q) gives %v", unit, err)
		}
	}
	for expression, want := range map[string]string{
		`(a)(b)`: "2 groups instead of one for the number; name the group for the unit (?P<unit>…)", `(?P<unit>a)`: "no group for the number", `(a)(?P<unit>b)(?P<unit>c)`: "unit",
	} {
		if _, err := readings.Regex("A", expression, auto(t, "s")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Regex(%q) gives %v, want %s", expression, err, want)
		}
	}
	if _, err := readings.Regex("A", `(a)(?P<unit>b)`, readings.Factor(1)); err == nil || !strings.Contains(err.Error(), "only scale: auto reads") {
		t.Errorf("a group for the unit without auto: %v", err)
	}
}
