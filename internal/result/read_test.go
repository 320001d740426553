package result

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
)

// repeated is a document with a part that is repeated until the document has size bytes. It takes no memory.
type repeated struct {
	head, unit, tail string
	// number, if it is not nil, returns the part with a number from 0. All have the length of unit.
	number   func(i int64) string
	size, at int64
	part     string // the last part with a number
	index    int64  // of part
	peak     uint64 // of the memory in use during the reading
	read     int64  // bytes until the next look at the memory
}

func (r *repeated) Seek(offset int64, origin int) (int64, error) {
	switch origin {
	case io.SeekStart:
		r.at = offset
	case io.SeekEnd:
		r.at = r.end() + offset
	default:
		return 0, errors.New("not needed")
	}
	return r.at, nil
}

func (r *repeated) units() int64 { return r.size / int64(len(r.unit)) }

func (r *repeated) end() int64 {
	return int64(len(r.head)) + r.units()*int64(len(r.unit)) + int64(len(r.tail))
}

func (r *repeated) Read(p []byte) (n int, err error) {
	if r.read -= int64(len(p)); r.read <= 0 {
		// Without garbage, whose amount depends on the load of the machine.
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		r.peak, r.read = max(r.peak, m.HeapAlloc), 1<<20
	}
	for n < len(p) && r.at < r.end() {
		rest := ""
		switch offset := r.at - int64(len(r.head)); {
		case offset < 0:
			rest = r.head[r.at:]
		case offset < r.units()*int64(len(r.unit)):
			part := r.unit
			if r.number != nil {
				if i := offset / int64(len(part)); r.part == "" || i != r.index {
					r.part, r.index = r.number(i), i
				}
				part = r.part
			}
			rest = part[offset%int64(len(part)):]
		default:
			rest = r.tail[offset-r.units()*int64(len(r.unit)):]
		}
		count := copy(p[n:], rest)
		n, r.at = n+count, r.at+int64(count)
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// counter counts what it visits.
type counter struct{ runs, trials, samples, traces, ended int }

func (c *counter) Begin(Run) error { c.runs++; return nil }

func (c *counter) Trial(t Trial) error {
	c.trials++
	c.samples += len(t.Samples)
	return nil
}

func (c *counter) Trace(Trace) error { c.traces++; return nil }

func (c *counter) End() error { c.ended++; return nil }

// The numbers of a run, the start of a run up to the list of trials, and a trial.
const (
	facts      = `"seed": "1", "host": {"cpus": 1, "memory_bytes": 1, "swap_bytes": 0}, "overhead": {"empty_region_ns": 0, "exec_ns": 0}, `
	startOfRun = `{"schema_version": 1, "runs": [{` + facts + `"id": "a", "state": "complete", "targets": [{"name": "native"}],
		"benchmarks": [{"name": "a.b.c", "metrics": [{"name": "M", "unit": "s", "better": "lower"}]}], "trials": [`
	startOfTrial = `{"seq": 1, "benchmark": "a.b.c", "target": "native", "status": "ok", "block": 0, "elapsed_ns": 1, "self_cpu_ns": 1, `
)

// TestReadIsBounded: the memory does not depend on the size of a document, also of a hostile one.
//
// Invariant import-memory: The memory of an import does not depend on the size of the document.
func TestReadIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("documents of 40 MiB take seconds")
	}
	const size, limit = 40 << 20, 48 << 20
	run := `{"schema_version": 1, "runs": [{"id": "a", "state": "complete", `
	for name, c := range map[string]struct{ head, unit, want string }{
		"empty trials":            {startOfRun, `{},`, `line 2, column 110: runs.trials.seq is missing, and is a number`},
		"samples without end":     {startOfRun + startOfTrial + `"samples": [`, `{"metric":"M","value":1},`, `runs.trials.samples: the list has more than 500000 entries`},
		"timelines without end":   {startOfRun + startOfTrial + `"timelines": [`, `{},`, `runs.trials.timelines: the list has more than 256 entries`},
		"a timeline without end":  {startOfRun + startOfTrial + `"timelines": [{"at_ns": [`, `1,`, `runs.trials.timelines is longer than 8 MiB`},
		"distributions":           {startOfRun + startOfTrial + `"distributions": [`, `{"batch":1,"lows":[` + strings.Repeat("1,", 50_000) + `1]},`, `trial 1 has more than 4000000 values`},
		"an output without end":   {startOfRun + startOfTrial + `"output": "`, `x`, `line 2, column 234: runs.trials.output is longer than 8 MiB`},
		"trials of another name":  {strings.Replace(startOfRun, "trials", "Trials", 1), `{"seq":0,"block":0,"elapsed_ns":0,"self_cpu_ns":0},`, `run "a": trial 0 ( on )`},
		"a key without end":       {startOfRun + `{"`, `x`, `is longer than 8 MiB`},
		"targets":                 {run + `"targets": [`, `{},`, `runs.targets: the list has more than 2000 entries`},
		"targets of another name": {run + `"TARGETS": [`, `{},`, `runs.targets: the list has more than 2000 entries`},
		"benchmarks":              {run + `"benchmarks": [`, `{},`, `has more than 2000 benchmarks`},
		"metrics":                 {run + `"benchmarks": [`, `{"metrics":[` + strings.Repeat("{},", 1000) + `{}]},`, `benchmark "": metric 1 has no name`},
		"long facts":              {run + `"images": [`, `{"name": "` + strings.Repeat("x", 1<<20) + `"},`, `take more than 16 MiB each`},
		"unknown":                 {run + `"later": [`, `[],`, `runs.later is longer than 8 MiB`},
		"runs":                    {`{"schema_version": 1, "runs": [`, `{` + facts + `"id": "a", "state": "complete"},`, `run "a" occurs twice`},
		"depth":                   {`{"runs": [`, `[`, `more than 100 values are within each other`},
		"depth of a value":        {run + `"later": `, `[`, `exceeded max depth`},
		"white space":             {``, ` `, `the document is longer than 8 MiB`},
	} {
		t.Run(name, func(t *testing.T) {
			in := &repeated{head: c.head, unit: c.unit, size: size}
			runtime.GC()
			_, err := Read(in, &counter{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want %q", err, c.want)
			}
			if in.peak > limit {
				t.Errorf("the heap had %d MiB", in.peak>>20)
			}
		})
	}
}

// TestReadLargeDocument: one trial is in memory at a time.
//
// Invariant import-memory.
func TestReadLargeDocument(t *testing.T) {
	number := func(i int64) string {
		return fmt.Sprintf(`{"seq": %9d, `, i+1) + startOfTrial[len(`{"seq": 1, `):] + `"samples": [{"metric": "M", "value": 0.125}` + strings.Repeat(`, {"metric": "M", "value": 0.125}`, 999) + `]},`
	}
	// The last trial is in the tail, without a comma.
	in := &repeated{head: startOfRun, unit: number(0), number: number, size: 16 << 20}
	in.tail = strings.TrimSuffix(number(in.units()), ",") + `]}]}`
	trials := int(in.units()) + 1
	var got counter
	runtime.GC()
	if _, err := Read(in, &got); err != nil || got != (counter{runs: 1, trials: trials, samples: 1000 * trials, ended: 1}) {
		t.Errorf("read %+v, %v, want %d trials", got, err, trials)
	}
	if in.peak > 4<<20 {
		t.Errorf("the heap had %d MiB", in.peak>>20)
	}
}

// TestReadStopsForVisitor: an error of the visitor comes back as it is.
func TestReadStopsForVisitor(t *testing.T) {
	errStop := errors.New("stop")
	for _, v := range []Visitor{failing{begin: errStop}, failing{trial: errStop}, failing{trace: errStop}, failing{end: errStop}} {
		if _, err := Read(strings.NewReader(string(encoded(t, fullDocument()))), v); !errors.Is(err, errStop) || err.Error() != "stop" {
			t.Errorf("Read gives %v", err)
		}
	}
}

type failing struct{ begin, trial, trace, end error }

func (f failing) Begin(Run) error   { return f.begin }
func (f failing) Trial(Trial) error { return f.trial }
func (f failing) Trace(Trace) error { return f.trace }
func (f failing) End() error        { return f.end }

// TestReadLocatesFaults: each error has the place, the value and the remedy.
func TestReadLocatesFaults(t *testing.T) {
	const trace = `{"seq": 1, "benchmark": "a.b.c", "target": "native", "status": "ok", "started": "2026-11-20T10:00:00Z", "elapsed_ns": 1}`
	full := string(encoded(t, fullDocument()))
	replace := func(old, replacement string) string {
		if !strings.Contains(full, old) {
			t.Fatalf("the document has no %s", old)
		}
		return strings.Replace(full, old, replacement, 1)
	}
	line := func(text, part string) string {
		return fmt.Sprintf("line %d, column ", strings.Count(text[:strings.Index(text, part)], "\n")+1)
	}
	for name, c := range map[string]struct{ text, at, want string }{
		"a value of a sample":       {replace(`"value": 50`, `"value": "fifty"`), `"fifty"`, "runs.trials.samples.value is a JSON string, not float64; " + exported},
		"a character in a sample":   {replace(`"value": 50`, `"value": !`), `!`, "invalid character '!' looking for beginning of value; " + exported},
		"a character between":       {replace(`"seq": 3,`, `"seq": 3;`), `3;`, "invalid character ';'"},
		"a time":                    {replace(`"started": "2026-11-20T10:00:01`, `"started": "yesterday`), "yesterday", "yesterday"},
		"a state":                   {replace(`"state": "complete"`, `"state": "done"`), `"trials"`, `state "done" is none of "running"`},
		"a metric of a sample":      {replace(`"metric": "Create",`+"\n"+`       "value"`, `"metric": "Other", "value"`), `"conditions"`, ""},
		"facts after the trials":    {`{"schema_version": 1, "runs": [{"id": "a", "state": "complete", "trials": [], "name": "x"}]}`, `"name"`, `facts of the run follow its trials; put the keys trials and traces last`},
		"traces before the trials":  {`{"schema_version": 1, "runs": [{` + facts + `"id": "a", "state": "complete", "traces": [], "trials": []}]}`, `"traces"`, `the traces precede the trials; put the key traces after trials`},
		"a trace twice":             {startOfRun + `], "traces": [` + trace + `, ` + trace + `]}]}`, `"traces"`, `trace 1 follows trace 1`},
		"a key twice":               {replace(`"seq": 3,`, `"seq": 3, "seq": 4,`), `"seq": 3`, `the key "seq" occurs twice`},
		"an object in place of one": {replace(`"samples": [`, `"samples": {"a": [`), `"samples"`, "runs.trials.samples is a JSON object, not a list"},
		"a list in place of a run":  {`{"schema_version": 1, "runs": [[]]}`, `[[`, "runs is a JSON array, not an object"},
		"null in place of a run":    {`{"schema_version": 1, "runs": [null]}`, `null`, "runs is a JSON null, not an object"},
		"text after the document":   {full + "x", "\nx", "invalid character 'x'"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read(strings.NewReader(c.text), &counter{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("the error is %v, want %q", err, c.want)
			}
			if place := line(c.text, c.at); name != "text after the document" && name != "a metric of a sample" && !strings.Contains(err.Error(), place) {
				t.Errorf("the error is %v, want %q", err, place)
			}
		})
	}
}

// TestReadInAnyOrder: other programs write the keys in the order of their names.
func TestReadInAnyOrder(t *testing.T) {
	var got counter
	text := `{"generator": {}, "runs": [{"benchmarks": null, ` + facts + `"id": "a", "state": "complete", "targets": null, "trials": null}], "schema_version": 1}`
	if _, err := Read(strings.NewReader(text), &got); err != nil || got != (counter{runs: 1, ended: 1}) {
		t.Errorf("read %+v, %v", got, err)
	}
}
