package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/bench/catalogue"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// benchmarkRow is a benchmark in the listing.
type benchmarkRow struct {
	Name    string          `json:"name"`
	Summary string          `json:"summary"`
	Source  string          `json:"source"`
	Image   string          `json:"image"`
	Metrics []result.Metric `json:"metrics"`
	Params  []paramRow      `json:"parameters,omitempty"`
	// Needs are capabilities of the target.
	Needs []string `json:"needs,omitempty"`
}

type paramRow struct {
	Name  string `json:"name"`
	Help  string `json:"help"`
	Quick string `json:"quick"`
	Paper string `json:"paper"`
}

func (a *App) listCommand() *cobra.Command {
	var format format
	cmd := &cobra.Command{
		Use:   "list [FILTER...]",
		Short: "List the benchmarks; with a filter, their metrics and parameters",
		Long: `Lists the benchmarks. A filter is the name of a benchmark or its first components:
operations, performance.syscall. With a filter the list includes the sources, the
metrics and the parameters, with the values of parameters in quick plans and in the
paper's plans.

The programs of a benchmark come from the probe's image, which is part of
touchstone, or from the workload image, which touchstone image build or the first
run that needs it builds.`,
		Example: `  touchstone list
  touchstone list scalability.runtime.37
  touchstone list performance -o json`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, filters []string) error {
			selection, err := selectBenchmarks(filters)
			if err != nil {
				return err
			}
			var data []benchmarkRow
			for _, b := range selection {
				data = append(data, describe(b))
			}
			if len(filters) > 0 && format == formatTable {
				return a.describeAll(data)
			}
			header := []string{"BENCHMARK", "IMAGE", "MEASURES"}
			return printList(a, format, data, header, func(b benchmarkRow) []string { return []string{b.Name, b.Image, b.Summary} })
		},
	}
	addFormat(cmd, &format)
	return cmd
}

// selectBenchmarks returns the benchmarks that filters select as in a plan, or all without filters.
func selectBenchmarks(filters []string) ([]bench.Benchmark, error) {
	if len(filters) == 0 {
		return catalogue.Catalogue{}.All(), nil
	}
	p, err := plan.Quick().Apply(plan.Overrides{Filters: filters})
	var work []plan.Work
	if err == nil {
		work, err = p.Resolve(catalogue.Catalogue{})
	}
	if flaw := (*plan.Error)(nil); errors.As(err, &flaw) { // a filter is no flag here
		return nil, usage(fmt.Errorf("%s; %s", flaw.Problem, flaw.Advice))
	}
	if err != nil {
		return nil, err
	}
	var selection []bench.Benchmark
	for _, w := range work {
		selection = append(selection, w.Benchmark)
	}
	return selection, nil
}

func describe(b bench.Benchmark) benchmarkRow {
	row := benchmarkRow{Name: b.Name, Summary: b.Summary, Source: b.Source, Image: string(b.Image), Metrics: b.Metrics}
	if b.Image == bench.ProbeImage {
		row.Image = "probe"
	}
	for _, p := range b.Params {
		row.Params = append(row.Params, paramRow{p.Name, p.Help, p.Quick, p.Paper})
	}
	for _, n := range b.Capabilities() {
		row.Needs = append(row.Needs, string(n))
	}
	return row
}

func (a *App) describeAll(rows []benchmarkRow) error {
	w := a.env.Stdout
	for i, b := range rows {
		if i > 0 {
			fmt.Fprintln(w)
		}
		printWrapped(w, a.env.Width, b.Name+": ", b.Summary)
		printWrapped(w, a.env.Width, "  source: ", b.Source)
		fmt.Fprintf(w, "  image: %s\n", b.Image)
		if len(b.Needs) > 0 {
			printWrapped(w, a.env.Width, "  needs: ", strings.Join(b.Needs, ", "))
		}
		fmt.Fprintln(w)
		header := []string{"  METRIC", "UNIT", "BETTER", "MEANING"}
		if err := printList(a, formatTable, b.Metrics, header, func(m result.Metric) []string {
			return []string{"  " + m.Name, string(m.Unit), string(m.Better), m.Help}
		}); err != nil {
			return err
		}
		if len(b.Params) == 0 {
			continue
		}
		fmt.Fprintln(w)
		header = []string{"  PARAMETER", "QUICK", "PAPER", "MEANING"}
		if err := printList(a, formatTable, b.Params, header, func(p paramRow) []string { return []string{"  " + p.Name, p.Quick, p.Paper, p.Help} }); err != nil {
			return err
		}
	}
	return nil
}
