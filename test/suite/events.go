package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// event is one line of go test -json: see `go doc test2json`.
type event struct {
	Action  string
	Package string
	// ImportPath is the package of a compiler's output.
	ImportPath string
	Test       string
	Elapsed    float64
	Output     string
}

// testTime is the time of a test without subtests above it, or of a package if it has no name.
type testTime struct {
	pkg, test string
	elapsed   time.Duration
}

// failure is a failed test, or a package that failed without a failed test.
type failure struct {
	pkg, test, output string
}

func (f failure) String() string {
	return fmt.Sprintf("--- FAIL %s %s\n%s", f.pkg, f.test, f.output)
}

// results are the tests of a step.
type results struct {
	passed, skipped int
	failures        []failure
	tests           []testTime
	skips           []failure // of whole tests, with the reason as output
}

// readEvents reads events to their end, and calls failed for each failure. The output of all tests goes to the log.
func readEvents(source io.Reader, log io.Writer, failed func(failure)) results {
	var r results
	outputs := make(map[string]*strings.Builder)
	failures := make(map[string]bool) // packages with a failed test
	lines := bufio.NewReader(source)
	for {
		line, err := lines.ReadString('\n')
		var e event
		switch {
		case line == "":
		case json.Unmarshal([]byte(line), &e) != nil || e.Action == "":
			_, _ = io.WriteString(log, line)
		default:
			r.take(e, outputs, failures, log, failed)
		}
		if err != nil {
			return r
		}
	}
}

func (r *results) take(e event, outputs map[string]*strings.Builder, failures map[string]bool, log io.Writer, failed func(failure)) {
	key := e.Package + e.ImportPath + " " + e.Test
	elapsed := time.Duration(e.Elapsed * float64(time.Second))
	switch e.Action {
	case "output", "build-output":
		_, _ = io.WriteString(log, e.Output)
		if outputs[key] == nil {
			outputs[key] = new(strings.Builder)
		}
		outputs[key].WriteString(e.Output)
		return
	case "build-fail":
		if b := outputs[key]; b != nil {
			failed(failure{e.ImportPath, "does not compile", b.String()})
			delete(outputs, key)
		}
		return
	case "pass", "skip", "fail":
	default:
		return
	}
	text := ""
	if b := outputs[key]; b != nil {
		text = b.String()
	}
	delete(outputs, key)
	isTopLevel := !strings.Contains(e.Test, "/")
	if e.Test == "" && e.Action == "fail" {
		r.unfinished(e.Package, outputs, failures, failed)
	}
	switch {
	case e.Test == "" && e.Action == "fail" && !failures[e.Package]:
		f := failure{e.Package, "", text}
		r.failures = append(r.failures, f)
		failed(f)
	case e.Test == "":
	case e.Action == "fail":
		f := failure{e.Package, e.Test, text}
		failures[e.Package] = true
		failed(f)
		if isTopLevel {
			r.failures = append(r.failures, f)
		}
	case e.Action == "skip" && isTopLevel:
		r.skipped++
		r.skips = append(r.skips, failure{e.Package, e.Test, text})
	case isTopLevel:
		r.passed++
	}
	if e.Test != "" && isTopLevel {
		r.tests = append(r.tests, testTime{e.Package, e.Test, elapsed})
	}
}

// unfinished adds the tests of a failed package that have begun and not ended: a panic, a limit or a signal ended the package.
func (r *results) unfinished(pkg string, outputs map[string]*strings.Builder, failures map[string]bool, failed func(failure)) {
	for _, key := range slices.Sorted(maps.Keys(outputs)) {
		test, found := strings.CutPrefix(key, pkg+" ")
		if !found || test == "" {
			continue
		}
		f := failure{pkg, test, outputs[key].String()}
		delete(outputs, key)
		failures[pkg] = true
		failed(f)
		if !strings.Contains(test, "/") {
			r.failures = append(r.failures, f)
		}
	}
}
