package readings

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/touchstone-bench/touchstone/internal/workload"
)

// match is the only match of an expression in a text.
//
// The text beside the number decides whether the number is complete, and whether its unit is certain. The expression may contain that text,
// and then it knows what it reads: "([0-9.]+) ms" matches no seconds. A ".*" or "(ms|s)" in its place knows nothing. So the text beside the
// number is replaced, and the expression must not match any more.
type match struct {
	*expression
	text   []byte
	groups []int // as FindSubmatchIndex returns them
	number span
}

// span is a part of a text.
type span struct{ start, end int }

// begins reports whether the span exists and is not empty.
func (s span) begins() bool { return s.start >= 0 && s.start < s.end }

// group returns a group of the expression; 0 is the whole match.
func (m match) group(n int) span {
	return span{m.groups[2*n], m.groups[2*n+1]}
}

func (m match) of(s span) string { return string(m.text[s.start:s.end]) }

// Blanks that may be in a number or before a unit. The last is the colour of a terminal.
const (
	wideBlank = `\x{00a0}\x{2000}-\x{200b}\x{202f}\x{205f}\x{3000}\x{feff}`
	anyBlank  = `(?:[ \t` + wideBlank + `]|\x1b\[[0-9;]*m)*`
)

// The texts beside a part of a number. They belong to the number even if the expression contains them.
var (
	digitBefore = compile(`(?:[0-9.]|(?:^|[\s=:(,])[+-]|[−–]|(?:^|[^\pL\pN])0[xXbBoO])$`)
	digitAfter  = regexp.MustCompile(`^(?:\.?\pN|[eE][+-]?[0-9])`)
)

// The texts beside a number that has its digits in groups, or a decimal mark of another locale. Their group is the separator. The expression may
// contain it, as in lines with commas between their fields.
var (
	markBefore  = regexp.MustCompile(`[0-9]([,'’_:·٫٬` + wideBlank + `])$`)
	markAfter   = regexp.MustCompile(`^([,'’_:·٫٬` + wideBlank + `])[0-9]`)
	blankBefore = compile(`(?:^|[^\pL\pN_.,:/-])[0-9]{1,3}(?: [0-9]{3})*( )$`)
	blankAfter  = regexp.MustCompile(`^( )[0-9]{3}(?:[^0-9]|$)`)
	// A group of digits has three of them.
	firstGroup, laterGroup = regexp.MustCompile(`^[+-]?[0-9]{1,3}$`), regexp.MustCompile(`^[0-9]{3}(?:[^0-9]|$)`)
	// A number such as 1.234,56 has both marks.
	pointGroups = regexp.MustCompile(`(?:^|[^0-9.])[0-9]{1,3}(?:\.[0-9]{3})+$`)
)

