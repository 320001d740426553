package programs

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/workload"
)

const fio = "/usr/bin/fio"

var fioTool = Tool{Name: "fio", Packages: []string{"fio"}, Files: []string{fio}}

// Fio is the file of fio's runs, in the directory Dir. fio reads and writes one block after the other, with pread and pwrite,
// which every sandbox has. It does not drop the file from the page cache: fio's own way to do so works on native only.
type Fio struct {
	Dir string
	// MiB is the size of the file.
	MiB int
	// Direct requests to bypass the page cache (O_DIRECT). A sandbox may silently ignore the flag.
	Direct bool
}

// FioMode is the order of fio's accesses, by fio's name.
type FioMode string

// The modes. FioWrite makes the file; the others need it.
const (
	FioRead      FioMode = "read"
	FioWrite     FioMode = "write"
	FioRandRead  FioMode = "randread"
	FioRandWrite FioMode = "randwrite"
)

func (m FioMode) writes() bool { return m == FioWrite || m == FioRandWrite }

// FioFile is the name of fio's file.
const FioFile = "touchstone.fio"

// fioVersion begins the versions that parse accepts.
const fioVersion = "fio-3."

// FioRun is one run through the file.
type FioRun struct {
	Mode FioMode
	// Metric is the name of the value, over the whole time of the run. The time includes the sync at the end of writing.
	Metric string
	// Unit is BytesPerSecond or PerSecond: requests a second.
	Unit workload.Unit
	// Block is the size of a request in bytes.
	Block int
	// For is the longest time of the run. With 0 the run ends with the file. With Again the run does not end with the file but
	// starts again at its beginning.
	For   time.Duration
	Again bool
}

// Run calls fio, which makes the runs one after the other.
func (f Fio) Run(runs ...FioRun) workload.Program {
	args := []string{
		fio, "--output-format=json", "--name=global", "--directory=" + f.Dir, "--filename=" + FioFile,
		"--thread", "--ioengine=psync", "--invalidate=0", "--fallocate=none", "--randseed=1", "--size=" + strconv.Itoa(f.MiB) + "m",
	}
	if f.Direct {
		args = append(args, "--direct=1")
	}
	for _, run := range runs {
		args = append(args, "--name="+run.Metric, "--stonewall", "--rw="+string(run.Mode), "--bs="+strconv.Itoa(run.Block))
		if run.Mode.writes() {
			args = append(args, "--end_fsync=1")
		}
		if run.For > 0 {
			args = append(args, "--runtime="+workload.Milliseconds(run.For)+"ms")
		}
		if run.Again {
			args = append(args, "--time_based")
		}
	}
	return workload.Program{Args: args, Parse: reading("fio's report", func(stdout []byte) (workload.Values, error) { return f.parse(stdout, runs) })}
}

// fioReport has the fields of fio's JSON that are used. A nil pointer is a missing field.
type fioReport struct {
	Version string   `json:"fio version"`
	Jobs    []fioJob `json:"jobs"`
}

type fioJob struct {
	Name    string   `json:"jobname"`
	Error   *int     `json:"error"`
	Read    *fioSide `json:"read"`
	Write   *fioSide `json:"write"`
	Options struct {
		Mode  FioMode `json:"rw"`
		Block string  `json:"bs"`
	} `json:"job options"`
}

type fioSide struct {
	Bytes     *uint64  `json:"io_bytes"`
	Count     *uint64  `json:"total_ios"`
	Short     *uint64  `json:"short_ios"`
	Dropped   *uint64  `json:"drop_ios"`
	MS        *uint64  `json:"runtime"`
	PerSecond *float64 `json:"iops"`
}

// parse reads fio's report.
func (f Fio) parse(stdout []byte, runs []FioRun) (workload.Values, error) {
	var report fioReport
	if err := unmarshal(stdout, &report); err != nil {
		return nil, err
	}
	if !strings.HasPrefix(report.Version, fioVersion) {
		return nil, fmt.Errorf("it has the version %q instead of %s", workload.Excerpt(report.Version), fioVersion)
	}
	if len(report.Jobs) != len(runs) {
		return nil, fmt.Errorf("it has %d jobs instead of %d", len(report.Jobs), len(runs))
	}
	values := workload.Values{}
	for i, run := range runs {
		value, err := f.check(report.Jobs[i], run)
		if err != nil {
			return nil, fmt.Errorf("job %s: %w", run.Metric, err)
		}
		values[run.Metric] = value
	}
	return values, nil
}

// check returns the value of a job, or an error if the job differs from the requested run.
func (f Fio) check(job fioJob, run FioRun) (float64, error) {
	if job.Error == nil || *job.Error != 0 {
		return 0, errors.New("it has an error, or the field for errors is missing")
	}
	if job.Name != run.Metric || job.Options.Mode != run.Mode || job.Options.Block != strconv.Itoa(run.Block) {
		return 0, fmt.Errorf("it is another job: %q, mode %q with blocks of %q",
			workload.Excerpt(job.Name), workload.Excerpt(string(job.Options.Mode)), workload.Excerpt(job.Options.Block))
	}
	side, counterpart := job.Read, job.Write
	if run.Mode.writes() {
		side, counterpart = counterpart, side
	}
	if !side.whole() || !counterpart.whole() {
		return 0, errors.New("a number is missing: the report has another version")
	}
	if *counterpart.Count != 0 {
		return 0, fmt.Errorf("mode %s made %d requests of the other kind", run.Mode, *counterpart.Count)
	}
	return side.check(run, uint64(f.MiB)<<20)
}

