package cli

import (
	"fmt"
)

// status is the line on standard error that shows the work under way. Only a terminal can redraw it.
type status struct{ env Environment }

// show replaces the status line. Without a terminal it does nothing.
func (s status) show(line string) {
	if !s.env.Live {
		return
	}
	if runes := []rune(line); s.env.Width > 0 && len(runes) >= s.env.Width {
		line = string(runes[:s.env.Width-1])
	}
	s.clear()
	fmt.Fprint(s.env.Stderr, line)
}

// step shows a step that takes time: in the status line on a terminal, else as a line of its own.
func (s status) step(what string) {
	if s.env.Live {
		s.show(what + " …")
		return
	}
	fmt.Fprintln(s.env.Stderr, what)
}

// line prints a line that stays.
func (s status) line(text string) {
	s.clear()
	fmt.Fprintln(s.env.Stderr, text)
}

// clear clears the status line.
func (s status) clear() {
	if s.env.Live {
		fmt.Fprint(s.env.Stderr, "\r\x1b[K")
	}
}
