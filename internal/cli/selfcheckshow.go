package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/experiment"
	"github.com/touchstone-bench/touchstone/internal/host"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/report/selfcheck"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/textfile"
	"github.com/touchstone-bench/touchstone/internal/trust"
)

// selfcheckVersion is the schema version of a selfcheck.
const selfcheckVersion = 1

// selfcheckDocument is a selfcheck as JSON.
type selfcheckDocument struct {
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
	selfcheck.Check
}

// concludeSelfcheck judges the runs, and shows and stores the result.
func (a *App) concludeSelfcheck(c *experiment.Selfcheck, opts selfcheckOptions) error {
	d := selfcheckDocument{
		Kind: "touchstone-selfcheck", Version: selfcheckVersion, Tool: tool(), Date: time.Now().UTC().Truncate(time.Second), Host: c.Pilot.Host,
		Target: c.Target.String(), Binary: c.Binary, Runtime: c.Pilot.Targets[0].Version, Blocks: c.Blocks, Spent: c.Spent.Seconds(), Runs: []string{},
		Check: c.Check(),
	}
	d.Host.Selfcheck = nil
	for _, r := range c.Runs {
		d.Runs = append(d.Runs, r.ID)
	}
	if err := a.printSelfcheck(opts.format, d); err != nil {
		return err
	}
	file, err := keepSelfcheck(d)
	if err != nil {
		return fmt.Errorf("store the selfcheck: %w", err)
	}
	fmt.Fprintf(a.env.Stderr, "\nselfcheck %s, runs %s\n", file, filepath.Join(opts.dir, databaseName))
	return nil
}

// printSelfcheck prints one selfcheck.
func (a *App) printSelfcheck(f format, d selfcheckDocument) error {
	w := a.env.Stdout
	if f == formatJSON {
		return f.print(w, d, nil, nil)
	}
	fmt.Fprintf(w, "%s  %s  %s\n", d.Target, oneLine(d.Runtime), d.Date.Local().Format(time.DateTime))
	fmt.Fprintf(w, "%d runs of %d blocks, %v\n\n", len(d.Runs), d.Blocks, report.RoundedTime(time.Duration(d.Spent*float64(time.Second))))
	fmt.Fprintf(w, "False alarms: %d of %d comparisons of the runtime with itself; about %.1f are expected by chance.\n\n",
		d.Alarms.Shown, d.Alarms.Comparisons, 0.05*float64(d.Alarms.Comparisons))
	var rows [][]string
	for _, found := range d.Delays {
		rows = append(rows, []string{
			found.Verb, string(found.Kind), seconds(&found.Delay), report.Percent(found.Share), fmt.Sprintf("%d of %d", found.Found, found.Runs), seconds(found.Measured),
		})
	}
	if err := f.print(w, d, []string{"DELAYED", "BY", "DELAY", "SHARE", "FOUND IN RUNS", "MEASURED"}, rows); err != nil {
		return err
	}
	for _, o := range d.Operations {
		if !slices.ContainsFunc(d.Smallest, func(s selfcheck.Smallest) bool { return s.Verb == o.Verb }) {
			fmt.Fprintf(w, "No delay of %s: the engine does not call the runtime in it.\n", o.Verb)
		}
	}
	fmt.Fprintln(w)
	rows = nil
	for _, s := range d.Smallest {
		share := report.None
		if s.Share != nil {
			share = report.Percent(*s.Share)
		}
		rows = append(rows, []string{s.Verb, string(s.Kind), seconds(s.Delay), share})
	}
	if err := f.print(w, d, []string{"SMALLEST FOUND", "BY", "DELAY", "SHARE"}, rows); err != nil {
		return err
	}
	fmt.Fprintln(w)
	rows = nil
	for _, o := range d.Operations {
		calls := report.None
		if o.Calls > 0 {
			calls = strconv.FormatFloat(o.Calls, 'g', 3, 64)
		}
		rows = append(rows, []string{o.Verb, seconds(&o.Median), seconds(&o.Region), calls, seconds(o.Launch), seconds(o.Request)})
	}
	if err := f.print(w, d, []string{"OPERATION", "MEDIAN", "STOPWATCH", "CALLS", "START OF A PROCESS", "EMPTY REQUEST"}, rows); err != nil {
		return err
	}
	fmt.Fprintf(w, "Touchstone's own CPU time: %s of the time of all trials.\n\n", report.Percent(d.Self))
	header, rows := []string{"SMALLEST DELAY SHOWN"}, nil
	for _, m := range selfcheck.Minutes() {
		header = append(header, fmt.Sprintf("IN %d MIN", m))
	}
	for _, l := range d.Limits {
		text := report.None
		if l.Difference != nil {
			text = report.Percent(*l.Difference)
		}
		if n := len(rows); n > 0 && rows[n-1][0] == l.Metric {
			rows[n-1] = append(rows[n-1], text)
		} else {
			rows = append(rows, []string{l.Metric, text})
		}
	}
	if err := f.print(w, d, header, rows); err != nil {
		return err
	}
	fmt.Fprintf(w, "The smallest delay that a verdict shows, in any part of the distribution, with a probability of %s, as a share of the median.\n", report.Percent(stats.Power))
	return nil
}

