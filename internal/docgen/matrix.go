package docgen

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/bench/catalogue"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// Matrix is on which targets the programs worked in a real run. It is kept beside the pages, so that they can be made
// without that run. It has no figures: those of one machine and a few trials would be quoted.
type Matrix struct {
	Machine string   `json:"machine"`
	Tool    string   `json:"tool"`
	Date    string   `json:"date"`
	Targets []string `json:"targets"`
	Rows    []Row    `json:"rows"`
}

// Row is one benchmark. Reasons has a text for each target: why it does not work there, empty if it does. Lacks has one for what
// was not measured where it works; it is nil where nothing is missing anywhere.
type Row struct {
	Benchmark string   `json:"benchmark"`
	Reasons   []string `json:"reasons"`
	Lacks     []string `json:"lacks,omitempty"`
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
		if !inMatrix(b.Name) {
			continue
		}
		row := Row{Benchmark: b.Name}
		lacks := make([]string, len(m.Targets))
		for i, target := range m.Targets {
			row.Reasons = append(row.Reasons, reason(run, b.Name, target))
			if row.Reasons[i] == "" {
				lacks[i] = lack(run, b.Name, target)
			}
			if lacks[i] != "" {
				row.Lacks = lacks
			}
		}
		m.Rows = append(m.Rows, row)
	}
	return m, nil
}

// inMatrix tells whether a benchmark is of a suite that the matrix is about.
func inMatrix(benchmark string) bool {
	return bench.Matches("performance", benchmark) || bench.Matches("limits", benchmark)
}

func firstWord(s string) string {
	word, _, _ := strings.Cut(s, " ")
	return word
}

// reason tells why a benchmark has not worked on a target, empty if it has: once is not enough if it has failed too.
func reason(run result.Run, benchmark, target string) string {
	worked := false
	for i := range run.Trials {
		t := &run.Trials[i]
		switch {
		case t.Benchmark != benchmark || t.Target != target:
		case t.Status != result.OK:
			return t.Reason
		default:
			worked = true
		}
	}
	if !worked {
		return "the run ended before it"
	}
	return ""
}

// lack tells which metrics a benchmark has not measured on a target, and why: see performance.disk.mount.
func lack(run result.Run, benchmark, target string) string {
	var all []string
	for i := range run.Trials {
		t := &run.Trials[i]
		if t.Benchmark != benchmark || t.Target != target {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(t.Conditions)) {
			if why, not := strings.CutPrefix(t.Conditions[name], bench.NotMeasured); not {
				all = append(all, strings.TrimSuffix(name, " on")+" is not measured: "+why)
			}
		}
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), "; ")
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
		if inMatrix(b.Name) {
			want = append(want, b.Name)
		}
	}
	for _, r := range m.Rows {
		if len(r.Reasons) != len(m.Targets) || r.Lacks != nil && len(r.Lacks) != len(m.Targets) {
			return nil, fmt.Errorf("read the matrix of programs: %s has %d targets of %d", r.Benchmark, len(r.Reasons), len(m.Targets))
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

// table writes the matrix, with a number for each reason, which are told below.
func (m Matrix) table() string {
	var w strings.Builder
	fmt.Fprintf(&w, "\nSeen on %s, by Touchstone %s on %s, with quick parameters.\n\n", m.Machine, m.Tool, m.Date)
	fmt.Fprintf(&w, "| benchmark | %s |\n|---|%s\n", strings.Join(m.Targets, " | "), strings.Repeat("---|", len(m.Targets)))
	var reasons []string
	number := func(reason string) int {
		n := slices.Index(reasons, reason)
		if n < 0 {
			n = len(reasons)
			reasons = append(reasons, reason)
		}
		return n + 1
	}
	for _, r := range m.Rows {
		cells := make([]string, len(r.Reasons))
		for i, reason := range r.Reasons {
			switch {
			case reason != "":
				cells[i] = fmt.Sprintf("cannot [%d]", number(reason))
			case r.Lacks != nil && r.Lacks[i] != "":
				cells[i] = fmt.Sprintf("in part [%d]", number(r.Lacks[i]))
			default:
				cells[i] = "works"
			}
		}
		fmt.Fprintf(&w, "| %s | %s |\n", r.Benchmark, strings.Join(cells, " | "))
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
