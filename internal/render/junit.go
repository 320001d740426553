package render

import (
	"encoding/xml"
	"io"

	"github.com/touchstone-bench/touchstone/internal/document"
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
		Skipped  int         `xml:"skipped,attr,omitempty"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Failure *junitProblem `xml:"failure"`
		Error   *junitProblem `xml:"error"`
		Skipped *junitProblem `xml:"skipped"`
		Output  string        `xml:"system-out,omitempty"`
	}
	junitProblem struct {
		Type    string `xml:"type,attr,omitempty"`
		Message string `xml:"message,attr"`
	}
)

// writeJUnit writes the checks of a document as test cases, in the order of their suites' first cases. A failed check is a failure, and an
// undecided one an error, because servers count a skipped case as a pass. A warning is a pass with an output, because the format has no other place for it.
func writeJUnit(w io.Writer, d *document.Document, _ Options) error {
	if d.Checks == nil {
		return nothing("a %s has no checks, and so no test cases", d.Kind)
	}
	suites := junitSuites{Name: "touchstone " + d.Suite}
	places := map[string]int{}
	for _, c := range d.Checks {
		place, found := places[c.Suite]
		if !found {
			place = len(suites.Suites)
			places[c.Suite] = place
			suites.Suites = append(suites.Suites, junitSuite{Name: c.Suite})
		}
		suites.add(&suites.Suites[place], c)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(suites); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// add adds a check to a suite, and counts it.
func (suites *junitSuites) add(s *junitSuite, c document.Check) {
	test := junitCase{Class: c.Suite, Name: c.Name}
	switch c.Status {
	case document.Failed:
		test.Failure = &junitProblem{c.Answer, c.Message}
		s.Failures++
		suites.Failures++
	case document.Undecided:
		test.Error = &junitProblem{c.Answer, c.Message}
		s.Errors++
		suites.Errors++
	case document.Skipped:
		test.Skipped = &junitProblem{Message: c.Answer + ": " + c.Message}
		s.Skipped++
	case document.Warned:
		test.Output = "warning: " + c.Answer + ": " + c.Message
	case document.Passed:
		test.Output = c.Message
	}
	s.Cases = append(s.Cases, test)
	s.Tests++
	suites.Tests++
}