func (s *fioSide) whole() bool {
	return s != nil && s.Bytes != nil && s.Count != nil && s.Short != nil && s.Dropped != nil && s.MS != nil && s.PerSecond != nil
}

// check checks the side of a run, on a file of size bytes, and returns its value.
func (s *fioSide) check(run FioRun, size uint64) (float64, error) {
	block := uint64(run.Block)
	seconds := float64(*s.MS) / 1000
	const share = 0.95 // fio may end this much before its time
	switch {
	case *s.Count == 0 || *s.MS == 0:
		return 0, errors.New("it completed no request in its time")
	case *s.Short != 0 || *s.Dropped != 0:
		return 0, fmt.Errorf("%d requests were short and %d were dropped", *s.Short, *s.Dropped)
	case *s.Bytes/block != *s.Count || *s.Bytes%block != 0:
		return 0, fmt.Errorf("%d requests of %d bytes are not %d bytes", *s.Count, block, *s.Bytes)
	case run.For == 0 && *s.Bytes != size, !run.Again && *s.Bytes > size:
		return 0, fmt.Errorf("%d bytes were read or written of a file of %d", *s.Bytes, size)
	case (run.Again || run.For > 0 && *s.Bytes < size) && seconds < share*run.For.Seconds():
		return 0, fmt.Errorf("it ended after %v s, before its time of %v and its file of %d bytes", seconds, run.For, size)
	}
	perSecond := float64(*s.Count) / seconds
	if math.Abs(*s.PerSecond-perSecond) > 0.01*perSecond {
		return 0, fmt.Errorf("%d requests in %v s are not %v a second", *s.Count, seconds, *s.PerSecond)
	}
	if run.Unit == workload.PerSecond {
		return perSecond, nil
	}
	return float64(*s.Bytes) / seconds, nil
}

// Lines calls fio for one run that starts again at the end of its file, and that reports its progress at an interval for
// FioReports. fio makes the file first if it does not exist.
func (f Fio) Lines(run FioRun, interval time.Duration) []string {
	args := []string{
		fio, "--output-format=json+", "--status-interval=" + workload.Milliseconds(interval) + "ms", "--name=" + run.Metric, "--directory=" + f.Dir,
		"--filename=" + FioFile, "--thread", "--ioengine=psync", "--invalidate=0", "--fallocate=none", "--randseed=1",
		"--size=" + strconv.Itoa(f.MiB) + "m", "--rw=" + string(run.Mode), "--bs=" + strconv.Itoa(run.Block),
		"--time_based", "--runtime=" + workload.Milliseconds(run.For) + "ms",
	}
	if f.Direct {
		args = append(args, "--direct=1")
	}
	return args
}

// FioReports reads the reports of the program that Lines calls.
type FioReports struct {
	Mode FioMode

	report []string
	bytes  uint64
	bins   map[string]uint64
}

// FioProgress is the work of fio between two reports: its requests by their time in seconds.
type FioProgress struct {
	Bytes    float64
	Requests map[float64]float64
}

// fioCounters has the counters of a report. They count from the start of the run.
type fioCounters struct {
	Bytes   *uint64 `json:"io_bytes"`
	Latency *struct {
		Bins map[string]uint64 `json:"bins"`
	} `json:"clat_ns"`
}

// Line reads a line without its end. It returns true with the last line of a report.
func (f *FioReports) Line(line string) (FioProgress, bool, error) {
	switch {
	case line == "" && len(f.report) == 0:
		return FioProgress{}, false, nil
	case len(f.report) == 0 && line != "{":
		return FioProgress{}, false, fmt.Errorf("read fio's report: it begins with %q", workload.Excerpt(line))
	}
	f.report = append(f.report, line)
	if line != "}" {
		return FioProgress{}, false, nil
	}
	text := strings.Join(f.report, "\n")
	f.report = f.report[:0]
	p, err := f.read(text)
	if err != nil {
		return FioProgress{}, false, fmt.Errorf("read fio's report: %w", err)
	}
	return p, true, nil
}

func (f *FioReports) read(text string) (FioProgress, error) {
	var report struct {
		Version string `json:"fio version"`
		Jobs    []struct {
			Error *int         `json:"error"`
			Read  *fioCounters `json:"read"`
			Write *fioCounters `json:"write"`
		} `json:"jobs"`
	}
	if err := unmarshal([]byte(text), &report); err != nil {
		return FioProgress{}, err
	}
	if !strings.HasPrefix(report.Version, fioVersion) || len(report.Jobs) != 1 {
		return FioProgress{}, fmt.Errorf("it has the version %q with %d jobs", workload.Excerpt(report.Version), len(report.Jobs))
	}
	job := report.Jobs[0]
	side := job.Read
	if f.Mode.writes() {
		side = job.Write
	}
	if job.Error == nil || *job.Error != 0 || side == nil || side.Bytes == nil || side.Latency == nil {
		return FioProgress{}, errors.New("it has an error, or a counter is missing")
	}
	p := FioProgress{Requests: map[float64]float64{}}
	for bin, count := range side.Latency.Bins {
		ns, err := workload.Whole(bin)
		if err != nil {
			return FioProgress{}, err
		}
		if count < f.bins[bin] {
			return FioProgress{}, errors.New("a counter falls")
		}
		if growth := count - f.bins[bin]; growth > 0 {
			p.Requests[float64(ns)/1e9] = float64(growth)
		}
	}
	if *side.Bytes < f.bytes {
		return FioProgress{}, errors.New("a counter falls")
	}
	p.Bytes = float64(*side.Bytes - f.bytes)
	f.bytes, f.bins = *side.Bytes, side.Latency.Bins
	return p, nil
}
