package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/touchstone-bench/touchstone/internal/export"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
)

// mostNotes is the largest number of printed notes about an export.
const mostNotes = 20

type exportOptions struct {
	dir, file          string
	format             format
	baseline           string
	showEnv, anonymous bool
}

func (a *App) exportCommand() *cobra.Command {
	var opts exportOptions
	cmd := &cobra.Command{
		Use:   "export [RUN...]",
		Short: "Write runs with all their samples, for other programs",
		Long: `Writes runs. Name a run by its ID, the beginning of its ID, or "latest", which is the
default. docs/formats.md explains the formats:

  json            the plan, the facts about the host, and every trial with its phases
                  and samples; the schema is docs/schema/result.schema.json
  csv, tsv        a row for each sample
  benchfmt        Go's benchmark format, for benchstat: a line for each trial
  openmetrics     medians with intervals, for Prometheus
  bmf             medians with intervals of one run, for Bencher
  conbench        all values of each metric, for Conbench
  github-action   medians of one run for github-action-benchmark, in two files: -O STEM
                  writes STEM-smaller-is-better.json and STEM-bigger-is-better.json

Standard error has what the format cannot express, such as cells without a value.

Values of environment variables in the plan are left out unless you give --show-env.
--anonymous also leaves out the host name, addresses of other machines, user names, paths,
the kernel's command line, and all text from programs: outputs and reasons of failures.
Names of plans, benchmarks and runtimes stay.`,
		Example: `  touchstone export > run.json
  touchstone export 20261120 latest -O runs.json
  touchstone export --anonymous -O public.json
  touchstone export -o csv -O samples.csv
  touchstone export -o github-action -O benchmark`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, refs []string) error {
			if len(refs) == 0 {
				refs = []string{store.Latest}
			}
			f, err := opts.check(len(refs))
			if err != nil {
				return usage(err)
			}
			runs, err := a.loadAll(cmd.Context(), opts.dir, refs, opts.showEnv)
			if err != nil {
				return err
			}
			if err := rebase(runs, opts.baseline); err != nil {
				return err
			}
			if opts.anonymous {
				for i := range runs {
					runs[i] = runs[i].Anonymous(userNames()...)
				}
			}
			if f == nil {
				return a.export(opts.file, runs...)
			}
			return a.exportAs(f, opts.file, runs)
		},
	}
	formats := []format{formatJSON}
	for _, f := range export.Formats() {
		formats = append(formats, format(f.Name))
	}
	addDir(cmd, &opts.dir)
	addFile(cmd, &opts.file)
	addOutput(cmd, &opts.format, "`FORMAT`", formats...)
	addShowEnv(cmd, &opts.showEnv)
	addBaseline(cmd, &opts.baseline)
	cmd.Flags().BoolVar(&opts.anonymous, "anonymous", false, "leave out host name, addresses, user names, paths and output of programs")
	return cmd
}

// check returns the format, or nil for the JSON of runs.
func (opts *exportOptions) check(runs int) (*export.Format, error) {
	if opts.anonymous && opts.showEnv {
		return nil, errors.New("--anonymous and --show-env exclude each other; leave out one of them")
	}
	formats := export.Formats()
	index := slices.IndexFunc(formats, func(f export.Format) bool { return f.Name == string(opts.format) })
	if index < 0 {
		return nil, nil
	}
	f := &formats[index]
	if f.Single && runs > 1 {
		return nil, fmt.Errorf("-o %s has no place for the names of runs: name one run", f.Name)
	}
	if len(f.Parts) > 1 && opts.file == "" {
		return nil, fmt.Errorf("-o %s writes %d files: name the beginning of their names with -O, as in -O benchmark", f.Name, len(f.Parts))
	}
	return f, nil
}

// export writes runs with their trials as JSON to a file, see writeTo.
func (a *App) export(file string, runs ...result.Run) error {
	doc := result.Document{Generator: tool(), Runs: runs}
	return a.writeTo(file, func(w io.Writer) error { return result.Encode(jsonWriter(w), doc) })
}

// exportAs writes runs in a format, and the notes about it to standard error. A part without content is not written.
func (a *App) exportAs(f *export.Format, file string, runs []result.Run) error {
	source := export.New(runs)
	for _, part := range f.Parts {
		path, write := file, part.Write
		if part.Suffix != "" {
			var content bytes.Buffer
			if err := part.Write(&content, source); err != nil {
				return err
			}
			if content.Len() == 0 {
				continue
			}
			path = strings.TrimSuffix(file, ".json") + part.Suffix
			write = func(w io.Writer, _ *export.Source) error {
				_, err := content.WriteTo(w)
				return err
			}
		}
		err := a.writeTo(path, func(w io.Writer) error {
			if f.JSON {
				w = jsonWriter(w)
			}
			return write(w, source)
		})
		if err != nil {
			return err
		}
	}
	notes := source.Notes()
	for i, note := range notes {
		if i == mostNotes && len(notes) > mostNotes+1 {
			fmt.Fprintf(a.env.Stderr, "and %d more notes\n", len(notes)-mostNotes)
			break
		}
		fmt.Fprintln(a.env.Stderr, note)
	}
	return nil
}
