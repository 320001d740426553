package record

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
)

// bufferSize is the size of a reader's buffer. A coordinator has a reader for each log that it reads at the same time.
const bufferSize = 64 << 10

// Reader reads the records of one log.
type Reader struct {
	in *bufio.Reader
	// Foreign counts the lines that are no record, Torn the lines that begin like a record and are damaged or too long.
	Foreign, Torn int
	// Last is the beginning of the last line that is no record: the reason why the program ended, if it failed.
	Last string
	// Pause is called before Next waits for the log, and its error ends Next. It may be nil.
	Pause func() error
}

// lastSize is the size of Last in bytes.
const lastSize = 300

// NewReader returns a reader of a log.
func NewReader(in io.Reader) *Reader { return &Reader{in: bufio.NewReaderSize(in, bufferSize)} }

// Next returns the next record, and skips other lines. Its data is valid until the next call. At the end of the log the error is io.EOF. A last line
// without an end counts as torn.
func (r *Reader) Next() (Record, error) {
	for {
		line, err := r.line()
		if err != nil {
			if len(line) > 0 {
				r.count(line)
			}
			return Record{}, err
		}
		if len(line) <= MaxLine {
			if record, ok := parse(line); ok {
				return record, nil
			}
		}
		r.count(line)
	}
}

func (r *Reader) count(line []byte) {
	if bytes.HasPrefix(line, []byte(prefix+" ")) {
		r.Torn++
	} else {
		r.Foreign++
		r.Last = string(line[:min(len(line), lastSize)])
	}
}

// line returns the next line without its end. It keeps at most one byte more than MaxLine of a longer line, which shows the excess.
func (r *Reader) line() ([]byte, error) {
	if text, _ := r.in.Peek(r.in.Buffered()); r.Pause != nil && bytes.IndexByte(text, '\n') < 0 {
		if err := r.Pause(); err != nil {
			return nil, err
		}
	}
	part, err := r.in.ReadSlice('\n')
	if err == nil {
		return bytes.TrimSuffix(part, []byte("\n")), nil // no copy of most lines
	}
	line := slices.Clone(part)
	for errors.Is(err, bufio.ErrBufferFull) {
		part, err = r.in.ReadSlice('\n')
		line = append(line, part[:min(len(part), MaxLine+2-len(line))]...)
	}
	return bytes.TrimSuffix(line, []byte("\n")), err
}

// GapError reports that records are missing.
type GapError struct {
	// Next is the number of the first missing record, Found the number of the record after the gap.
	Next, Found int
}

func (e *GapError) Error() string {
	return fmt.Sprintf("the records %d to %d are missing in the log", e.Next, e.Found-1)
}

// Sequence decides which records of one run are new. Its zero value waits for the first record of a run.
type Sequence struct {
	// Last is the number of the last record that is taken.
	Last int
	// Ended is set once the end of the run is taken.
	Ended bool
}

// Take reports whether a record is the next one of its run. It is false for a record that was taken before and for a record of the moment. A
// record after a gap is a *GapError: the caller asks the agent for all records from Next on.
func (s *Sequence) Take(r Record) (bool, error) {
	switch {
	case r.Number <= s.Last: // also 0, a record of the moment
		return false, nil
	case s.Ended:
		return false, fmt.Errorf("record %d (%s) follows the end of the run", r.Number, r.Kind)
	case r.Number > s.Last+1:
		return false, &GapError{Next: s.Last + 1, Found: r.Number}
	case (r.Number == 1) != (r.Kind == Begin):
		return false, fmt.Errorf("record %d is a %s; only the first record of a run is a %s", r.Number, r.Kind, Begin)
	}
	s.Last, s.Ended = r.Number, r.Kind == Finish
	return true, nil
}
