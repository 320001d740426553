package readings

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/touchstone-bench/touchstone/internal/workload"
)

// expression is a regular expression for a number, and for its unit if a group has the name unit.
type expression struct {
	*regexp.Regexp
	number, unit int // groups; unit is 0 without one
	scale        Scale
}

// unitGroup is the name of the group for the unit.
const unitGroup = "unit"

func newExpression(text string, scale Scale) (*expression, error) {
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	e := &expression{Regexp: re, scale: scale}
	numbers, units := 0, 0
	for group, name := range re.SubexpNames()[1:] {
		if name == unitGroup {
			e.unit = group + 1
			units++
		} else {
			e.number = group + 1
			numbers++
		}
	}
	switch {
	case numbers == 0:
		return nil, errors.New("it has no group for the number")
	case numbers > 1 && scale.auto():
		return nil, fmt.Errorf("it has %d groups instead of one for the number; name the group for the unit (?P<unit>…)", numbers)
	case numbers > 1:
		return nil, fmt.Errorf("it has %d groups instead of one for the number", numbers)
	case units > 1:
		return nil, fmt.Errorf("it has %d groups for the unit", units)
	case units == 1 && !scale.auto():
		return nil, errors.New("it has a group for the unit, which only scale: auto reads")
	}
	return e, nil
}

// quantity reads the only match of the expression.
func (e *expression) quantity(text []byte) ([]term, error) {
	m, err := e.once(text)
	if err != nil {
		return nil, err
	}
	if err := m.checkDigits(); err != nil {
		return nil, err
	}
	number, word := m.of(m.number), m.word()
	if !e.scale.auto() {
		return []term{{number, e.scale.factor}}, m.checkWord(word)
	}
	if unit := m.group(e.unit); e.unit != 0 && unit.begins() {
		if err := m.checkUnit(unit); err != nil {
			return nil, err
		}
		if word != unit {
			if err := m.checkWord(word); err != nil {
				return nil, err
			}
		}
		return e.scale.terms(number, m.of(unit))
	}
	if !customNumber.MatchString(number) { // the group has the unit too
		if err := m.checkWord(word); err != nil {
			return nil, err
		}
		return e.scale.terms(number, "")
	}
	terms, err := e.scale.terms(number, m.of(word))
	if err != nil {
		return nil, m.fault(m.number.start, word.end, err.Error())
	}
	return terms, m.checkEnd(word, terms[0])
}

// once returns the only match of the expression.
func (e *expression) once(text []byte) (match, error) {
	matches := e.FindAllSubmatchIndex(text, 2)
	switch len(matches) {
	case 0:
		return match{}, fmt.Errorf("the expression %q matches nothing in the output, which begins with %q", e.Regexp, workload.Excerpt(string(text)))
	case 1:
	default:
		one, two := matches[0], matches[1]
		return match{}, fmt.Errorf("the expression %q matches more than once: %q and %q", e.Regexp, workload.Excerpt(string(text[one[0]:one[1]])), workload.Excerpt(string(text[two[0]:two[1]])))
	}
	m := match{expression: e, text: text, groups: matches[0]}
	if m.number = m.group(e.number); m.number.start < 0 {
		return match{}, fmt.Errorf("the expression %q matches %q without its group", e.Regexp, workload.Excerpt(string(m.of(m.group(0)))))
	}
	return m, nil
}