// compile returns a regular expression that is compiled at its first use: classes of Unicode take much memory, and most runs have no program of a user.
func compile(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// reach is the number of bytes beside a number that the checks look at.
const reach = 64

// checkDigits refuses a part of a number.
func (m match) checkDigits() error {
	head, tail := m.text[max(0, m.number.start-reach):m.number.start], m.text[m.number.end:min(len(m.text), m.number.end+reach)]
	cutWord := wordBefore().Match(head) && m.groups[0] == m.number.start
	if !digitBefore().Match(head) && !digitAfter.Match(tail) && !cutWord && !m.groupBefore(head) && !m.groupAfter(tail) {
		return nil
	}
	return m.fault(m.number.start, m.number.end, fmt.Sprintf("the group of the expression %q takes %q, a part of a number or word; put the complete number into the group; "+
		"a number needs a decimal point and no separator of thousands: set LC_ALL=C among the program's variables; "+
		"if another field is beside the number, put its separator and a digit into the expression", m.Regexp, workload.Excerpt(m.of(m.number))))
}

// groupAfter reports whether the number goes on after a separator that the expression does not contain. A comma or a blank between groups of three
// digits is taken for another field only if the expression contains the digit too.
func (m match) groupAfter(tail []byte) bool {
	number, end := m.of(m.number), m.number.end
	if blankAfter.Match(tail) && firstGroup.MatchString(number) {
		return !m.requires(end, end+1) || !m.requires(end+1, end+2)
	}
	place := markAfter.FindSubmatchIndex(tail)
	if place == nil {
		return false
	}
	mark, rest := string(tail[place[2]:place[3]]), tail[place[3]:]
	grouped := mark != ":" && (mark != "," || firstGroup.MatchString(number) && laterGroup.Match(rest) || pointGroups.MatchString(number))
	return !m.requires(end, end+place[3]) || grouped && !m.requires(end+place[3], end+place[3]+1)
}

// groupBefore is groupAfter for the text before the number.
func (m match) groupBefore(head []byte) bool {
	number, start := m.of(m.number), m.number.start
	if blankBefore().Match(head) && laterGroup.MatchString(number) {
		return !m.requires(start-1, start) || !m.requires(start-2, start-1)
	}
	place := markBefore.FindSubmatchIndex(head)
	if place == nil {
		return false
	}
	mark, rest := string(head[place[2]:place[3]]), head[:place[2]]
	grouped := mark != ":" && (mark != "," || laterGroup.MatchString(number) || pointGroups.Match(rest))
	mid := start - (place[3] - place[2])
	return !m.requires(mid, start) || grouped && !m.requires(mid-1, mid)
}

// wordBefore is the end of a word that a number is part of.
var wordBefore = compile(`[\pL\pN_]$`)

// wordAfter is the unit after a number: a word, or one in square brackets.
var wordAfter = compile(`^` + anyBlank + `(?:(` + unitWord + `)|\[` + anyBlank + `(` + unitWord + `|#` + ratePart + `)` + anyBlank + `\])`)

// wordInParentheses is a unit in parentheses, where comments are too.
var wordInParentheses = compile(`^` + anyBlank + `\(` + anyBlank + `(` + unitWord + `)` + anyBlank + `\)`)

const (
	unitWord = `(?:[\pL%‰°][\pL\pM\pN%°·²³^*_-]*(?:` + ratePart + `)?|_[\pL\pN_]*|` + ratePart + `)`
	ratePart = `/[\pL#][\pL\pM\pN²³_]*`
)

// word returns the word after the number on its line; it is empty without one.
func (m match) word() span {
	rest := m.text[m.number.end:min(len(m.text), m.number.end+reach)]
	if place := wordAfter().FindSubmatchIndex(rest); place != nil {
		n := 2
		if place[n] < 0 {
			n = 4
		}
		return span{m.number.end + place[n], m.number.end + place[n+1]}
	}
	if place := wordInParentheses().FindSubmatchIndex(rest); place != nil && isUnit(string(rest[place[2]:place[3]])) {
		return span{m.number.end + place[2], m.number.end + place[3]}
	}
	return span{m.number.end, m.number.end}
}

// checkWord refuses a word after the number that the expression does not contain.
func (m match) checkWord(word span) error {
	if !word.begins() || m.groups[1] >= word.end && !slices.ContainsFunc(otherWords(m.of(word)), func(replacement string) bool {
		end, matches := m.replaced(word, replacement)
		return matches && end >= len(replacement) // it takes the whole word
	}) {
		return nil
	}
	unit := m.of(word)
	return m.fault(m.number.start, word.end, fmt.Sprintf("the unit %q follows the number %q, and the expression %q also accepts another unit there, which would give a wrong value; "+
		"put the whole unit into the expression after the group, or write scale: auto if the program changes its unit", workload.Excerpt(unit), workload.Excerpt(m.of(m.number)), m.Regexp))
}

// checkUnit refuses a group for the unit that takes a part of a word.
func (m match) checkUnit(unit span) error {
	char, _ := utf8.DecodeLastRune(m.text[:unit.start])
	place := wholeWord().FindIndex(m.text[unit.start:min(len(m.text), unit.start+reach)])
	if unit.start != m.number.end && wordBefore().MatchString(string(char)) || place == nil || unit.start+place[1] != unit.end {
		return m.fault(unit.start, unit.end, fmt.Sprintf("the group for the unit of the expression %q takes %q, which is not a whole word; put the whole unit into it", m.Regexp, workload.Excerpt(m.of(unit))))
	}
	return nil
}

var wholeWord = compile(`^(?:` + unitWord + `|#` + ratePart + `)`)

// checkEnd refuses the first part of a time in several units, such as 1m 30s.
func (m match) checkEnd(word span, first term) error {
	groups := nextTerm().FindSubmatch(m.text[word.end:min(len(m.text), word.end+reach)])
	if groups == nil || m.scale.unit != "s" || !wholeNumber.MatchString(first.number) {
		return nil
	}
	if factor, ok := m.scale.words[string(groups[1])]; ok && factor < first.factor {
		return m.fault(m.number.start, word.end, fmt.Sprintf("the group of the expression %q takes the first part of a time in several units; put all of it into the group, such as ([0-9.hms ]+)", m.Regexp))
	}
	return nil
}

var (
	nextTerm    = compile(`^ ?[0-9]+(?:\.[0-9]+)? ?(\pL+)`)
	wholeNumber = regexp.MustCompile(`^[0-9]+$`)
)

// requires reports whether the expression contains a character beside the number: it does not match the same number with another in its place.
func (m match) requires(start, end int) bool {
	return !slices.ContainsFunc([]string{"x", "~"}, func(replacement string) bool {
		_, matches := m.replaced(span{start, end}, replacement)
		return matches
	})
}

// replaced matches the text with another part in the place of one beside the number. It reports whether the number stays the same, and
// where the match then ends, from the start of the part.
func (m match) replaced(part span, replacement string) (end int, ok bool) {
	_, size := utf8.DecodeLastRune(m.text[:m.groups[0]])
	start := min(m.groups[0]-size, part.start) // one character more, for ^ and \b
	limit := min(len(m.text), max(m.groups[1], part.end)+reach)
	text := bytes.Join([][]byte{m.text[start:part.start], m.text[part.end:limit]}, []byte(replacement))
	number := span{m.number.start - start, m.number.end - start}
	if part.end <= m.number.start {
		growth := len(replacement) - (part.end - part.start)
		number = span{number.start + growth, number.end + growth}
	}
	found := m.FindSubmatchIndex(text)
	if found == nil || found[2*m.expression.number] != number.start || found[2*m.expression.number+1] != number.end {
		return 0, false
	}
	return found[1] - (part.start - start), true
}

// fault is an error about a part of the output, with its line.
func (m match) fault(start, end int, text string) error {
	line := 1 + bytes.Count(m.text[:start], []byte("\n"))
	first, last := bytes.LastIndexByte(m.text[:start], '\n')+1, len(m.text)
	if n := bytes.IndexByte(m.text[end:], '\n'); n >= 0 {
		last = end + n
	}
	const limit = 40 // bytes of the line before and after
	first, last = max(first, start-limit), min(last, end+limit)
	return fmt.Errorf("line %d of the output, %q: %s", line, strings.ToValidUTF8(string(m.text[first:last]), ""), text)
}
