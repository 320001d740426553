package programs

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/workload"
)

// Busybox is the path of busybox in the workload image.
const Busybox = "/usr/bin/busybox"

// FileIO are the files of sysbench's fileio, in the current directory.
type FileIO struct {
	Files int
	// MiB is the size of each file.
	MiB int
	// Requests is the number of requests in a random mode. A sequential mode processes all files once.
	Requests int
	Syncs    Syncs
}

// Syncs are the syncs of all files in a mode that writes.
type Syncs struct {
	// Every is the number of writes between two syncs; 0 is no sync between writes.
	Every int
	// Random restricts Every to random modes. sysbench 0.4, which espe and nishimura used, ignored --file-fsync-freq in sequential
	// modes. Version 1.0 does not.
	Random bool
	// End is a sync at the end of each mode, within its time.
	End bool
}

// every returns the number of writes of a mode between two syncs; 0 is no sync between them.
func (f FileIO) every(mode FileMode) int {
	if !mode.writes() || f.Syncs.Random && !mode.random() {
		return 0
	}
	return f.Syncs.Every
}

// FileMode is a test mode of sysbench's fileio, by sysbench's name.
type FileMode string

// The modes. SeqWrite makes the files; the others need them.
const (
	SeqRead    FileMode = "seqrd"
	RndRead    FileMode = "rndrd"
	SeqWrite   FileMode = "seqwr"
	SeqRewrite FileMode = "seqrewr"
	RndWrite   FileMode = "rndwr"
)

// fileBlock is the size of a request in bytes, the same as in espe; it is sysbench's default.
const fileBlock = 16 << 10

// Bytes is the size of all files together.
func (f FileIO) Bytes() int64 { return int64(f.Files) * int64(f.MiB) << 20 }

// options are common to all commands of sysbench. The seed gives all targets the same random positions.
func (f FileIO) options() []string {
	return []string{
		"--file-num=" + strconv.Itoa(f.Files), "--file-total-size=" + strconv.FormatInt(f.Bytes(), 10),
		"--file-block-size=" + strconv.Itoa(fileBlock), "--rand-seed=1",
	}
}

// Prepare makes the files. It has no values.
func (f FileIO) Prepare() workload.Program {
	return workload.Program{Args: append(append([]string{Sysbench, "fileio"}, f.options()...), "prepare"), Parse: reading("sysbench's report", f.prepared)}
}

// prepared checks the last line of sysbench's prepare.
func (f FileIO) prepared(stdout []byte) (workload.Values, error) {
	lines, err := completeLines(stdout)
	if err != nil {
		return nil, err
	}
	last := lines[len(lines)-1]
	if want := fmt.Sprintf("%d bytes written in ", f.Bytes()); !strings.HasPrefix(last, want) {
		return nil, fmt.Errorf("its last line is %q instead of %q", workload.Excerpt(last), want)
	}
	return workload.Values{}, nil
}

// Empty makes all files again, with their size and without data, in two programs. It has no values.
//
// sysbench 0.4 created missing files, of size 0. Version 1.0 refuses files that are too short. So the files are holes.
func (f FileIO) Empty() []workload.Program {
	var programs []workload.Program
	for _, size := range []int64{0, int64(f.MiB) << 20} {
		args := []string{Busybox, "truncate", "-s", strconv.FormatInt(size, 10)}
		for i := range f.Files {
			args = append(args, "test_file."+strconv.Itoa(i)) // sysbench's names
		}
		programs = append(programs, workload.Program{Args: args, Parse: reading("truncate's output", silent(""))})
	}
	return programs
}

// Run measures a mode. The metric is the total time in seconds of a fixed amount of work, with its syncs. Modern
// sysbench would stop after ten seconds by default.
func (f FileIO) Run(mode FileMode, metric string) workload.Program {
	events := f.requests(mode) + f.syncs(mode)
	parse := func(r *sysbenchReport) (workload.Values, error) {
		return workload.Values{metric: r.seconds}, f.check(r, mode)
	}
	return sysbench("fileio", 1, events, parse, append(f.options(),
		"--file-test-mode="+string(mode), "--file-io-mode=sync", "--file-fsync-freq="+strconv.Itoa(f.every(mode)),
		"--file-fsync-end="+onOff(f.Syncs.End))...)
}

func onOff(flag bool) string {
	if flag {
		return "on"
	}
	return "off"
}

// requests returns the number of reads or writes of a mode.
func (f FileIO) requests(mode FileMode) int {
	if mode.random() {
		return f.Requests
	}
	return int(f.Bytes() / fileBlock)
}

func (m FileMode) writes() bool { return m != SeqRead && m != RndRead }

func (m FileMode) random() bool { return m == RndRead || m == RndWrite }

// syncs returns the number of sysbench's events that are syncs of a file. Syncs count as events like requests, except for the
// syncs at the end. If they were left out, a sequential write would end before the last file, and the next mode would fail.
func (f FileIO) syncs(mode FileMode) int {
	interval := f.every(mode)
	if interval == 0 {
		return 0
	}
	return f.Files * ((f.requests(mode) - 1) / interval)
}

// check returns an error if the report belongs to another mode, or its numbers contradict each other.
func (f FileIO) check(r *sysbenchReport, mode FileMode) (err error) {
	const operations, throughput = "File operations", "Throughput"
	var reads, writes, syncs, readMiB, wroteMiB float64
	for _, field := range []struct {
		section, name string
		value         *float64
	}{
		{operations, "reads/s", &reads},
		{operations, "writes/s", &writes},
		{operations, "fsyncs/s", &syncs},
		{throughput, "read, MiB/s", &readMiB},
		{throughput, "written, MiB/s", &wroteMiB},
	} {
		if *field.value, err = r.number(field.section, field.name); err != nil {
			return err
		}
	}
	does, counterpart, mib, otherMiB := reads, writes, readMiB, wroteMiB
	if mode.writes() {
		does, counterpart, mib, otherMiB = writes, reads, wroteMiB, readMiB
	}
	const rounding = 0.0051 // of all of them
	synced := mode.writes() && (f.Syncs.End || f.syncs(mode) > 0)
	switch {
	case does == 0 || counterpart != 0 || otherMiB != 0 || (syncs > 0) != synced:
		return fmt.Errorf("mode %s did %v reads, %v writes and %v syncs a second", mode, reads, writes, syncs)
	case math.Abs(mib-does*fileBlock/(1<<20)) > 2*rounding:
		return fmt.Errorf("%v requests of %d bytes a second are not %v MiB", does, fileBlock, mib)
	}
	return nil
}
