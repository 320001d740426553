package reproduce_test

import (
	"math"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/paper"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/report/reproduce"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// run makes a run of "speed" (Time, Rate, Index) on targets that are factor times as fast as the target a.
func run(blocks int, factors map[string]float64) result.Run {
	r := result.Run{
		ID: "01", Baseline: "a", Seed: 1, Host: result.Host{Arch: "amd64", Hostname: "here"},
		Bench: []result.Benchmark{{Name: "speed", Metrics: []result.Metric{
			{Name: "Time", Unit: result.Seconds, Better: result.Lower},
			{Name: "Rate", Unit: result.PerSecond, Better: result.Higher},
			{Name: "Index", Unit: result.Score, Better: result.Higher, DerivedFrom: "Rate"},
			{Name: "Size", Unit: result.Bytes, Better: result.Lower},
			{Name: "Delay", Unit: result.Seconds, Better: result.Lower, Series: true},
		}}, {Name: "idle"}},
	}
	seq := 0
	for _, name := range []string{"a", "b", "c"} {
		factor, has := factors[name]
		if !has {
			r.Targets = append(r.Targets, result.Target{Name: name, Unavailable: name + " is not installed"})
			continue
		}
		r.Targets = append(r.Targets, result.Target{Name: name})
		for block := range blocks {
			noise := 1 + 0.01*float64(block*int(name[0])%7)
			seq++
			r.Trials = append(r.Trials, result.Trial{
				Seq: seq, Cell: result.Cell{Benchmark: "speed", Params: "n=1", Target: name}, Block: block, Status: result.OK,
				Samples: []result.Sample{
					{Metric: "Time", Value: noise / factor},
					{Metric: "Rate", Value: 1000 * factor / noise},
					{Metric: "Index", Value: 10 * factor / noise},
					{Metric: "Size", Value: 1000 / factor},
					{Metric: "Delay", Value: 5},
					{Metric: "Delay", Value: 7 / factor / factor},
				},
			})
		}
	}
	return r
}

func reproduction(p paper.Paper, runs ...result.Run) *reproduce.Reproduction {
	var list []reproduce.Run
	for _, r := range runs {
		list = append(list, reproduce.Run{Run: r, Report: report.New([]result.Run{r}, analysis.Options{})})
	}
	return reproduce.New(p, list, reproduce.Options{Work: []analysis.Key{{Name: "speed", Params: "n=1"}, {Name: "idle"}}})
}

var (
	ofTime = paper.Of{Benchmark: "speed", Metric: "Time"}
	ofRate = paper.Of{Benchmark: "speed", Metric: "Rate"}
	ofSize = paper.Of{Benchmark: "speed", Metric: "Size"}
)

func claim(relation paper.Relation, margin float64, values ...paper.Of) paper.Claim {
	return paper.Claim{Name: "claim", Of: values, Targets: []string{"b"}, Others: []string{"a"}, Relation: relation, Margin: margin}
}

// Invariant study-claims: A claim of a study agrees or disagrees only if the interval shows it, and the ordinary report has the same numbers.
func TestVerdicts(t *testing.T) {
	double := map[string]float64{"a": 1, "b": 2}
	half := map[string]float64{"a": 1, "b": 0.5}
	unit := map[string]float64{"a": 1, "b": 1}
	edit := func(c paper.Claim, change func(*paper.Claim)) paper.Claim { change(&c); return c }
	emulated := func(r *result.Run) { r.Host.Virtual = "qemu" }
	for name, c := range map[string]struct {
		factors map[string]float64
		blocks  int
		claim   paper.Claim
		change  func(*result.Run)
		want    reproduce.Verdict
		reason  string
	}{
		"better, lower is better":     {double, 10, claim(paper.Better, 1, ofTime), nil, reproduce.Agrees, ""},
		"better, higher is better":    {double, 10, claim(paper.Better, 1.5, ofRate), nil, reproduce.Agrees, ""},
		"better by too little":        {double, 10, claim(paper.Better, 3, ofTime, ofRate), nil, reproduce.Disagrees, ""},
		"better, and is worse":        {half, 10, claim(paper.Better, 1, ofTime), nil, reproduce.Disagrees, ""},
		"worse":                       {half, 10, claim(paper.Worse, 1.5, ofTime, ofRate), nil, reproduce.Agrees, ""},
		"worse, and is better":        {double, 10, claim(paper.Worse, 1, ofRate), nil, reproduce.Disagrees, ""},
		"better, at the margin":       {double, 10, claim(paper.Better, 2.05, ofTime), nil, reproduce.CannotTell, "the interval includes the margin"},
		"better, and is equal":        {unit, 10, claim(paper.Better, 1, ofSize), nil, reproduce.Disagrees, ""},
		"similar":                     {unit, 10, claim(paper.Similar, 1.1, ofTime, ofRate), nil, reproduce.Agrees, ""},
		"similar, and is not":         {double, 10, claim(paper.Similar, 1.1, ofTime), nil, reproduce.Disagrees, ""},
		"similar, at the margin":      {double, 10, claim(paper.Similar, 2.05, ofTime), nil, reproduce.CannotTell, "the interval includes the margin"},
		"too few blocks":              {double, 3, claim(paper.Better, 1, ofTime), nil, reproduce.CannotTell, "an interval needs 6 blocks with both targets, and there are 3"},
		"unavailable target":          {double, 10, edit(claim(paper.Better, 1, ofTime), func(c *paper.Claim) { c.Targets = []string{"c"} }), nil, reproduce.NotMeasured, "c is not available: c is not installed"},
		"unavailable other":           {double, 10, edit(claim(paper.Better, 1, ofTime), func(c *paper.Claim) { c.Others = []string{"c"} }), nil, reproduce.NotMeasured, "c is not available: c is not installed"},
		"unknown target":              {double, 10, edit(claim(paper.Better, 1, ofTime), func(c *paper.Claim) { c.Targets = []string{"d"} }), nil, reproduce.NotMeasured, "the run has no target d"},
		"other benchmark":             {double, 10, claim(paper.Better, 1, paper.Of{Benchmark: "weight", Metric: "Time"}), nil, reproduce.NotMeasured, "no run of this plan has weight"},
		"other parameters":            {double, 10, claim(paper.Better, 1, paper.Of{Benchmark: "speed", Metric: "Time", Params: map[string]string{"n": "2"}}), nil, reproduce.NotMeasured, "no run of this plan has speed"},
		"no trial of the benchmark":   {double, 10, claim(paper.Better, 1, paper.Of{Benchmark: "idle", Metric: "Time"}), nil, reproduce.NotMeasured, "not in this run"},
		"other metric":                {double, 10, claim(paper.Better, 1, paper.Of{Benchmark: "speed", Metric: "Noise"}), nil, reproduce.NotMeasured, "not recorded: Noise of speed n=1"},
		"no value in Touchstone":      {double, 10, claim(paper.Better, 1, paper.Of{Unmeasured: "it is a matter of taste"}), nil, reproduce.NotMeasured, "it is a matter of taste"},
		"other architecture":          {double, 10, edit(claim(paper.Better, 1, ofTime), func(c *paper.Claim) { c.Arch = "arm64" }), nil, reproduce.NotMeasured, "the study measured it on arm64, and this machine is amd64"},
		"one of two disagrees":        {double, 10, edit(claim(paper.Better, 1, ofTime), func(c *paper.Claim) { c.Pairs = [][2]string{{"a", "b"}} }), nil, reproduce.Disagrees, "1 of 2 comparisons disagree, 1 agree"},
		"one of two is missing":       {double, 10, edit(claim(paper.Better, 1, ofTime), func(c *paper.Claim) { c.Pairs = [][2]string{{"c", "a"}} }), nil, reproduce.CannotTell, "1 of 2 comparisons agree; c is not available"},
		"speed of an emulated CPU":    {double, 10, claim(paper.Better, 1, ofTime), emulated, reproduce.CannotTell, "the CPU is emulated, or may be"},
		"memory beside emulated CPUs": {double, 10, claim(paper.Better, 1, ofSize), emulated, reproduce.Agrees, ""},
		"lost trials help nobody": {double, 20, claim(paper.Better, 1, ofTime), func(r *result.Run) {
			for i := range r.Trials {
				if t := &r.Trials[i]; t.Target == "b" && t.Block < 5 {
					t.Status, t.Samples, t.Reason = result.Timeout, nil, "too slow"
				}
			}
		}, reproduce.CannotTell, "the target looks better and has lost 25 % of its trials"},
		"lost trials hide no loss": {half, 20, claim(paper.Worse, 1, ofTime), func(r *result.Run) {
			for i := range r.Trials {
				if t := &r.Trials[i]; t.Target == "b" && t.Block < 5 {
					t.Status, t.Samples, t.Reason = result.Timeout, nil, "too slow"
				}
			}
		}, reproduce.Agrees, ""},
	} {
		t.Run(name, func(t *testing.T) {
			record := run(c.blocks, c.factors)
			if c.change != nil {
				c.change(&record)
			}
			got := reproduction(paper.Paper{Claims: []paper.Claim{c.claim}}, record).Claims[0]
			if got.Verdict != c.want || got.Reason != c.reason {
				t.Errorf("the verdict is %q (%s), want %q (%s); %+v", got.Verdict, got.Reason, c.want, c.reason, got.Comparisons[0].Ratio())
			}
		})
	}
}

// TestSameNumbers checks that a comparison with the run's baseline is the one of the run's report.
//
// Invariant study-claims.
func TestSameNumbers(t *testing.T) {
	record := reporttest.Small()
	p := paper.Paper{Claims: []paper.Claim{{
		Of: []paper.Of{{Benchmark: "operations.container.lifecycle", Metric: "CreateAndRun"}}, Targets: []string{"oci/runc"}, Others: []string{"native"},
		Relation: paper.Worse, Margin: 1,
	}}}
	full := report.New([]result.Run{record}, analysis.Options{})
	key := full.Benchmarks()[0].Key
	r := reproduce.New(p, []reproduce.Run{{Run: record, Report: full}}, reproduce.Options{Work: []analysis.Key{key}})
	got := r.Claims[0].Comparisons[0].Compared
	for _, m := range full.Benchmarks()[0].Metrics {
		if m.Name != "CreateAndRun" {
			continue
		}
		want := m.Rows[1].Cells[0].Comparison
		if got == nil || got.Ratio != want.Ratio || *got.CI != *want.CI {
			t.Errorf("the comparison is %+v, want %+v", got, want)
		}
	}
}

func TestTables(t *testing.T) {
	p := paper.Paper{Tables: []paper.Table{
		{
			Name: "table 1", Reference: "a", Of: paper.Of{Unit: "s"},
			Columns: []paper.Column{{Of: paper.Of{Target: "a"}}, {Of: paper.Of{Target: "b"}}, {Of: paper.Of{Target: "c"}}},
			Rows: []paper.Row{
				{Label: "Time", Of: ofTime, Cells: []paper.Cell{{Printed: "4.0"}, {Printed: "1.0"}, {Printed: "-"}}},
				{Label: "Index", Of: paper.Of{Benchmark: "speed", Metric: "Index"}, Cells: []paper.Cell{{Printed: "1"}, {Printed: "3"}, {Printed: ""}}},
			},
		},
		{
			Name: "table 2", Reference: "a", Columns: []paper.Column{{Of: ofRate}, {Of: paper.Of{Unmeasured: "nobody measures it"}}},
			Rows: []paper.Row{
				{Label: "a", Of: paper.Of{Target: "a"}, Cells: []paper.Cell{{Printed: "1,000"}, {Printed: "1"}}},
				{Label: "b", Of: paper.Of{Target: "b"}, Cells: []paper.Cell{{Printed: "500"}, {Printed: "1"}}},
			},
		},
		{Name: "table 3", Of: paper.Of{Arch: "arm64"}, Columns: []paper.Column{{Of: ofRate}}, Rows: []paper.Row{{Of: paper.Of{Target: "a"}, Cells: []paper.Cell{{Printed: "1"}}}}},
	}}
	r := reproduction(p, run(10, map[string]float64{"a": 1, "b": 2}))
	cell := func(table, row, column int) reproduce.Cell { return r.Tables[table].Cells[row][column] }
	for name, c := range map[string]struct {
		cell      reproduce.Cell
		published float64
		ratio     float64
		reason    string
	}{
		"reference":          {cell(0, 0, 0), math.NaN(), math.NaN(), ""},
		"in a row":           {cell(0, 0, 1), 0.25, 0.5, ""},
		"unavailable":        {cell(0, 0, 2), math.NaN(), math.NaN(), "c is not available: c is not installed"},
		"multiple of a rate": {cell(0, 1, 1), 3, 2, ""},
		"in a column":        {cell(1, 1, 0), 0.5, 2, ""},
		"unmeasured":         {cell(1, 1, 1), 1, math.NaN(), "nobody measures it"},
		"other machine":      {cell(2, 0, 0), math.NaN(), math.NaN(), "the study measured it on arm64, and this machine is amd64"},
	} {
		got := math.NaN()
		if c.cell.Ratio != nil {
			got = c.cell.Ratio.Ratio
		}
		if !near(c.cell.Published, c.published) || !near(got, c.ratio) || c.cell.Reason != c.reason || (c.cell.Ours == nil) != (c.reason != "") {
			t.Errorf("%s: published %g, ours %g (%s), want %g, %g (%s)", name, c.cell.Published, got, c.cell.Reason, c.published, c.ratio, c.reason)
		}
	}
	if r.Tables[0].Reason != "" || !strings.Contains(r.Tables[2].Reason, "arm64") {
		t.Errorf("the tables have the reasons %q and %q", r.Tables[0].Reason, r.Tables[2].Reason)
	}
}

// TestCompared checks the ratios behind values that are printed in relation to the reference.
func TestCompared(t *testing.T) {
	build := func(comparison paper.Comparison, metric string) paper.Of {
		return paper.Of{Target: "b", Benchmark: "speed", Metric: metric, Compared: comparison}
	}
	for _, c := range []struct {
		of      paper.Of
		printed string
		want    float64
	}{
		{build(paper.Loss, "Rate"), "75", 0.25},
		{build(paper.Loss, "Time"), "75", 4},
		{build(paper.Gain, "Rate"), "100", 2},
		{build(paper.Gain, "Time"), "100", 0.5},
		{build(paper.Excess, "Time"), "50", 1.5},
		{build(paper.Excess, "Size"), "50", 1.5},
		{build(paper.Excess, "Rate"), "100", 0.5},
		{build(paper.Share, "Time"), "20", 0.2},
		{build(paper.Factor, "Time"), "3", 3},
		{build(paper.Difference, "Time"), "3", math.NaN()},
		{build(paper.Loss, "Noise"), "3", math.NaN()},
	} {
		p := paper.Paper{Tables: []paper.Table{{
			Reference: "a", Of: c.of, Columns: []paper.Column{{}}, Rows: []paper.Row{{Cells: []paper.Cell{{Printed: c.printed}}}},
		}}}
		got := reproduction(p, run(10, map[string]float64{"a": 1, "b": 2})).Tables[0].Cells[0][0]
		if !near(got.Published, c.want) {
			t.Errorf("%s %s of %s is the ratio %g, want %g", c.printed, c.of.Compared, c.of.Metric, got.Published, c.want)
		}
	}
}

// TestItemOfSeries checks that a test in a series is compared by its own values. Time and Rate are the first two tests.
func TestItemOfSeries(t *testing.T) {
	build := func(item string) paper.Row {
		return paper.Row{Of: paper.Of{Item: item, Benchmark: "speed", Metric: "Delay"}, Cells: []paper.Cell{{}, {}}}
	}
	p := paper.Paper{Tables: []paper.Table{{
		Reference: "a", Columns: []paper.Column{{Of: paper.Of{Target: "a"}}, {Of: paper.Of{Target: "b"}}}, Rows: []paper.Row{build("Time"), build("Rate"), build("Noise")},
	}}}
	cells := reproduction(p, run(10, map[string]float64{"a": 1, "b": 2})).Tables[0].Cells
	if cells[0][1].Ratio.Ratio != 1 || !near(cells[1][1].Ratio.Ratio, 0.25) || cells[1][0].Ours.Median != 7 || cells[2][1].Reason != "not recorded: Noise of Delay" {
		t.Errorf("the cells are %+v", cells)
	}
}

// TestEngineOfRow checks that a row of another engine is compared with the reference on that engine.
func TestEngineOfRow(t *testing.T) {
	p := paper.Paper{Tables: []paper.Table{{
		Reference: "crio/a", Columns: []paper.Column{{Of: paper.Of{Target: "crio/a"}}, {Of: paper.Of{Target: "crio/b"}}},
		Rows: []paper.Row{{Of: paper.Of{Engine: "docker", Benchmark: "speed", Metric: "Rate"}, Cells: []paper.Cell{{Printed: "2"}, {Printed: "1"}}}},
	}}}
	record := run(10, map[string]float64{"a": 1, "b": 2})
	for i := range record.Targets {
		record.Targets[i].Name = "docker/" + record.Targets[i].Name
	}
	for i := range record.Trials {
		record.Trials[i].Target = "docker/" + record.Trials[i].Target
	}
	row := reproduction(p, record).Tables[0].Cells[0]
	if !row[0].Reference || row[1].Published != 0.5 || row[1].Ratio == nil || !near(row[1].Ratio.Ratio, 2) {
		t.Errorf("the row is %+v", row)
	}
}

// near compares up to the noise of the made runs. NaN is near NaN.
func near(a, b float64) bool {
	return math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) < 0.05*math.Abs(b)
}

