package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/ohler55/ojg/jp"
)

// Reading finds one value in the output of a custom program, by a regular expression or a JSON path, and converts it to the unit
// of its metric by a factor.
//
// A reading is strict, because the meaning of an unknown program's output cannot be checked: it requires exactly one complete
// number. An expression that takes the 12 out of 12.5, 12,5, 1,512 or 12k would give plausible but wrong results.
type Reading struct {
	metric string
	scale  float64
	find   func(*customOutput) (number string, err error)
}

// customOutput is the output of a program, with its JSON document once a reading needs it.
type customOutput struct {
	text     []byte
	decoded  bool
	document any
	err      error
}

// Regex reads a value by a regular expression (RE2) with one group for the number. The expression must match exactly once.
func Regex(metric, expression string, scale float64) (Reading, error) {
	re, err := regexp.Compile(expression)
	if err != nil {
		return Reading{}, err
	}
	switch n := re.NumSubexp(); n {
	case 0:
		return Reading{}, errors.New("it has no group for the number")
	case 1:
	default:
		return Reading{}, fmt.Errorf("it has %d groups instead of one for the number", n)
	}
	find := func(o *customOutput) (string, error) { return matchOnce(re, o.text) }
	return Reading{metric, scale, find}, nil
}

// JSON reads a value by a JSON path (RFC 9535; the $ at the beginning is optional). The output must be one JSON document, and
// the path must select exactly one number in it.
func JSON(metric, path string, scale float64) (Reading, error) {
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
	find := func(o *customOutput) (string, error) { return selectOne(expression, o) }
	return Reading{metric, scale, find}, nil
}

// Custom is a call of a program from the plan. Only the readings look at its output.
func Custom(args, env []string, readings ...Reading) Program {
	return Program{Args: args, Env: env, Parse: func(stdout []byte) (Values, error) {
		out, values := &customOutput{text: stdout}, Values{}
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
	text, err := r.find(out)
	if err != nil {
		return 0, err
	}
	value, err := parseCustomNumber(text)
	if err != nil {
		return 0, err
	}
	scaled := value * r.scale
	if math.IsInf(scaled, 0) || scaled == 0 && value != 0 {
		return 0, fmt.Errorf("%q × %v is too large or too small for a number", text, r.scale)
	}
	return scaled, nil
}

var (
	customNumber = regexp.MustCompile(`^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$`)
	customComma  = regexp.MustCompile(`^[+-]?[0-9.' ]*,[0-9]+$`)
)

// parseCustomNumber reads a number from 0 in the format of the C locale.
func parseCustomNumber(text string) (float64, error) {
	switch {
	case customNumber.MatchString(text):
	case customComma.MatchString(text):
		return 0, fmt.Errorf("%q has a comma; a number needs a decimal point and no separator of thousands: set LC_ALL=C among the program's variables", cut(text))
	default:
		return 0, fmt.Errorf("%q is not a number", cut(text))
	}
	value, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is too large for a number", cut(text))
	case value < 0:
		return 0, fmt.Errorf("%s is below 0, and no metric can be negative", cut(text))
	}
	return value, nil
}

// matchOnce returns the group of the only match of an expression.
func matchOnce(re *regexp.Regexp, text []byte) (string, error) {
	matches := re.FindAllSubmatchIndex(text, 2)
	switch len(matches) {
	case 0:
		return "", fmt.Errorf("the expression %q matches nothing in the output, which begins with %q", re, cut(string(text)))
	case 1:
	default:
		one, two := matches[0], matches[1]
		return "", fmt.Errorf("the expression %q matches more than once: %q and %q", re, cut(string(text[one[0]:one[1]])), cut(string(text[two[0]:two[1]])))
	}
	m := matches[0]
	if m[2] < 0 {
		return "", fmt.Errorf("the expression %q matches %q without its group", re, cut(string(text[m[0]:m[1]])))
	}
	number := string(text[m[2]:m[3]])
	const near = 16
	before, after := text[max(0, m[2]-near):m[2]], text[m[3]:min(len(text), m[3]+near)]
	if insideBefore.Match(before) || m[0] == m[2] && outsideBefore.Match(before) ||
		insideAfter.Match(after) || m[1] == m[3] && outsideAfter.Match(after) {
		return "", fmt.Errorf("the group of the expression %q takes %q out of %q, a part of a number or a number with a unit; "+
			"put the complete number into the group, and the text after it into the expression", re, cut(number), string(before)+number+string(after))
	}
	return number, nil
}

// The texts beside an incomplete number. Inside of the match the expression may contain a separator (as in lines with commas between
// their fields) or a unit, but a digit there belongs to the number and was matched by something like ".*".
var (
	insideBefore  = regexp.MustCompile(`(?:[0-9.]|(?:^|[\s=:(,])[+-])$`)
	outsideBefore = regexp.MustCompile(`(?:[\pL\pN_]|[0-9][,':])$`)
	insideAfter   = regexp.MustCompile(`^(?:\.?[0-9]|[eE][+-]?[0-9])`)
	outsideAfter  = regexp.MustCompile(`^(?:[\pL\pN_%]|[,':][0-9])`)
)

// selectOne returns the number that a path selects.
func selectOne(path jp.Expr, out *customOutput) (string, error) {
	document, err := out.json()
	if err != nil {
		return "", err
	}
	found := path.Get(document)
	switch len(found) {
	case 0:
		return "", fmt.Errorf("the path %q selects nothing in the output, which begins with %q", path, cut(string(out.text)))
	case 1:
	default:
		return "", fmt.Errorf("the path %q selects %d values; the first are %s and %s", path, len(found), shownJSON(found[0]), shownJSON(found[1]))
	}
	number, ok := found[0].(float64)
	if !ok {
		return "", fmt.Errorf("the path %q selects %s, which is not a number", path, shownJSON(found[0]))
	}
	return strconv.FormatFloat(number, 'g', -1, 64), nil
}

// json decodes the output once.
func (o *customOutput) json() (any, error) {
	if !o.decoded {
		o.decoded = true
		if err := json.Unmarshal(o.text, &o.document); err != nil {
			o.err = fmt.Errorf("the output is not a JSON document (%w): it begins with %q", err, cut(string(o.text)))
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
	return cut(string(text))
}
