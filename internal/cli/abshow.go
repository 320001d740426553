package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/report/ab"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// abName is the name of the comparison in an output folder.
const abName = "ab.json"

// abDocument is the comparison as JSON. Ratios are B/A.
type abDocument struct {
	Kind    string      `json:"kind"`
	Version int         `json:"schema_version"`
	Tool    result.Tool `json:"generator"`
	Answer  ab.Answer   `json:"answer"`
	Code    int         `json:"exit_code"`
	// Margin is the largest difference that does not matter, as a share.
	Margin float64 `json:"margin"`
	A      abBuild `json:"a"`
	B      abBuild `json:"b"`
	// Level is the error probability of each interval, over all looks.
	Level      float64 `json:"interval_error_probability"`
	MostRuns   int     `json:"planned_runs"`
	Blocks     int     `json:"blocks_per_run"`
	Budget     float64 `json:"budget_s"`
	Spent      float64 `json:"spent_s"`
	Unfinished string  `json:"unfinished,omitempty"`
	// Decision is the predicted time of a series that decides; absent with an answer, or if no time up to a day would decide.
	Decision float64   `json:"decision_s,omitempty"`
	Values   []abValue `json:"values"`
	Runs     []abRun   `json:"runs"`
}

type abBuild struct {
	Target  string `json:"target"`
	Binary  string `json:"binary,omitempty"`
	Version string `json:"version,omitempty"`
}

type abValue struct {
	Benchmark string           `json:"benchmark"`
	Params    string           `json:"params,omitempty"`
	Metric    string           `json:"metric"`
	Unit      result.Unit      `json:"unit"`
	Better    result.Direction `json:"better"`
	Answer    ab.Answer        `json:"answer"`
	Reason    string           `json:"reason,omitempty"`
	After     int              `json:"decided_after_runs,omitempty"`
	Ratio     *float64         `json:"ratio,omitempty"`
	Lo        *float64         `json:"ratio_low,omitempty"`
	Hi        *float64         `json:"ratio_high,omitempty"`
	// Between is the standard deviation of the logarithm of the ratio between runs, apart from the variation within them.
	Between *float64 `json:"between_runs_log_sd,omitempty"`
	LostA   float64  `json:"lost_a"`
	LostB   float64  `json:"lost_b"`
	// Ratios are by run.
	Ratios []abValueOfRun `json:"ratios"`
}

type abValueOfRun struct {
	Ratio  *float64 `json:"ratio,omitempty"`
	Lo     *float64 `json:"low,omitempty"`
	Hi     *float64 `json:"high,omitempty"`
	Blocks int      `json:"blocks"`
	Reason string   `json:"reason,omitempty"`
}

type abRun struct {
	ID   string  `json:"id"`
	Took float64 `json:"took_s"`
	Page string  `json:"page"`
}

