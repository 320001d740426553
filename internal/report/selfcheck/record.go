package selfcheck

import (
	"time"

	"github.com/touchstone-bench/touchstone/internal/report/counts"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// DocumentKind marks the JSON of a selfcheck. docs/schema/selfcheck.schema.json is its schema.
const DocumentKind = "touchstone-selfcheck"

// SchemaVersion is the version of the JSON.
const SchemaVersion = 1

// Record is a selfcheck as JSON, with the machine and the runtime that it is about.
type Record struct {
	Kind    string      `json:"kind" doc:"Kind of the document."`
	Version int         `json:"schema_version" doc:"Version of the document. It rises if a field changes its meaning or goes away."`
	Tool    result.Tool `json:"generator" doc:"The program that made the selfcheck."`
	Date    time.Time   `json:"date" doc:"Wall-clock time of the end."`
	Host    result.Host `json:"host" doc:"The machine."`
	Target  string      `json:"target" doc:"Name of the target that was compared with itself."`
	Binary  string      `json:"binary,omitempty" doc:"The path of the runtime; absent if it has none."`
	Runtime string      `json:"runtime,omitempty" doc:"The version of the runtime; absent if it is unknown."`
	Runs    []string    `json:"runs" doc:"Unique names of the runs."`
	Blocks  int         `json:"blocks_per_run" doc:"Number of measured blocks in each run."`
	Spent   float64     `json:"spent_s" schema:"minimum=0" doc:"The time of all runs, in seconds."`
	// Counts has the counts of traces that vary.
	Counts *counts.Learned `json:"counts,omitempty" doc:"The counts of traced trials of the runtime, and which of them vary; absent if the machine cannot trace."`
	Check
}
