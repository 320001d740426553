package cli_test

import (
	"os"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// exportFleet FILE [ID NODES] writes the runs of a made-up fleet: of reporttest.Cluster, or of healthy nodes.
func exportFleet(ts *testscript.TestScript, _ bool, args []string) {
	runs := reporttest.Cluster()
	if len(args) > 1 {
		nodes, err := strconv.Atoi(args[2])
		ts.Check(err)
		runs = reporttest.Fleet{ID: args[1], Nodes: nodes, Blocks: 6, Healthy: true}.Runs()
	}
	f, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Check(result.Encode(f, result.Document{Schema: result.SchemaVersion, Runs: runs}))
	ts.Check(f.Close())
}
