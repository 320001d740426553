package result

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/must"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const golden = "testdata/document.json"

// fullDocument sets every field in some element; TestFullDocumentIsFull checks this.
func fullDocument() Document {
	share := func(v float64) *float64 { return &v }
	throttled := int64(2)
	start := time.Date(2026, 11, 20, 10, 0, 0, 123456789, time.UTC)
	lifecycle := Cell{Benchmark: "operations.container.lifecycle", Params: "network=none", Target: "oci/runsc@platform=systrap"}
	return Document{
		Schema:    SchemaVersion,
		Generator: Tool{Version: "1.0.0", Commit: "0123abc", Go: "go1.26.0"},
		Runs: []Run{{
			ID: "01JZZZZZZZZZZZZZZZZZZZZZZZ", Name: "quick", State: Complete,
			Started: start, Ended: start.Add(time.Minute),
			Tool:     Tool{Version: "0.9.0", Commit: "4567def", Go: "go1.25.0"},
			Seed:     math.MaxUint64,
			Baseline: "native",
			Plan:     "name: quick\n",
			Host: Host{
				Hostname: "bench1", OS: "Debian GNU/Linux 12", Kernel: "6.18.0 #1 SMP", Arch: "amd64", CPU: "Example CPU", CPUs: 2,
				Governor: "performance", Turbo: "off", SMT: "off", Memory: 24 << 30, Swap: 1 << 30, PageSize: 16 << 10, Cgroup: "v2", Virtual: "kvm", Container: "podman",
				LSM: "apparmor", Mitigation: "spectre_v2: IBRS", Cmdline: "quiet <&>", Root: true, Warnings: []string{"it is a guest"},
				Tuned:    []Tuned{{"governor", "powersave", "performance"}, {"ksm", "1", "0"}},
				Settings: &Settings{Microcode: "0x1", Scaling: "intel_pstate", Idle: "intel_idle menu", Clock: "tsc", Preemption: "full", NUMABalancing: "0", BPFJIT: "1"},
				Storage:  []Storage{{"results", "ext4"}, {"containers", "overlay"}},
				Identity: &Identity{System: "0123", Board: "4567", Boot: "89ab"},
				Reclaim: &Reclaim{
					Available: new(int64(20 << 30)), SwapUsed: new(int64(1 << 20)), Swappiness: new(int64(60)), Overcommit: new(int64(0)), OvercommitRatio: new(int64(50)),
					THP: "madvise", THPDefrag: "madvise", KSM: new(int64(1)), KSMSharing: new(int64(100)), Zswap: new(false),
				},
				Selfcheck: &Selfcheck{Date: start, Version: "0.9.0", Target: "oci/crun", Metric: "CreateAndRun", Limits: []DetectionLimit{{Minutes: 5, Difference: 0.02}}},
				Node:      &Node{Fleet: "f1", Name: "worker-1", Kind: "m5.large", Kubelet: "v1.37.2", Engine: "containerd://2.4.2", Labels: map[string]string{"zone": "a"}},
			},
			Targets: []Target{
				{Name: "native", Kind: KindNative},
				{Name: "oci/runsc@platform=systrap", Kind: KindRuntime, Runtime: "runsc@platform=systrap", Binary: "/usr/bin/runsc", Version: "release-20260905", Isolation: "user-space kernel", Cgroup: "v2", Rootless: true, Notes: []string{"no network"}, FailedTries: 1, Installed: []Installed{
					{Program: "runsc", Part: "runsc", Version: "20260905", Origin: "build of gvisor.dev/gvisor@v0.0.0 (h1:x=)", Digest: "sha256:ba78"},
				}},
				{Name: "oci/kata", Unavailable: "there is no /dev/kvm"},
			},
			Bench: []Benchmark{{
				Name: "operations.container.lifecycle", Summary: "one container's life", Source: "espe tab. 1",
				Metrics: []Metric{
					{Name: "Create", Unit: Seconds, Better: Lower, Help: "time to create", Phrase: "creates a container in", Dimension: DimensionStartUp, Column: ColumnStart, Surface: SurfaceReached, Layer: LayerTotal},
					{Name: "HostCPUShim", Unit: Seconds, Better: Lower, Help: "CPU time of the shim", Consumed: true, Group: "CPU time by component", Component: "shim"},
					{Name: "Rate", Unit: PerSecond, Better: Higher, Series: true, Trend: "running container", Growth: true, Optional: true, Help: "containers a second", DerivedFrom: "Create", Bound: Bound{Most: 100, Broken: "does not hold its limit"}, Agreement: Agreement{With: "Create", Tolerance: 0.15, Rest: "The rest"}},
					{Name: "Usable", Unit: Ratio, Better: Higher, Help: "share of the limit", AnySpeed: true, NoVerdict: "it is known late"},
				},
				Phases: true, Place: "number of the container", Statements: []string{"outcome"}, Judged: []string{"loss"},
			}},
			Overhead: Overhead{EmptyRegion: 90, Exec: 700 * time.Microsecond, Requests: requests(1)},
			Images: []Image{
				{Name: "workload", Digest: "sha256:0123", Size: 62 << 20, UpdatedList: true},
				{Name: "mine.tar", Unavailable: "there is no such file"},
			},
			Caveats:  []string{"the frequency was not held"},
			Stopping: &Stopping{Looks: []int{10, 13, 40}, Comparisons: 12, Precision: 0.02, Stopped: []Stop{{Cell: lifecycle, Blocks: 13, Reason: Decided}}},
			Trials: []Trial{
				{
					Seq: 1, Cell: lifecycle, Block: 1, Warmup: true, Status: OK, Started: start.Add(time.Second), Elapsed: 200 * time.Millisecond,
					Phases:  []Phase{{Name: "create", Start: time.Millisecond, Duration: 20 * time.Millisecond}},
					Samples: []Sample{{"Create", 0.02}, {"Rate", 50}, {"Rate", 49.5}},
					Distributions: []Distribution{
						{Metric: "Create", Unit: Seconds, Lows: []float64{1e-7, 1.5e-7}, Counts: []uint64{math.MaxUint64, 3}, Batch: 32},
						{Metric: "Rate", Unit: PerSecond, Lows: []float64{}, Counts: []uint64{}, Batch: 1},
						{Metric: "Create", Unit: Seconds, Lows: []float64{1e-7, 1.5e-7}, Counts: []uint64{4, 1}, Batch: 1, Tail: &Tail{At: []int{0, 3}, Values: []float64{1.4e-7, 1.5e-7}}},
					},
					Timelines: []Timeline{
						{Group: "memory of the host", Name: "available", Unit: Bytes, At: []time.Duration{0, 100 * time.Millisecond}, Values: []float64{2e9, 1.9e9}},
						{Group: "speed", Name: "victim", Unit: PerSecond, At: []time.Duration{}, Values: []float64{}},
					},
					Conditions: map[string]string{"cache": "cold", "file system": "ext4, <rw>"},
					Host: Disturbance{
						Steal: share(0.01), CPUPressure: share(0.02), MemoryPressure: share(0.03), IOPressure: share(0.04),
						Load: share(1.5), MHz: share(2400), Throttled: &throttled, Marks: []string{"steal 1 %"},
					},
					Self: 3 * time.Millisecond,
				},
				{Seq: 3, Cell: lifecycle, Status: Failed, Reason: "runsc create: exit code 128", Output: "cannot\n", Started: start, Elapsed: 1, FailedCalls: map[string]int{"create": 1}},
			},
			Traces: []Trace{
				{
					Seq: 1, Cell: lifecycle, Status: OK, Started: start, Elapsed: time.Second, Phases: []Phase{{Name: "create", Start: 1, Duration: 2}},
					Counts: []TraceCounts{
						{Component: "container", Calls: map[string]int64{"write": 1}},
						{
							Step: "create", Component: "runtime", Calls: map[string]int64{"mount": 52, "execve": 2}, Processes: 3, Threads: 12, Programs: map[string]int64{"runc": 1},
							Faults: 900, BytesRead: 70, BytesWritten: 8, Opens: map[string]int64{"/proc": 5}, Paths: map[string]int64{"/proc/self/status": 5}, CgroupWrites: 6, NetlinkMessages: 7,
							Switches: 40, Preemptions: 2, Running: 3, Queued: 2, Blocked: map[string]time.Duration{"mount": 1},
							Wall:      map[string]time.Duration{WallRunning: 4, "mount": 1},
							Functions: map[string]int64{"fs/vfs_read": 7},
						},
					},
					Timeline: &TraceTimeline{
						Length: 900, Resolution: 10, Steps: []TraceStep{{"create", 0}, {"", 500}, {"start", 600}}, Processes: 2,
						Lanes: []TraceLane{{
							TraceProgram: TraceProgram{"runc", "runtime", 0}, End: 800, Execs: []TraceProgram{{"sleep", "container", 700}},
							Wall: map[TimeCause]time.Duration{CauseRunning: 400, CauseChild: 20}, States: []TraceState{{CauseRunning, []time.Duration{0, 500}, []time.Duration{300, 100}}},
						}},
					},
				},
				{Seq: 3, Cell: lifecycle, Status: Failed, Reason: "2 events are missing", Started: start, Elapsed: 1},
			},
		}},
	}
}

