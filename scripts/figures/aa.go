package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/stats"
)

// falseAlarms counts the verdicts of reports with two targets of the same runtime.
func falseAlarms(w io.Writer, reports []string) error {
	verdicts := map[stats.Verdict]int{}
	total := 0
	for _, name := range reports {
		found, err := verdictsOf(name)
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		for _, v := range found {
			verdicts[v]++
			total++
		}
	}
	if total == 0 {
		return errors.New("the reports have no comparisons")
	}
	for _, v := range slices.Sorted(maps.Keys(verdicts)) {
		fmt.Fprintf(w, "  %s: %d\n", v, verdicts[v])
	}
	claims := verdicts[stats.Faster] + verdicts[stats.Slower]
	noisy := verdicts[stats.TooNoisy]
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

// verdictsOf gives the verdicts of a report in JSON.
func verdictsOf(name string) ([]stats.Verdict, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var report struct {
		Benchmarks []struct {
			Metrics []struct {
				Cells []struct {
					Comparison *struct {
						Verdict stats.Verdict `json:"verdict"`
					} `json:"comparison"`
				} `json:"cells"`
			} `json:"metrics"`
		} `json:"benchmarks"`
	}
	if err := json.Unmarshal(data, &report); err != nil {
		return nil, err
	}
	var verdicts []stats.Verdict
	for _, b := range report.Benchmarks {
		for _, m := range b.Metrics {
			for _, c := range m.Cells {
				if c.Comparison != nil {
					verdicts = append(verdicts, c.Comparison.Verdict)
				}
			}
		}
	}
	return verdicts, nil
}
