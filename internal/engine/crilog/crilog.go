// Package crilog follows the log files of CRI engines and conmon, and turns them back into the output of a container's
// process.
//
// A line of such a file is
//
//	2026-11-21T20:54:33.541228768Z stdout F text
//
// with the time, the stream, a tag and the text. The tag F ends a line of the process. The tag P means that the next
// entry of the stream continues the line. The times are the engine's and are ignored.
//
// Package crilog waits for changes by inotify. The format has no mark for the end of a log. A log has ended when no
// process has the file open for writing: the kernel then grants a read lease. Rejected: the exit event of the container,
// after which an engine may still be writing; a count of inotify's events for open and close, which merge.
//
// The format does not show whether the last line of the process had a newline. conmon marks a line without newline as
// partial, containerd adds a newline.
package crilog

import (
	"bytes"
	"errors"
	"fmt"
)

// longestLine bounds a line of the file, in bytes. Engines split lines at 16 KiB by default.
const longestLine = 1 << 20

// stream is one of the two outputs of a process.
type stream int

const (
	stdout stream = iota
	stderr
)

// entry is a line of the file.
type entry struct {
	stream  stream
	partial bool   // the next entry of the stream continues the line
	text    []byte // without the end of the line
}

// parse reads a line of the file, without its end.
func parse(line []byte) (entry, error) {
	fields := bytes.SplitN(line, []byte(" "), 4)
	if len(fields) < 3 || len(fields[0]) == 0 {
		return entry{}, errors.New("it is not of the form TIME STREAM TAG TEXT")
	}
	var e entry
	switch string(fields[1]) {
	case "stdout":
	case "stderr":
		e.stream = stderr
	default:
		return entry{}, fmt.Errorf("the stream is neither stdout nor stderr, but %.40q", fields[1])
	}
	tag, _, _ := bytes.Cut(fields[2], []byte(":")) // further tags have no meaning yet
	switch string(tag) {
	case "F":
	case "P":
		e.partial = true
	default:
		return entry{}, fmt.Errorf("the tag is neither F nor P, but %.40q", tag)
	}
	if len(fields) == 4 {
		e.text = fields[3]
	}
	return e, nil
}
