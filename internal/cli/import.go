package cli

import (
	"bufio"
	"bytes"
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

	"github.com/touchstone-bench/touchstone/internal/benchfile"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
	"github.com/touchstone-bench/touchstone/internal/textfile"
	"github.com/touchstone-bench/touchstone/internal/touchstone"
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
	// Caveats are the run's.
	Caveats []string `json:"caveats,omitempty"`
}

// forms are the values of --from, and forms of files in the same order.
var (
	formNames = []string{"export", "touchstone", "hyperfine", "critest", "gobench"}
	forms     = []textfile.Kind{textfile.Export, textfile.Theirs, textfile.Hyperfine, textfile.Critest, textfile.GoBench}
)

func (a *App) importCommand() *cobra.Command {
	var format format
	var dir, form string
	cmd := &cobra.Command{
		Use:   "import FILE...",
		Short: "Add runs of other machines to the results",
		Long: `Reads files of touchstone export, from this machine or another one, and adds their runs
to the results in the folder. It creates the folder if necessary. "-" is standard
input. Either all runs of a file are added or none. A run that the folder already has
is not changed. A different run with the same ID is an error.

Files of other programs are read too, and recognised by their beginning or by --from. They
have no facts about the host, so their runs are marked, and their host is "unknown".

  touchstone  TouchStone's JSON: each cri with each oci is a run of its own
  hyperfine   hyperfine --export-json: each command is a benchmark
  critest     critest -benchmark -benchmarking-output-dir: each operation is a metric
  gobench     go test -bench: each benchmark with its units; each configuration in the
              file is a run of its own

Touchstone pairs no values of these files. touchstone compare compares two of them.

A file may have a byte order mark, be UTF-16 or be compressed with gzip.

Files are not trusted: their size is limited and their content is checked. A file of any
size within the limit needs little memory. A pipe, and a file that is decoded, needs
space in TMPDIR. An imported run can be shown, exported and compared. benchmark --resume refuses it,
because it would execute a plan from another machine.`,
		Example: `  touchstone import board.json server.json
  ssh board touchstone export | touchstone import -
  hyperfine --export-json before.json 'make' && touchstone import before.json
  touchstone report 20261120-0930 20261121`,
		Args: func(_ *cobra.Command, files []string) error {
			if form != "" && !slices.Contains(formNames, form) {
				return fmt.Errorf("--from: %q is none of the forms %s", form, strings.Join(formNames, ", "))
			}
			if len(files) == 0 {
				return errors.New("import: no file is named: name a file of touchstone export, or - for standard input")
			}
			if index := slices.Index(files, standardInput); index >= 0 && slices.Contains(files[index+1:], standardInput) {
				return errors.New("import: - is given twice, but standard input can be read only once")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, files []string) (err error) {
			want := forms
			if index := slices.Index(formNames, form); index >= 0 {
				want = forms[index : index+1]
			}
			var list []importedRun
			for _, file := range files {
				end := a.slow("importing " + file)
				runs, failed := importFile(cmd.Context(), dir, file, want, cmd.InOrStdin())
				end()
				err = errors.Join(err, failed)
				list = append(list, runs...)
				if cmd.Context().Err() != nil {
					break
				}
			}
			if len(list) == 0 {
				return err
			}
			for _, r := range list {
				if r.Machine == result.UnknownHost && len(r.Caveats) > 0 {
					fmt.Fprintf(a.env.Stderr, "note: run %s: %s\n", r.ID, strings.Join(r.Caveats, "; "))
				}
			}
			header := []string{"CAME", "RUN", "MACHINE", "ARCH", "TRIALS", "STATE", "TARGETS", "FILE"}
			return errors.Join(printList(a, format, list, header, func(r importedRun) []string {
				return []string{r.Came, r.ID, r.Machine, r.Arch, fmt.Sprint(r.Trials), string(r.State), strings.Join(r.Targets, " "), r.File}
			}), err)
		},
	}
	addFormat(cmd, &format)
	addDir(cmd, &dir)
	cmd.Flags().StringVar(&form, "from", "", "`FORM` of the files: export, touchstone, hyperfine, critest or gobench (default: by their beginning)")
	return cmd
}

// importFile adds all runs of a file to the results of a folder, or none. It reads the file twice: the first time checks all of it before
// the folder changes.
func importFile(ctx context.Context, dir, file string, want []textfile.Kind, stdin io.Reader) ([]importedRun, error) {
	runs, err := importRuns(ctx, dir, file, want, stdin)
	if err != nil {
		return nil, fmt.Errorf("import %s: %w", file, err)
	}
	return runs, nil
}

func importRuns(ctx context.Context, dir, file string, want []textfile.Kind, stdin io.Reader) (runs []importedRun, err error) {
	f, err := openExport(ctx, file, stdin, want...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	read, err := translate(f, file, want)
	if err != nil {
		return nil, err
	}
	found := listing{ctx: ctx, file: file}
	if err := read(&found); err != nil {
		return nil, err
	}
	if len(found.runs) == 0 {
		return nil, errors.New("it has no run")
	}
	additions, err := addRuns(ctx, dir, read)
	if err != nil {
		return nil, fmt.Errorf("no run was added: %w", err)
	}
	if len(additions) != len(found.runs) {
		return nil, errors.New("it changed while it was read; compare its runs with the runs of the folder")
	}
	for i := range additions {
		found.runs[i].Came = "there already"
		if additions[i] {
			found.runs[i].Came = "new"
		}
	}
	return found.runs, nil
}

// listing lists the runs of a document. It holds no trials.
type listing struct {
	ctx  context.Context
	file string
	runs []importedRun
}

// Begin implements result.Visitor.
func (l *listing) Begin(r result.Run) error {
	run := importedRun{File: l.file, ID: r.ID, Machine: r.Host.Hostname, Arch: r.Host.Arch, Started: r.Started, Targets: []string{}, State: r.State, Caveats: r.Caveats}
	for _, t := range r.Targets {
		run.Targets = append(run.Targets, t.Name)
	}
	l.runs = append(l.runs, run)
	return context.Cause(l.ctx)
}

// Trial implements result.Visitor.
func (l *listing) Trial(result.Trial) error {
	l.runs[len(l.runs)-1].Trials++
	return context.Cause(l.ctx)
}

// Trace implements result.Visitor.
func (l *listing) Trace(result.Trace) error { return context.Cause(l.ctx) }

// End implements result.Visitor.
func (*listing) End() error { return nil }

// openExport opens a file of touchstone export, or of another kind. It copies the text of a pipe, and of a file in another encoding, to a file
// without a name, since it is read twice. It stops to wait for a pipe when ctx ends.
func openExport(ctx context.Context, file string, stdin io.Reader, want ...textfile.Kind) (*os.File, error) {
	type outcome struct {
		f   *os.File
		err error
	}
	outcomes := make(chan outcome, 1)
	go func() {
		f, err := openOrCopy(file, stdin, want)
		outcomes <- outcome{f, err}
	}()
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case o := <-outcomes:
		return o.f, o.err
	}
}

func openOrCopy(file string, stdin io.Reader, want []textfile.Kind) (*os.File, error) {
	if file == standardInput {
		text, err := textfile.NewReader(stdin, want...)
		if err != nil {
			return nil, err
		}
		return copied(text, want)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() && info.Size() > result.MaxDocument {
		err = fmt.Errorf("read result document: %w", result.ErrTooLarge)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	text, err := textfile.NewReader(f, want...)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if info.Mode().IsRegular() && !text.Decoded {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return f, nil
	}
	c, err := copied(text, want)
	return c, errors.Join(err, f.Close())
}

// copied copies a document to a file without a name. Other input may have no end. If it begins like neither a JSON object nor a list nor benchmarks of Go,
// copied copies only its beginning, and Read names the fault.
func copied(r *textfile.Reader, want []textfile.Kind) (*os.File, error) {
	f, err := os.CreateTemp("", "touchstone-import-*")
	if err != nil {
		return nil, fmt.Errorf("make a copy: %w; set TMPDIR to a directory that you can write to", err)
	}
	buffer, limit := bufio.NewReader(r), int64(result.MaxDocument+1) // Read refuses what is longer
	head, _ := buffer.Peek(buffer.Size())                            // the copy reports an error
	if isOnly(want, textfile.GoBench) || r.Kind == textfile.GoBench {
		limit = benchfile.MaxSize + 1
	} else if first := bytes.TrimLeft(head, " \t\r\n"); len(first) > 0 && first[0] != '{' && first[0] != '[' {
		limit = int64(len(head))
	}
	if err = os.Remove(f.Name()); err == nil {
		_, err = io.Copy(f, io.LimitReader(buffer, limit))
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// isOnly reports whether the user named a form, and it is this one.
func isOnly(want []textfile.Kind, form textfile.Kind) bool { return len(want) == 1 && want[0] == form }

// translate returns a function that passes the runs of a file to a visitor. It reads the file from its start. Files of other programs are small enough to be read
// at once.
func translate(f io.ReadSeeker, file string, want []textfile.Kind) (read func(result.Visitor) error, err error) {
	buffer := bufio.NewReader(f)
	head, err := buffer.Peek(buffer.Size())
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	form := textfile.KindOf(head)
	switch {
	case len(want) == 1:
		form = want[0]
	case form == "" && touchstone.IsJSON(head):
		form = textfile.Theirs
	}
	isOther := slices.Contains(benchfile.Kinds(), form)
	if form != textfile.Theirs && !isOther {
		return func(v result.Visitor) error {
			_, err := result.Read(f, v)
			return err
		}, nil
	}
	data, err := io.ReadAll(io.LimitReader(buffer, max(touchstone.MaxSize, benchfile.MaxSize)+1))
	if err != nil {
		return nil, err
	}
	name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	if file == standardInput {
		name = "standard input"
	}
	var runs []result.Run
	if isOther {
		runs, err = benchfile.Decode(form, data, name)
	} else {
		runs, err = touchstone.Decode(data, name, described)
	}
	return func(v result.Visitor) error { return result.Visit(v, runs...) }, err
}

// addRuns adds the runs of a document to the results of a folder, and reports which of them are new. It creates the folder if necessary.
func addRuns(ctx context.Context, dir string, read func(result.Visitor) error) (additions []bool, err error) {
	db, err := openResults(ctx, dir, store.Open)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return db.Import(ctx, read)
}
