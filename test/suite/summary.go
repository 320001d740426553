package main

import (
	"bufio"
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// summarize prints the ten slowest tests, the times of each step, the repeats, and the counts. It returns the number of failed steps.
func (s *suite) summarize(outcomes []outcome) int {
	var total results
	for _, o := range outcomes {
		total.passed += o.tests.passed
		total.skipped += o.tests.skipped
		total.failures = append(total.failures, o.tests.failures...)
		total.tests = append(total.tests, o.tests.tests...)
		total.skips = append(total.skips, o.tests.skips...)
	}
	var b strings.Builder
	slices.SortFunc(total.tests, func(a, b testTime) int { return cmp.Compare(b.elapsed, a.elapsed) })
	fmt.Fprintln(&b, "\nThe slowest tests")
	for _, t := range total.tests[:min(10, len(total.tests))] {
		fmt.Fprintf(&b, "%7s  %s %s\n", seconds(t.elapsed), short(t.pkg), t.test)
	}
	fmt.Fprintln(&b, "\nThe time of each step, and the time of CPU in it")
	failed := 0
	for _, o := range outcomes {
		state := ""
		if o.err != nil {
			failed++
			state = "  FAILED: " + o.err.Error()
		}
		fmt.Fprintf(&b, "%7s %7s  %s%s\n", seconds(o.elapsed), seconds(o.cpu), o.step.name, state)
	}
	s.writeSkips(total.skips)
	if repeats := s.repeats(); repeats != "" {
		fmt.Fprintf(&b, "\nRepeats, each with its reason\n%s", repeats)
	}
	excess, err := s.checkBudgets(total)
	if err != nil {
		excess = []string{err.Error()}
	}
	if len(excess) > 0 {
		fmt.Fprintf(&b, "\nBeyond %s\n%s\n", budgetFile, strings.Join(excess, "\n"))
		if s.all {
			failed++
		}
	}
	for _, f := range total.failures {
		fmt.Fprintf(&b, "\nfailed: %s %s", short(f.pkg), f.test)
	}
	fmt.Fprintf(&b, "\n%d passed, %d failed, %d skipped\n", total.passed, len(total.failures), total.skipped)
	s.log.text(b.String())
	return failed
}

// repeats returns the lines of the record about repeats. It also has skips.
func (s *suite) repeats() string {
	text, err := os.ReadFile(s.record)
	if err != nil {
		return "" // no test repeated anything
	}
	var b strings.Builder
	for line := range strings.Lines(string(text)) {
		if found, ok := strings.CutPrefix(line, "repeat\t"); ok {
			b.WriteString(found)
		}
	}
	return b.String()
}

func short(pkg string) string { return strings.TrimPrefix(pkg, module+"/") }

// writeSkips writes the skipped tests with their reasons to a file.
func (s *suite) writeSkips(skips []failure) {
	var b strings.Builder
	for _, skip := range skips {
		fmt.Fprintf(&b, "%s\t%s\t%s\n", short(skip.pkg), skip.test, strings.Join(strings.Fields(reason(skip.output)), " "))
	}
	if err := os.WriteFile(filepath.Join(s.out, "skips.tsv"), []byte(b.String()), 0o644); err != nil {
		s.log.printf("the skips are not kept: %v", err)
	}
}

// reason returns the lines of a test's output that go test did not add.
func reason(output string) string {
	var lines []string
	for line := range strings.Lines(output) {
		if trimmed := strings.TrimSpace(line); !strings.HasPrefix(trimmed, "=== ") && !strings.HasPrefix(trimmed, "--- ") {
			lines = append(lines, trimmed)
		}
	}
	return strings.Join(lines, " ")
}

// budgetFile holds the seconds of the tests of each package in `make test-all` on two CPUs: the sum of its tests, without the wait for a lock. A
// package that takes half as much again, and ten seconds more, fails that target. Write the file anew after a change that is worth its time: with
// -write-budgets. A package without a budget passes.
const budgetFile = "test/suite/budgets.tsv"

// slack is the time of a package beyond its budget that a busy machine may add.
const slack = 10 * time.Second

// checkBudgets compares the times of the packages with their budgets, or writes them as the budgets. A package that failed or did not run keeps its
// budget. A folder without tests loses it.
func (s *suite) checkBudgets(run results) (excess []string, err error) {
	total := make(map[string]time.Duration)
	for _, p := range run.tests {
		total[short(p.pkg)] += p.elapsed
	}
	budgets, err := s.readBudgets()
	if err != nil {
		return nil, err
	}
	if s.writeBudgets {
		for _, f := range run.failures {
			delete(total, short(f.pkg))
		}
		maps.Copy(budgets, total)
		var b strings.Builder
		for _, pkg := range slices.Sorted(maps.Keys(budgets)) {
			if files, err := filepath.Glob(filepath.Join(s.root, pkg, "*_test.go")); err != nil {
				return nil, err
			} else if files != nil {
				fmt.Fprintf(&b, "%s\t%.0f\n", pkg, budgets[pkg].Seconds())
			}
		}
		return nil, os.WriteFile(filepath.Join(s.root, budgetFile), []byte(b.String()), 0o644)
	}
	for _, pkg := range slices.Sorted(maps.Keys(total)) {
		if budget, found := budgets[pkg]; found && total[pkg] > budget*3/2+slack {
			excess = append(excess, fmt.Sprintf("%s took %s, and its budget is %s", pkg, seconds(total[pkg]), seconds(budget)))
		}
	}
	return excess, nil
}

// readBudgets returns the budgets by package.
func (s *suite) readBudgets() (map[string]time.Duration, error) {
	f, err := os.Open(filepath.Join(s.root, budgetFile))
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	budgets := make(map[string]time.Duration)
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		pkg, text, found := strings.Cut(lines.Text(), "\t")
		value, err := strconv.Atoi(text)
		if !found || err != nil {
			return nil, fmt.Errorf("%s line %d: %q is not a package and its seconds, separated by a tab", budgetFile, n, lines.Text())
		}
		budgets[pkg] = time.Duration(value) * time.Second
	}
	return budgets, lines.Err()
}
