package cli

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/cluster"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
)

// A target that the plan names and that works on no node is a failure of the run, like for touchstone benchmark. One node with it is enough.
func TestMissingOnAllNodes(t *testing.T) {
	for _, gaps := range []int{1, 2} {
		var errs bytes.Buffer
		dir := t.TempDir()
		app := New(Environment{Stdout: &bytes.Buffer{}, Stderr: &errs})
		db, err := store.Open(t.Context(), filepath.Join(dir, databaseName))
		must.Do(t, err)
		f := cluster.Fleet{ID: "20261129-120000-abcd", Targets: []string{"k8s/runc", "k8s/ghost"}}
		var outcomes []cluster.Outcome
		epoch := time.Unix(1_800_000_000, 0).UTC()
		for i := range 2 {
			node := fmt.Sprint("n", i+1)
			run := result.Run{
				ID: f.RunID(node), Name: "p", State: result.Running, Started: epoch, Plan: "version: 1\n", Baseline: "k8s/runc",
				Host:    result.Host{Node: &result.Node{Fleet: f.ID, Name: node}},
				Targets: []result.Target{{Name: "k8s/runc"}, {Name: "k8s/ghost"}},
				Bench:   []result.Benchmark{{Name: "b", Metrics: []result.Metric{{Name: "M", Unit: result.Seconds, Better: result.Lower}}}},
			}
			if i < gaps {
				run.Targets[1].Unavailable = "no handler"
			}
			trial := result.Trial{
				Seq: 1, Cell: result.Cell{Benchmark: "b", Target: "k8s/runc"}, Status: result.OK, Started: epoch, Samples: []result.Sample{{Metric: "M", Value: 1}},
			}
			must.Do(t, db.Create(t.Context(), run), db.Append(t.Context(), run.ID, trial), db.Finish(t.Context(), run.ID, result.Complete, epoch.Add(time.Minute), nil))
			outcomes = append(outcomes, cluster.Outcome{Node: node, RunID: run.ID, State: cluster.State{Phase: cluster.Complete}, Recorded: true})
		}
		err = app.concludeFleet(t.Context(), f, outcomes, &fleetOptions{clusterOptions: clusterOptions{dir: dir}, format: formatTable}, db)
		must.Do(t, db.Close())
		var exit *exitError
		isMissing := errors.As(err, &exit) && exit.code == ExitNoTarget && strings.Contains(errs.String(), "asked for, and measured on no node: k8s/ghost;")
		if isMissing != (gaps == 2) || !isMissing && err != nil {
			t.Errorf("%d of 2 nodes do not have the target: %v\n%s", gaps, err, errs.String())
		}
	}
}
