package selfcheck

import (
	"time"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// DocumentKind marks the JSON of a selfcheck.
const DocumentKind = "touchstone-selfcheck"

// SchemaVersion is the version of the JSON.
const SchemaVersion = 1

// Record is a selfcheck as JSON, with the machine and the runtime that it is about.
type Record struct {
	Kind    string      `json:"kind"`
	Version int         `json:"schema_version"`
	Tool    result.Tool `json:"generator"`
	Date    time.Time   `json:"date"`
	Host    result.Host `json:"host"`
	Target  string      `json:"target"`
	// Binary and Runtime are the path and the version of the runtime.
	Binary  string   `json:"binary,omitempty"`
	Runtime string   `json:"runtime,omitempty"`
	Runs    []string `json:"runs"`
	Blocks  int      `json:"blocks_per_run"`
	Spent   float64  `json:"spent_s"`
	Check
}
