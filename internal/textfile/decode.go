// Package textfile reads text files that shells, editors, mail programs and CI have changed on the way: it decodes byte order marks, UTF-16 and
// gzip, and names whatever else a file is, with the command that unpacks it or takes it.
//
// All readers of files that a user names use it before their own parser. A parser alone would report an unexpected character at the start of a file
// that its user sees as correct.
package textfile

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// headSize is the number of bytes from the start of a file that decide what it is.
const headSize = 4096

// Error is the reason why a file is refused.
type Error struct{ Problem, Advice string }

func (e *Error) Error() string { return e.Problem + "; " + e.Advice }

// Reader is the text of a file as UTF-8, without a byte order mark.
type Reader struct {
	in *bufio.Reader
	// Decoded is true if the text is not the file itself.
	Decoded bool
	// Kind is the kind that the text begins as, empty if it is unknown.
	Kind Kind
}

// NewReader begins to read a file. Its error names a file that is not want, or that must be unpacked first. The caller limits the length of the text:
// a compressed file can be much shorter.
func NewReader(r io.Reader, want ...Kind) (*Reader, error) {
	t := &Reader{in: bufio.NewReaderSize(r, headSize)}
	head, err := t.head()
	if err != nil {
		return nil, err
	}
	isGzip := bytes.HasPrefix(head, []byte("\x1f\x8b"))
	if isGzip {
		zip, err := gzip.NewReader(t.in)
		if err != nil {
			return nil, &Error{fmt.Sprintf("it begins as a file of gzip, and cannot be unpacked (%v)", err), "copy it again"}
		}
		t.replace(cutOff{zip})
		if head, err = t.head(); err != nil {
			return nil, err
		}
	}
	switch mark, order := encodingOf(head); {
	case order == nil && mark > 0:
		_, err = t.in.Discard(mark)
		t.Decoded = true
	case order != nil:
		_, err = t.in.Discard(mark)
		t.replace(&wide{in: bufio.NewReader(t.in), order: order})
	}
	if err == nil {
		head, err = t.head()
	}
	if err != nil {
		return nil, err
	}
	t.Kind = KindOf(head)
	err = Recognize(head, want...)
	if inner := (*Error)(nil); isGzip && errors.As(err, &inner) {
		err = &Error{"it is a file of gzip, and its content: " + inner.Problem, "unpack it with gzip -d FILE; " + inner.Advice}
	}
	return t, err
}

func (t *Reader) Read(p []byte) (int, error) { return t.in.Read(p) }

// head returns the start of the text.
func (t *Reader) head() ([]byte, error) {
	head, err := t.in.Peek(headSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return head, nil
}

func (t *Reader) replace(r io.Reader) { t.in, t.Decoded = bufio.NewReaderSize(r, headSize), true }

// Read reads the whole text of a file, up to one byte more than limit.
func Read(r io.Reader, limit int64, want ...Kind) ([]byte, error) {
	t, err := NewReader(r, want...)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(t, limit+1))
}

// order is the byte order of UTF-16.
type order func(a, b byte) uint16

func little(a, b byte) uint16 { return uint16(b)<<8 | uint16(a) }
func big(a, b byte) uint16    { return uint16(a)<<8 | uint16(b) }

// encodingOf returns the length of the byte order mark, and the order of UTF-16 or nil. Text of ASCII in UTF-16 needs no mark.
func encodingOf(head []byte) (mark int, o order) {
	switch {
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")):
		return 3, nil
	case bytes.HasPrefix(head, []byte("\xff\xfe\x00\x00")): // UTF-32
		return 0, nil
	case bytes.HasPrefix(head, []byte("\xff\xfe")):
		return 2, little
	case bytes.HasPrefix(head, []byte("\xfe\xff")):
		return 2, big
	case len(head) >= 4 && isASCII(head[0]) && head[1] == 0 && isASCII(head[2]) && head[3] == 0:
		return 0, little
	case len(head) >= 4 && head[0] == 0 && isASCII(head[1]) && head[2] == 0 && isASCII(head[3]):
		return 0, big
	}
	return 0, nil
}

func isASCII(b byte) bool { return b == '\t' || b == '\n' || b == '\r' || ' ' <= b && b <= '~' }

// wide decodes UTF-16. The decoder of golang.org/x/text replaces invalid and truncated characters without an error, so that a damaged file would
// be read as another text.
type wide struct {
	in    *bufio.Reader
	order order
	rest  []byte // decoded and not read
}

func (w *wide) Read(p []byte) (int, error) {
	for len(w.rest) == 0 {
		r, err := w.unit()
		if err != nil {
			return 0, err
		}
		if utf16.IsSurrogate(r) {
			second, err := w.unit()
			if err != nil && !errors.Is(err, io.EOF) {
				return 0, err
			}
			if r = utf16.DecodeRune(r, second); r == utf8.RuneError {
				return 0, &Error{"it is not valid UTF-16", "save it as UTF-8"}
			}
		}
		w.rest = utf8.AppendRune(w.rest[:0], r)
	}
	n := copy(p, w.rest)
	w.rest = w.rest[n:]
	return n, nil
}

// unit returns the next two bytes.
func (w *wide) unit() (rune, error) {
	first, err := w.in.ReadByte()
	if err != nil {
		return 0, err
	}
	second, err := w.in.ReadByte()
	if errors.Is(err, io.EOF) {
		err = error(&Error{"it is UTF-16 and ends in the middle of a character: it is truncated", "copy it again"})
	}
	return rune(w.order(first, second)), err
}

// cutOff names the end of a compressed file that is truncated or damaged.
type cutOff struct{ r io.Reader }

func (c cutOff) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = &Error{"it is a file of gzip that is truncated", "copy it again"}
	case errors.Is(err, gzip.ErrChecksum) || errors.Is(err, gzip.ErrHeader):
		err = &Error{fmt.Sprintf("it is a file of gzip that is damaged (%v)", err), "copy it again"}
	}
	return n, err
}
