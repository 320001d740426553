package workload

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"time"
)

// FileIO is what sysbench's fileio works on, in the current directory.
type FileIO struct {
	Files int
	// MiB is the size of each file.
	MiB int
	// Requests are those of a random mode. A sequential one goes once through all files.
	Requests int
	// SyncEvery is after how many writes all files are synced; 0 is never. At the end of a mode that writes they are
	// synced always.
	SyncEvery int
}

// FileMode is a test mode of sysbench's fileio, as sysbench spells it.
type FileMode string

// The modes that have a metric. SeqWrite makes the files new; the others need them.
const (
	SeqRead    FileMode = "seqrd"
	RndRead    FileMode = "rndrd"
	SeqWrite   FileMode = "seqwr"
	SeqRewrite FileMode = "seqrewr"
	RndWrite   FileMode = "rndwr"
)

// fileBlock is the size of a request in bytes: sysbench's own, and that of espe.
const fileBlock = 16 << 10

// Bytes is the size of all files together.
func (f FileIO) Bytes() int64 { return int64(f.Files) * int64(f.MiB) << 20 }

// options are those of all of sysbench's commands. The seed gives all targets the same random positions.
func (f FileIO) options() []string {
	return []string{
		"--file-num=" + strconv.Itoa(f.Files), "--file-total-size=" + strconv.FormatInt(f.Bytes(), 10),
		"--file-block-size=" + strconv.Itoa(fileBlock), "--rand-seed=1",
	}
}

// Prepare makes the files. It gives no values.
func (f FileIO) Prepare() Step {
	return Step{
		Args:  append(append([]string{Sysbench, "fileio"}, f.options()...), "prepare"),
		Parse: func(stdout []byte, _ time.Duration) (Values, error) { return nil, f.prepared(stdout) },
	}
}

// prepared checks the last line of sysbench's prepare.
func (f FileIO) prepared(stdout []byte) error {
	text, complete := bytes.CutSuffix(stdout, []byte("\n"))
	if !complete {
		return ErrCutOff
	}
	last := text[bytes.LastIndexByte(text, '\n')+1:]
	if want := fmt.Sprintf("%d bytes written in ", f.Bytes()); !bytes.HasPrefix(last, []byte(want)) {
		return fmt.Errorf("sysbench's last words are %q instead of %q", cut(string(last)), want)
	}
	return nil
}

// Run measures a mode. The value, by the name that is given, is the total time in seconds of a fixed amount of work:
// modern sysbench would stop after ten seconds. It contains the sync at the end.
func (f FileIO) Run(mode FileMode, metric string) Step {
	events := f.requests(mode) + f.syncs(mode)
	args := sysbenchRun("fileio", 1, events, append(f.options(),
		"--file-test-mode="+string(mode), "--file-io-mode=sync", "--file-fsync-freq="+strconv.Itoa(f.SyncEvery), "--file-fsync-end=on")...)
	return Step{Args: args, Parse: func(stdout []byte, _ time.Duration) (Values, error) {
		seconds, err := f.parse(stdout, mode, events)
		if err != nil {
			return nil, err
		}
		return Values{metric: seconds}, nil
	}}
}

// requests is how many reads or writes a mode does.
func (f FileIO) requests(mode FileMode) int {
	if mode == RndRead || mode == RndWrite {
		return f.Requests
	}
	return int(f.Bytes() / fileBlock)
}

func (m FileMode) writes() bool { return m != SeqRead && m != RndRead }

// syncs is how many of sysbench's events are syncs of a file: they count as events as requests do, but for those at the
// end. Without them a sequential write ends before the last file does, which the next mode then complains of.
func (f FileIO) syncs(mode FileMode) int {
	if f.SyncEvery == 0 || !mode.writes() {
		return 0
	}
	return f.Files * ((f.requests(mode) - 1) / f.SyncEvery)
}

// parse reads the report of a run and gives its total time.
func (f FileIO) parse(stdout []byte, mode FileMode, events int) (float64, error) {
	r, err := readSysbench(stdout)
	if err != nil {
		return 0, err
	}
	if err := r.did(events); err != nil {
		return 0, err
	}
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
			return 0, err
		}
	}
	does, other, mib, otherMiB := reads, writes, readMiB, wroteMiB
	if mode.writes() {
		does, other, mib, otherMiB = writes, reads, wroteMiB, readMiB
	}
	const rounded = 0.0051 // of all of them
	switch {
	case does == 0 || other != 0 || otherMiB != 0 || (syncs > 0) != mode.writes():
		return 0, fmt.Errorf("mode %s did %v reads, %v writes and %v syncs a second", mode, reads, writes, syncs)
	case math.Abs(mib-does*fileBlock/(1<<20)) > 2*rounded:
		return 0, fmt.Errorf("%v requests of %d bytes a second are not %v MiB", does, fileBlock, mib)
	}
	return r.seconds, nil
}
