package counts

import (
	"errors"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// example is a file as Write makes it. The step of the reads varies, and their sum does not.
const example = `touchstone-counts 1
# Expected numbers of system calls, by step and component. Compare a runtime with them: touchstone counts check FILE
target: oci/runc
runtime: runc version 1.1.5
kernel: 6.18.44
architecture: amd64
touchstone: dev
traces: 10

benchmark: operations.container.lifecycle
(between calls): runtime: openat = 1
(between calls): runtime: read varies
all steps: runtime: read = 12
create: runtime: futex varies
create: runtime: mount = 33
create: runtime: read varies
`

var origin = Origin{Target: "oci/runc", Runtime: "runc version 1.1.5", Kernel: "6.18.44", Arch: "amd64", Tool: "dev"}

// tracedRuntime is n traces of the counts of the example, with changed calls at create.
func tracedRuntime(n int, changes map[string]int64) []Traced {
	s := side("oci/runc", n, func(i int) []result.TraceCounts {
		calls := map[string]int64{"mount": 33, "futex": int64(250 + i), "read": int64(10 + i%2)}
		for name, count := range changes {
			if calls[name] = count; count == 0 {
				delete(calls, name)
			}
		}
		return []result.TraceCounts{step("create", calls), step("", map[string]int64{"openat": 1, "read": int64(2 - i%2)})}
	})
	return []Traced{{Cell: result.Cell{Benchmark: lifecycle.Name, Target: "oci/runc"}, Traces: s.Traces}}
}

// TestExpectedFile holds that the file of traces is readable, sorted and complete: it equals the traces.
func TestExpectedFile(t *testing.T) {
	var b strings.Builder
	e := Expect(origin, tracedRuntime(ShownBy, nil))
	must.Do(t, e.Write(&b))
	expect.Equal(t, "the file", example, b.String())
	if stable, varying := e.Sizes(); stable != 2 || varying != 3 {
		t.Errorf("%d counts are stable and %d vary", stable, varying)
	}
	e, err := ReadExpected("counts.txt", []byte(example))
	must.Do(t, err)
	b.Reset()
	must.Do(t, e.Write(&b))
	expect.Equal(t, "the file after a reading", example, b.String())
	d := e.Compare("counts.txt", origin, tracedRuntime(ShownBy, nil))
	if d.Answer() != stats.NotWorse || d.Diff() != "" || d.Warnings() != nil {
		t.Errorf("equal traces: %q, %v\n%s", d.Answer(), d.Warnings(), d.Diff())
	}
}

// TestDeviation holds the answer and the diff of each kind of change.
func TestDeviation(t *testing.T) {
	e, err := ReadExpected("counts.txt", []byte(example))
	must.Do(t, err)
	const head = "--- counts.txt (runc version 1.1.5)\n+++ oci/runc (runc version 1.1.5)\n@@ operations.container.lifecycle @@\n"
	for _, c := range []struct {
		name    string
		traces  int
		changes map[string]int64
		want    stats.Answer
		diff    string
	}{
		{"a mount more", ShownBy, map[string]int64{"mount": 34}, stats.Worse, head + "-create: runtime: mount = 33\n+create: runtime: mount = 34\n"},
		{"no mount", ShownBy, map[string]int64{"mount": 0}, stats.Worse, head + "-create: runtime: mount = 33\n"},
		{"a new call", ShownBy, map[string]int64{"fsync": 2}, stats.Worse, head + "+create: runtime: fsync = 2\n"},
		{"a change of the sum", ShownBy, map[string]int64{"read": 14}, stats.NotWorse, ""},
		{"few traces", 3, map[string]int64{"mount": 34}, stats.Inconclusive, head + "-create: runtime: mount = 33\n+create: runtime: mount = 34  # few traces\n"},
		{"moved work", ShownBy, map[string]int64{"openat": 0}, stats.NotWorse, ""},
	} {
		d := e.Compare("counts.txt", origin, tracedRuntime(c.traces, c.changes))
		if d.Answer() != c.want || d.Diff() != c.diff {
			t.Errorf("%s: %q, want %q; the diff is\n%s\nwant\n%s", c.name, d.Answer(), c.want, d.Diff(), c.diff)
		}
	}
	d := e.Compare("counts.txt", Origin{Target: "oci/runc", Kernel: "6.1.0", Arch: "arm64"}, nil)
	if len(d.Warnings()) != 2 || !strings.HasPrefix(d.Warnings()[0], "The file is of kernel 6.18.44, and this machine has 6.1.0: ") || d.Answer() != stats.Inconclusive || d.Missing[0].Reason != "no trial of it was traced" {
		t.Errorf("%q: %v, %+v", d.Answer(), d.Warnings(), d.Missing)
	}
}

// TestExpectedErrors holds that the error of a file has the line, the text and the form.
func TestExpectedErrors(t *testing.T) {
	const head = "touchstone-counts 1\ntarget: oci/runc\ntraces: 10\n"
	for text, want := range map[string]string{
		"touchstone-counts 2\n":                         `counts.txt:1: the first line is "touchstone-counts 2", and this touchstone reads "touchstone-counts 1"`,
		"touchstone-counts 1\n":                         "counts.txt: the header needs the lines target and traces; record the file again",
		head:                                            "counts.txt: the file has no benchmark",
		head + "mount = 3\n":                            `counts.txt:4: "mount = 3" is no line of the header`,
		"touchstone-counts 1\ntraces: x\n":              `counts.txt:2: the number of traces "x" is no number above 0`,
		head + "benchmark: a\ncreate: mount = 3\n":      `counts.txt:5: "create: mount" has no step, component and call; write STEP: COMPONENT: CALL = NUMBER`,
		head + "benchmark: a\nx: y: z\n":                `counts.txt:5: "x: y: z" has no count`,
		head + "benchmark: a\nx: y: z = -1\n":           `counts.txt:5: the count "-1" is no whole number above 0`,
		head + "benchmark: a\nx: y: z = 0\n":            `counts.txt:5: the count "0" is no whole number above 0`,
		head + "benchmark: a\nx: y: z = 1\nx: y: z = 1": "counts.txt:6: the count of x: y: z occurs twice",
		head + "benchmark: a\nbenchmark: a\n":           "counts.txt:5: benchmark a occurs twice",
		"version: 1\ngates: []\n":                       "counts.txt: it is a file of gates; touchstone compare A B --gates FILE takes it",
	} {
		_, err := ReadExpected("counts.txt", []byte(text))
		var failure *FileError
		if !errors.As(err, &failure) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: the error is %v, want %s", text, err, want)
		}
	}
}

// FuzzReadExpected holds that a file that is read is written in one form.
func FuzzReadExpected(f *testing.F) {
	f.Add([]byte(example))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := ReadExpected("f", data)
		if err != nil {
			return
		}
		var first, second strings.Builder
		must.Do(t, e.Write(&first))
		e, err = ReadExpected("f", []byte(first.String()))
		must.Do(t, err)
		must.Do(t, e.Write(&second))
		expect.Equal(t, "the file", first.String(), second.String())
	})
}
