package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"

	"github.com/ohler55/ojg/jp"
	"github.com/ohler55/ojg/oj"

	"github.com/touchstone-bench/touchstone/internal/finding"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// falseAlarms counts the verdicts of reports with two targets of the same runtime.
func falseAlarms(w io.Writer, reports []string) error {
	count := map[string]int{}
	total := 0
	for _, name := range reports {
		found, err := verdictsOf(name)
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		if slices.Contains(found, any(string(stats.Withheld))) {
			return fmt.Errorf("%s has no verdicts, because its CPU is emulated: make it with %s", name, finding.EmulatedVerdictsFlag)
		}
		for _, v := range found {
			count[fmt.Sprint(v)]++
			total++
		}
	}
	if total == 0 {
		return errors.New("the reports have no comparisons")
	}
	for _, v := range slices.Sorted(maps.Keys(count)) {
		fmt.Fprintf(w, "  %s: %d\n", v, count[v])
	}
	claims := count[string(stats.Faster)] + count[string(stats.Slower)]
	noisy := count[string(stats.TooNoisy)]
	share := float64(claims) / float64(total)
	// The comparisons of one run share its trials. The bound is therefore for the number of runs, as if each run gave one
	// verdict.
	bound := stats.Alpha + 2*math.Sqrt(stats.Alpha*(1-stats.Alpha)/float64(len(reports)))
	fmt.Fprintf(w, "false alarms, verdicts that claim a difference: %d of %d (%.1f %%; limit %.1f %%: 5 %% and two standard errors of %d runs)\n",
		claims, total, 100*share, 100*bound, len(reports))
	fmt.Fprintf(w, "no verdict, because the host was too noisy: %d of %d (%.1f %%)\n", noisy, total, 100*float64(noisy)/float64(total))
	if share > bound {
		return fmt.Errorf("false alarms: %w of %.1f %%", errBeyond, 100*bound)
	}
	return nil
}

// verdicts selects the verdicts of a report in JSON.
var verdicts = jp.MustParseString("benchmarks[*].metrics[*].cells[*].comparison.verdict")

// verdictsOf returns the verdicts of a report in JSON.
func verdictsOf(name string) ([]any, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	document, err := oj.Parse(data)
	return verdicts.Get(document), err
}
