// Package wording spells counts and lists for people. It is a leaf, so that every package can use it: a count with a fixed plural is wrong for one thing, and a list
// needs commas from three names on.
package wording

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Counted spells a number of things: "1 family", "2 families", "2 processes".
func Counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if stem, has := strings.CutSuffix(noun, "y"); has {
		noun = stem + "ie"
	} else if strings.HasSuffix(noun, "s") {
		noun += "e"
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// Capital spells a text with a capital letter, for the beginning of a sentence. A first word that is a name, such as k8s/runc, keeps its spelling.
func Capital(text string) string {
	word, _, _ := strings.Cut(text, " ")
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 || strings.ContainsAny(word, "/0123456789") {
		return text
	}
	return string(unicode.ToUpper(first)) + text[size:]
}

// Clause is the part of a warning before its reason and its consequences.
func Clause(text string) string {
	text, _, _ = strings.Cut(text, "; ")
	text, _, _ = strings.Cut(text, ": ")
	return text
}

// Listed joins words as a sentence does: "a, b and c".
func Listed(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// mostNames is the number of names that [Shortlist] spells if there are many.
const mostNames = 3

// Shortlist lists the first names and the number of the other things.
func Shortlist(names []string, things string) string {
	if rest := len(names) - mostNames; rest > 1 {
		return strings.Join(names[:mostNames], ", ") + " and " + strconv.Itoa(rest) + " more " + things
	}
	return strings.Join(names, ", ")
}
