package touchstone

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// Limits of a file.
const (
	maxEntries = 1000    // in all lists
	maxReports = 100_000 // of all benchmarks of an entry
)

// IsJSON reports whether data may be TouchStone's JSON: it begins with a list. Touchstone's own documents are objects.
func IsJSON(data []byte) bool { return bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("[")) }

// Decode reads a file in TouchStone's form: one or more lists of entries. Each entry becomes a run of its own with one target, since
// TouchStone measured the targets one after the other: reports of one run would pair values that do not belong together. The ID of a run is
// derived from its entry, so the same entry always has the same ID.
//
// describe returns the description of a benchmark in the catalogue.
func Decode(data []byte, name string, describe func(string) (result.Benchmark, bool)) ([]result.Run, error) {
	if len(data) > MaxSize {
		return nil, fmt.Errorf("it is longer than %d bytes; split it", MaxSize)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	var runs []result.Run
	ids := map[string]bool{}
	for lists := 1; ; lists++ {
		var entries []entry
		var list json.RawMessage
		offset := d.InputOffset()
		err := d.Decode(&list)
		if err == nil {
			err = json.Unmarshal(list, &entries)
		}
		if err == nil {
			err = result.CheckNumbers(list, &entries)
		}
		switch {
		case errors.Is(err, io.EOF):
			if len(runs) == 0 {
				return nil, errors.New("TouchStone's JSON has no results")
			}
			return runs, nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			return nil, fmt.Errorf("list %d of TouchStone's JSON, from byte %d: the file is cut off; copy it again", lists, offset)
		case err != nil:
			return nil, fmt.Errorf("list %d of TouchStone's JSON, from byte %d: %w; want [{cri, oci, results}]", lists, offset, err)
		case len(runs)+len(entries) > maxEntries:
			return nil, fmt.Errorf("TouchStone's JSON has more than %d entries; split it", maxEntries)
		}
		for i, e := range entries {
			run, err := e.run(name, describe)
			if err != nil {
				return nil, fmt.Errorf("list %d, entry %d of TouchStone's JSON (%.50q/%.50q): %w", lists, i+1, e.CRI, e.OCI, err)
			}
			for n := 2; ids[run.ID]; n++ { // the same entry again
				run.ID = fmt.Sprintf("%.30s-%d", run.ID, n)
			}
			ids[run.ID] = true
			runs = append(runs, run)
		}
	}
}

// unknownFacts is the caveat of every run.
const unknownFacts = "imported from TouchStone's JSON, which has no units, times, versions, parameters or facts about the host: units are of TouchStone's source, and the order of trials is the order in the file"

func (e entry) run(name string, describe func(string) (result.Benchmark, bool)) (result.Run, error) {
	t, err := target.Parse(e.CRI + "/" + e.OCI)
	if err != nil || t.Engine != e.CRI {
		return result.Run{}, errors.New("cri and oci are not the names of an engine and a runtime; want cri and oci such as containerd and runc")
	}
	text, err := json.Marshal(e)
	if err != nil {
		return result.Run{}, err
	}
	run := result.Run{
		ID: fmt.Sprintf("touchstone-%x", sha256.Sum256(text))[:30], Name: name, State: result.Complete, Baseline: t.String(),
		Host: result.Host{Hostname: result.UnknownHost}, Tool: result.Tool{Version: "TouchStone"},
		Targets: []result.Target{{Name: t.String(), Kind: result.KindEngine, Runtime: e.OCI}},
		Caveats: []string{unknownFacts},
	}
	left := map[string]bool{} // names of another version
	for _, r := range e.Results {
		if len(run.Trials)+len(r.Reports) > maxReports {
			return result.Run{}, fmt.Errorf("it has more than %d reports; split it", maxReports)
		}
		if err := r.addTo(&run, describe, left); err != nil {
			return result.Run{}, err
		}
	}
	if len(run.Trials) == 0 {
		return result.Run{}, fmt.Errorf("it has no result of a known benchmark%s; the known ones are %s", listed(left), strings.Join(Benchmarks(), ", "))
	}
	if len(left) > 0 {
		run.Caveats = append(run.Caveats, "left out because another version of TouchStone wrote them, so their units are unknown"+listed(left))
	}
	return run, nil
}

// mostListed bounds the names in a message.
const mostListed = 10

func listed(names map[string]bool) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		list = append(list, fmt.Sprintf("%.80q", name))
	}
	if len(list) == 0 {
		return ""
	}
	if rest := len(list) - mostListed; rest > 0 {
		list = append(list[:mostListed], fmt.Sprintf("and %d more", rest))
	}
	return ": " + strings.Join(list, ", ")
}

// addTo adds a trial for each report to a run.
func (r report) addTo(run *result.Run, describe func(string) (result.Benchmark, bool), left map[string]bool) error {
	i := index(r.Name)
	entry, ok := describe(r.Name)
	if i < 0 || !ok {
		left[r.Name] = true
		return nil
	}
	if slices.ContainsFunc(run.Bench, func(b result.Benchmark) bool { return b.Name == r.Name }) {
		return fmt.Errorf("benchmark %s has two results", r.Name)
	}
	entry.Metrics = slices.DeleteFunc(slices.Clone(entry.Metrics), func(m result.Metric) bool { return !slices.Contains(Metrics(r.Name), m.Name) })
	run.Bench = append(run.Bench, entry)
	for block, values := range r.Reports {
		t := result.Trial{
			Seq: len(run.Trials) + 1, Cell: result.Cell{Benchmark: r.Name, Target: run.Targets[0].Name}, Block: block, Status: result.OK,
		}
		for _, name := range slices.Sorted(maps.Keys(values)) {
			m := slices.IndexFunc(benchmarks[i].metrics, func(m metric) bool { return m.name == name })
			if m < 0 || !slices.ContainsFunc(entry.Metrics, func(d result.Metric) bool { return d.Name == name }) {
				left[r.Name+" "+name] = true
				continue
			}
			switch value := values[name]; {
			case value < 0:
				return fmt.Errorf("benchmark %s, report %d: %s is %v, and a time is not negative", r.Name, block+1, name, value)
			case value == 0:
				t.Status, t.Reason = result.Failed, "TouchStone recorded 0 for "+name+": it could not read the output of the program"
			default:
				t.Samples = append(t.Samples, result.Sample{Metric: name, Value: value * benchmarks[i].metrics[m].scale})
			}
		}
		if len(t.Samples) == 0 && t.Status == result.OK {
			t.Status, t.Reason = result.Failed, "TouchStone recorded no known value"
		}
		if t.Status != result.OK {
			t.Samples = nil
		}
		run.Trials = append(run.Trials, t)
	}
	return nil
}
