package probe_test

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/workload"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
	"github.com/touchstone-bench/touchstone/internal/workload/workloadtest"
)

// The files in testdata are the probe's output as it was captured from a bare process
// and from runsc.

func TestParseCaptured(t *testing.T) {
	files := []string{
		"ReadScore", "WriteScore", "BlogsWritten", "ArticlesWritten", "ArticlesRewritten", "CommentsWritten",
		"BlogsRead", "ArticlesRead", "CommentsRead", "Misses", "BytesRead", "BytesWritten",
	}
	stream := []string{
		"Copy", "CopyMedian", "Scale", "ScaleMedian", "Add", "AddMedian", "Triad", "TriadMedian", "Repetitions",
	}
	tests := []struct {
		file    string
		metrics []string
		calls   int
		metric  string // one of them, as it stands in the file
		want    probe.Metric
	}{
		{"syscall-native.txt", []string{"LoopsPerSecond", "Index"}, 0, "Index", probe.Metric{Value: 827.950, Unit: workload.Score}},
		{"syscall-runsc.txt", []string{"LoopsPerSecond", "Index"}, 0, "LoopsPerSecond", probe.Metric{Value: 7953.067, Unit: workload.PerSecond}},
		{"latency-native.txt", nil, 25, "", probe.Metric{}},
		{"latency-runsc.txt", nil, 25, "", probe.Metric{}},
		{"latency-single.txt", nil, 1, "", probe.Metric{}},
		{"stream-native.txt", stream, 0, "Repetitions", probe.Metric{Value: 41.000, Unit: workload.Count}},
		{"stream-runsc.txt", stream, 0, "Copy", probe.Metric{Value: 25947706231.885, Unit: workload.BytesPerSecond}},
		{"files-native.txt", files, 0, "BytesWritten", probe.Metric{Value: 5674995.000, Unit: workload.Bytes}},
		{"files-runsc.txt", files, 0, "ReadScore", probe.Metric{Value: 384.791, Unit: workload.Score}},
	}
	for _, test := range tests {
		t.Run(test.file, func(t *testing.T) {
			got, err := probe.Parse(workloadtest.Read(t, test.file))
			must.Do(t, err)
			slices.Sort(test.metrics)
			if names := slices.Sorted(maps.Keys(got.Metrics)); !slices.Equal(names, test.metrics) {
				t.Errorf("metrics %q, want %q", names, test.metrics)
			}
			if len(got.Calls) != test.calls {
				t.Errorf("%d calls, want %d", len(got.Calls), test.calls)
			}
			if m := got.Metrics[test.metric]; m != test.want {
				t.Errorf("%s = %v, want %v", test.metric, m, test.want)
			}
		})
	}
}

func TestParseCall(t *testing.T) {
	output := `{"call":"read /dev/zero","unit":"ns","count":96,"k":32,"min":1.5,"p50":2,"p90":3.25,"p99":40,"max":40,"hist":[[1,1],[3,1],[40,1]]}` + "\n" +
		`{"done":true,"metrics":1}` + "\n"
	got, err := probe.Parse([]byte(output))
	must.Do(t, err)
	want := []probe.Call{{
		Name: "read /dev/zero", Batch: 32, Count: 96, Min: 1.5, P50: 2, P90: 3.25, P99: 40, Max: 40,
		Histogram: [][]uint64{{1, 1}, {3, 1}, {40, 1}},
	}}
	if !reflect.DeepEqual(got.Calls, want) {
		t.Errorf("calls %+v, want %+v", got.Calls, want)
	}
}

// Output that is cut off at any byte is refused with ErrCutOff. So is the output of a probe that was killed.
//
// Invariant failures.
func TestParseCutOff(t *testing.T) {
	if _, err := probe.Parse(workloadtest.Read(t, "latency-killed.txt")); !errors.Is(err, workload.ErrCutOff) {
		t.Errorf("error %v, want %v", err, workload.ErrCutOff)
	}
	for _, file := range []string{"syscall-native.txt", "stream-runsc.txt", "latency-runsc.txt"} {
		output := workloadtest.Read(t, file)
		for end := range output {
			// The long one is cut at ends of lines and beside them.
			if len(output) > 1000 && !strings.Contains(string(output[max(0, end-2):min(len(output), end+2)]), "\n") {
				continue
			}
			got, err := probe.Parse(output[:end])
			if !errors.Is(err, workload.ErrCutOff) {
				t.Errorf("%s cut off after %d bytes: error %v, want %v", file, end, err, workload.ErrCutOff)
			}
			if got.Metrics != nil || got.Calls != nil {
				t.Errorf("%s cut off after %d bytes: something is returned with the error", file, end)
			}
		}
	}
}

