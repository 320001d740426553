package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/bench/catalogue"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
	"github.com/touchstone-bench/touchstone/internal/touchstone"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// checkOutput refuses an existing file for the results in TouchStone's form that is in another form, before anything is measured.
func checkOutput(dir string, p plan.Plan) error {
	if p.TouchstoneOutput == "" {
		return nil
	}
	path := filepath.Join(dir, p.TouchstoneOutput)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var head []byte
	if err == nil && info.Mode().IsRegular() {
		head, err = beginning(path)
	}
	switch {
	case err != nil:
		return fmt.Errorf("read the earlier results in TouchStone's form: %w", err)
	case !info.Mode().IsRegular() || len(head) > 0 && !touchstone.IsJSON(head):
		return fmt.Errorf("%s exists and is not a file in TouchStone's form, so the results cannot be appended; move it away, or change output in the plan", path)
	}
	return nil
}

// beginning reads the first bytes of a file.
func beginning(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it is only read from
	return io.ReadAll(io.LimitReader(f, 4096))
}

// appendOutput appends a run in TouchStone's form to a file. It is one write, which other writers cannot divide.
func (a *App) appendOutput(path string, run result.Run) error {
	line, left, err := touchstone.Encode(run)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		fmt.Fprintf(a.env.Stderr, "note: %s has only TouchStone's benchmarks, and not %s\n", path, strings.Join(left, ", "))
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(line)
	return errors.Join(err, f.Close())
}

// described returns the description of a benchmark as runs have it.
func described(name string) (result.Benchmark, bool) {
	b, ok := catalogue.Catalogue{}.Lookup(name)
	if !ok {
		return result.Benchmark{}, false
	}
	return b.Recorded(), true
}

// writeIndex writes a page about runs. Without IDs it is about the last run of each plan.
func (a *App) writeIndex(ctx context.Context, dir, page string, ids []string) error {
	if ids == nil {
		err := a.withStore(ctx, dir, func(db *store.Store) error {
			runs, err := db.Runs(ctx)
			names := map[string]bool{}
			for _, r := range runs { // the newest first
				if !names[r.Name] {
					names[r.Name] = true
					ids = append(ids, r.ID)
				}
			}
			return err
		})
		if err != nil {
			return err
		}
		if len(ids) == 0 {
			return fmt.Errorf("%s has no runs; make one with touchstone benchmark", dir)
		}
	}
	if len(ids) > report.MostRuns {
		return fmt.Errorf("a page has at most %d plans, and these are %d: name the runs with touchstone report RUN... -o html", report.MostRuns, len(ids))
	}
	runs, err := a.loadAll(ctx, dir, ids, false)
	if err != nil {
		return err
	}
	if err := a.writeReport(reportOptions{format: formatHTML, file: page}, report.New(runs, analysis.Options{Release: true})); err != nil {
		return err
	}
	fmt.Fprintf(a.env.Stderr, "%s has the results of %s\n", page, wording.Counted(len(runs), "run"))
	return nil
}
