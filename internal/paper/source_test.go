package paper

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// source is the way from the text of a paper to its data, in testdata/NAME.yaml. Excerpts are quoted from the text. White space matches
// any white space, and " … " any text. An excerpt must occur exactly once.
type source struct {
	// Places are the excerpts with the numbers of each table, in the order of its cells. In the excerpt of a table
	// whose name begins with "table", the labels of the rows stand before their cells.
	Places map[string][]string `yaml:"places"`
	// Labels are the printed labels of the tables whose labels in the data are translated or completed.
	Labels map[string][]string `yaml:"labels"`
	// Excluded are the numbers that are no results.
	Excluded []exclusion `yaml:"excluded"`
}

type exclusion struct {
	Class    string   `yaml:"class"`
	Excerpts []string `yaml:"excerpts"`
	// Patterns are regular expressions for numbers at many places, such as citations.
	Patterns []string `yaml:"patterns"`
}

// classes are the permitted reasons for an exclusion.
var classes = map[string]string{
	"axis":       "a mark on the axis of a figure",
	"background": "a statement about other systems or studies, or about the history",
	"citation":   "the number of a reference",
	"definition": "a number of an equation or of a definition",
	"heading":    "the number of a section, figure, table, footnote, item or equation, or of a page",
	"log":        "the output of a program that is no result",
	"name":       "a part of the name of a product, protocol, file, format or metric",
	"references": "the list of references, or the contents",
	"repeated":   "a number of the data that the text repeats",
	"publisher":  "authors, dates, addresses and licences",
	"set-up":     "the machine, the versions, the parameters and the repetitions",
}

// papersDir returns the folder with the texts of the papers, which are not part of the project. The test is skipped if the folder
// has no name and the default does not exist.
func papersDir(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("TOUCHSTONE_PAPERS")
	dir := cmp.Or(folder, filepath.Join("..", "..", "..", "shared", "papers"))
	_, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) && folder == "" {
		t.Skipf("the texts of the papers are missing; name their folder in TOUCHSTONE_PAPERS: %v", err)
	}
	must.Do(t, err)
	return dir
}

// Every number of the data stands in the paper at its place, and every number of the paper is data or excluded with a reason.
//
// Invariant published-numbers: Every published number is in the paper at its place, no number of a paper is missing, and each has a metric or a reason.
func TestDataIsAsPrinted(t *testing.T) {
	dir := papersDir(t)
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			p, err := Load(name)
			must.Do(t, err)
			text, err := os.ReadFile(filepath.Join(dir, name+".txt"))
			must.Do(t, err)
			for _, err := range compare(p, string(text), readSource(t, name)) {
				t.Error(err)
			}
		})
	}
}

func readSource(t *testing.T, name string) source {
	t.Helper()
	file := filepath.Join("testdata", name+".yaml")
	text, err := os.ReadFile(file)
	must.Do(t, err)
	var s source
	if err := yaml.UnmarshalWithOptions(text, &s, yaml.Strict()); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return s
}

// number is a number in the text of a paper, or a result if a table has it.
type number struct {
	start, end int
	text       string
	use        string // the table or the class
}

// paperText finds excerpts and numbers in a text.
type paperText struct {
	text    string
	numbers []number
}

// digits matches a number and the character before it. Digits after a letter belong to a name, as in Scalability50.
var digits = regexp.MustCompile(`(^|[^A-Za-z0-9_.])([0-9]+(?:[.,][0-9]+)*)`)

func numbersOf(text string) []number {
	var numbers []number
	for _, m := range digits.FindAllStringSubmatchIndex(text, -1) {
		numbers = append(numbers, number{start: m[4], end: m[5], text: text[m[4]:m[5]]})
	}
	return numbers
}

