package crilog

import (
	"bytes"
	"strings"
	"testing"
)

// The samples are lines of containerd 1.6, 1.7, 2.4, CRI-O 1.34 and conmon under Podman, and malformed lines.
var lines = []struct {
	line string
	want entry
	err  string
}{
	{line: "2026-11-21T20:54:33.595954467Z stdout F ready", want: entry{stdout, false, []byte("ready")}},
	{line: "2026-11-21T20:59:05.112392305+00:00 stderr F probe: unknown command", want: entry{stderr, false, []byte("probe: unknown command")}},
	{line: "2026-11-21T20:54:33.5Z stdout P half a", want: entry{stdout, true, []byte("half a")}},
	{line: "2026-11-21T20:54:33.5Z stdout F:x:y  two  blanks ", want: entry{stdout, false, []byte(" two  blanks ")}},
	{line: "2026-11-21T20:54:33.5Z stdout F ", want: entry{stdout, false, []byte{}}},
	{line: "2026-11-21T20:54:33.5Z stdout F", want: entry{stdout, false, nil}},
	{line: "2026-11-21T20:54:33.5Z stdout F a\x00\xff\r", want: entry{stdout, false, []byte("a\x00\xff\r")}},
	{line: "", err: "not of the form"},
	{line: "2026-11-21T20:54:33.5Z stdout", err: "not of the form"},
	{line: " stdout F x", err: "not of the form"},
	{line: "2026-11-21T20:54:33.5Z stdin F x", err: "neither stdout nor stderr"},
	{line: "2026-11-21T20:54:33.5Z stdout X x", err: "neither F nor P"},
	{line: "2026-11-21T20:54:33.5Z stdout  x", err: "neither F nor P"},
	{line: `{"log":"ready\n","stream":"stdout","time":"2026-11-21T20:54:33.5Z"}`, err: "not of the form"},
}

func TestParse(t *testing.T) {
	for _, tt := range lines {
		got, err := parse([]byte(tt.line))
		switch {
		case tt.err != "":
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("parse(%q) = %+v, %v; want an error with %q", tt.line, got, err, tt.err)
			}
		case err != nil || got.stream != tt.want.stream || got.partial != tt.want.partial || !bytes.Equal(got.text, tt.want.text):
			t.Errorf("parse(%q) = %+v, %v; want %+v", tt.line, got, err, tt.want)
		}
	}
}

// A parsed line that is printed and parsed again gives the same entry.
func FuzzParse(f *testing.F) {
	for _, tt := range lines {
		f.Add([]byte(tt.line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := parse(line)
		if err != nil {
			return
		}
		echo, err := parse([]byte("T " + [...]string{"stdout", "stderr"}[e.stream] + map[bool]string{false: " F ", true: " P "}[e.partial] + string(e.text)))
		if err != nil || echo.stream != e.stream || echo.partial != e.partial || !bytes.Equal(echo.text, e.text) {
			t.Errorf("%q is %+v, and printed and parsed again %+v, %v", line, e, echo, err)
		}
	})
}
