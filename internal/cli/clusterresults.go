package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/archive"
	"github.com/touchstone-bench/touchstone/internal/cluster"
	"github.com/touchstone-bench/touchstone/internal/lists"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// conductFleet executes a cluster run whose objects exist, shows the results and cleans up.
func (a *App) conductFleet(ctx context.Context, c *cluster.Coordinator, opts *fleetOptions, db *store.Store) error {
	outcomes, err := c.Run(ctx)
	a.clear()
	if err != nil {
		// The agents go on: the results file may be writable again.
		return errors.Join(err, a.abandonFleet(c.Fleet, opts.clusterOptions))
	}
	if opts.keepAfter || c.Fleet.Privileged { // the others are removed
		err = c.Release(context.WithoutCancel(ctx))
	}
	if opts.keepAfter {
		a.line(fmt.Sprintf("the objects of the run stay: remove them with touchstone cluster cleanup %s%s", c.Fleet.ID, inNamespace(c.Fleet, opts.clusterOptions)))
	} else {
		f := c.Fleet
		f.Nodes = placed(f.Nodes, outcomes)
		err = errors.Join(err, a.clean(c.Client, &f))
	}
	return orExit(err, a.concludeFleet(ctx, c.Fleet, outcomes, opts, db))
}

// placed returns the nodes that may have had an agent. Only these may need a clean-up.
func placed(nodes []cluster.Node, outcomes []cluster.Outcome) []cluster.Node {
	return slices.DeleteFunc(slices.Clone(nodes), func(n cluster.Node) bool {
		return !slices.ContainsFunc(outcomes, func(o cluster.Outcome) bool { return o.Node == n.Name && o.Placed })
	})
}

// concludeFleet shows the results of all nodes, and returns the exit code as an error.
func (a *App) concludeFleet(ctx context.Context, f cluster.Fleet, outcomes []cluster.Outcome, opts *fleetOptions, db *store.Store) error {
	var ids []string
	failures, successes, rest := 0, 0, 0
	works := map[string]bool{} // a target on at least one node
	for _, o := range outcomes {
		if o.Phase != cluster.Complete {
			rest++
		}
		if !o.Recorded {
			continue
		}
		run, err := db.Outline(context.WithoutCancel(ctx), o.RunID)
		if err != nil {
			return err
		}
		for _, t := range run.Targets {
			works[t.Name] = works[t.Name] || t.Unavailable == ""
		}
		for _, t := range run.Trials {
			switch t.Status {
			case result.Failed, result.Timeout:
				failures++
			case result.OK:
				successes++
			case result.Skipped:
			}
		}
		ids = append(ids, o.RunID)
	}
	if err := a.showFleet(context.WithoutCancel(ctx), opts, ids, db); err != nil {
		return err
	}
	fmt.Fprintf(a.env.Stderr, "\ncluster run %s: %d of %d nodes complete, results %s\n", f.ID, len(outcomes)-rest, len(outcomes), filepath.Join(opts.dir, databaseName))
	for _, o := range outcomes {
		if o.Phase != cluster.Complete {
			fmt.Fprintf(a.env.Stderr, "node %s: %s%s\n", o.Node, o.Phase, detail(o.State))
		}
	}
	missing := lists.Filter(f.Targets, func(name string) bool { return len(ids) > 0 && !works[name] })
	if len(missing) > 0 {
		fmt.Fprintf(a.env.Stderr, "asked for, and measured on no node: %s; the report has the reasons\n", strings.Join(missing, ", "))
	}
	switch {
	case ctx.Err() != nil:
		return &exitError{code: ExitInterrupted}
	case len(ids) == 0:
		return &exitError{code: ExitNoTarget}
	case failures > 0:
		fmt.Fprintf(a.env.Stderr, "%s failed or timed out; the report lists them with the reasons\n", wording.Counted(failures, "trial"))
		return &exitError{code: ExitTrials}
	case len(missing) > 0:
		return &exitError{code: ExitNoTarget}
	case rest > 0 || successes == 0:
		return &exitError{code: ExitFailure}
	}
	return nil
}

// showFleet shows the report of a fleet, and writes its pages. A fleet of one node has the report of its run.
func (a *App) showFleet(ctx context.Context, opts *fleetOptions, ids []string, db *store.Store) error {
	folder, options := filepath.Join(opts.dir, fleetFolder), analysis.Options{Release: true}
	switch len(ids) {
	case 0:
		return nil
	case 1:
		run, err := db.Run(ctx, ids[0])
		if err == nil {
			_, err = writableFolder("the folder of the page", folder, 0o755)
		}
		if err != nil {
			return err
		}
		r, page := report.New([]result.Run{archive.WithoutVariables(run)}, options), filepath.Join(folder, sitePage)
		view := reportOptions{dir: opts.dir, format: opts.format, page: page, refs: ids}
		return errors.Join(a.writeReport(view, r), a.writeReport(reportOptions{format: formatHTML, file: page}, r))
	}
	return a.reportFleet(ctx, reportOptions{dir: opts.dir, format: opts.format, site: folder}, options, ids)
}

// fleetFolder is the folder of the pages of a fleet, in the output folder.
const fleetFolder = "fleet"
