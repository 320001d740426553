package readings_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/workload"
	"github.com/touchstone-bench/touchstone/internal/workload/readings"
	"github.com/touchstone-bench/touchstone/internal/workload/workloadtest"
)

func regex(t testing.TB, metric, expression string, scale float64) readings.Reading {
	t.Helper()
	r, err := readings.Regex(metric, expression, readings.Factor(scale))
	if err != nil {
		t.Fatalf("Regex(%q): %v", expression, err)
	}
	return r
}

func jsonPath(t testing.TB, metric, path string, scale float64) readings.Reading {
	t.Helper()
	r, err := readings.JSON(metric, path, readings.Factor(scale))
	if err != nil {
		t.Fatalf("JSON(%q): %v", path, err)
	}
	return r
}

func TestCustom(t *testing.T) {
	for _, tt := range []struct {
		file     string
		readings []readings.Reading
		want     workload.Values
	}{
		{
			"sysbench-cpu-german.txt",
			[]readings.Reading{
				regex(t, "Rate", `events per second: +([0-9.]+)`, 1),
				regex(t, "TotalTime", `total time: +([0-9.]+)s`, 1),
				regex(t, "P95", `95th percentile: +([0-9.]+)`, 1e-3),
				regex(t, "Events", `events \(avg/stddev\): +([0-9.]+)/`, 1),
			},
			workload.Values{"Rate": 157.08, "TotalTime": 1.9086, "P95": 0.0089, "Events": 300},
		},
		{
			"iperf3-send.json",
			[]readings.Reading{
				jsonPath(t, "Sent", "end.sum_sent.bits_per_second", 1),
				jsonPath(t, "Received", "$.end.streams[0].receiver.bytes", 8),
				jsonPath(t, "HostCPU", "$['end']['cpu_utilization_percent']['host_total']", 0.01),
				regex(t, "Retransmits", `(?s)"sum_sent":.*?"retransmits":\s*([0-9]+),`, 1),
			},
			workload.Values{"Sent": 13270160225.366507, "Received": 8 * 1658191872, "HostCPU": 0.392313432165812, "Retransmits": 293},
		},
		{
			"redis-benchmark-native.csv",
			[]readings.Reading{regex(t, "Get", `"GET","([0-9.]+)"`, 1), regex(t, "GetP99", `(?m)^"GET",(?:"[0-9.]+",){5}"([0-9.]+)"`, 1e-3)},
			workload.Values{"Get": 94339.62, "GetP99": 0.000455},
		},
		{
			"ab-german.txt", // which has lines such as 95,0.031
			[]readings.Reading{regex(t, "P0", `(?m)^0,([0-9.]+)$`, 1e-3)},
			workload.Values{"P0": 0.018e-3},
		},
	} {
		t.Run(tt.file, func(t *testing.T) {
			p := readings.Program([]string{"/prog"}, []string{"A=b"}, tt.readings...)
			if diff := cmp.Diff([]string{"/prog", "A=b"}, append(p.Args, p.Env...)); diff != "" {
				t.Error(diff)
			}
			got, err := p.Parse(workloadtest.Read(t, tt.file))
			must.Do(t, err)
			for name, want := range tt.want {
				if value, ok := got[name]; !ok || math.Abs(value-want) > 1e-12*want {
					t.Errorf("%s = %v, want %v", name, value, want)
				}
			}
			if len(got) != len(tt.want) {
				t.Errorf("values are %v", got)
			}
		})
	}
}

