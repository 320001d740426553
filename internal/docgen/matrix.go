package docgen

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/bench/catalogue"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Matrix is what became of the programs of the workload image on each target of a real run. It is kept beside
// the pages, so that they can be made without that run.
type Matrix struct {
	Machine string   `json:"machine"`
	Tool    string   `json:"tool"`
	Date    string   `json:"date"`
	Targets []string `json:"targets"`
	Rows    []Row    `json:"rows"`
}

// Row is one benchmark.
type Row struct {
	Benchmark string `json:"benchmark"`
	// Metric is the one that Ratio is of: the first that the benchmark has on the first target.
	Metric string `json:"metric"`
	Cells  []Cell `json:"cells"`
}

// Cell is a benchmark on a target.
type Cell struct {
	// Ratio of the medians of the target and of the first one; 0 if there is none.
	Ratio float64 `json:"ratio,omitempty"`
	// Reason says why it does not work.
	Reason string `json:"reason,omitempty"`
}

// MatrixOf takes from a run the benchmarks of the performance and limits suites.
func MatrixOf(run result.Run) (Matrix, error) {
	m := Matrix{
		Machine: fmt.Sprintf("%s, %d CPUs, Linux %s, cgroup %s", run.Host.CPU, run.Host.CPUs, firstWord(run.Host.Kernel), run.Host.Cgroup),
		Tool:    run.Tool.Version,
		Date:    run.Started.UTC().Format("2006-01-02"),
	}
	for _, t := range run.Targets {
		m.Targets = append(m.Targets, t.Name)
	}
	if len(m.Targets) == 0 {
		return Matrix{}, errors.New("make the matrix of programs: the run has no target")
	}
	for _, b := range run.Bench {
		if suite, _, _ := strings.Cut(b.Name, "."); suite != "performance" && suite != "limits" {
			continue
		}
		row := Row{Benchmark: b.Name}
		var base float64
		for i, target := range m.Targets {
			if i == 0 {
				row.Metric = firstMetric(run, b, target)
			}
			value, reason := outcome(run, b.Name, row.Metric, target)
			if i == 0 {
				base = value
			}
			c := Cell{Reason: reason}
			if reason == "" && base > 0 {
				c.Ratio = value / base
			}
			row.Cells = append(row.Cells, c)
		}
		m.Rows = append(m.Rows, row)
	}
	return m, nil
}

func firstWord(s string) string {
	word, _, _ := strings.Cut(s, " ")
	return word
}

// firstMetric is the first metric of a benchmark that a target has values of.
func firstMetric(run result.Run, b result.Benchmark, target string) string {
	for _, metric := range b.Metrics {
		if value, _ := outcome(run, b.Name, metric.Name, target); value > 0 {
			return metric.Name
		}
	}
	return ""
}

// outcome is the median of a metric on a target, or why there is none.
func outcome(run result.Run, benchmark, metric, target string) (median float64, reason string) {
	var values []float64
	worked := false
	for i := range run.Trials {
		t := &run.Trials[i]
		if t.Benchmark != benchmark || t.Target != target || t.Warmup {
			continue
		}
		if t.Status == result.OK {
			worked = true
			values = append(values, t.Values(metric)...)
		} else if reason == "" {
			reason = t.Reason
		}
	}
	switch {
	case len(values) > 0:
		return stats.Summarize(values, 1).Median, ""
	case worked:
		return 0, ""
	case reason == "":
		return 0, "the run ended before it"
	default:
		return 0, reason
	}
}

// matrixPlace is where the matrix stands in a page.
var matrixPlace = regexp.MustCompile(`(?s)(<!-- matrix -->\n).*?(<!-- end -->)`)

// WithMatrix gives a page with the table of a matrix. The matrix must have each benchmark of the catalogue that it is
// about, and no other: it is made anew when there are new ones.
func WithMatrix(page, matrix []byte) ([]byte, error) {
	var m Matrix
	if err := json.Unmarshal(matrix, &m); err != nil {
		return nil, fmt.Errorf("read the matrix of programs: %w", err)
	}
	var want, have []string
	for _, b := range (catalogue.Catalogue{}).All() {
		if b.Suite() == "performance" || b.Suite() == "limits" {
			want = append(want, b.Name)
		}
	}
	for _, r := range m.Rows {
		if len(r.Cells) != len(m.Targets) {
			return nil, fmt.Errorf("read the matrix of programs: %s has %d targets of %d", r.Benchmark, len(r.Cells), len(m.Targets))
		}
		have = append(have, r.Benchmark)
	}
	slices.Sort(want)
	slices.Sort(have)
	if !slices.Equal(want, have) {
		return nil, fmt.Errorf("the matrix of programs has the benchmarks %s, the catalogue %s: run scripts/workload-matrix.sh", strings.Join(have, ", "), strings.Join(want, ", "))
	}
	if !matrixPlace.Match(page) {
		return nil, errors.New("the page has no place for the matrix of programs: <!-- matrix --> and <!-- end -->")
	}
	return matrixPlace.ReplaceAllFunc(page, func(block []byte) []byte {
		part := matrixPlace.FindSubmatch(block)
		return slices.Concat(part[1], []byte(m.table()), part[2])
	}), nil
}

// table writes the matrix: ratios, and a number for each reason, which are told below.
func (m Matrix) table() string {
	var w strings.Builder
	fmt.Fprintf(&w, "\nSeen on %s, by Touchstone %s on %s; quick parameters. A number is the median by that of %s.\n\n", m.Machine, m.Tool, m.Date, m.Targets[0])
	fmt.Fprintf(&w, "| benchmark | metric | %s |\n|---|---|%s\n", strings.Join(m.Targets, " | "), strings.Repeat("---|", len(m.Targets)))
	var reasons []string
	for _, r := range m.Rows {
		cells := make([]string, len(r.Cells))
		for i, c := range r.Cells {
			switch {
			case c.Reason != "":
				n := slices.Index(reasons, c.Reason)
				if n < 0 {
					n = len(reasons)
					reasons = append(reasons, c.Reason)
				}
				cells[i] = fmt.Sprintf("cannot [%d]", n+1)
			case c.Ratio > 0:
				cells[i] = fmt.Sprintf("%.3g", c.Ratio)
			default:
				cells[i] = "works"
			}
		}
		fmt.Fprintf(&w, "| %s | %s | %s |\n", r.Benchmark, r.Metric, strings.Join(cells, " | "))
	}
	w.WriteString("\n")
	for i, reason := range reasons {
		fmt.Fprintf(&w, "%d. %s\n", i+1, cell(strings.Join(strings.Fields(reason), " ")))
	}
	if len(reasons) > 0 {
		w.WriteString("\n")
	}
	return w.String()
}
