package cli

import (
	"fmt"
	"io"
	"regexp"
	"sync"
	"unicode"
	"unicode/utf8"
)

// cleaner is the writer between this package and every terminal and text file. Messages, names and outputs come from programs, daemons,
// mirrors, images and imported runs. The cleaner replaces all characters that can control a terminal or reorder its text: control
// characters of ASCII and of C1, also as single bytes, and controls of bidirectional text. Newlines and tabs stay. So no
// caller needs to know the origin of a text.
type cleaner struct {
	w io.Writer
	// replace returns the replacement of a character.
	replace func(r rune) string
	// styles lets sequences for colours and weights of text pass.
	styles bool
	// log is the state of the line for a writer whose text may be in the log of a CI job; nil for a file.
	log *logLine

	mu   sync.Mutex
	part []byte // of the last character, if a Write ended within it
}

// clean returns a cleaner that replaces characters by U+FFFD.
func clean(w io.Writer) *cleaner { return &cleaner{w: w, replace: unprintable} }

// cleanLog returns a cleaner for the output of the program, which may be in the log of a CI job.
func cleanLog(w io.Writer) *cleaner { return &cleaner{w: w, replace: unprintable, log: newLogLine()} }

func unprintable(rune) string { return string(utf8.RuneError) }

// jsonWriter returns a writer for JSON, where such characters occur only in strings. It replaces them by their escape sequences, so no
// text changes.
func jsonWriter(w io.Writer) io.Writer {
	if c, ok := w.(*cleaner); ok {
		escape := func(r rune) string { return fmt.Sprintf(`\u%04x`, r) }
		json := &cleaner{w: c.w, replace: escape}
		if c.log != nil {
			json.log = &logLine{split: escape}
		}
		return json
	}
	return w
}

// styledWriter returns a writer for text with colours. The writer of the text removes such sequences from other texts.
func styledWriter(w io.Writer) io.Writer {
	if c, ok := w.(*cleaner); ok {
		styled := &cleaner{w: c.w, replace: c.replace, styles: true}
		if c.log != nil {
			styled.log = newLogLine()
		}
		return styled
	}
	return w
}

// controls reports whether a character can control a terminal or the order of text. All of them have at most four hexadecimal digits.
func controls(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
}

// sgr is a sequence for colours and weights of text.
var sgr = regexp.MustCompile(`^\x1b\[[0-9;]{0,16}m`)

// Write implements [io.Writer]. Invalid UTF-8 becomes U+FFFD. An incomplete character at the end of p waits for the next Write; every text ends
// with a newline.
func (c *cleaner) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := p
	if len(c.part) > 0 {
		text = append(c.part, p...)
	}
	out := make([]byte, 0, len(text))
	for len(text) > 0 && utf8.FullRune(text) {
		r, size := utf8.DecodeRune(text)
		switch {
		case c.styles && r == '\x1b' && sgr.Match(text):
			size = len(sgr.Find(text))
			out = append(out, text[:size]...)
		case r == utf8.RuneError && size == 1:
			out = append(out, unprintable(r)...)
		case controls(r):
			out = append(out, c.replace(r)...)
		case c.log != nil && c.log.commands(r):
			out = append(out, c.log.split(r)...)
		default:
			out = append(out, text[:size]...)
		}
		text = text[size:]
	}
	c.part = append([]byte(nil), text...)
	if _, err := c.w.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}
