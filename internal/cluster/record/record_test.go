package record_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/touchstone-bench/touchstone/internal/cluster/record"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// log returns the records of a run with a number of trials, from a record on.
func log(t *testing.T, trials, first int) string {
	t.Helper()
	var out bytes.Buffer
	w := record.NewWriter(&out)
	for number := first; number <= trials+2; number++ {
		switch number {
		case 1:
			must.Do(t, w.Write(number, record.Begin, result.Run{ID: "r"}))
		case trials + 2:
			must.Do(t, w.Write(number, record.Finish, record.End{State: result.Complete, Trials: trials}))
		default:
			must.Do(t, w.Write(number, record.Trial, result.Trial{Seq: number - 2}))
		}
	}
	return out.String()
}

// read returns the records of a log.
func read(t *testing.T, r *record.Reader) (records []record.Record) {
	t.Helper()
	for {
		next, err := r.Next()
		if errors.Is(err, io.EOF) {
			return records
		}
		must.Do(t, err)
		next.Data = bytes.Clone(next.Data)
		records = append(records, next)
	}
}

// Records return as they were written, however the stream is cut.
func TestRoundTrip(t *testing.T) {
	var out bytes.Buffer
	w := record.NewWriter(&out)
	end := record.End{State: result.Interrupted, Ended: time.Unix(1_800_000_000, 5).UTC(), Caveats: []string{"a\nb", "ü\x1b"}, Trials: 1}
	moment := record.Moment{Done: 1, Total: 2, Left: time.Second, AtMost: true, Trial: strings.Repeat("x", 100_000), Paused: "the node is lost"}
	must.Do(t, w.Write(1, record.Begin, result.Run{ID: "r"}), w.Tell(record.Progress, moment), w.Tell(record.Note, "n"), w.Write(2, record.Finish, end))
	for name, stream := range map[string]io.Reader{
		"whole": bytes.NewReader(out.Bytes()), "bytes": iotest.OneByteReader(bytes.NewReader(out.Bytes())),
	} {
		records := read(t, record.NewReader(stream))
		if len(records) != 4 {
			t.Fatalf("%s: %d records, want 4", name, len(records))
		}
		var gotMoment record.Moment
		var gotEnd record.End
		must.Do(t, records[1].Decode(&gotMoment), records[3].Decode(&gotEnd))
		if !reflect.DeepEqual(gotMoment, moment) || !reflect.DeepEqual(gotEnd, end) {
			t.Errorf("%s: read %+v and %+v", name, gotMoment, gotEnd)
		}
		if records[1].Number != 0 || records[3].Number != 2 {
			t.Errorf("%s: the numbers are %d and %d", name, records[1].Number, records[3].Number)
		}
	}
}

// Other output, damaged lines and a torn end do not hide the records around them.
func TestForeignLines(t *testing.T) {
	lines := strings.SplitAfter(strings.TrimSuffix(log(t, 2, 1), "\n"), "\n")
	damaged := strings.Replace(lines[1], `"seq":0`, `"seq":9`, 1)
	stream := "panic: x\n" + lines[0] + "\n" + damaged + lines[1] + "touchstone/2 3 trial 00 {}\n" + lines[2] + strings.TrimSuffix(lines[3], "}")
	r := record.NewReader(strings.NewReader(stream))
	var numbers []int
	for _, record := range read(t, r) {
		numbers = append(numbers, record.Number)
	}
	if !slices.Equal(numbers, []int{1, 2, 3}) || r.Foreign != 3 || r.Torn != 2 || r.Last != "touchstone/2 3 trial 00 {}" {
		t.Errorf("records %v, %d foreign lines with the last %q, %d torn ones; want 1 2 3, 3 and 2", numbers, r.Foreign, r.Last, r.Torn)
	}
}

