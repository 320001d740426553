package benchfile_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/benchfile"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/textfile"
)

// The file of hyperfine was captured. The others are in the form of critest 1.26 and of go test.
var files = map[textfile.Kind]string{
	textfile.Hyperfine: "hyperfine-1.15.json", textfile.Critest: "critest.json", textfile.GoBench: "gobench.txt",
}

func read(t testing.TB, kind textfile.Kind) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", files[kind]))
	must.Do(t, err)
	return data
}

// spell spells the trials of runs, one a line.
func spell(runs []result.Run) string {
	var b strings.Builder
	for _, r := range runs {
		fmt.Fprintf(&b, "run %s: %s\n", r.Tool, strings.Join(r.Caveats[1:], "; "))
		for _, t := range r.Trials {
			fmt.Fprintf(&b, "%s %s block %d %s %s", t.Benchmark, t.Params, t.Block, t.Status, t.Reason)
			for _, s := range t.Samples {
				fmt.Fprintf(&b, " %s=%.4g", s.Metric, s.Value)
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

func TestDecode(t *testing.T) {
	for kind, want := range map[textfile.Kind][]string{
		textfile.Hyperfine: {
			"run hyperfine: \n", `sh -c "exit 3"  block 0 failed exit code 3` + "\n", `sh -c "exit 3"  block 5 failed exit code 3` + "\n",
			"sleep 0.002  block 0 ok  Time=0.005142\n", "sleep 0.002  block 5 ok  Time=0.01108\n",
		},
		textfile.Critest: {
			"critest.CreateContainer…RemoveContainer parallel=2 block 0 ok  CreateContainer=0.0412 StartContainer=0.09801 StatusContainer=0.0005123 StopContainer=0.1804 RemoveContainer=0.0201\n",
			"parallel=2 block 1 failed critest recorded 0 ns for RemoveContainer\n",
		},
		textfile.GoBench: {
			"run gobench: Touchstone has not checked the configuration in the file, cpu=Example CPU @ 3.00GHz, goarch=amd64, goos=linux; left out because the file does not state their better direction: widgets; add lines such as",
			"Decode/format=json-2 pkg=example.org/codec block 1 ok  sec/op=0.009854 B/s=1.017e+08 B/op=2048 allocs/op=12\n",
			"Encode-2 pkg=example.org/codec block 0 ok  sec/op=0.001235 p99-sec=0.009\n",
			"Encode-2 pkg=example.org/queue block 0 ok  sec/op=0.0007654\n",
			"run gobench: Touchstone has not checked the configuration in the file, commit=4d7a, cpu=",
			"Encode-2 pkg=example.org/queue block 0 ok  sec/op=0.0007\n",
		},
	} {
		data := read(t, kind)
		runs, err := benchfile.Decode(kind, data, "a\x1bname")
		must.Do(t, err)
		copies, err := benchfile.Decode(kind, data, "other")
		must.Do(t, err)
		got, start := spell(runs), 0
		for _, line := range want {
			index := strings.Index(got[start:], line)
			if index < 0 {
				t.Fatalf("%s: %q is not in the rest of:\n%s", kind, line, got)
			}
			start += index + len(line)
		}
		for i, r := range runs {
			if r.ID != copies[i].ID || r.Host.IsKnown() || r.Host.Hostname != result.UnknownHost || len(r.Targets) != 1 || r.Plan != "" || !strings.HasPrefix(r.Caveats[0], "imported from ") {
				t.Errorf("%s: run %s (%s) of %+v claims facts that the file does not have", kind, r.ID, copies[i].ID, r.Host)
			}
		}
		if kind == textfile.Critest && runs[0].Started.UnixNano() != 1669713600000000000 {
			t.Errorf("critest: the run started at %v", runs[0].Started)
		}
	}
}

// No report pairs values of two commands: each benchmark has one target.
func TestNoPairs(t *testing.T) {
	runs, err := benchfile.Decode(textfile.Hyperfine, []byte(`{"results":[
		{"command":"a","times":[1,2],"exit_codes":[0,null],"memory_usage_byte":[5,6]},
		{"command":"a","times":[3],"parameters":{"y":"2","x":"1"}},
		{"command":"a","times":[0]}]}`), "")
	must.Do(t, err)
	want := "run hyperfine: \na  block 0 ok  Time=1 MaxMemory=5\na  block 1 failed a signal ended the command\na x=1 y=2 block 0 ok  Time=3\n" +
		"a #2  block 0 failed hyperfine recorded 0 s: the command takes no longer than the start of the shell, which hyperfine subtracts; measure it with hyperfine --shell=none\n"
	if got := spell(runs); got != want {
		t.Errorf("the trials are\n%swant\n%s", got, want)
	}
}

// Errors have the line, the value and a remedy.
func TestBadFiles(t *testing.T) {
	for _, tt := range []struct {
		kind       textfile.Kind
		file, want string
	}{
		{textfile.Hyperfine, `{"results":[`, "line 1: the file is cut off; copy it again"},
		{textfile.Hyperfine, "{\n\"results\":}", "line 2: invalid character '}'"},
		{textfile.Hyperfine, "{\n\"results\":[{\"command\":5}]}", "line 2: results.command is a JSON number; want hyperfine's"},
		{textfile.Hyperfine, `{"results":[]}`, "it has no results; want hyperfine's"},
		{textfile.Hyperfine, "{\"results\":[\n{\"command\":\"a\",\"times\":[1]},\n{\"command\":\"b\"}]}", `line 3: command 2 ("b") has no times; export it again`},
		{textfile.Hyperfine, "{\"results\":[{\"command\":\"a\",\"times\":[1,\n2,\n-3.5]}]}", `line 3: time 3 of command 1 ("a") is -3.5, and a time is not negative`},
		{textfile.Hyperfine, `{"results":[{"command":"a","times":[1],"exit_codes":[0,1]}]}`, "has 1 times, 2 exit codes and 0 values of memory"},
		{textfile.Hyperfine, `{"results":[{"command":"a","times":[null]}]}`, "null"},
		{textfile.Hyperfine, `{"results":[{"command":"\u0007 ","times":[1]}]} x`, "another text follows"},
		{textfile.Critest, `{"operationsNames":["A"],"numParallel":1,"datapoints":[]}`, "it has 1 operations and 0 datapoints; want critest's"},
		{textfile.Critest, `{"operationsNames":["A","A"],"numParallel":1,"datapoints":[{"startTime":1,"endTime":2,"operationsDurationsNs":[1,1]}]}`, "line 1: operationsNames has an empty or repeated name"},
		{textfile.Critest, "{\"operationsNames\":[\"A\"],\"numParallel\":1,\"datapoints\":[{\"startTime\":1,\"endTime\":2,\"operationsDurationsNs\":\n[-5]}]}", `line 2: datapoint 1: "A" took -5 ns, and a time is not negative; measure again`},
		{textfile.GoBench, "BenchmarkA 1 5 ns/op\nBenchmarkB x 5 ns/op\n", "line 2: parsing iteration count"},
		{textfile.GoBench, "BenchmarkA 1 NaN ns/op\n", "line 1: sec/op of A is NaN, which is not a finite number; remove the line"},
		{textfile.GoBench, "BenchmarkA 1 5 ns/op 6 ns/op\n", "line 1: A has two values of sec/op; remove one"},
		{textfile.GoBench, "BenchmarkA 1 5 frobs\n", "no value has a known better direction (frobs); add lines such as"},
		{textfile.GoBench, "PASS\n", "it has no results; give the output of go test -bench"},
		{textfile.GoBench, "BenchmarkA 1 5 ns/op\n" + strings.Repeat("x", 1<<20), "after line 1: "},
	} {
		if _, err := benchfile.Decode(tt.kind, []byte(tt.file), ""); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.80q: %v, want %s", tt.file, err, tt.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	kinds := benchfile.Kinds()
	for i, kind := range kinds {
		f.Add(i, read(f, kind))
	}
	f.Fuzz(func(t *testing.T, kind int, data []byte) {
		runs, err := benchfile.Decode(kinds[uint(kind)%uint(len(kinds))], data, "name")
		if err != nil {
			return
		}
		for _, r := range runs {
			must.Do(t, r.Validate())
			for _, trial := range r.Trials {
				for _, s := range trial.Samples {
					if math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
						t.Fatalf("%+v", s)
					}
				}
			}
		}
	})
}
