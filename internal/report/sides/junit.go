package sides

import (
	"encoding/xml"
	"fmt"
	"io"

	"github.com/touchstone-bench/touchstone/internal/report"
)

// The elements of JUnit's format that servers of continuous integration read.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Failure *junitProblem `xml:"failure"`
		Error   *junitProblem `xml:"error"`
		Output  string        `xml:"system-out,omitempty"`
	}
	junitProblem struct {
		Type    string `xml:"type,attr"`
		Message string `xml:"message,attr"`
	}
)

// JUnit writes the gates as test cases, a suite for each benchmark. A metric that is worse than its margin is a failure. An inconclusive one is
// an error, because servers count a skipped case as a pass.
func (c *Comparison) JUnit(w io.Writer) error {
	all := junitSuites{Name: "touchstone compare " + c.NameA + " " + c.NameB}
	at := map[string]int{}
	for _, k := range c.Gates {
		title := report.Key{Name: k.Benchmark, Params: k.Params}.Title()
		name, class := k.Metric.Name+" on "+k.Target, title
		if k.Metric.Name == "" {
			title, class, name = "gates", "gates", k.Gate.String()
		}
		i, known := at[title]
		if !known {
			i = len(all.Suites)
			at[title] = i
			all.Suites = append(all.Suites, junitSuite{Name: title})
		}
		s := &all.Suites[i]
		test := junitCase{Class: class, Name: name}
		message := fmt.Sprintf("%s: %s", k.Gate, k.Why)
		switch k.Answer {
		case Worse:
			test.Failure = &junitProblem{string(k.Answer), message}
			s.Failures++
			all.Failures++
		case Inconclusive:
			test.Error = &junitProblem{string(k.Answer), message}
			s.Errors++
			all.Errors++
		case NotWorse:
			test.Output = message
		}
		s.Cases = append(s.Cases, test)
		s.Tests++
		all.Tests++
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