func encoded(t testing.TB, doc Document) []byte {
	t.Helper()
	var b bytes.Buffer
	must.Do(t, Encode(&b, doc))
	return b.Bytes()
}

// TestFullDocumentIsFull makes the other tests cover each new field.
func TestFullDocumentIsFull(t *testing.T) {
	set := map[string]bool{}
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Slice:
			for i := range v.Len() {
				walk(v.Index(i))
			}
		case reflect.Pointer:
			walk(v.Elem())
		case reflect.Struct:
			for i := range v.NumField() {
				if !v.Type().Field(i).IsExported() {
					continue // of time.Time
				}
				name := v.Type().Name() + "." + v.Type().Field(i).Name
				set[name] = set[name] || !v.Field(i).IsZero()
				walk(v.Field(i))
			}
		}
	}
	walk(reflect.ValueOf(fullDocument()))
	for name, ok := range set {
		if !ok {
			t.Errorf("%s is set nowhere in fullDocument", name)
		}
	}
}

// TestDocumentGolden keeps the spelling of the document: every touchstone of the same schema version must read today's exports.
func TestDocumentGolden(t *testing.T) {
	got := encoded(t, fullDocument())
	if *update {
		must.Do(t, os.MkdirAll(filepath.Dir(golden), 0o755))
		must.Do(t, os.WriteFile(golden, got, 0o644))
	}
	want, err := os.ReadFile(golden)
	must.Do(t, err)
	expect.Equal(t, "the document is spelled in another way; if that is meant, run with -update", string(want), string(got))
}