// find returns the only place of an excerpt in the text from an offset on.
func (p paperText) find(excerpt string, offset int) (span [2]int, err error) {
	var parts []string
	for part := range strings.SplitSeq(excerpt, " … ") {
		var words []string
		for _, w := range strings.Fields(part) {
			words = append(words, regexp.QuoteMeta(w))
		}
		parts = append(parts, strings.Join(words, `\s+`))
	}
	pattern, err := regexp.Compile(`(?s)` + strings.Join(parts, `.*?`))
	if err != nil {
		return span, err
	}
	found := pattern.FindAllStringIndex(p.text[offset:], 2)
	switch {
	case len(found) == 0:
		return span, fmt.Errorf("the text does not have %q", excerpt)
	case len(found) == 2 && offset == 0:
		return span, fmt.Errorf("the text has %q twice; quote more of it", excerpt)
	}
	return [2]int{found[0][0] + offset, found[0][1] + offset}, nil
}

// within returns the numbers of a span.
func (p paperText) within(span [2]int) []*number {
	var numbers []*number
	for i := range p.numbers {
		if n := &p.numbers[i]; n.start >= span[0] && n.end <= span[1] {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// exclude marks the numbers that are no results.
func (p paperText) exclude(excluded []exclusion) (errs []error) {
	for _, e := range excluded {
		if classes[e.Class] == "" {
			errs = append(errs, fmt.Errorf("an exclusion has the unknown class %q", e.Class))
		}
		var spans [][]int
		for _, pattern := range e.Patterns {
			found := regexp.MustCompile(pattern).FindAllStringIndex(p.text, -1)
			if found == nil {
				errs = append(errs, fmt.Errorf("class %s: the pattern %s matches nothing", e.Class, pattern))
			}
			spans = append(spans, found...)
		}
		for _, excerpt := range e.Excerpts {
			span, err := p.find(excerpt, 0)
			if err == nil && len(p.within(span)) == 0 {
				err = fmt.Errorf("%q has no number", excerpt)
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("class %s: %w", e.Class, err))
				continue
			}
			spans = append(spans, span[:])
		}
		for _, span := range spans {
			for _, n := range p.within([2]int(span)) {
				n.use = e.Class
			}
		}
	}
	return errs
}

// labels marks the numbers in the labels of a printed table, and checks the order of the labels.
func (p paperText) labels(labels []string, span [2]int) error {
	offset := span[0]
	for _, label := range labels {
		found, err := p.find(label, offset)
		if err != nil || found[1] > span[1] {
			return fmt.Errorf("row %q is not at its place", label)
		}
		for _, n := range p.within(found) {
			n.use = "label"
		}
		offset = found[1]
	}
	return nil
}

// compare returns the differences between the data of a paper and its text.
func compare(data Paper, text string, s source) []error {
	p := paperText{text, numbersOf(text)}
	errs := p.exclude(s.Excluded)
	tables := map[string]bool{}
	for _, t := range data.Tables {
		tables[t.Name] = true
		labels := s.Labels[t.Name]
		if labels == nil && strings.HasPrefix(t.Name, "table") {
			for _, row := range t.Rows {
				labels = append(labels, row.Label)
			}
		}
		if err := p.table(t, s.Places[t.Name], labels); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", t.Name, err))
		}
	}
	for name := range s.Places {
		if !tables[name] {
			errs = append(errs, fmt.Errorf("the data has no %s", name))
		}
	}
	for _, n := range p.numbers {
		if n.use == "" {
			excerpt := text[max(0, n.start-60):min(len(text), n.end+40)]
			errs = append(errs, fmt.Errorf("%s is neither data nor excluded: …%s…", n.text, strings.Join(strings.Fields(excerpt), " ")))
		}
	}
	return errs
}

// table compares the numbers of a table with the numbers of its excerpts, one by one. The labels stand in the first excerpt.
func (p paperText) table(t Table, excerpts, labels []string) error {
	if len(excerpts) == 0 {
		return errors.New("no excerpt shows its place")
	}
	var numbers []*number
	for i, excerpt := range excerpts {
		span, err := p.find(excerpt, 0)
		if err != nil {
			return err
		}
		if i == 0 {
			if err := p.labels(labels, span); err != nil {
				return err
			}
		}
		for _, n := range p.within(span) {
			switch {
			case n.use == "":
				n.use = t.Name
				numbers = append(numbers, n)
			case classes[n.use] == "" && n.use != "label":
				return fmt.Errorf("%s in %q is a number of %s already", n.text, excerpt, n.use)
			}
		}
	}
	next := 0
	for _, row := range t.Rows {
		for c, cell := range row.Cells {
			for _, n := range numbersOf(cell.Printed) {
				if next == len(numbers) {
					return fmt.Errorf("row %q, column %d has %s after the last number of the excerpts", row.Label, c+1, n.text)
				}
				if numbers[next].text != n.text {
					return fmt.Errorf("row %q, column %d has %s, and the paper has %s", row.Label, c+1, n.text, numbers[next].text)
				}
				next++
			}
		}
	}
	if next < len(numbers) {
		return fmt.Errorf("the number %s of the paper is missing at the end", numbers[next].text)
	}
	return nil
}

// compare finds each kind of difference.
func TestCompareRefuses(t *testing.T) {
	text := "1 Results\nTable 1: Times\nTest a b\ncpu (4 threads) 1.5 2.5\ndisk 3.0 -\nThe loss is 40 % for a\nand 41 % for b.\n"
	data := func() Paper {
		return Paper{Tables: []Table{
			{Name: "table 1", Rows: []Row{
				{Label: "cpu (4 threads)", Cells: []Cell{{Printed: "1.5"}, {Printed: "2.5"}}},
				{Label: "disk", Cells: []Cell{{Printed: "3.0"}, {Printed: "-"}}},
			}},
			{Name: "text 1", Rows: []Row{{Label: "loss of 2 targets", Cells: []Cell{{Printed: "40"}, {Printed: "41"}}}}},
		}}
	}
	origin := func() source {
		return source{
			Places:   map[string][]string{"table 1": {"Test a … disk 3.0 -"}, "text 1": {"loss is 40 % for a and 41"}},
			Excluded: []exclusion{{Class: "heading", Patterns: []string{`Table \d`}, Excerpts: []string{"1 Results"}}},
		}
	}
	if errs := compare(data(), text, origin()); len(errs) > 0 {
		t.Errorf("the same data differs: %v", errs)
	}
	for flaw, change := range map[string]func(*Paper, *source){
		"has 2.4, and the paper has 2.5":              func(p *Paper, _ *source) { p.Tables[0].Rows[0].Cells[1].Printed = "2.4" },
		"has 2.5, and the paper has 1.5":              func(p *Paper, _ *source) { slices.Reverse(p.Tables[0].Rows[0].Cells) },
		`row "cpu" is not at its place`:               func(p *Paper, _ *source) { p.Tables[0].Rows[1].Label = "cpu" },
		"the number 3.0 of the paper is missing":      func(p *Paper, _ *source) { p.Tables[0].Rows = p.Tables[0].Rows[:1] },
		"has 9 after the last number":                 func(p *Paper, _ *source) { p.Tables[0].Rows[1].Cells[1].Printed = "9" },
		"40 is neither data nor excluded":             func(p *Paper, s *source) { p.Tables = p.Tables[:1]; delete(s.Places, "text 1") },
		"the data has no text 2":                      func(_ *Paper, s *source) { s.Places["text 2"] = []string{"41"} },
		"no excerpt shows its place":                  func(_ *Paper, s *source) { delete(s.Places, "text 1") },
		`the text does not have "loss is 41"`:         func(_ *Paper, s *source) { s.Places["text 1"] = []string{"loss is 41"} },
		`the text has "for" twice`:                    func(_ *Paper, s *source) { s.Places["text 1"] = []string{"for"} },
		`3.0 in "disk … a" is a number of table 1`:    func(_ *Paper, s *source) { s.Places["text 1"] = []string{"disk … a"} },
		`an exclusion has the unknown class "boring"`: func(_ *Paper, s *source) { s.Excluded[0].Class = "boring" },
		`the pattern Tabelle \d matches nothing`:      func(_ *Paper, s *source) { s.Excluded[0].Patterns[0] = `Tabelle \d` },
		`class heading: "Times" has no number`:        func(_ *Paper, s *source) { s.Excluded[0].Excerpts[0] = "Times" },
	} {
		p, s := data(), origin()
		change(&p, &s)
		if err := errors.Join(compare(p, text, s)...); err == nil || !strings.Contains(err.Error(), flaw) {
			t.Errorf("the error is %v, not %q", err, flaw)
		}
	}
}