// A line without an end does not fill the memory, and the record after it arrives.
func TestLongLine(t *testing.T) {
	stream := io.MultiReader(io.LimitReader(endless{}, 3*record.MaxLine), strings.NewReader("\n"+log(t, 0, 1)))
	r := record.NewReader(stream)
	if records := read(t, r); len(records) != 2 || r.Foreign != 1 {
		t.Errorf("%d records and %d foreign lines, want 2 and 1", len(records), r.Foreign)
	}
	var out bytes.Buffer
	err := record.NewWriter(&out).Tell(record.Note, strings.Repeat("x", record.MaxLine))
	if err == nil || out.Len() > 0 {
		t.Errorf("wrote %d bytes, %v; want a refusal", out.Len(), err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// A restarted agent writes its records again, and each counts once. A rotated log begins with a gap, which a repetition closes.
func TestSequence(t *testing.T) {
	stream := log(t, 3, 1)
	first := strings.Join(strings.SplitAfter(stream, "\n")[:3], "")
	for name, tt := range map[string]struct {
		stream  string
		numbers []int
		gaps    []int // the first missing number of each gap
	}{
		"one log":           {stream, []int{1, 2, 3, 4, 5}, nil},
		"restart":           {first + stream, []int{1, 2, 3, 4, 5}, nil},
		"twice":             {stream + stream, []int{1, 2, 3, 4, 5}, nil},
		"rotation":          {log(t, 3, 4), nil, []int{1, 1}},
		"gap and repeat":    {first + log(t, 3, 5) + log(t, 3, 4), []int{1, 2, 3, 4, 5}, []int{4}},
		"empty":             {"", nil, nil},
		"only a later part": {log(t, 3, 2) + stream, []int{1, 2, 3, 4, 5}, []int{1, 1, 1, 1}},
	} {
		var s record.Sequence
		var numbers, gaps []int
		for _, r := range read(t, record.NewReader(strings.NewReader(tt.stream))) {
			ok, err := s.Take(r)
			if gap, missing := errors.AsType[*record.GapError](err); missing {
				gaps = append(gaps, gap.Next)
			} else if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if ok {
				numbers = append(numbers, r.Number)
			}
		}
		if !slices.Equal(numbers, tt.numbers) || !slices.Equal(gaps, tt.gaps) || s.Ended != slices.Contains(tt.numbers, 5) {
			t.Errorf("%s: took %v with gaps at %v, ended %t; want %v and %v", name, numbers, gaps, s.Ended, tt.numbers, tt.gaps)
		}
	}
}

// chunks is a log that arrives in parts.
type chunks []string

func (c *chunks) Read(p []byte) (int, error) {
	if len(*c) == 0 {
		return 0, io.EOF
	}
	n := copy(p, (*c)[0])
	*c = (*c)[1:]
	return n, nil
}

// A reader pauses only before it waits: after all records that are there. An error of the pause ends the reading.
func TestPause(t *testing.T) {
	lines := strings.SplitAfter(log(t, 2, 1), "\n")
	r := record.NewReader(&chunks{lines[0] + "foreign\n" + lines[1] + lines[2][:9], lines[2][9:], "foreign\n" + lines[3]})
	count := 0
	var pauses []int
	r.Pause = func() error {
		pauses = append(pauses, count)
		return nil
	}
	for {
		_, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must.Do(t, err)
		count++
	}
	if want := []int{0, 2, 3, 4}; !slices.Equal(pauses, want) {
		t.Errorf("the reader pauses after %v records, want %v", pauses, want)
	}
	r = record.NewReader(strings.NewReader(lines[0]))
	r.Pause = func() error { return io.ErrShortWrite }
	if _, err := r.Next(); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("a reader whose pause fails returns %v", err)
	}
}

// An order of records that no agent writes is an error.
func TestSequenceRefuses(t *testing.T) {
	for _, tt := range []struct {
		sequence record.Sequence
		next     record.Record
		reason   string
	}{
		{record.Sequence{}, record.Record{Number: 1, Kind: record.Trial}, "only the first record"},
		{record.Sequence{Last: 1}, record.Record{Number: 2, Kind: record.Begin}, "only the first record"},
		{record.Sequence{Last: 2, Ended: true}, record.Record{Number: 3, Kind: record.Trial}, "follows the end"},
	} {
		if ok, err := tt.sequence.Take(tt.next); ok || err == nil || !strings.Contains(err.Error(), tt.reason) {
			t.Errorf("%+v after %+v: %t, %v; want %q", tt.next, tt.sequence, ok, err, tt.reason)
		}
	}
}

// A kind decides whether a record has a number.
func TestWriterRefuses(t *testing.T) {
	w := record.NewWriter(io.Discard)
	for name, err := range map[string]error{
		"a trial without a number": w.Tell(record.Trial, 1), "a note with one": w.Write(1, record.Note, 1), "the number 0": w.Write(0, record.Trial, 1),
		"an unknown kind": w.Tell("x", 1), "a value without JSON": w.Tell(record.Note, func() {}),
	} {
		if err == nil {
			t.Errorf("%s was written", name)
		}
	}
	if err := record.NewWriter(failing{}).Tell(record.Note, ""); err == nil {
		t.Error("a failed write is no error")
	}
}

// A reader accepts only lines that a writer writes, and never fails on others.
func FuzzReader(f *testing.F) {
	f.Add([]byte("touchstone/1 0 note 0000000000000000 \"x\"\n"))
	var out bytes.Buffer
	w := record.NewWriter(&out)
	for i := range 3 {
		if err := errors.Join(w.Tell(record.Note, fmt.Sprint(i)), w.Write(i+1, record.Trial, result.Trial{Seq: i})); err != nil {
			f.Fatal(err)
		}
	}
	f.Add(out.Bytes())
	f.Add(bytes.ReplaceAll(out.Bytes(), []byte("\n"), []byte("\r\n")))
	f.Fuzz(func(t *testing.T, stream []byte) {
		r := record.NewReader(bytes.NewReader(stream))
		var s record.Sequence
		count := 0
		for {
			next, err := r.Next()
			if err != nil {
				break
			}
			count++
			_, _ = s.Take(next)
			if spelling := record.Format(next); !bytes.Contains(stream, spelling) {
				t.Errorf("the stream has no line %q", spelling)
			}
		}
		if lines := bytes.Count(stream, []byte("\n")) + 1; count+r.Foreign+r.Torn > lines {
			t.Errorf("%d records, %d foreign and %d torn lines of %d lines", count, r.Foreign, r.Torn, lines)
		}
	})
}

// failing is a log that takes nothing.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
