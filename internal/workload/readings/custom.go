// Package readings finds the values of a user's own program in its output, by regular expressions, JSON paths and units.
package readings

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/ohler55/ojg/jp"

	"github.com/touchstone-bench/touchstone/internal/workload"
)

// Reading finds one value in the output of a custom program, by a regular expression or a JSON path, and converts it to the unit
// of its metric.
//
// A reading is strict, because the meaning of an unknown program's output cannot be checked: it requires exactly one complete
// number with a certain unit. An expression that takes the 12 out of 12.5, 12,5, 1 512, 12k or 12 ms would give plausible but wrong
// results.
type Reading struct {
	metric string
	find   func(*customOutput) ([]term, error)
}

// term is a number with the factor of its unit. A time such as 1m 30s has several.
type term struct {
	number string
	factor float64
}

// customOutput is the output of a program, with its JSON document once a reading needs it.
type customOutput struct {
	text     []byte
	decoded  bool
	document any
	err      error
}

// Regex reads a value by a regular expression (RE2) with one group for the number. The expression must match exactly once. With
// Auto the group may include the unit, or a group named unit has it, or it is the word after the number.
func Regex(metric, expression string, scale Scale) (Reading, error) {
	e, err := newExpression(expression, scale)
	if err != nil {
		return Reading{}, err
	}
	return Reading{metric, func(o *customOutput) ([]term, error) { return e.quantity(o.text) }}, nil
}

// JSON reads a value by a JSON path (RFC 9535; the $ at the beginning is optional). The output must be one JSON document, and
// the path must select exactly one number in it; with Auto, a string of a number and its unit.
func JSON(metric, path string, scale Scale) (Reading, error) {
	expression, err := jp.ParseString(path)
	if err != nil {
		return Reading{}, err
	}
	switch descents := strings.Count(path, ".."); {
	case len(expression) == 0:
		return Reading{}, errors.New("it is empty")
	case descents > 1:
		// Each descent multiplies the number of visited values by the size of the document.
		return Reading{}, errors.New("it descends to all depths (..) more than once")
	}
	return Reading{metric, func(o *customOutput) ([]term, error) { return selectOne(expression, scale, o) }}, nil
}

// Program is a call of a program from the plan. Only the readings look at its output.
func Program(args, env []string, readings ...Reading) workload.Program {
	return workload.Program{Args: args, Env: env, Parse: func(stdout []byte) (workload.Values, error) {
		out, values := &customOutput{text: stdout}, workload.Values{}
		for _, r := range readings {
			value, err := r.value(out)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", r.metric, err)
			}
			values[r.metric] = value
		}
		return values, nil
	}}
}

// value returns the number in the unit of the metric.
func (r Reading) value(out *customOutput) (float64, error) {
	terms, err := r.find(out)
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for _, t := range terms {
		value, err := parseCustomNumber(t.number)
		if err != nil {
			return 0, err
		}
		product := value * t.factor
		if math.IsInf(product, 0) || product == 0 && value != 0 {
			return 0, fmt.Errorf("%q × %v is too large or too small for a number", t.number, t.factor)
		}
		sum += product
	}
	return sum, nil
}

var (
	customNumber = regexp.MustCompile(`^` + numberText + `$`)
	// customGroups is a number with digits in groups, or with another decimal mark.
	customGroups = regexp.MustCompile(`^[+-]?[0-9]+(?:[.,'’_·٫٬ ` + wideBlank + `]+[0-9]+)+$`)
)

// parseCustomNumber reads a number from 0 in the format of the C locale.
func parseCustomNumber(text string) (float64, error) {
	switch {
	case customNumber.MatchString(text):
	case customGroups.MatchString(text):
		return 0, fmt.Errorf("%q has a comma or digits in groups; a number needs a decimal point and no separator of thousands: set LC_ALL=C among the program's variables", workload.Excerpt(text))
	default:
		return 0, fmt.Errorf("%q is not a number", workload.Excerpt(text))
	}
	value, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is too large for a number", workload.Excerpt(text))
	case value < 0:
		return 0, fmt.Errorf("%s is below 0, and no metric can be negative", workload.Excerpt(text))
	}
	return value, nil
}

// selectOne returns the quantity that a path selects.
func selectOne(path jp.Expr, scale Scale, out *customOutput) ([]term, error) {
	document, err := out.json()
	if err != nil {
		return nil, err
	}
	found := path.Get(document)
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("the path %q selects nothing in the output, which begins with %q", path, workload.Excerpt(string(out.text)))
	case 1:
	default:
		return nil, fmt.Errorf("the path %q selects %d values; the first are %s and %s", path, len(found), shownJSON(found[0]), shownJSON(found[1]))
	}
	text, ok := found[0].(string)
	if number, isNumber := found[0].(float64); isNumber {
		text, ok = strconv.FormatFloat(number, 'g', -1, 64), true
	} else if !scale.auto() {
		ok = false
	}
	switch {
	case !ok:
		return nil, fmt.Errorf("the path %q selects %s, which is not a number", path, shownJSON(found[0]))
	case !scale.auto():
		return []term{{text, scale.factor}}, nil
	}
	terms, err := scale.terms(text, "")
	if err != nil {
		return nil, fmt.Errorf("the path %q selects %s: %w", path, shownJSON(found[0]), err)
	}
	return terms, nil
}

// json decodes the output once.
func (o *customOutput) json() (any, error) {
	if !o.decoded {
		o.decoded = true
		if err := json.Unmarshal(o.text, &o.document); err != nil {
			o.err = fmt.Errorf("the output is not a JSON document (%w): it begins with %q", err, workload.Excerpt(string(o.text)))
		}
	}
	return o.document, o.err
}

// shownJSON formats a JSON value for a message.
func shownJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil { // a decoded value can always be encoded
		return "a value"
	}
	return workload.Excerpt(string(text))
}
