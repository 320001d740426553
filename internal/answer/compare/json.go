package compare

import (
	"math"

	"github.com/touchstone-bench/touchstone/internal/report/sides"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// kind marks the JSON of a comparison. docs/schema/comparison.schema.json is its schema.
const kind = "touchstone-comparison"

// schemaVersion is the version of the JSON.
const schemaVersion = 1

type (
	jsonDocument struct {
		Kind        string           `json:"kind"`
		Version     int              `json:"schema_version"`
		A           jsonSide         `json:"a"`
		B           jsonSide         `json:"b"`
		Differences []jsonDifference `json:"differences"`
		Notes       []string         `json:"notes"`
		Method      jsonMethod       `json:"method"`
		Metrics     []jsonMetric     `json:"metrics"`
		OneSided    []jsonOneSided   `json:"one_sided"`
		Gates       []jsonGate       `json:"gates"`
		Outcome     *stats.Answer    `json:"outcome"`
	}
	jsonSide struct {
		Name string    `json:"name"`
		Runs []jsonRun `json:"runs"`
	}
	jsonRun struct {
		ID      string       `json:"id"`
		Plan    string       `json:"plan"`
		Host    string       `json:"host"`
		Started string       `json:"started"`
		State   result.State `json:"state"`
		Trials  int          `json:"trials"`
	}
	jsonDifference struct {
		Class sides.Class `json:"class"`
		Fact  string      `json:"fact"`
		A     []string    `json:"a"`
		B     []string    `json:"b"`
	}
	jsonMethod struct {
		// OneRunEach is set if the sides have one run each. No verdict is slower or faster then.
		OneRunEach    bool    `json:"one_run_each"`
		Comparisons   int     `json:"comparisons"`
		Shown         int     `json:"shown"`
		ShownAlone    int     `json:"shown_in_metric_alone"`
		ExpectedFalse float64 `json:"expected_false_in_metric_alone"`
	}
	jsonMetric struct {
		Benchmark   string           `json:"benchmark"`
		Params      string           `json:"params"`
		ParamsB     string           `json:"params_b,omitempty"`
		Target      string           `json:"target"`
		Metric      string           `json:"metric"`
		Unit        result.Unit      `json:"unit"`
		Better      result.Direction `json:"better"`
		A           jsonValues       `json:"a"`
		B           jsonValues       `json:"b"`
		Ratio       *float64         `json:"ratio"`
		Interval    *jsonInterval    `json:"interval"`
		MeanRatio   *float64         `json:"ratio_of_means"`
		MeanCI      *jsonInterval    `json:"interval_of_means"`
		P           *float64         `json:"p"`
		Adjusted    *float64         `json:"p_adjusted"`
		Verdict     stats.Verdict    `json:"verdict"`
		Word        string           `json:"word"`
		MetricAlone bool             `json:"in_metric_alone"`
		Reason      string           `json:"reason,omitempty"`
		Detectable  *float64         `json:"detectable"`
	}
	jsonValues struct {
		Runs   []float64 `json:"runs"`
		Median *float64  `json:"median"`
		Trials int       `json:"trials"`
		Lost   float64   `json:"lost_share"`
	}
	jsonInterval struct {
		Lo float64 `json:"lo"`
		Hi float64 `json:"hi"`
	}
	jsonOneSided struct {
		Side      string   `json:"side"`
		Benchmark string   `json:"benchmark"`
		Params    string   `json:"params"`
		Target    string   `json:"target"`
		Metrics   []string `json:"metrics"`
		Reason    string   `json:"reason"`
	}
	jsonGate struct {
		Gate       string       `json:"gate"`
		At         string       `json:"at"`
		Margin     float64      `json:"margin"`
		Benchmark  string       `json:"benchmark,omitempty"`
		Params     string       `json:"params,omitempty"`
		Target     string       `json:"target,omitempty"`
		Metric     string       `json:"metric,omitempty"`
		Answer     stats.Answer `json:"answer"`
		Reason     string       `json:"reason"`
		RunsNeeded int          `json:"runs_needed,omitempty"`
	}
)

// data is the comparison for JSON. A number that does not exist is null.
func data(c *sides.Comparison) jsonDocument {
	d := jsonDocument{
		Kind: kind, Version: schemaVersion, A: sideOf(c.NameA, c.A), B: sideOf(c.NameB, c.B),
		Differences: []jsonDifference{}, Notes: append([]string{}, c.Notes...),
		Method:  jsonMethod{c.Single, c.Compared, c.Shown, c.Alone, stats.Alpha * float64(c.Compared)},
		Metrics: []jsonMetric{}, OneSided: []jsonOneSided{}, Gates: []jsonGate{},
	}
	if o := c.Outcome(); o != "" {
		d.Outcome = &o
	}
	for _, f := range c.Differences {
		d.Differences = append(d.Differences, jsonDifference{f.Class, f.Fact.Name(), f.A, f.B})
	}
	for i := range c.Cells {
		cell := &c.Cells[i]
		m := jsonMetric{
			Benchmark: cell.Benchmark, Params: cell.Params, ParamsB: cell.ParamsB, Target: cell.Target,
			Metric: cell.Metric.Name, Unit: cell.Metric.Unit, Better: cell.Metric.Better, A: valuesJSON(cell.A), B: valuesJSON(cell.B),
			Ratio: number(cell.Ratio), Interval: interval(cell.CI), MeanRatio: number(cell.MeanRatio), MeanCI: interval(cell.MeanCI), P: number(cell.P), Adjusted: number(cell.Adjusted),
			Verdict: cell.Verdict, Word: cell.Word(), MetricAlone: cell.Alone, Reason: cell.Why, Detectable: number(cell.Detectable),
		}
		d.Metrics = append(d.Metrics, m)
	}
	for _, o := range c.OneSided {
		one := jsonOneSided{o.Has, o.Benchmark, o.Params, o.Target, []string{}, o.Why}
		for _, m := range o.Metrics {
			one.Metrics = append(one.Metrics, m.Name)
		}
		d.OneSided = append(d.OneSided, one)
	}
	for _, k := range c.Gates {
		d.Gates = append(d.Gates, jsonGate{
			k.Gate.String(), k.Gate.At, k.Gate.Margin, k.Benchmark, k.Params, k.Target, k.Metric.Name, k.Answer, k.Why, k.RunsNeeded,
		})
	}
	return d
}

func sideOf(name string, runs []sides.Run) jsonSide {
	s := jsonSide{Name: name, Runs: []jsonRun{}}
	for _, r := range runs {
		s.Runs = append(s.Runs, jsonRun(r))
	}
	return s
}

func valuesJSON(v sides.Values) jsonValues {
	return jsonValues{Runs: append([]float64{}, v.Runs...), Median: number(v.Median), Trials: v.Trials, Lost: v.Lost}
}

func interval(ci *stats.Interval) *jsonInterval {
	if ci == nil {
		return nil
	}
	return &jsonInterval{ci.Lo, ci.Hi}
}

func number(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}
