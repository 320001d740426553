package touchstone

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// entry has the results of one cri with one oci. The keys are TouchStone's. Older versions began them with capital letters, and Go
// reads both.
type entry struct {
	CRI     string   `json:"cri"`
	OCI     string   `json:"oci"`
	Results []report `json:"results"`
}

// report has the results of one benchmark: a value of each metric for each run, and the mean over the runs.
type report struct {
	Name       string               `json:"name"`
	Aggregated map[string]float64   `json:"aggregated"`
	Reports    []map[string]float64 `json:"reports"`
}

// Encode spells a run as a line in TouchStone's form. It contains the measured trials that are ok: no warm-up, and no failed trial. A
// benchmark without such a trial has no reports, and null as aggregated. left are the benchmarks that TouchStone does not have, in order.
func Encode(run result.Run) (line []byte, left []string, err error) {
	entries := []entry{}
	for _, t := range run.Targets {
		name, err := target.Parse(t.Name)
		if err != nil {
			return nil, nil, err
		}
		if name.Runtime == "" {
			continue // native, which TouchStone does not have
		}
		e := entry{CRI: name.Engine, OCI: strings.TrimPrefix(t.Name, name.Engine+"/"), Results: []report{}}
		for _, b := range run.Bench {
			i := index(b.Name)
			if i < 0 {
				if !slices.Contains(left, b.Name) {
					left = append(left, b.Name)
				}
				continue
			}
			e.Results = append(e.Results, benchmarks[i].report(run, t.Name))
		}
		entries = append(entries, e)
	}
	line, err = json.Marshal(entries)
	return append(line, '\n'), left, err
}

func (b benchmark) report(run result.Run, target string) report {
	r := report{Name: b.name, Reports: []map[string]float64{}}
	for i := range run.Trials {
		t := &run.Trials[i]
		if t.Benchmark != b.name || t.Target != target || t.Warmup || t.Status != result.OK {
			continue
		}
		values := map[string]float64{}
		for _, m := range b.metrics {
			if samples := t.Values(m.name); len(samples) == 1 {
				values[m.name] = samples[0] / m.scale
			}
		}
		r.Reports = append(r.Reports, values)
	}
	for _, m := range b.metrics {
		sum, n := 0.0, 0
		for _, values := range r.Reports {
			if v, has := values[m.name]; has {
				sum, n = sum+v, n+1
			}
		}
		if n == 0 {
			continue
		}
		if r.Aggregated == nil {
			r.Aggregated = map[string]float64{}
		}
		r.Aggregated[m.name] = sum / float64(n)
	}
	return r
}