func TestEncodeIsCanonical(t *testing.T) {
	doc := fullDocument()
	zone := time.FixedZone("", -3600)
	run := &doc.Runs[0]
	run.Started, run.Ended, run.Trials[0].Started = run.Started.In(zone), run.Ended.In(zone), run.Trials[0].Started.In(zone)
	doc.Schema = 0
	expect.Equal(t, "another time zone gives another document", string(encoded(t, fullDocument())), string(encoded(t, doc)))
	if run.Started.Location() != zone || run.Trials[0].Started.Location() != zone {
		t.Error("Encode changed the caller's document")
	}

	blank := fullDocument()
	blank.Runs[0].Trials[0].Distributions[0].Lows, blank.Runs[0].Trials[0].Distributions[0].Counts = nil, nil
	blank.Runs = append(blank.Runs, Run{ID: "a", State: Running, Bench: []Benchmark{{Name: "b"}}})
	blank.Runs[0].Ended = time.Time{}
	empty := encoded(t, blank)
	if bytes.Contains(empty, []byte("null")) {
		t.Errorf("a list that is empty is null in\n%s", empty)
	}
	if bytes.Contains(empty, []byte("ended")) {
		t.Errorf("a run that has not ended has an end in\n%s", empty)
	}
}

// TestDocumentRoundTrip: a document comes back as it was, also with a field that this version does not know.
func TestDocumentRoundTrip(t *testing.T) {
	document := encoded(t, fullDocument())
	for name, data := range map[string][]byte{
		"the document": document, "the document with an unknown field": bytes.Replace(document, []byte(`"seq": 1,`), []byte(`"seq": 1, "later": {"a": [1]},`), 1),
	} {
		got, err := Decode(bytes.NewReader(data))
		must.Do(t, err)
		expect.Equal(t, name, fullDocument(), got)
	}
}