// TestSeveralRuns checks that a value comes from the run that has its targets.
func TestSeveralRuns(t *testing.T) {
	second := run(10, map[string]float64{"a": 1, "b": 3})
	second.ID, second.Targets[1].Name = "02", "other/b"
	for i := range second.Trials {
		if second.Trials[i].Target == "b" {
			second.Trials[i].Target = "other/b"
		}
	}
	c := claim(paper.Better, 2.5, ofTime)
	c.Targets = []string{"other/b"}
	got := reproduction(paper.Paper{Claims: []paper.Claim{c}}, run(10, map[string]float64{"a": 1, "b": 2}), second)
	if got.Claims[0].Verdict != reproduce.Agrees {
		t.Errorf("the claim is %+v", got.Claims[0])
	}
}

func TestFigures(t *testing.T) {
	r := reproduction(paper.Paper{Figures: []paper.Figure{{Name: "figure 1", Of: []paper.Of{ofTime}}, {Name: "figure 2", Of: []paper.Of{{Benchmark: "weight"}}}}},
		run(10, map[string]float64{"a": 1, "b": 2}))
	if len(r.Figures[0].Metrics) != 1 || r.Figures[0].Reason != "" {
		t.Errorf("figure 1 is %+v", r.Figures[0])
	}
	if r.Figures[1].Metrics != nil || r.Figures[1].Reason != "no run of this plan has weight" {
		t.Errorf("figure 2 is %+v", r.Figures[1])
	}
}
