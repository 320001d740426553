package docgen

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/bench/catalogue"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// Kind is one of the matrices of docs/benchmarks/matrix.md. The matrices have different targets, because the programs take long.
type Kind struct {
	// Name is an argument of scripts/workload-matrix.sh.
	Name string
	// Marker begins the place of the table in the page, and File is the stored matrix.
	Marker, File string
	// Suites are the suites of its rows.
	Suites []string
	// Parameters describes the parameters of its run.
	Parameters string
}

// Kinds lists the matrices.
func Kinds() []Kind {
	const quick = "quick parameters"
	return []Kind{
		{"programs", "<!-- matrix -->\n", "matrix.json", []string{"performance", "limits", "latency"}, quick},
		{"containers", "<!-- matrix of containers -->\n", "matrix_containers.json", []string{"density", "isolation", "footprint", "portability"}, quick},
		{
			"guests", "<!-- matrix of virtual machines -->\n", "matrix_guests.json",
			[]string{"operations", "scalability", "performance", "limits", "density", "isolation", "footprint", "portability", "latency"},
			"the parameters of [guests.yaml](../../test/lab/testdata/guests.yaml)",
		},
	}
}

// has reports whether the matrix covers the suite of a benchmark.
func (k Kind) has(benchmark string) bool {
	return slices.ContainsFunc(k.Suites, func(suite string) bool { return bench.Matches(suite, benchmark) })
}

// Matrix records which programs worked on which targets in a real run. It is stored beside the pages, so that they can be
// generated without that run. It has no figures, because readers would quote the figures of one machine and a few trials.
type Matrix struct {
	Machine string   `json:"machine"`
	Tool    string   `json:"tool"`
	Date    string   `json:"date"`
	Targets []string `json:"targets"`
	Rows    []Row    `json:"rows"`
}

// Row is one benchmark. Reasons has a text for each target: the reason why the benchmark does not work there, empty if it does.
// Lacks names the metrics that a working benchmark could not measure on a target; it is nil if every target has all metrics.
type Row struct {
	Benchmark string `json:"benchmark"`
	// Seen is the run of the row, if the row comes from a later run than the matrix.
	Seen    string   `json:"seen,omitempty"`
	Reasons []string `json:"reasons"`
	Lacks   []string `json:"lacks,omitempty"`
}

// seen describes the run of a matrix.
func (m Matrix) seen() string {
	return fmt.Sprintf("on %s, by Touchstone %s on %s", m.Machine, m.Tool, m.Date)
}

// Update returns m with the rows of a newer matrix, which may have a part of the benchmarks. The targets must be the same.
func (m Matrix) Update(newer Matrix) (Matrix, error) {
	if !slices.Equal(m.Targets, newer.Targets) {
		return Matrix{}, fmt.Errorf("the matrix of programs has the targets %q, the new run %q", m.Targets, newer.Targets)
	}
	m.Rows = slices.Clone(m.Rows)
	for _, row := range newer.Rows {
		if newer.seen() != m.seen() {
			row.Seen = newer.seen()
		}
		if i := slices.IndexFunc(m.Rows, func(old Row) bool { return old.Benchmark == row.Benchmark }); i >= 0 {
			m.Rows[i] = row
		} else {
			m.Rows = append(m.Rows, row)
		}
	}
	return m, nil
}

