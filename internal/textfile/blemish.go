package textfile

import (
	"fmt"
	"strings"
	"unicode"
)

// Blemish is a character of a YAML file that looks like another one. Pages, chats and word processors put it in their text.
type Blemish struct {
	// Line and Column count from 1, columns in characters.
	Line, Column int
	Problem      string
	Advice       string
}

// Blemishes finds the characters that a parser of YAML takes for a part of a word: blanks other than the space, tabs in the indentation, and
// quotation marks and dashes at the start of a value. Characters in quotes and comments are content. A correct file can have them too, so a
// caller looks for them after an error.
func Blemishes(text string) []Blemish {
	var list []Blemish
	s := scanner{}
	number := 0
	for line := range strings.Lines(text) {
		number++
		for _, b := range s.line(strings.TrimRight(line, "\r\n")) {
			b.Line = number
			list = append(list, b)
		}
	}
	return list
}

// scanner follows the quotes and the brackets of a YAML file.
type scanner struct {
	quote rune // the open quotation mark, or 0
	depth int  // of brackets
}

// line returns the blemishes of a line.
func (s *scanner) line(line string) (list []Blemish) {
	const indentation, inValue, inWord = 0, 1, 2 // the places in a line
	for _, mark := range []string{"<<<<<<< ", ">>>>>>> "} {
		if strings.HasPrefix(line, mark) {
			return []Blemish{{Column: 1, Problem: "a conflict of Git is unsolved here", Advice: "solve it, and remove the lines <<<<<<<, ======= and >>>>>>>"}}
		}
	}
	place, column, last, escaped := indentation, 0, rune(' '), false
	characters := []rune(line)
	for i, r := range characters {
		column++
		next := rune(' ')
		if i+1 < len(characters) {
			next = characters[i+1]
		}
		switch {
		case escaped:
			escaped = false
		case s.quote == '"' && r == '\\', s.quote == '\'' && r == '\'' && next == '\'':
			escaped = true // the next character
		case s.quote != 0:
			if r == s.quote {
				s.quote = 0
			}
			place = inWord
		case r == '#' && isBlank(last):
			return list
		case place != inWord && (r == '"' || r == '\''):
			s.quote = r
		case r == '\t' && place == indentation && s.depth == 0:
			if strings.TrimSpace(string(characters[i:])) != "" {
				list = append(list, Blemish{Column: column, Problem: "a tab is in the indentation", Advice: "replace it with spaces"})
			}
			place = inValue
		case r == ' ' || r == '\t':
		case isOddBlank(r):
			list = append(list, Blemish{
				Column: column, Problem: fmt.Sprintf("an invisible character or a blank that is not a space is here (%U, %s)", r, nameOf(r)),
				Advice: `replace it with a space or remove it, for example with sed -i 's/` + spelled(r) + `/ /g' FILE; put quotes around the value if it belongs to it`,
			})
			r = ' '
		case place != inWord && strings.ContainsRune("“”„‟‘’‚‛«»´`", r):
			list = append(list, Blemish{Column: column, Problem: fmt.Sprintf("%c (%U) is no quotation mark of YAML", r, r), Advice: `write " or '`})
			place = inWord
		case place != inWord && strings.ContainsRune("‐‑‒–—―−", r):
			list = append(list, Blemish{Column: column, Problem: fmt.Sprintf("%c (%U) is not a hyphen", r, r), Advice: "write - or --"})
			place = inWord
		case strings.ContainsRune("[{", r) && place != inWord:
			s.depth++
			place = inValue
		case strings.ContainsRune("]}", r) && s.depth > 0:
			s.depth--
			place = inWord
		case r == ',' && s.depth > 0, r == ':' && isBlank(next), r == '-' && isBlank(next) && place == indentation:
			place = inValue
			if r == '-' {
				place = indentation
			}
		default:
			place = inWord
		}
		last = r
	}
	return list
}

func isBlank(r rune) bool { return r == ' ' || r == '\t' }

// isOddBlank reports whether a character looks like a space or like nothing.
func isOddBlank(r rune) bool {
	return r > 127 && (unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) || r == '\u2800' || r == '\u3164')
}

// nameOf names the most frequent of these characters.
func nameOf(r rune) string {
	switch r {
	case '\u00a0':
		return "no-break space"
	case '\u202f':
		return "narrow no-break space"
	case '\u2009':
		return "thin space"
	case '\u200b':
		return "zero width space"
	case '\ufeff':
		return "byte order mark"
	case '\u3000':
		return "ideographic space"
	case '\u00ad':
		return "soft hyphen"
	}
	return "invisible"
}

// spelled spells a character for sed.
func spelled(r rune) string {
	text := ""
	for _, b := range []byte(string(r)) {
		text += fmt.Sprintf(`\x%02x`, b)
	}
	return text
}
