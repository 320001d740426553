// Package ci writes comparisons for servers of continuous integration: test cases in JUnit's format, and Markdown for comments and
// summaries. All comparisons share it, so that an undecided metric is the same everywhere: an error, never a pass.
//
// Texts may come from runs of others. JUnit escapes them, and Markdown makes them plain: no character has a meaning. The package refuses
// no input, and it does no input or output but to the given writer.
package ci

import (
	"encoding/xml"
	"io"
)

// Status is the result of a test case.
type Status int

// The results. An undecided case is an error in JUnit's format, because servers count a skipped case as a pass.
const (
	Undecided Status = iota
	Failed
	Passed
)

// Case is a test case: a metric that has been compared.
type Case struct {
	// Suite groups the cases. It is the class of the case too.
	Suite, Name string
	Status      Status
	// Answer is the status in the words of the comparison, and Message its reason.
	Answer, Message string
}

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

// WriteJUnit writes cases below a name, in the order of their suites' first cases.
func WriteJUnit(w io.Writer, name string, cases []Case) error {
	all := junitSuites{Name: name}
	at := map[string]int{}
	for _, c := range cases {
		i, known := at[c.Suite]
		if !known {
			i = len(all.Suites)
			at[c.Suite] = i
			all.Suites = append(all.Suites, junitSuite{Name: c.Suite})
		}
		s := &all.Suites[i]
		test := junitCase{Class: c.Suite, Name: c.Name}
		switch c.Status {
		case Failed:
			test.Failure = &junitProblem{c.Answer, c.Message}
			s.Failures++
			all.Failures++
		case Undecided:
			test.Error = &junitProblem{c.Answer, c.Message}
			s.Errors++
			all.Errors++
		case Passed:
			test.Output = c.Message
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