func TestDecodeRefuses(t *testing.T) {
	full := string(encoded(t, fullDocument()))
	for name, c := range map[string]struct{ input, want string }{
		"nothing":           {"", "it is empty; give a file that touchstone export wrote"},
		"no JSON":           {"PK\x03\x04", "line 1, column 1: invalid character 'P' looking for beginning of value; give a file that touchstone export wrote"},
		"a report":          {`{"schema_version": 1, "kind": "touchstone-report", "runs": []}`, `it is a "touchstone-report", which has no samples`},
		"another document":  {`{"results": []}`, "no schema_version"},
		"an array":          {`[]`, "touchstone export"},
		"an older version":  {`{"schema_version": 0}`, "it has schema version 0 and this touchstone knows 1; use the version of touchstone that wrote it"},
		"a newer version":   {`{"schema_version": 2, "runs": "elsewhere"}`, "it has schema version 2 and this touchstone knows 1; use the version of touchstone that wrote it"},
		"something after":   {full + "{}", "after top-level value"},
		"a wrong type":      {"{\"schema_version\": 1,\n \"runs\": [{\"id\": \"a\", \"state\": \"complete\", \"trials\": [{\"seq\": \"one\"}]}]}", "line 2, column 67: runs.trials.seq is a JSON string, not int"},
		"a cut document":    {full[:strings.Index(full, `"hostname"`)], "line 24, column 4: unexpected end of JSON input: the document is truncated; export or copy it again"},
		"a line of control": {strings.Replace(full, `"cpu": "Example CPU"`, `"cpu": "\u001b[2J"`, 1), `the cpu ("\x1b[2J") has a control character`},
		"a named control":   {strings.ReplaceAll(full, `"oci/kata"`, `"oci/\u009b"`), `the name of a target ("oci/\u009b") has a control character`},
		"a trend":           {strings.Replace(full, `"running container"`, `"running\ncontainer"`, 1), `the trend of metric Rate of benchmark operations.container.lifecycle ("running\ncontainer") has a control character`},
		"a bound":           {strings.Replace(full, `"does not hold its limit"`, `"\u001b[2J"`, 1), `the bound of metric Rate of benchmark operations.container.lifecycle ("\x1b[2J") has a control character`},
		"a phase":           {strings.Replace(full, `"name": "create"`, `"name": "create\n"`, 1), `the name of a phase of trial 1 ("create\n") has a control character`},
		"an endless name":   {strings.Replace(full, `"hostname": "bench1"`, `"hostname": "`+strings.Repeat("b", 10_001)+`"`, 1), "the hostname (\"bbb"},
		"a path for an id":  {strings.Replace(full, `"id": "01JZZZZZZZZZZZZZZZZZZZZZZZ"`, `"id": "../../etc"`, 1), `run "../../etc": the id has other characters than letters, digits`},
		"an infinite value": {strings.Replace(full, `"value": 50`, `"value": 1e999`, 1), "1e999"},
		"the same run twice": {
			strings.Replace(full, `"runs": [`, `"runs": [{`+facts+`"id": "01JZZZZZZZZZZZZZZZZZZZZZZZ", "state": "running"},`, 1), "occurs twice",
		},
		"a time that UTC cannot spell": {strings.Replace(full, "2026-11-20T10:00:00.123456789Z", "9999-12-31T23:59:59-01:00", 1), "years 0 and 9999"},
		"an invalid run":               {strings.Replace(full, `"state": "complete"`, `"state": "done"`, 1), `state "done"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Decode(strings.NewReader(c.input))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Decode gives %v, want an error with %q", err, c.want)
			}
			if errors.Is(err, ErrVersion) != strings.HasSuffix(name, "er version") {
				t.Errorf("errors.Is(%v, ErrVersion) is wrong", err)
			}
		})
	}
}

func TestDecodeIsLimited(t *testing.T) {
	data := encoded(t, fullDocument())
	if _, err := decode(bytes.NewReader(data), int64(len(data))); err != nil {
		t.Errorf("a document of just the limit: %v", err)
	}
	if _, err := decode(bytes.NewReader(data), int64(len(data))-1); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("a document one byte over the limit: %v", err)
	}
}

// requests are round trips to n engines.
func requests(n int) map[string]time.Duration {
	durations := map[string]time.Duration{}
	for i := range n {
		durations["engine"+strconv.Itoa(i)] = 300 * time.Microsecond
	}
	return durations
}

func TestValidateRefuses(t *testing.T) {
	negative, nan := -time.Nanosecond, math.NaN()
	for want, spoil := range map[string]func(r *Run){
		"id is missing":             func(r *Run) { r.ID = "" },
		"the id has other":          func(r *Run) { r.ID = "a b" },
		"longer than 64":            func(r *Run) { r.ID = strings.Repeat("a", 65) },
		"2003 targets":              func(r *Run) { r.Targets = append(r.Targets, make([]Target, MaxNames)...) },
		"it has 2004 metrics":       func(r *Run) { r.Bench[0].Metrics = append(r.Bench[0].Metrics, make([]Metric, MaxNames)...) },
		`the kind "vm"`:             func(r *Run) { r.Targets[0].Kind = "vm" },
		`the layer "top"`:           func(r *Run) { r.Bench[0].Metrics[0].Layer = "top" },
		`state "paused"`:            func(r *Run) { r.State = "paused" },
		"the start 10000":           func(r *Run) { r.Started = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
		"the end -0001":             func(r *Run) { r.Ended = time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC) },
		"overhead is negative":      func(r *Run) { r.Overhead.Exec = negative },
		"a request to engine0 is":   func(r *Run) { r.Overhead.Requests["engine0"] = negative },
		"requests to 2001 engines":  func(r *Run) { r.Overhead.Requests = requests(MaxNames + 1) },
		"negative number of CPUs":   func(r *Run) { r.Host.Swap = -1 },
		"the limit -0.1 in 5":       func(r *Run) { r.Host.Selfcheck.Limits[0].Difference = -0.1 },
		"the limit 0.02 in 0":       func(r *Run) { r.Host.Selfcheck.Limits[0].Minutes = 0 },
		"a name of 1001 bytes":      func(r *Run) { r.Host.Selfcheck.Target = strings.Repeat("x", MaxCondition+1) },
		"fleet \"a b\" of its node": func(r *Run) { r.Host.Node.Fleet = "a b" },
		"its node has 102 labels": func(r *Run) {
			for i := range 101 {
				r.Host.Node.Labels[fmt.Sprint(i)] = ""
			}
		},
		"its node has a name of 1001 bytes": func(r *Run) { r.Host.Node.Labels["zone"] = strings.Repeat("x", MaxCondition+1) },
		"has 101 limits":                    func(r *Run) { r.Host.Selfcheck.Limits = slices.Repeat(r.Host.Selfcheck.Limits, 101) },
		"CPUs or bytes":                     func(r *Run) { r.Host.PageSize = -1 },
		"target 2 has no name":              func(r *Run) { r.Targets[1].Name = "" },
		`target "native" occurs`:            func(r *Run) { r.Targets[1].Name = "native" },
		"benchmark 1 has no name":           func(r *Run) { r.Bench[0].Name = "" },
		"stopping: the looks must":          func(r *Run) { r.Stopping.Looks = []int{10, 10} },
		"looks must be 1 to 100":            func(r *Run) { r.Stopping.Looks = []int{20, 10} },
		"looks must be 1":                   func(r *Run) { r.Stopping.Looks = nil },
		"precision 2 are not possible":      func(r *Run) { r.Stopping.Precision = 2 },
		`the reason "bored"`:                func(r *Run) { r.Stopping.Stopped[0].Reason = "bored" },
		"-1 blocks":                         func(r *Run) { r.Stopping.Stopped[0].Blocks = -1 },
		`benchmark "operations.container.lifecycle" occurs twice`: func(r *Run) { r.Bench = append(r.Bench, r.Bench[0]) },
		"metric 1 has no name":              func(r *Run) { r.Bench[0].Metrics[0].Name = "" },
		`metric "Create" occurs twice`:      func(r *Run) { r.Bench[0].Metrics[2].Name = "Create" },
		`the unit "ms" is none of "s", "B"`: func(r *Run) { r.Bench[0].Metrics[0].Unit = "ms" },
		`direction ""`:                      func(r *Run) { r.Bench[0].Metrics[0].Better = "" },
		`status "error"`:                    func(r *Run) { r.Trials[0].Status = "error" },
		"counted from 1":                    func(r *Run) { r.Trials[0].Seq = 0 },
		"trial 1 follows trial 1":           func(r *Run) { r.Trials[1].Seq = 1 },
		"block -1":                          func(r *Run) { r.Trials[0].Block = -1 },
		"duration is negative":              func(r *Run) { r.Trials[0].Self = negative },
		"trial 1 (operations.container":     func(r *Run) { r.Trials[0].Started = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
		"although its status is failed":     func(r *Run) { r.Trials[1].Samples = []Sample{{"Create", 1}} },
		"no such target":                    func(r *Run) { r.Trials[0].Target = "oci/runc" },
		"no such benchmark":                 func(r *Run) { r.Trials[0].Benchmark = "operations.container" },
		`no metric "create"`:                func(r *Run) { r.Trials[0].Samples[0].Metric = "create" },
		"value of Rate is NaN":              func(r *Run) { r.Trials[0].Samples[1].Value = nan },
		"value of Rate is -Inf":             func(r *Run) { r.Trials[0].Samples[2].Value = math.Inf(-1) },
		"no metric \"Other\"":               func(r *Run) { r.Trials[0].Distributions[0].Metric = "Other" },
		`Create: the unit "" is none of`:    func(r *Run) { r.Trials[0].Distributions[0].Unit = "" },
		"means of no events":                func(r *Run) { r.Trials[0].Distributions[0].Batch = 0 },
		"2 places and 1 values":             func(r *Run) { r.Trials[0].Distributions[2].Tail.Values = []float64{1} },
		"place 2 of its tail is 5 of 5":     func(r *Run) { r.Trials[0].Distributions[2].Tail.At[1] = 5 },
		"place 2 of its tail is 0 of 5":     func(r *Run) { r.Trials[0].Distributions[2].Tail.At[1] = 0 },
		"place 1 of its tail is -1 of 5":    func(r *Run) { r.Trials[0].Distributions[2].Tail.At[0] = -1 },
		"value 2 of its tail is NaN":        func(r *Run) { r.Trials[0].Distributions[2].Tail.Values[1] = nan },
		"values are means of 2 events":      func(r *Run) { r.Trials[0].Distributions[2].Batch = 2 },
		"its tail has 10001 values": func(r *Run) {
			r.Trials[0].Distributions[2].Tail = &Tail{At: make([]int, MaxTail+1), Values: make([]float64, MaxTail+1)}
		},
		"2 buckets and 3 counts":          func(r *Run) { r.Trials[0].Distributions[0].Counts = []uint64{1, 2, 3} },
		"bucket 2 begins at 1e-07":        func(r *Run) { r.Trials[0].Distributions[0].Lows[1] = 1e-7 },
		"2 times and 1 values":            func(r *Run) { r.Trials[0].Timelines[0].Values = []float64{1} },
		"time 2 is -1ns":                  func(r *Run) { r.Trials[0].Timelines[0].At[1] = -1 },
		"value 2 is NaN":                  func(r *Run) { r.Trials[0].Timelines[0].Values[1] = nan },
		`the name or the group "a\n`:      func(r *Run) { r.Trials[0].Timelines[1].Group = "a\n" },
		"only a series can have a trend":  func(r *Run) { r.Bench[0].Metrics[0].Trend = "x" },
		"only a series can have a growth": func(r *Run) { r.Bench[0].Metrics[0].Growth = true },
		`the column "x" is none`:          func(r *Run) { r.Bench[0].Metrics[0].Column = "x" },
		`the surface "x" is none`:         func(r *Run) { r.Bench[0].Metrics[0].Surface = "x" },
		`the dimension "x" is none`:       func(r *Run) { r.Bench[0].Metrics[0].Dimension = "x" },
		"bucket 1 begins at NaN":          func(r *Run) { r.Trials[0].Distributions[0].Lows[0] = nan },
		"although its status is skipped":  func(r *Run) { r.Trials[0].Status, r.Trials[0].Samples = Skipped, nil },
		"host's load1 is NaN":             func(r *Run) { r.Trials[0].Host.Load = &nan },
		"image 1 has no name":             func(r *Run) { r.Images[0].Name = "" },
		`image "workload" occurs`:         func(r *Run) { r.Images[1].Name = "workload" },
		`"mine.tar" has a negative`:       func(r *Run) { r.Images[1].Size = -1 },
		"the bound NaN":                   func(r *Run) { r.Bench[0].Metrics[2].Bound.Most = nan },
		"cannot agree with \"nothing\"":   func(r *Run) { r.Bench[0].Metrics[2].Agreement.With = "nothing" },
		"agree with \"Create\" up to NaN": func(r *Run) { r.Bench[0].Metrics[2].Agreement.Tolerance = nan },
		"the bound 100":                   func(r *Run) { r.Bench[0].Metrics[2].Bound.Broken = "" },
		`condition ""`:                    func(r *Run) { r.Trials[0].Conditions[""] = "x" },
		`condition "a\x1b[2J"`:            func(r *Run) { r.Trials[0].Conditions["a\x1b[2J"] = "x" },
		`condition "cpus"`:                func(r *Run) { r.Trials[0].Conditions["cpus"] = "0\n1" },
		`condition "long"`:                func(r *Run) { r.Trials[0].Conditions["long"] = strings.Repeat("x", MaxCondition+1) },
		"it has 33 conditions": func(r *Run) {
			for i := range MaxConditions - 1 {
				r.Trials[0].Conditions[fmt.Sprint(i)] = ""
			}
		},
		`failed call "create"`:       func(r *Run) { r.Trials[1].FailedCalls["create"] = 0 },
		`failed call "a\x1b[2J"`:     func(r *Run) { r.Trials[1].FailedCalls["a\x1b[2J"] = 1 },
		"-1 failed tries":            func(r *Run) { r.Targets[0].FailedTries = -1 },
		"trace 1 follows trace 1":    func(r *Run) { r.Traces[1].Seq = 1 },
		"only traces with status":    func(r *Run) { r.Traces[0].Status = Skipped },
		"the run has no such target": func(r *Run) { r.Traces[0].Target = "oci/x" },
		"in step \"a\\nb\"":          func(r *Run) { r.Traces[0].Counts[0].Step = "a\nb" },
		`the counts of ""`:           func(r *Run) { r.Traces[0].Counts[0].Component = "" },
		"a count is negative":        func(r *Run) { r.Traces[0].Counts[1].Threads = -1 },
		"and the time -1ns":          func(r *Run) { r.Traces[0].Counts[1].Blocked["mount"] = -1 },
		"a time is negative":         func(r *Run) { r.Traces[0].Counts[1].Queued = -1 },
		`the name "" of a time`:      func(r *Run) { r.Traces[0].Counts[1].Wall[""] = 1 },
		`the name "/proc"`:           func(r *Run) { r.Traces[0].Counts[1].Opens["/proc"] = 0 },
		`the name "mount"`:           func(r *Run) { r.Traces[0].Counts[1].Calls["mount"] = 0 },
		`the name "\x1b"`:            func(r *Run) { r.Traces[0].Counts[1].Programs["\x1b"] = 1 },
		"more lanes than processes":  func(r *Run) { r.Traces[0].Timeline.Processes = 0 },
		`step "start" at 499ns`:      func(r *Run) { r.Traces[0].Timeline.Steps[2].At = 499 },
		`the program "\x1b"`:         func(r *Run) { r.Traces[0].Timeline.Lanes[0].Execs[0].Name = "\x1b" },
		"it ends at 901ns":           func(r *Run) { r.Traces[0].Timeline.Lanes[0].End = 901 },
		"the time -1ns of the cause": func(r *Run) { r.Traces[0].Timeline.Lanes[0].Wall[CauseChild] = -1 },
		"2 begins and 1 lengths":     func(r *Run) { r.Traces[0].Timeline.Lanes[0].States[0].Lengths = []time.Duration{1} },
		"from 500ns on for 401ns":    func(r *Run) { r.Traces[0].Timeline.Lanes[0].States[0].Lengths[1] = 401 },
		"status ok have one":         func(r *Run) { r.Traces[1].Timeline = &TraceTimeline{} },
		"of 10002 steps":             func(r *Run) { r.Traces[0].Counts = append(r.Traces[0].Counts, make([]TraceCounts, MaxTraceCounts)...) },
		`phase 1 ("create")`:         func(r *Run) { r.Trials[0].Phases[0].Start = negative },
	} {
		t.Run(want, func(t *testing.T) {
			doc := fullDocument()
			spoil(&doc.Runs[0])
			err := doc.Runs[0].Validate()
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Validate gives %v, want an error with %q", err, want)
			}
			var b bytes.Buffer
			if err := Encode(&b, doc); err == nil || b.Len() > 0 {
				t.Errorf("Encode gives %v and wrote %d bytes, want an error and nothing written", err, b.Len())
			}
		})
	}
}

