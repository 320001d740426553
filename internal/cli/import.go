package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
)

// standardInput names standard input among files.
const standardInput = "-"

// importedRun is a run in the listing of an import.
type importedRun struct {
	File    string       `json:"file"`
	ID      string       `json:"id"`
	Machine string       `json:"machine"`
	Arch    string       `json:"arch"`
	Started time.Time    `json:"started"`
	Targets []string     `json:"targets"`
	Trials  int          `json:"trials"`
	State   result.State `json:"state"`
	// Came is "new", or "there already" for a run that the folder had before.
	Came string `json:"came"`
}

func (a *App) importCommand() *cobra.Command {
	var format format
	var dir string
	cmd := &cobra.Command{
		Use:   "import FILE...",
		Short: "Add runs of other machines to the results",
		Long: `Reads files of touchstone export, from this machine or another one, and adds their runs
to the results in the folder. It creates the folder if necessary. "-" is standard
input. Either all runs of a file are added or none. A run that the folder already has
is not changed. A different run with the same ID is an error.

Files are not trusted: their size is limited and their content is checked. An
imported run can be shown, exported and compared. benchmark --resume refuses it,
because it would execute a plan from another machine.`,
		Example: `  touchstone import board.json server.json
  ssh board touchstone export | touchstone import -
  touchstone report 20261120-0930 20261121`,
		Args: func(_ *cobra.Command, files []string) error {
			if len(files) == 0 {
				return errors.New("import: no file is named: name a file of touchstone export, or - for standard input")
			}
			if at := slices.Index(files, standardInput); at >= 0 && slices.Contains(files[at+1:], standardInput) {
				return errors.New("import: - is given twice, but standard input can be read only once")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, files []string) (err error) {
			var all []importedRun
			for _, file := range files {
				runs, failed := importFile(cmd.Context(), dir, file, cmd.InOrStdin())
				err = errors.Join(err, failed)
				all = append(all, runs...)
				if cmd.Context().Err() != nil {
					break
				}
			}
			if len(all) == 0 {
				return err
			}
			header := []string{"CAME", "RUN", "MACHINE", "ARCH", "TRIALS", "STATE", "TARGETS", "FILE"}
			return errors.Join(printList(a.env.Stdout, format, all, header, func(r importedRun) []string {
				return []string{r.Came, r.ID, r.Machine, r.Arch, fmt.Sprint(r.Trials), string(r.State), strings.Join(r.Targets, " "), r.File}
			}), err)
		},
	}
	addFormat(cmd, &format)
	addDir(cmd, &dir)
	return cmd
}

// importFile adds all runs of a file to the results of a folder, or none.
func importFile(ctx context.Context, dir, file string, stdin io.Reader) ([]importedRun, error) {
	doc, err := readExport(ctx, file, stdin)
	if err != nil {
		return nil, fmt.Errorf("import %s: %w", file, err)
	}
	added, err := addRuns(ctx, dir, doc.Runs)
	if err != nil {
		return nil, fmt.Errorf("import %s: no run was added: %w", file, err)
	}
	var runs []importedRun
	for i, r := range doc.Runs {
		came := importedRun{
			File: file, ID: r.ID, Machine: r.Host.Hostname, Arch: r.Host.Arch, Started: r.Started, Targets: []string{}, Trials: len(r.Trials), State: r.State,
			Came: "there already",
		}
		if added[i] {
			came.Came = "new"
		}
		for _, t := range r.Targets {
			came.Targets = append(came.Targets, t.Name)
		}
		runs = append(runs, came)
	}
	return runs, nil
}

// readExport reads a file of touchstone export. It stops waiting for a pipe when ctx ends.
func readExport(ctx context.Context, file string, stdin io.Reader) (result.Document, error) {
	type outcome struct {
		doc result.Document
		err error
	}
	read := make(chan outcome, 1)
	go func() {
		doc, err := openExport(file, stdin)
		read <- outcome{doc, err}
	}()
	select {
	case <-ctx.Done():
		return result.Document{}, context.Cause(ctx)
	case r := <-read:
		if r.err == nil && len(r.doc.Runs) == 0 {
			return result.Document{}, errors.New("it has no run")
		}
		return r.doc, r.err
	}
}

func openExport(file string, stdin io.Reader) (doc result.Document, err error) {
	if file == standardInput {
		return result.Decode(stdin)
	}
	f, err := os.Open(file)
	if err != nil {
		return result.Document{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	// Decode finds out the size by reading, which needs much memory for a large file.
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && info.Size() > result.MaxDocument {
		return result.Document{}, fmt.Errorf("read result document: %w", result.ErrTooLarge)
	}
	return result.Decode(f)
}

// addRuns adds runs to the results of a folder, and reports which of them are new. It creates the folder if necessary.
func addRuns(ctx context.Context, dir string, runs []result.Run) (added []bool, err error) {
	if err := writable(dir); err != nil {
		return nil, err
	}
	db, err := store.Open(ctx, filepath.Join(dir, databaseName))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return db.Import(ctx, runs...)
}
