package result

import (
	"slices"
	"strings"
	"unicode"
)

// maxQuoted is the longest part of a line of output that Why quotes, in characters.
const maxQuoted = 120

// Why is the reason of a trial that is not ok, with the last line of its output: an exit code alone does not show the cause. The line is
// made printable.
func (t *Trial) Why() string {
	line := lastLine(t.Output)
	if t.Reason == "" || line == "" || strings.Contains(t.Reason, line) {
		return t.Reason
	}
	return t.Reason + "; the output ends with: " + line
}

// lastLine returns the last line with a letter or a digit, so not the last bracket of JSON.
func lastLine(output string) string {
	lines := strings.Split(output, "\n")
	for _, line := range slices.Backward(lines) {
		line = ConditionText(line)
		if !strings.ContainsFunc(line, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			continue
		}
		if characters := []rune(line); len(characters) > maxQuoted {
			line = string(characters[:maxQuoted-1]) + "…"
		}
		return line
	}
	return ""
}