// seconds spells a time, or a dash.
func seconds(s *float64) string {
	if s == nil {
		return report.None
	}
	return report.Quantity(*s, result.Seconds)
}

// Limits of the file with the selfchecks.
const (
	mostSelfchecks   = 50
	selfcheckMaxSize = 16 << 20 // bytes
)

// selfcheckFile is the path of the file with the user's selfchecks: below XDG_STATE_HOME, or ~/.local/state without it.
func selfcheckFile() (string, error) {
	dir := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(dir) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("%w; set HOME or XDG_STATE_HOME", err)
		}
		dir = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(dir, "touchstone", "selfchecks.json"), nil
}

// readSelfchecks returns the stored selfchecks in the order of their ends, and the path of the file, which may be absent.
func readSelfchecks() (checks []selfcheckDocument, path string, err error) {
	path, err = selfcheckFile()
	if err != nil {
		return nil, "", err
	}
	text, err := trust.ReadFile(path, selfcheckMaxSize)
	var unsafe *trust.Error
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, path, nil
	case errors.As(err, &unsafe):
		return nil, path, fmt.Errorf("read the selfchecks: %w", err)
	case err == nil:
		text, err = textfile.Read(bytes.NewReader(text), selfcheckMaxSize, textfile.Selfchecks)
	}
	if err == nil {
		err = json.Unmarshal(text, &checks)
	}
	if err != nil {
		return nil, path, fmt.Errorf("read %s: %w; remove it, and repeat touchstone selfcheck", path, err)
	}
	for _, d := range checks {
		if d.Version != selfcheckVersion {
			return nil, path, fmt.Errorf("read %s: %w (it has version %d and this touchstone knows %d); %s, or remove the file",
				path, result.ErrVersion, d.Version, selfcheckVersion, result.VersionAdvice)
		}
	}
	return checks, path, nil
}

// storable checks that a selfcheck can be stored, before the measurement. It creates the folder of the stored ones.
func storable() error {
	_, path, err := readSelfchecks()
	if err == nil {
		if _, err = trust.MakeDirectory(filepath.Dir(path)); err == nil {
			_, err = writableFolder("the folder of selfchecks", filepath.Dir(path), 0o700)
		}
		if err != nil {
			err = fmt.Errorf("%w; make it writable, or set XDG_STATE_HOME", err)
		}
	}
	if err != nil {
		return fmt.Errorf("store the selfcheck: %w", err)
	}
	return nil
}

// keepSelfcheck adds a selfcheck to the stored ones, and returns the path of their file.
func keepSelfcheck(d selfcheckDocument) (string, error) {
	checks, path, err := readSelfchecks()
	if err != nil {
		return path, err
	}
	checks = append(checks, d)
	checks = checks[max(0, len(checks)-mostSelfchecks):]
	if _, err := trust.MakeDirectory(filepath.Dir(path)); err != nil {
		return path, err
	}
	return path, replaceFile(path, func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(checks)
	})
}

// lastSelfcheck returns the last selfcheck of this machine for the record of a run, or nil without one. A run of
// fake targets quotes only selfchecks of fake targets. A file that cannot be read is a note: it prevents no run.
func (a *App) lastSelfcheck(p plan.Plan) *result.Selfcheck {
	checks, _, err := readSelfchecks()
	if err != nil {
		a.line("note: " + oneLine(err.Error()))
		return nil
	}
	fakes := slices.ContainsFunc(p.Targets, func(t plan.Pattern) bool { return t.Engine == fake.Name })
	for _, d := range slices.Backward(checks) {
		if strings.HasPrefix(d.Target, fake.Name+"/") != fakes {
			continue
		}
		if facts := host.Facts("/"); d.Host.SameMachine(&facts) {
			s := d.Summary(d.Date, d.Tool.Version, d.Target)
			return &s
		}
	}
	return nil
}

// showSelfchecks prints the stored selfchecks.
func (a *App) showSelfchecks(f format) error {
	checks, path, err := readSelfchecks()
	if err != nil {
		return err
	}
	if f == formatJSON {
		if checks == nil {
			checks = []selfcheckDocument{}
		}
		return f.print(a.env.Stdout, checks, nil, nil)
	}
	if checks == nil {
		return fmt.Errorf("%s does not exist: no selfcheck is stored; make one with touchstone selfcheck", path)
	}
	for i, d := range checks {
		if i > 0 {
			fmt.Fprintln(a.env.Stdout)
		}
		if err := a.printSelfcheck(f, d); err != nil {
			return err
		}
	}
	return nil
}