// Invariant failures.
func TestParseRefuses(t *testing.T) {
	const (
		metric = `{"metric":"A","value":1,"unit":"1/s"}` + "\n"
		call   = `{"call":"getpid","unit":"ns","count":4,"k":2,"min":1,"p50":1,"p90":1,"p99":1,"max":1,"hist":[[1,2]]}` + "\n"
		single = `{"call":"getpid","unit":"ns","count":3,"k":1,"min":1,"p50":1,"p90":2,"p99":2,"max":2,"hist":[[1,2],[2,1]],"tail":[[0,1],[2,2]]}` + "\n"
		done1  = `{"done":true,"metrics":1}` + "\n"
	)
	if _, err := probe.Parse([]byte(single + done1)); err != nil {
		t.Fatalf("the original of the refused lines is refused too: %v", err)
	}
	if _, err := probe.Parse([]byte(metric + done1)); err != nil {
		t.Fatalf("the original of the refused lines is refused too: %v", err)
	}
	if _, err := probe.Parse([]byte(call + done1)); err != nil {
		t.Fatalf("the original of the refused lines is refused too: %v", err)
	}
	change := func(line, old, new string) string {
		if !strings.Contains(line, old) {
			t.Fatalf("%s is not in %s", old, line)
		}
		return strings.Replace(line, old, new, 1) + done1
	}
	tests := []struct{ name, output, want string }{
		{"nothing", "", "cut off"},
		{"result missing", done1, "counts 1 results, and the output has 0"},
		{"result too many", metric + call + done1, "counts 1 results, and the output has 2"},
		{"false for done", metric + `{"done":false,"metrics":1}` + "\n", "false for done"},
		{"after the end", metric + done1 + metric, "follows the last"},
		{"metric twice", metric + metric + `{"done":true,"metrics":2}` + "\n", "twice"},
		{"call twice", call + call + `{"done":true,"metrics":2}` + "\n", "twice"},
		{"empty line", "\n" + metric + done1, "not a JSON object"},
		{"text", "files: write an article: ENOSPC (28)\n", "not a JSON object"},
		{"two objects in a line", strings.TrimSpace(metric) + metric + done1, "something follows"},
		{"other object", `{"a":1}` + "\n" + done1, "not a metric, a call, a fact or the last line"},
		{"unknown unit", change(metric, "1/s", "m/s"), "unknown unit"},
		{"unknown unit of a call", change(call, `"ns"`, `"ms"`), "unknown unit"},
		{"NaN", change(metric, ":1,", ":NaN,"), "not a JSON object"},
		{"Inf", change(metric, ":1,", ":1e999,"), `field "value"`},
		{"negative", change(metric, ":1,", ":-1,"), "must be a number from 0"},
		{"null", change(metric, ":1,", ":null,"), "null"},
		{"field missing", change(metric, `,"unit":"1/s"`, ""), `"unit" is missing`},
		{"field unknown", change(metric, "}", `,"x":1}`), "unknown fields"},
		{"field twice", change(metric, "}", `,"unit":"B/s"}`), "twice"},
		{"field in capitals", change(metric, `"unit"`, `"Unit"`), `"unit" is missing`},
		{"name too long", change(metric, `"A"`, `"`+strings.Repeat("A", 65)+`"`), "not a name"},
		{"call with a control character", change(call, "getpid", `get\u0007pid`), "not a name"},
		{"no calls", change(call, `"count":4`, `"count":0`), "no measurements"},
		{"no batch", change(call, `"k":2`, `"k":0`), "no measurements"},
		{"count is no whole number", change(call, `"count":4`, `"count":4.5`), `field "count"`},
		{"percentiles out of order", change(call, `"p50":1`, `"p50":2`), "not in order"},
		{"histogram out of order", change(call, "[[1,2]]", "[[1,1],[1,1]]"), "not in order"},
		{"histogram with a hole", change(call, "[[1,2]]", "[[1,0],[2,2]]"), "not in order"},
		{"histogram too small", change(call, "[[1,2]]", "[[1,1]]"), "has 1 batches"},
		{"histogram overflows", change(call, "[[1,2]]", "[[1,18446744073709551615],[2,3]]"), "not in order"},
		{"bucket of three", change(call, "[[1,2]]", "[[1,2,3]]"), "instead of two"},
		{"too many buckets", change(call, "[[1,2]]", "["+strings.Repeat("[1,2],", 1024)+"[1,2]]"), "more than 1024"},
		{"tail of batches", change(call, "[[1,2]]", `[[1,2]],"tail":[[0,1]]`), "must have 1 to 10000 values of single calls"},
		{"empty tail", change(single, "[[0,1],[2,2]]", "[]"), "the tail has 0 values"},
		{"tail too long", change(single, "[[0,1],[2,2]]", "["+strings.Repeat("[0,1],", 10_000)+"[0,1]]"), "the tail has 10001 values"},
		{"tail out of order", change(single, "[[0,1],[2,2]]", "[[2,2],[0,1]]"), "value 2 of the tail has no place after the others"},
		{"tail beyond the calls", change(single, "[2,2]]", "[3,2]]"), "value 2 of the tail has no place after the others"},
		{"tail without the longest time", change(single, "[2,2]]", "[2,1]]"), "the longest time in the tail is 1, and the maximum 2"},
		{"fact with a bad name", `{"fact":"A","text":"x"}` + "\n" + done1, "not a name of a fact"},
		{"fact without a text", `{"fact":"a"}` + "\n" + done1, `"text" is missing`},
		{"fact that is not counted", `{"fact":"a","text":"x"}` + "\n" + `{"fact":"a","text":"y"}` + "\n" + done1, "counts 1 results, and the output has 2"},
		{"line too long", `{"metric":"` + strings.Repeat("A", 1<<20) + `"}` + "\n" + done1, "longer than"},
		{"too many lines", manyMetrics(10_001), "more than 10000 lines"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := probe.Parse([]byte(test.output))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

func manyMetrics(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "{\"metric\":\"A%d\",\"value\":1,\"unit\":\"B\"}\n", i)
	}
	return b.String()
}

// FuzzParse checks that what is accepted has a meaning: printed as the probe would, it is
// read as the same.
//
// Invariant failures.
func FuzzParse(f *testing.F) {
	for _, output := range workloadtest.All(f, "*.txt") {
		f.Add(output)
	}
	f.Fuzz(func(t *testing.T, output []byte) {
		first, err := probe.Parse(output)
		if err != nil {
			return
		}
		text := printed(first)
		second, err := probe.Parse([]byte(text))
		if err != nil {
			t.Fatalf("%q is accepted, but not as it is printed, %q: %v", output, text, err)
		}
		if !reflect.DeepEqual(first, second) {
			t.Errorf("%q is read as %+v, and printed as %q read as %+v", output, first, text, second)
		}
	})
}

// printed is the output that the probe would write.
func printed(o probe.Output) string {
	var b strings.Builder
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	for _, name := range slices.Sorted(maps.Keys(o.Metrics)) {
		fmt.Fprintf(&b, "{\"metric\":%q,\"value\":%s,\"unit\":%q}\n", name, number(o.Metrics[name].Value), o.Metrics[name].Unit)
	}
	for _, c := range o.Calls {
		fmt.Fprintf(&b, "{\"call\":%q,\"unit\":\"ns\",\"count\":%d,\"k\":%d", c.Name, c.Count, c.Batch)
		for i, v := range []float64{c.Min, c.P50, c.P90, c.P99, c.Max} {
			fmt.Fprintf(&b, ",%q:%s", []string{"min", "p50", "p90", "p99", "max"}[i], number(v))
		}
		b.WriteString(`,"hist":[`)
		for i, bucket := range c.Histogram {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, "[%d,%d]", bucket[0], bucket[1])
		}
		b.WriteString("]")
		if c.Tail != nil {
			tail := strings.ReplaceAll(fmt.Sprint(c.Tail), " ", ",")
			b.WriteString(`,"tail":` + tail)
		}
		b.WriteString("}\n")
	}
	fmt.Fprintf(&b, "{\"done\":true,\"metrics\":%d}\n", len(o.Metrics)+len(o.Calls))
	return b.String()
}