// Output that failed, was cut off or comes from another program has no values, and the error quotes it.
func TestCustomRefusesOutput(t *testing.T) {
	rate := regex(t, "Rate", `events per second: +([0-9.]+)`, 1)
	reading := jsonPath(t, "Sent", "end.sum_sent.bits_per_second", 1)
	output := string(workloadtest.Read(t, "iperf3-send.json"))
	for _, tt := range []struct {
		name, output string
		reading      readings.Reading
		want         string
	}{
		{"failed", string(workloadtest.Read(t, "sysbench-cpu-failed.txt")), rate, `Rate: the expression "events per second: +([0-9.]+)" matches nothing in the output, which begins with "sysbench 1.0.20`},
		{"killed", string(workloadtest.Read(t, "sysbench-cpu-killed.txt")), rate, "matches nothing"},
		{"nothing as JSON", "", reading, `Sent: the output is not a JSON document (unexpected end of JSON input): it begins with ""`},
		{"JSON of a failure", string(workloadtest.Read(t, "iperf3-refused.json")), reading, `the path "end.sum_sent.bits_per_second" selects nothing in the output, which begins with "{`},
		{"JSON that is cut off", output[:len(output)-3], reading, "unexpected end of JSON input"},
		{"JSON with something behind it", output + "done\n", reading, "not a JSON document (invalid character 'd' after top-level value)"},
		{"a word for a number", `{"a":"12"}`, jsonPath(t, "A", "a", 1), `the path "a" selects "12", which is not a number`},
		{"null", `{"a":null}`, jsonPath(t, "A", "a", 1), `selects null, which is not a number`},
		{"an object", `{"a":{"b":1}}`, jsonPath(t, "A", "a", 1), `selects {"b":1}, which is not a number`},
		{"several values", `{"a":[1,2,3]}`, jsonPath(t, "A", "a[*]", 1), `the path "a[*]" selects 3 values; the first are 1 and 2`},
		{"below 0", `{"a":-1}`, jsonPath(t, "A", "a", 1), "-1 is below 0"},
		{"two matches", "rate 1 op\nrate 2 op\n", regex(t, "A", `rate ([0-9]+) op`, 1), `matches more than once: "rate 1 op" and "rate 2 op"`},
		{"without the group", "rate none", regex(t, "A", `rate (?:none|([0-9]+) op)`, 1), `matches "rate none" without its group`},
		{"not a number", "rate nan op", regex(t, "A", `rate (\w+) op`, 1), `"nan" is not a number`},
		{"hexadecimal", "rate 0x1p4 op", regex(t, "A", `rate (\S+) op`, 1), `"0x1p4" is not a number`},
		{"empty", "rate  op", regex(t, "A", `rate (\S*) op`, 1), `"" is not a number`},
		{"a comma", "rate 12,5 op", regex(t, "A", `rate (\S+) op`, 1), `"12,5" has a comma or digits in groups; a number needs a decimal point`},
		{"a negative number", "rate -12.5 op", regex(t, "A", `rate (\S+) op`, 1), "-12.5 is below 0"},
		{"a large number", "rate 1e999 op", regex(t, "A", `rate (\S+) op`, 1), `"1e999" is too large for a number`},
		{"a large product", "rate 1e300 op", regex(t, "A", `rate (\S+) op`, 1e9), `"1e300" × 1e+09 is too large or too small`},
		{"a long word", "rate " + strings.Repeat("x", 1000) + " op", regex(t, "A", `rate (\S+) op`, 1), `"` + strings.Repeat("x", 64) + `" is not a number`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readings.Program([]string{"/prog"}, nil, tt.reading).Parse([]byte(tt.output))
			if err == nil || !strings.Contains(err.Error(), tt.want) || got != nil {
				t.Errorf("Parse() = %v, %v; want %s", got, err, tt.want)
			}
		})
	}
}

