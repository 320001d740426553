// Package record transports a run in the log of a program: an agent on a node writes records to its standard output, and the
// coordinator reads them from the log of the pod.
//
// The log is the transport because it needs no network between coordinator and agent and no other right than to read it, and because
// it survives the death of both and a reboot of the node. It is a bad transport in other respects: the kubelet rotates it, a killed
// program tears its last line, other programs of the pod write into it, and a restarted agent begins a new one. Therefore each record is
// one line with a version, a number and a checksum:
//
//	touchstone/1 17 trial 9f86d081884c7d65 {"seq":15,…}
//
// The number of a record follows from the run alone: the run without trials has 1, the trials follow in their order, and the end of the run
// is the last. So an agent that starts again, or that is asked for records again, writes the same numbers, and a [Sequence] takes each record
// once. A missing number is a gap, and the coordinator asks for all records from there on. Records of the moment, such as the progress, have
// the number 0, and may be lost.
//
// The package refuses lines of more than [MaxLine] bytes. It skips and counts lines that are no record, or whose checksum is wrong. Only
// [Record.Decode] reads the JSON of a value: the checksum shows damage.
package record

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// MaxLine is the longest line in bytes. A kubelet rotates a log at 10 MiB by default, and a record in two files would never arrive.
const MaxLine = 8 << 20

// prefix begins each record. Another format has another number.
const prefix = "touchstone/1"

// Kind is the kind of a record.
type Kind string

// The kinds of records, with the types of their values. The first three have a number.
const (
	Begin    Kind = "begin"    // result.Run without trials
	Trial    Kind = "trial"    // result.Trial
	Finish   Kind = "finish"   // End
	Stopping Kind = "stopping" // result.Stopping; the end of the run has the last one again
	Progress Kind = "progress" // Moment
	Note     Kind = "note"     // string
	Failure  Kind = "failure"  // string: the reason why an agent ends without a run
)

// numbered reports whether the records of a kind have a number.
func (k Kind) numbered() bool { return k == Begin || k == Trial || k == Finish }

func (k Kind) valid() bool {
	switch k {
	case Begin, Trial, Finish, Stopping, Progress, Note, Failure:
		return true
	}
	return false
}

// End is the end of a run, as store.Finish records it.
type End struct {
	State    result.State     `json:"state"`
	Ended    time.Time        `json:"ended"`
	Caveats  []string         `json:"caveats,omitempty"`
	Stopping *result.Stopping `json:"stopping,omitempty"`
	// Trials is the number of the run's trials.
	Trials int `json:"trials"`
}

// Moment is the progress of a run before a trial.
type Moment struct {
	Done  int           `json:"done"`
	Total int           `json:"total"`
	Left  time.Duration `json:"left_ns,omitempty"`
	// AtMost is set if Left is an upper bound.
	AtMost bool   `json:"at_most,omitempty"`
	Trial  string `json:"trial"`
	// Paused is the reason why the agent waits; empty while it measures.
	Paused string `json:"paused,omitempty"`
}

// Record is one record of a log.
type Record struct {
	// Number is the place of the record in its run, from 1 on; 0 for a record of the moment.
	Number int
	Kind   Kind
	// Data is the value as JSON. Its checksum is right, so a writer spelled it; Decode reads it.
	Data []byte
}

// Decode reads the value of a record.
func (r Record) Decode(value any) error {
	if err := jsonv1.Unmarshal(r.Data, value); err != nil {
		return fmt.Errorf("read record %d (%s): %w", r.Number, r.Kind, err)
	}
	return nil
}

// Writer writes records. Its methods are safe for concurrent use. A record is one write.
type Writer struct {
	mu  sync.Mutex
	out io.Writer
}

// NewWriter returns a writer of records.
func NewWriter(out io.Writer) *Writer { return &Writer{out: out} }

// Write writes the record of a run with a number.
func (w *Writer) Write(number int, kind Kind, value any) error {
	if number < 1 || !kind.numbered() {
		return fmt.Errorf("write record %d: the kind %q has no number", number, kind)
	}
	return w.write(number, kind, value)
}

// Tell writes a record of the moment.
func (w *Writer) Tell(kind Kind, value any) error {
	if kind.numbered() || !kind.valid() {
		return fmt.Errorf("write a record: the kind %q needs a number", kind)
	}
	return w.write(0, kind, value)
}

func (w *Writer) write(number int, kind Kind, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("write record %d (%s): %w", number, kind, err)
	}
	line := format(Record{number, kind, data})
	if len(line) > MaxLine {
		return fmt.Errorf("write record %d (%s): it has %d bytes, and a log holds records of %d: measure less in one trial, for example without monitor", number, kind, len(line), MaxLine)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := w.out.Write(line); err != nil {
		return fmt.Errorf("write record %d (%s): %w", number, kind, err)
	}
	return nil
}

// format spells a record with the end of its line.
func format(r Record) []byte {
	line := fmt.Appendf(nil, "%s %d %s %s ", prefix, r.Number, r.Kind, checksum(r))
	return append(append(line, r.Data...), '\n')
}

// checksum covers the number, the kind and the value of a record.
func checksum(r Record) string {
	sum := sha256.New()
	head := append(append(strconv.AppendInt(nil, int64(r.Number), 10), ' '), r.Kind...)
	_, _ = sum.Write(append(head, ' ')) // a hash returns no error
	_, _ = sum.Write(r.Data)
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// parse reads a line without its end. It returns false for any line that format does not write.
func parse(line []byte) (Record, bool) {
	parts := bytes.SplitN(line, []byte(" "), 5)
	if len(parts) != 5 || string(parts[0]) != prefix {
		return Record{}, false
	}
	number, err := strconv.Atoi(string(parts[1]))
	r := Record{number, Kind(parts[2]), parts[4]}
	ok := err == nil && r.Kind.valid() && strconv.Itoa(number) == string(parts[1]) && number >= 0 &&
		r.Kind.numbered() == (number > 0) && checksum(r) == string(parts[3])
	if !ok {
		return Record{}, false
	}
	return r, true
}