func TestConditionText(t *testing.T) {
	longText := strings.Repeat("é", MaxCondition)
	for text, want := range map[string]string{
		"": "", "  ext4 on\tsda1\n": "ext4 on sda1", "a\x1b[31mb": "a\uFFFD[31mb", "\xff": "\uFFFD",
		longText: longText[:MaxCondition-4] + "…",
	} {
		got := ConditionText(text)
		if got != want {
			t.Errorf("ConditionText(%.40q) = %.40q of %d bytes, want %.40q of %d", text, got, len(got), want, len(want))
		}
		if repeat := ConditionText(got); repeat != got {
			t.Errorf("ConditionText(%.40q) = %.40q: it changes what it gave", got, repeat)
		}
	}
}

func FuzzConditionText(f *testing.F) {
	f.Add("bridge, veth, mtu 1500", uint16(0))
	f.Add(" \x00\n", uint16(MaxCondition))
	f.Fuzz(func(t *testing.T, text string, n uint16) {
		text += strings.Repeat("ü", int(n))
		if err := validateConditions(map[string]string{"x": ConditionText(text)}); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add(encoded(f, fullDocument()))
	f.Add([]byte(`{"schema_version": 1}`))
	f.Add([]byte(`{"schema_version": 1, "runs": [{"id": "a", "state": "running", "started": "0001-01-01T00:00:00+01:00"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := Decode(bytes.NewReader(data))
		if err != nil {
			return
		}
		repeat, err := Decode(bytes.NewReader(encoded(t, doc)))
		if err != nil {
			t.Fatalf("what Encode wrote: %v", err)
		}
		for _, r := range doc.Runs {
			if strings.ContainsFunc(r.Name+r.Host.Hostname+r.Host.CPU, unicode.IsControl) || !idPattern.MatchString(r.ID) {
				t.Errorf("a run came in as %q of %q", r.ID, r.Host.Hostname)
			}
		}
		doc.Schema = SchemaVersion
		expect.Equal(t, "a document changed on its way through JSON", doc, repeat, cmpopts.EquateEmpty())
	})
}

// A reader finds the meaning of a sample in the document itself.
func ExampleDecode() {
	file := strings.NewReader(`{
	  "schema_version": 1,
	  "runs": [{
	    "id": "01J", "state": "complete", "seed": "1",
	    "host": {"cpus": 4, "memory_bytes": 8589934592, "swap_bytes": 0},
	    "overhead": {"empty_region_ns": 40, "exec_ns": 600000},
	    "targets": [{"name": "oci/crun"}],
	    "benchmarks": [{"name": "operations.container.lifecycle", "metrics": [
	      {"name": "Create", "unit": "s", "better": "lower", "help": "time to create a container"}
	    ]}],
	    "trials": [{
	      "seq": 1, "benchmark": "operations.container.lifecycle", "target": "oci/crun", "status": "ok",
	      "block": 0, "elapsed_ns": 50000000, "self_cpu_ns": 1000000,
	      "samples": [{"metric": "Create", "value": 0.021}]
	    }]
	  }]
	}`)
	doc, err := Decode(file)
	if err != nil {
		fmt.Println(err)
		return
	}
	run := doc.Runs[0]
	metric := run.Bench[0].Metrics[0]
	for _, trial := range run.Trials {
		fmt.Println(trial.Target, metric.Name, trial.Values(metric.Name), metric.Unit, metric.Better, "is better")
	}
	// Output: oci/crun Create [0.021] s lower is better
}