// An expression that takes a part of a number, or a number without its unit, gives a result that looks right.
//
// Invariant custom-units.
func TestCustomWantsCompleteNumbers(t *testing.T) {
	const part, unit = "a part of a number or word", "follows the number"
	for _, tt := range []struct{ expression, output, want string }{
		{`rate: ([0-9.]+) op/s`, "rate: 12.5 op/s", ""},
		{`rate: ([0-9.]+)`, "rate: 12.5\n", ""},
		{`rate: ([0-9.]+)`, "rate: 12.5", ""},
		{`rate: ([0-9.]+)`, "rate: 12.5, and more", ""},
		{`rate: ([0-9.]+)`, "rate: 12.5.", `"12.5." is not`},
		{`rate: ([0-9]+\.?[0-9]*)`, "rate: 12.5.\n", ""},
		{`([0-9.]+) op/s`, "rate=12.5 op/s", ""},
		{`"rate":([0-9.]+),`, `{"rate":12.5,"p99":7}`, ""},
		{`rate: ([0-9.]+)ms`, "rate: 12.5ms", ""},
		{`95,([0-9.]+)`, "95,0.031\n", ""},

		{`rate: ([0-9]+)`, "rate: 12.5 op/s", part},      // without its fraction
		{`rate: ([0-9]+).*`, "rate: 12.5 op/s", part},    // the same, swallowed
		{`rate: ([0-9.]+)`, "rate: 12,5 op/s", part},     // of another locale
		{`rate: ([0-9.]+)`, "rate: 1'512 op/s", part},    // with marks between thousands
		{`([0-9.]+) op/s`, "rate: 1,512.5 op/s", part},   // the same, from behind
		{`rate: ([0-9.]+)`, "rate: 12k op/s", unit},      // thousands of them
		{`rate: ([0-9.]+)`, "rate: 12.5µs", unit},        // in another unit than yesterday
		{`rate: ([0-9.]+)`, "rate: 12%", unit},           //
		{`rate: ([0-9]+)`, "rate: 1e5 op/s", part},       // without its exponent
		{`rate: ([0-9.]+)`, "rate: 1.5e-5 op/s", part},   //
		{`rate.*([0-9.]+)`, "rate: 12.5 op/s", part},     // the last digit: .* is greedy
		{`rate.*?([0-9.]+)`, "rate: -12.5 op/s", part},   // without its sign
		{`([0-9.]+) op/s`, "-12.5 op/s", part},           //
		{`time: ([0-9.]+)`, "time: 1:30", part},          // minutes
		{`([0-9]+) op`, "try7 op", part},                 // of a word
		{`rate: ([0-9.]+)`, "rate: 12\u0665 op/s", part}, // with a digit of another script
	} {
		got, err := readings.Program([]string{"/prog"}, nil, regex(t, "A", tt.expression, 1)).Parse([]byte(tt.output))
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s on %q = %v, %v; want %s", tt.expression, tt.output, got, err, tt.want)
		}
	}
}

func TestReadingsThatCannotBe(t *testing.T) {
	for expression, want := range map[string]string{
		"(a": "missing closing )", "a": "it has no group for the number", "(a)(b)": "it has 2 groups", "(?:a)": "no group", `(a)\1`: "invalid escape sequence",
	} {
		if _, err := readings.Regex("A", expression, readings.Factor(1)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Regex(%q) gives %v, want %s", expression, err, want)
		}
	}
	for _, path := range []string{"", "a[", "$.a.", "a b", "a[(@.length)]", "$..a..b", "$..[?(@..x == 1)]"} {
		if _, err := readings.JSON("A", path, readings.Factor(1)); err == nil {
			t.Errorf("JSON(%q) is accepted", path)
		}
	}
}

func FuzzCustom(f *testing.F) {
	for _, text := range workloadtest.All(f, "*.*") {
		if len(text) < 10_000 {
			f.Add(text, `rate: +([0-9.]+)`, "end.sum_sent.bits_per_second", 1e-3)
		}
	}
	f.Add([]byte(`{"a":[1,2]}`), `"a":.(\d)`, "$..[?(@ > 1)]", 1.0)
	f.Fuzz(func(t *testing.T, output []byte, expression, path string, scale float64) {
		if !(scale > 0) || math.IsInf(scale, 0) {
			return
		}
		var rules []readings.Reading
		if r, err := readings.Regex("A", expression, readings.Factor(scale)); err == nil {
			rules = append(rules, r)
		}
		if r, err := readings.JSON("B", path, readings.Factor(scale)); err == nil {
			rules = append(rules, r)
		}
		for _, r := range rules {
			values, err := readings.Program(nil, nil, r).Parse(output)
			if (err == nil) != (len(values) == 1) {
				t.Fatalf("%v beside %v", values, err)
			}
			for name, value := range values {
				if !(value >= 0) || math.IsInf(value, 0) {
					t.Fatalf("%s is %v", name, value)
				}
			}
		}
	})
}
