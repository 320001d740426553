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
	"strings"
	"time"

	answer "github.com/touchstone-bench/touchstone/internal/answer/selfcheck"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/experiment"
	"github.com/touchstone-bench/touchstone/internal/host"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/report/counts"
	"github.com/touchstone-bench/touchstone/internal/report/selfcheck"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/textfile"
	"github.com/touchstone-bench/touchstone/internal/trust"
)

// concludeSelfcheck shows and stores the result.
func (a *App) concludeSelfcheck(c *experiment.Selfcheck, opts selfcheckOptions) error {
	d := selfcheck.Record{
		Kind: selfcheck.DocumentKind, Version: selfcheck.SchemaVersion, Tool: tool(), Date: time.Now().UTC().Truncate(time.Second), Host: c.Pilot.Host,
		Target: c.Target.String(), Binary: c.Binary, Runtime: c.Pilot.Targets[0].Version, Blocks: c.Blocks, Spent: c.Spent.Seconds(), Runs: []string{},
		Counts: c.Counts, Check: c.Check(),
	}
	d.Host.Selfcheck = nil
	for _, r := range c.Runs {
		d.Runs = append(d.Runs, r.ID)
	}
	if err := a.writeDocument(a.env.Stdout, opts.format, "", answer.Document(&d)); err != nil {
		return err
	}
	file, err := keepSelfcheck(d)
	if err != nil {
		return fmt.Errorf("store the selfcheck: %w", err)
	}
	fmt.Fprintf(a.env.Stderr, "\nselfcheck %s, runs %s\n", file, filepath.Join(opts.dir, databaseName))
	return nil
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
func readSelfchecks() (list []selfcheck.Record, path string, err error) {
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
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		return nil, path, fmt.Errorf("read %s: %w; remove it, and repeat touchstone selfcheck", path, err)
	}
	for _, d := range list {
		if d.Version != selfcheck.SchemaVersion {
			return nil, path, fmt.Errorf("read %s: %w (it has version %d and this touchstone knows %d); %s, or remove the file",
				path, result.ErrVersion, d.Version, selfcheck.SchemaVersion, result.VersionAdvice)
		}
	}
	return list, path, nil
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
func keepSelfcheck(d selfcheck.Record) (string, error) {
	list, path, err := readSelfchecks()
	if err != nil {
		return path, err
	}
	list = append(list, d)
	list = list[max(0, len(list)-mostSelfchecks):]
	if _, err := trust.MakeDirectory(filepath.Dir(path)); err != nil {
		return path, err
	}
	return path, replaceFile(path, func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(list)
	})
}

// lastSelfcheck returns the last selfcheck of this machine for the record of a run, or nil without one. A run of
// fake targets quotes only selfchecks of fake targets. A file that cannot be read is a note: it prevents no run.
func (a *App) lastSelfcheck(p plan.Plan) *result.Selfcheck {
	list, _, err := readSelfchecks()
	if err != nil {
		a.line("note: " + quantity.OneLine(err.Error()))
		return nil
	}
	fakes := slices.ContainsFunc(p.Targets, func(t plan.Pattern) bool { return t.Engine == fake.Name })
	for _, d := range slices.Backward(list) {
		if strings.HasPrefix(d.Target, fake.Name+"/") != fakes {
			continue
		}
		if machine := host.Facts("/"); d.Host.SameMachine(&machine) {
			s := d.Summary(d.Date, d.Tool.Version, d.Target)
			return &s
		}
	}
	return nil
}

// learnedCounts returns a function for the counts of a target that the newest selfcheck of a machine has seen to vary. It returns nil for a
// target without such a selfcheck.
func learnedCounts(machine *result.Host) (func(target string) *counts.Learned, error) {
	list, _, err := readSelfchecks()
	if err != nil {
		return nil, err
	}
	return func(target string) *counts.Learned {
		for _, d := range slices.Backward(list) {
			if d.Target == target && d.Counts != nil && d.Host.SameMachine(machine) {
				return d.Counts
			}
		}
		return nil
	}, nil
}

// showSelfchecks prints the stored selfchecks.
func (a *App) showSelfchecks(f format) error {
	list, path, err := readSelfchecks()
	if err != nil {
		return err
	}
	if list == nil {
		if f != formatJSON {
			return fmt.Errorf("%s does not exist: no selfcheck is stored; make one with touchstone selfcheck", path)
		}
		list = []selfcheck.Record{}
	}
	return a.writeDocument(a.env.Stdout, f, "", answer.Stored(list))
}
