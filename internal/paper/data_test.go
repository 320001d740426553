package paper

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/bench/catalogue"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// Every table is a rectangle with unique names, and each of its numbers is a metric of a target or has the reason why it is none.
//
// Invariant published-numbers.
func TestDataIsSound(t *testing.T) {
	papers, err := All()
	must.Do(t, err)
	for _, p := range papers {
		t.Run(p.Name, func(t *testing.T) {
			if p.Authors == "" || p.Title == "" || p.Venue == "" || p.Year == 0 {
				t.Errorf("its description is incomplete: %s, %s, %s, %d", p.Authors, p.Title, p.Venue, p.Year)
			}
			names := map[string]bool{}
			for _, table := range p.Tables {
				if names[table.Name] {
					t.Errorf("two tables are named %s", table.Name)
				}
				names[table.Name] = true
				if err := checkTable(table); err != nil {
					t.Errorf("%s: %v", table.Name, err)
				}
			}
		})
	}
}

func checkTable(t Table) (err error) {
	fail := func(format string, args ...any) { err = errors.Join(err, fmt.Errorf(format, args...)) }
	if t.Name == "" || t.Title == "" || t.Place == "" {
		fail("name, title or place is missing")
	}
	targets := map[string]bool{}
	for r, row := range t.Rows {
		if len(row.Cells) != len(t.Columns) {
			fail("row %q has %d cells for %d columns", row.Label, len(row.Cells), len(t.Columns))
			continue
		}
		for c, cell := range row.Cells {
			ref := t.OfCell(r, c)
			targets[ref.Target] = true
			if cell.Flag != "" && cell.Printed == "" {
				fail("row %q, column %d: an empty cell has a flag", row.Label, c+1)
			}
			if len(numbersOf(cell.Printed)) == 0 {
				continue
			}
			if flaw := checkOf(ref, t.Reference); flaw != nil {
				fail("row %q, column %q: %w", row.Label, t.Columns[c].Heading, flaw)
			}
		}
	}
	if t.Reference != "" && !targets[t.Reference] {
		if _, flaw := target.Parse(t.Reference); flaw != nil || !compares(t) {
			fail("the reference %q is no target of the table", t.Reference)
		}
	}
	return err
}

// compares reports whether the table prints a comparison. Then its reference need not have a cell.
func compares(t Table) bool {
	for r, row := range t.Rows {
		for c := range row.Cells {
			if t.OfCell(r, c).Compared != "" {
				return true
			}
		}
	}
	return false
}

// checkOf checks the description of a cell with a number against the catalogue.
func checkOf(ref Of, reference string) error {
	if ref.Target != "" {
		if parsed, err := target.Parse(ref.Target); err != nil {
			return err
		} else if parsed.String() != ref.Target {
			return fmt.Errorf("the target %s is spelled %s", ref.Target, parsed)
		}
	}
	if !slices.Contains([]Comparison{"", Loss, Gain, Share, Excess, Factor, Difference}, ref.Compared) {
		return fmt.Errorf("the comparison %q is unknown", ref.Compared)
	}
	if ref.Unmeasured != "" {
		return nil
	}
	if ref.Target == "" {
		return errors.New("the target is missing")
	}
	if ref.Unit == "" {
		return errors.New("the unit is missing")
	}
	if ref.Compared != "" && (reference == "" || reference == ref.Target) {
		return fmt.Errorf("%s is compared with %q", ref.Target, reference)
	}
	b, ok := catalogue.Catalogue{}.Lookup(ref.Benchmark)
	if !ok {
		return fmt.Errorf("no benchmark is named %q", ref.Benchmark)
	}
	if !slices.ContainsFunc(b.Monitored().Metrics, func(m result.Metric) bool { return m.Name == ref.Metric }) {
		return fmt.Errorf("%s has no metric %q", ref.Benchmark, ref.Metric)
	}
	_, err := b.Resolve(bench.Params(ref.Params), true)
	return err
}
