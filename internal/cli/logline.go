package cli

import "unicode"

// logLine finds the commands that services for continuous integration execute when a line of a log has them: "::name::" at the beginning of
// a line, and "##[name]" anywhere on GitHub; "##vso[name]" on Azure; "##teamcity[name]" on TeamCity. A name or an error from elsewhere may
// contain them, and they can set variables of later steps, hide the log, or mark a job as failed.
type logLine struct {
	// split returns a character of a command in a form that separates it from the one before.
	split func(r rune) string

	begun  bool    // a character other than a blank was on this line
	before [2]rune // the last two characters
}

// newLogLine separates the characters by a space of no width.
func newLogLine() *logLine {
	return &logLine{split: func(r rune) string { return "\u200b" + string(r) }}
}

// commands reports whether a character, after those before it, begins a command. It is called for each character.
func (l *logLine) commands(r rune) bool {
	found := l.before == [2]rune{'#', '#'} && (r == '[' || r == 'v' || r == 't')
	if r == ':' && l.before[1] == ':' && l.first() {
		found = true
	}
	switch {
	case r == '\n':
		l.begun = false
	case r == ':' && !l.begun: // the first one of a line
		l.begun = true
		l.before = [2]rune{'\n', r}
		return found
	case !unicode.IsSpace(r):
		l.begun = true
	}
	l.before = [2]rune{l.before[1], r}
	return found
}

// first reports whether the last character is the first one of its line.
func (l *logLine) first() bool { return l.before[0] == '\n' }