// MatrixOf returns the matrix of the benchmarks of a run that belong to the suites of a kind.
func MatrixOf(run result.Run, kind Kind) (Matrix, error) {
	m := Matrix{
		Machine: fmt.Sprintf("%s, %s, Linux %s, cgroup %s", run.Host.CPU, wording.Counted(run.Host.CPUs, "CPU"), firstWord(run.Host.Kernel), run.Host.Cgroup),
		Tool:    run.Tool.Version,
		Date:    run.Started.UTC().Format("2006-01-02"),
	}
	if run.Host.MayBeEmulated() {
		m.Machine += " (an emulated machine)"
	}
	for _, t := range run.Targets {
		m.Targets = append(m.Targets, t.Name)
	}
	if len(m.Targets) == 0 {
		return Matrix{}, errors.New("derive the matrix of programs: the run has no target")
	}
	for _, b := range run.Bench {
		if !kind.has(b.Name) {
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

func firstWord(s string) string {
	word, _, _ := strings.Cut(s, " ")
	return word
}

// systemLog begins the lines of a system log in the reason of a trial: see managed.Daemon.Complaints. They name one run's processes.
const systemLog = "; the last errors in its system log:"

// reason returns why a benchmark does not work on a target. It is empty if every trial worked.
func reason(run result.Run, benchmark, target string) string {
	worked := false
	for i := range run.Trials {
		t := &run.Trials[i]
		switch {
		case t.Benchmark != benchmark || t.Target != target:
		case t.Status != result.OK:
			cause, _, _ := strings.Cut(t.Reason, systemLog)
			return cause
		default:
			worked = true
		}
	}
	if !worked {
		return "the run ended before it"
	}
	return ""
}

// lack returns the metrics that a benchmark did not measure on a target, with the reasons: see performance.disk.mount.
func lack(run result.Run, benchmark, target string) string {
	var lacks []string
	for i := range run.Trials {
		t := &run.Trials[i]
		if t.Benchmark != benchmark || t.Target != target {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(t.Conditions)) {
			if cause, ok := strings.CutPrefix(t.Conditions[name], bench.NotMeasured); ok {
				lacks = append(lacks, strings.TrimSuffix(name, " on")+" is not measured: "+cause)
			}
		}
	}
	slices.Sort(lacks)
	return strings.Join(slices.Compact(lacks), "; ")
}

// WithMatrix returns a page with the table of a matrix. The matrix must have a row for each benchmark of the catalogue in its
// suites, and no other row. A new benchmark needs a new run.
func WithMatrix(page, matrix []byte, kind Kind) ([]byte, error) {
	var m Matrix
	if err := json.Unmarshal(matrix, &m); err != nil {
		return nil, fmt.Errorf("read the matrix of programs: %w", err)
	}
	rows := map[string]Row{}
	for _, r := range m.Rows {
		if len(r.Reasons) != len(m.Targets) || r.Lacks != nil && len(r.Lacks) != len(m.Targets) {
			return nil, fmt.Errorf("read the matrix of programs: %s has %d targets of %d", r.Benchmark, len(r.Reasons), len(m.Targets))
		}
		rows[r.Benchmark] = r
	}
	m.Rows = nil // in the order of the catalogue
	for _, b := range (catalogue.Catalogue{}).All() {
		if !kind.has(b.Name) {
			continue
		}
		row, ok := rows[b.Name]
		if !ok {
			return nil, fmt.Errorf("the matrix of programs has no row for %[1]s: run scripts/workload-matrix.sh %[2]s %[1]s", b.Name, kind.Name)
		}
		m.Rows = append(m.Rows, row)
		delete(rows, b.Name)
	}
	for name := range rows {
		return nil, fmt.Errorf("the matrix of programs has a row for %s, which the catalogue does not have: run scripts/workload-matrix.sh", name)
	}
	return fill(page, kind.Marker, m.table(kind))
}

// table formats the matrix. A cell has the number of its reason; the reasons follow the table.
func (m Matrix) table(kind Kind) string {
	var w strings.Builder
	fmt.Fprintf(&w, "\nSeen %s, with %s.\n\n", m.seen(), kind.Parameters)
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
	var runs []string
	benchmarks := map[string][]string{} // benchmarks by run
	for _, r := range m.Rows {
		if r.Seen == "" {
			continue
		}
		if !slices.Contains(runs, r.Seen) {
			runs = append(runs, r.Seen)
		}
		benchmarks[r.Seen] = append(benchmarks[r.Seen], r.Benchmark)
	}
	for _, run := range runs {
		names, verb := benchmarks[run], "was"
		if len(names) > 1 {
			verb = "were"
		}
		fmt.Fprintf(&w, "%s %s seen %s.\n\n", wording.Listed(names), verb, run)
	}
	return w.String()
}
