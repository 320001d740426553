package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	answer "github.com/touchstone-bench/touchstone/internal/answer/fleet"
	"github.com/touchstone-bench/touchstone/internal/archive"
	"github.com/touchstone-bench/touchstone/internal/lists"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/report/fleet"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// sitePage is the page of the fleet in a folder of pages.
const sitePage = "index.html"

// nodePage is the name of the page of a node's run.
func nodePage(run string) string { return "report-" + run + ".html" }

// fleetRuns are the runs of the fleet that references name. They are nil if the references name runs.
func (a *App) fleetRuns(ctx context.Context, dir string, refs []string) (ids []string, err error) {
	err = a.withStore(ctx, dir, func(db *store.Store) error {
		for _, ref := range refs {
			list, err := archive.Fleet(ctx, db, ref)
			if err != nil {
				return usage(err)
			}
			if list != nil && len(refs) > 1 && ref != store.Latest {
				return usage(fmt.Errorf("%s is a fleet, and a report has one fleet alone; leave out the others", ref))
			}
			if list != nil && len(refs) == 1 {
				ids = lists.Convert(list, func(r *store.Summary) string { return r.ID })
			}
		}
		return nil
	})
	return ids, err
}

// eachRun reads runs one after the other, because the runs of a fleet may not fit into memory together.
func (a *App) eachRun(ctx context.Context, opts reportOptions, ids []string, do func(*result.Run) error) error {
	return a.withStore(ctx, opts.dir, func(db *store.Store) error {
		for _, id := range ids {
			run, err := db.Run(ctx, id)
			if err != nil {
				return err
			}
			if !opts.showEnv {
				run = archive.WithoutVariables(run)
			}
			list := []result.Run{run}
			if err := rebase(list, opts.baseline); err != nil {
				return err
			}
			if err := do(&list[0]); err != nil {
				return err
			}
		}
		return nil
	})
}

// fleetReport is the report of the runs of a fleet.
func (a *App) fleetReport(ctx context.Context, opts reportOptions, o analysis.Options, ids []string) (*fleet.Report, error) {
	saveMemory(mostGarbage)
	defer a.slow("reading the results")()
	b := fleet.NewBuilder(o)
	if err := a.eachRun(ctx, opts, ids, b.Add); err != nil {
		return nil, err
	}
	return b.Report()
}

// reportFleet shows a fleet, and writes its pages into a folder.
func (a *App) reportFleet(ctx context.Context, opts reportOptions, o analysis.Options, ids []string) error {
	if opts.across {
		return usage(errors.New("--across-machines compares runs, and a fleet has its own comparison of nodes; leave it out, or name runs"))
	}
	r, err := a.fleetReport(ctx, opts, o, ids)
	if err != nil {
		return err
	}
	if opts.site != "" {
		if err := a.writeSite(ctx, opts, o, ids, r); err != nil {
			return err
		}
	}
	return a.writeTo(opts.file, func(w io.Writer) error {
		return a.writeDocument(w, opts.format, opts.file, answer.Document(r, answer.NoPages))
	})
}

// writeSite writes the page of the fleet, and a page for each node beside it.
func (a *App) writeSite(ctx context.Context, opts reportOptions, o analysis.Options, ids []string, r *fleet.Report) error {
	if _, err := writableFolder("the folder of the pages", opts.site, 0o755); err != nil {
		return err
	}
	write := func(name string, do func(w io.Writer) error) error {
		return replaceFile(filepath.Join(opts.site, name), func(w io.Writer) error { return do(clean(w)) })
	}
	end := a.slow(fmt.Sprintf("writing the pages of %s", wording.Counted(len(ids), "node")))
	err := a.eachRun(ctx, opts, ids, func(run *result.Run) error {
		r := report.New([]result.Run{*run}, o)
		return write(nodePage(run.ID), func(w io.Writer) error {
			return a.writeDocument(w, formatHTML, opts.site, answer.NodeDocument(&r, sitePage))
		})
	})
	end()
	if err != nil {
		return err
	}
	page := filepath.Join(opts.site, sitePage)
	if err := write(sitePage, func(w io.Writer) error { return a.writeDocument(w, formatHTML, page, answer.Document(r, nodePage)) }); err != nil {
		return err
	}
	fmt.Fprintf(a.env.Stderr, "page %s, with the pages of %s beside it\n", page, wording.Counted(len(ids), "node"))
	return nil
}
