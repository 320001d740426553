// Command million measures the report of a run of 10⁶ samples: time, memory, size of the page, and the time that a browser takes to
// open it. The samples are invented.
//
//	million [-divide N] TOUCHSTONE   with the binary TOUCHSTONE
//
// -divide makes the runs smaller by the factor N, to show that the measurement works. Such figures have no limits.
//
// The exit code is 1 if a figure is beyond its limit. The time to open is the difference to a blank page, in headless Chromium with a
// screenshot. Without Chromium it is not measured.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/store"
)

// The limits.
const (
	mostTime   = 3 * time.Second
	mostMemory = 300 // MiB
	mostPage   = 5.0 // MB
	mostOpen   = 2 * time.Second
)

// opens is the number of times that the browser opens a page. The fastest one counts, since the start of a browser varies by more than a page.
const opens = 3

// errBeyond is the error of a printed figure beyond its limit.
var errBeyond = errors.New("a figure is beyond its limit")

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "million: %v\n", err)
		os.Exit(1)
	}
}

func run(w io.Writer, args []string) (err error) {
	flags := flag.NewFlagSet("million", flag.ContinueOnError)
	divide := flags.Int("divide", 1, "make the runs smaller by this factor")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 || *divide < 1 {
		return fmt.Errorf("want a binary and a factor of at least 1, not %q and %d; usage: million [-divide N] TOUCHSTONE", flags.Args(), *divide)
	}
	folder, err := os.MkdirTemp("", "million-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	browser := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil && browser == "" {
			browser = path
		}
	}
	fmt.Fprintf(w, "limits: report %v and %d MiB, page %.0f MB, opened in %v\n", mostTime, mostMemory, mostPage, mostOpen)
	var errs []error
	for _, l := range reporttest.Millions() {
		err := measure(w, smaller(l, *divide), flags.Arg(0), browser, folder)
		if *divide > 1 && errors.Is(err, errBeyond) {
			err = nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// smaller returns a shape with fewer values, or with fewer blocks if a block has a single one.
func smaller(l reporttest.Large, divide int) reporttest.Large {
	if l.Values > 1 {
		l.Values = max(l.Values/divide, 1)
	} else {
		l.Blocks = max(l.Blocks/divide, 1)
	}
	return l
}

// measure prints the figures of one shape.
func measure(w io.Writer, l reporttest.Large, touchstone, browser, folder string) error {
	folder = filepath.Join(folder, l.Name)
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	if err := write(l, folder); err != nil {
		return err
	}
	page := filepath.Join(folder, "report.html")
	took, state, err := timed(touchstone, "report", "-d", folder, "-o", "html", "-O", page)
	if err != nil {
		return err
	}
	info, err := os.Stat(page)
	if err != nil {
		return err
	}
	megabytes := float64(info.Size()) / 1e6
	memory := state.SysUsage().(*syscall.Rusage).Maxrss >> 10 // MiB
	fmt.Fprintf(w, "%s, %d samples in %d trials: report %.2f s (%.2f s of CPU) and %d MiB, page %.2f MB, ",
		l.Name, l.Samples(), l.Targets*l.Benchmarks*l.Blocks, took.Seconds(), (state.UserTime() + state.SystemTime()).Seconds(), memory, megabytes)
	exceeds := took > mostTime || memory > mostMemory || megabytes > mostPage
	if browser == "" {
		fmt.Fprintln(w, "time to open not measured: install chromium")
	} else {
		openTime, err := open(browser, page, folder)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "opened in %.2f s\n", openTime.Seconds())
		exceeds = exceeds || openTime > mostOpen
	}
	if exceeds {
		return fmt.Errorf("%s: %w", l.Name, errBeyond)
	}
	return nil
}

// write writes the results file of a run.
func write(l reporttest.Large, folder string) (err error) {
	db, err := store.Open(context.Background(), filepath.Join(folder, "touchstone.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	_, err = db.Import(context.Background(), l.Read)
	return err
}

// timed runs a command.
func timed(name string, args ...string) (took time.Duration, state *os.ProcessState, err error) {
	cmd := exec.Command(name, args...)
	start := time.Now()
	out, err := cmd.CombinedOutput()
	took = time.Since(start)
	if err != nil {
		return 0, nil, fmt.Errorf("%s: %w: %s", filepath.Base(name), err, out)
	}
	return took, cmd.ProcessState, nil
}

// open returns the time that a browser takes for a page, above the time for a blank page.
func open(browser, page, folder string) (time.Duration, error) {
	blank := filepath.Join(folder, "blank.html")
	if err := os.WriteFile(blank, []byte("<!doctype html><title>blank</title>"), 0o600); err != nil {
		return 0, err
	}
	minimum := func(file string) (time.Duration, error) {
		var times []time.Duration
		for range opens {
			took, _, err := timed(browser, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+filepath.Join(folder, "browser"),
				"--screenshot="+filepath.Join(folder, "page.png"), "file://"+file)
			if err != nil {
				return 0, err
			}
			times = append(times, took)
		}
		return slices.Min(times), nil
	}
	empty, err := minimum(blank)
	if err != nil {
		return 0, err
	}
	full, err := minimum(page)
	return max(0, full-empty), err
}
