// Command million writes a results file with a run of 10⁶ samples for bench-million.sh. The samples are invented.
//
//	million SHAPE FOLDER
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/store"
)

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "million: %v\n", err)
		os.Exit(1)
	}
}

// run writes touchstone.db of the folder, and prints the shape of its run.
func run(w io.Writer, args []string) (err error) {
	shapes := reporttest.Millions()
	if len(args) != 2 {
		return errors.New("usage: million SHAPE FOLDER")
	}
	at := slices.IndexFunc(shapes, func(l reporttest.Large) bool { return l.Name == args[0] })
	if at < 0 {
		return fmt.Errorf("shape %q is unknown; the shapes are series and blocks", args[0])
	}
	l := shapes[at]
	db, err := store.Open(context.Background(), filepath.Join(args[1], "touchstone.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, err := db.Import(context.Background(), l.Read); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s: %d samples: %d targets, %d blocks, %d metrics, %d values\n", l.Name, l.Samples(), l.Targets, l.Blocks, l.Metrics, l.Values)
	return err
}