// conclude shows the comparison, writes it, and returns the exit code as an error.
func (c *abComparison) conclude() error {
	if c.series == nil {
		c.series = ab.New(c.design)
	}
	d := c.document()
	encode := func(w io.Writer) error {
		enc := json.NewEncoder(jsonWriter(w))
		enc.SetIndent("", "  ")
		return enc.Encode(d)
	}
	file := filepath.Join(c.opts.dir, abName)
	if err := c.app.writeTo(file, encode); err != nil {
		return err
	}
	var err error
	if c.opts.format == formatJSON {
		err = encode(c.app.env.Stdout)
	} else {
		err = c.print(c.app.env.Stdout, d)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(c.app.env.Stderr, "\ncomparison %s, results %s, a page for each run %s\n",
		file, filepath.Join(c.opts.dir, databaseName), filepath.Join(c.opts.dir, abPage("ID")))
	if d.Code != ExitOK {
		return &exitError{code: d.Code}
	}
	return nil
}

// code is the exit code.
func (c *abComparison) code() int {
	switch answer := c.series.Answer(); {
	case c.interrupted:
		return ExitInterrupted
	case answer == ab.Worse:
		return ExitWorse
	case answer == ab.NotWorse && c.failed == nil:
		return ExitOK
	default:
		return ExitInconclusive
	}
}

// document is the comparison so far.
func (c *abComparison) document() abDocument {
	d := abDocument{
		Kind: "touchstone-ab", Version: 1, Tool: tool(), Answer: c.series.Answer(), Code: c.code(), Margin: c.series.Margin,
		A: c.build(c.series.A), B: c.build(c.series.B), Level: c.series.Level, MostRuns: c.series.Runs, Blocks: c.blocks,
		Budget: c.opts.budget.Seconds(), Spent: c.spent.Seconds(), Decision: c.series.Decision().Seconds(),
		Values: []abValue{}, Runs: []abRun{},
	}
	switch {
	case c.interrupted:
		d.Unfinished = "interrupted"
	case c.failed != nil:
		d.Unfinished = "no comparison is possible"
	case c.ended:
		d.Unfinished = fmt.Sprintf("the budget ended after %d of %d runs", len(c.series.Done), c.series.Runs)
	}
	for i := range c.series.Results {
		r := &c.series.Results[i]
		v := abValue{
			Benchmark: r.Name, Params: r.Params, Metric: r.Metric.Name, Unit: r.Metric.Unit, Better: r.Metric.Better, Answer: r.Answer,
			Reason: r.Why(c.series), After: r.After, Ratio: number(r.Ratio), Between: number(r.Pooled.Tau), LostA: r.Lost.Baseline, LostB: r.Lost.Other,
			Ratios: []abValueOfRun{},
		}
		if c.failed != nil {
			v.Reason = c.failedReason(r.Value)
		}
		v.Lo, v.Hi = ends(r.Interval)
		for _, ratio := range r.Ratios {
			of := abValueOfRun{Ratio: number(ratio.Ratio), Blocks: ratio.Blocks, Reason: ratio.Reason}
			of.Lo, of.Hi = ends(ratio.Interval)
			v.Ratios = append(v.Ratios, of)
		}
		d.Values = append(d.Values, v)
	}
	for _, r := range c.series.Done {
		d.Runs = append(d.Runs, abRun{r.ID, r.Took.Seconds(), abPage(r.ID)})
	}
	return d
}

// build is a side as the calibration found it.
func (c *abComparison) build(name string) abBuild {
	b := abBuild{Target: name}
	if i := slices.IndexFunc(c.pilot.Targets, func(t result.Target) bool { return t.Name == name }); i >= 0 {
		b.Binary, b.Version = c.pilot.Targets[i].Binary, c.pilot.Targets[i].Version
	}
	return b
}

// number is nil for a number that is not finite.
func number(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

func ends(ci *stats.Interval) (lo, hi *float64) {
	if ci == nil {
		return nil, nil
	}
	return number(ci.Lo), number(ci.Hi)
}

// print writes the comparison as text or Markdown.
func (c *abComparison) print(w io.Writer, d abDocument) error {
	markdown := c.opts.format == formatMarkdown
	line := func(format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		if markdown {
			fmt.Fprintf(w, "%s\n\n", inMarkdown(oneLine(text)))
			return
		}
		fmt.Fprintln(w, oneLine(text))
	}
	for _, s := range []struct {
		name string
		abBuild
	}{{"A", d.A}, {"B", d.B}} {
		text := s.name + "  " + s.Target
		for _, part := range []string{s.Version, s.Binary} {
			if part != "" {
				text += "  " + part
			}
		}
		line("%s", text)
	}
	if d.MostRuns > 0 {
		line("margin %s; %d of %d runs of %d blocks; %v", report.Percent(d.Margin), len(d.Runs), d.MostRuns, d.Blocks, rounded(c.spent))
	} else {
		line("margin %s; no run after the calibration; %v", report.Percent(d.Margin), rounded(c.spent))
	}
	if !markdown {
		fmt.Fprintln(w)
	}
	var rows [][]string
	for i := range c.series.Results {
		r := &c.series.Results[i]
		rows = append(rows, []string{r.Title(), r.Metric.Name, abRatio(r.Ratio), abInterval(r), abBetween(r), abAnswer(r, c.series)})
	}
	header := []string{"BENCHMARK", "METRIC", "B / A", "INTERVAL", "BETWEEN RUNS", "ANSWER"}
	f := c.opts.format
	if err := f.print(w, d, header, rows); err != nil {
		return err
	}
	fmt.Fprintln(w)
	if d.Unfinished != "" {
		line("%s", d.Unfinished)
	}
	for _, v := range d.Values {
		if v.Reason != "" {
			line("%s %s: %s", v.Benchmark, v.Metric, v.Reason)
		}
	}
	line("answer: B is %s", abSentence(d.Answer))
	if d.Answer == ab.Inconclusive && len(d.Runs) > 0 {
		line("%s", c.advice())
	}
	return nil
}

// rounded rounds a time for a reader.
func rounded(d time.Duration) time.Duration {
	if d < 10*time.Second {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(time.Second)
}

// abSentence completes "B is …".
func abSentence(answer ab.Answer) string {
	if answer == ab.Inconclusive {
		return "neither shown to be worse than the margin, nor shown not to be: inconclusive"
	}
	return string(answer)
}

// advice states the time that a decision would take.
func (c *abComparison) advice() string {
	took := c.series.Decision()
	switch {
	case took == 0:
		return fmt.Sprintf("no budget up to %v would decide: the ratio is too close to the margin, or no estimate exists; choose another margin, or remove the cause above", ab.Longest)
	case took <= c.opts.budget:
		return fmt.Sprintf("a decision would take about %v, as far as these runs show: repeat the comparison", rounded(took))
	default:
		return fmt.Sprintf("a decision would take about %v: repeat with --budget %v", rounded(took), atLeast(took))
	}
}

// failedReason is the reason why the calibration has no ratio of a value.
func (c *abComparison) failedReason(v ab.Value) string {
	m := report.New([]result.Run{c.pilot}, report.Options{})
	return ab.Find(&m, v, c.design.A, c.design.B).Reason
}

// abRatio has four digits, because a difference of one per cent matters.
func abRatio(ratio float64) string {
	if number(ratio) == nil {
		return report.None
	}
	return strconv.FormatFloat(ratio, 'f', 4, 64)
}

func abInterval(r *ab.Result) string {
	if r.Interval == nil {
		return report.None
	}
	return abRatio(r.Interval.Lo) + " to " + abRatio(r.Interval.Hi)
}

// abBetween is the variation between runs.
func abBetween(r *ab.Result) string {
	if math.IsNaN(r.Pooled.Tau) {
		return report.None
	}
	return "± " + report.Percent(math.Expm1(r.Pooled.Tau))
}

func abAnswer(r *ab.Result, s *ab.Series) string {
	switch {
	case r.After > 0 && len(s.Done) > r.After:
		return fmt.Sprintf("%s, after %d runs", r.Answer, r.After)
	default:
		return string(r.Answer)
	}
}
