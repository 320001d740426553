// Package paper holds the published results of the studies that Touchstone repeats: their tables, the numbers of their text and their claims.
//
// The data is as printed, errors included: a number that contradicts another place of its paper has a flag that says so. Nothing
// in this package is measured. The files below data are part of the binary, so they are trusted: a broken file is a bug.
package paper

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
)

// Paper is a study.
type Paper struct {
	// Name is the word for the study on the command line: the first author.
	Name    string  `yaml:"name"`
	Authors string  `yaml:"authors"`
	Title   string  `yaml:"title"`
	Venue   string  `yaml:"venue"`
	Year    int     `yaml:"year"`
	Tables  []Table `yaml:"tables"`
	Claims  []Claim `yaml:"claims"`
	// Figures are those without printed values.
	Figures []Figure `yaml:"figures,omitempty"`
}

// Figure is a figure that can be drawn again from values of Touchstone.
type Figure struct {
	Name  string `yaml:"name" json:"name" doc:"Name of the figure, unique in its study: \"figure 13\"."`
	Title string `yaml:"title" json:"title" doc:"The printed caption."`
	Of    []Of   `yaml:"of" json:"of" doc:"The values of each plot."`
}

// Table is a printed table, or a group of numbers of the text in the form of a table.
type Table struct {
	// Name is unique in its paper: "table 1", "table A.3", "text 5.8".
	Name string `yaml:"name"`
	// Title is the printed caption, or for numbers of the text what they describe.
	Title string `yaml:"title"`
	// Place is the section, and the figure whose values the text prints.
	Place string `yaml:"place"`
	// Reference is the target that the study compares the others with. It is empty if the table compares nothing.
	Reference string `yaml:"reference,omitempty"`
	// Of describes all cells. Columns and rows complete it.
	Of      Of       `yaml:"of,omitempty"`
	Columns []Column `yaml:"columns"`
	Rows    []Row    `yaml:"rows"`
	// Notes are remarks on more than one cell: a missing unit, a wrong number of a figure, the reason for empty cells.
	Notes []string `yaml:"notes,omitempty"`
}

// Column is a column of a table.
type Column struct {
	Heading string `yaml:"heading"`
	Of      Of     `yaml:"of,omitempty"`
}

// Row is a row of a table, with a cell for each column.
type Row struct {
	Group string `yaml:"group,omitempty"` // the heading of several rows
	Label string `yaml:"label"`
	Of    Of     `yaml:"of,omitempty"`
	Cells []Cell `yaml:"cells"`
}

// Cell is a printed value.
type Cell struct {
	// Printed is the text of the cell without its unit. It is "" for an empty cell, and "-" if the paper prints that.
	Printed string `yaml:"printed"`
	// Flag is set for a value that is wrong or doubtful. It has the reason, and names the other place.
	Flag string `yaml:"flag,omitempty"`
}

// Of describes a value in the words of Touchstone. An empty field is unknown, or another part of the table has it.
type Of struct {
	// Arch is the architecture of the study's machine, in Go's words. It is empty for a study with one machine.
	Arch   string `yaml:"arch,omitempty" json:"-"`
	Target string `yaml:"target,omitempty" json:"-"`
	// Engine replaces the engine of the target and of the table's reference, for a row that the study measured with another engine.
	Engine    string `yaml:"engine,omitempty" json:"-"`
	Benchmark string `yaml:"benchmark,omitempty" json:"benchmark,omitempty" doc:"Name of the benchmark."`
	Metric    string `yaml:"metric,omitempty" json:"metric,omitempty" doc:"Name of the metric."` // "{item}" in it stands for Item
	// Item is the test of a row whose columns are metrics. For a metric that is a series, it names the element.
	Item   string            `yaml:"item,omitempty" json:"-"`
	Params map[string]string `yaml:"params,omitempty" json:"params,omitempty" doc:"Parameters with other values than in the study's plan."`
	// Unit is the printed unit.
	Unit string `yaml:"unit,omitempty" json:"-"`
	// Compared is set for a value that the paper prints in relation to the table's reference.
	Compared Comparison `yaml:"compared,omitempty" json:"-"`
	// Unmeasured is the reason why Touchstone does not measure the value.
	Unmeasured string `yaml:"unmeasured,omitempty" json:"-"`
}

// Comparison is the relation of a printed value v to the reference.
type Comparison string

// The comparisons. A higher rate is better. Its time is its inverse, so Loss also has a meaning for a metric that is a
// time: a loss of 20 % is 1 / 0.8 of the reference's time.
const (
	Loss       Comparison = "loss"       // in percent: the rate is (1 - v/100) of the reference's rate (wang, equation 1)
	Gain       Comparison = "gain"       // in percent: the rate is (1 + v/100) of the reference's rate
	Share      Comparison = "share"      // in percent: the value is v/100 of the reference's
	Excess     Comparison = "excess"     // in percent: the time or size is (1 + v/100) of the reference's (wang, equation 1)
	Factor     Comparison = "factor"     // the value is v times the reference's
	Difference Comparison = "difference" // the value is the reference's plus v, in the unit
)

// Claim is a testable statement of a study about targets.
type Claim struct {
	Name  string `yaml:"name" json:"name" doc:"Name of the claim, unique in its study."`
	Text  string `yaml:"text" json:"text" doc:"The claim in one sentence."`
	Place string `yaml:"place" json:"place" doc:"Its section, figure or table."`
	// Of describes the compared values by benchmark, metric and parameters. Several are a claim about each of them.
	Of []Of `yaml:"of" json:"-"`
	// Targets are compared with each of Others.
	Targets []string `yaml:"targets" json:"-"`
	Others  []string `yaml:"others" json:"-"`
	// Pairs are further comparisons, of the first target with the second one.
	Pairs    [][2]string `yaml:"pairs,omitempty" json:"-"`
	Relation Relation    `yaml:"relation" json:"relation" doc:"The claimed relation of a target to another, in the direction of the metric."`
	Margin   float64     `yaml:"margin" json:"margin" schema:"minimum=1" doc:"A factor: better and worse mean by at least this factor, similar by at most this factor."`
	Note     string      `yaml:"note,omitempty" json:"note,omitempty" doc:"The derivation of the margin from the words and numbers of the study."`
	// Arch is the only architecture that the claim is about, in the spelling of Go: "amd64". It is empty for a claim about all.
	Arch string `yaml:"arch,omitempty" json:"-"`
}

// Relation is the statement of a claim. Better and worse follow the direction of the metric.
type Relation string

// The relations.
const (
	Better  Relation = "better"
	Worse   Relation = "worse"
	Similar Relation = "similar"
)

//go:embed data/*.yaml
var files embed.FS

// All returns the studies, oldest first. It fails if a file is broken.
func All() ([]Paper, error) {
	found, err := files.ReadDir("data")
	if err != nil {
		return nil, err
	}
	var papers []Paper
	var errs []error
	for _, f := range found {
		p, err := read(f.Name())
		if err != nil {
			errs = append(errs, err)
			continue
		}
		papers = append(papers, p)
	}
	slices.SortFunc(papers, func(a, b Paper) int { return cmp.Or(a.Year-b.Year, strings.Compare(a.Name, b.Name)) })
	return papers, errors.Join(errs...)
}

// names are the studies, oldest first. Each call of touchstone needs them for its help, and to decode the files takes 50 ms.
var names = []string{"espe", "nishimura", "sateri", "wang"}

// Names lists the studies, oldest first.
func Names() []string { return slices.Clone(names) }

// Load returns a study. It fails for an unknown name.
func Load(name string) (Paper, error) {
	p, err := read(name + ".yaml")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
		return Paper{}, fmt.Errorf("no paper is named %q; there are %s", name, strings.Join(Names(), ", "))
	}
	return p, err
}

func read(file string) (Paper, error) {
	name := path.Join("data", file)
	text, err := files.ReadFile(name)
	if err != nil {
		return Paper{}, err
	}
	var p Paper
	if err := yaml.UnmarshalWithOptions(text, &p, yaml.Strict()); err != nil {
		return Paper{}, fmt.Errorf("%s: %w", name, err)
	}
	err = p.readClaims(file) // before p is read
	return p, err
}

// Citation names the study in one line, without a full stop.
func (p Paper) Citation() string {
	return fmt.Sprintf("%s: %s. %s, %d", p.Authors, p.Title, p.Venue, p.Year)
}

// OfCell describes a cell: the row and the column complete the table. Target and Metric are complete.
func (t Table) OfCell(row, column int) Of {
	ref := t.Of
	for _, override := range []Of{t.Columns[column].Of, t.Rows[row].Of} {
		ref = ref.with(override)
	}
	ref.Metric = strings.ReplaceAll(ref.Metric, "{item}", ref.Item)
	if _, runtime, ok := strings.Cut(ref.Target, "/"); ok && ref.Engine != "" {
		ref.Target = ref.Engine + "/" + runtime
	}
	return ref
}

// with returns the description with the set fields of another one.
func (o Of) with(override Of) Of {
	for _, field := range []struct{ to, from *string }{
		{&o.Arch, &override.Arch},
		{&o.Target, &override.Target},
		{&o.Engine, &override.Engine},
		{&o.Benchmark, &override.Benchmark},
		{&o.Metric, &override.Metric},
		{&o.Item, &override.Item},
		{&o.Unit, &override.Unit},
		{&o.Unmeasured, &override.Unmeasured},
	} {
		if *field.from != "" {
			*field.to = *field.from
		}
	}
	if override.Compared != "" {
		o.Compared = override.Compared
	}
	if override.Params != nil {
		o.Params = override.Params
	}
	return o
}

// Number is the value of the cell, in the printed unit, exact or about (≈). It reports false for an empty cell, for a text and for a range
// such as "84 - 104".
func (c Cell) Number() (float64, bool) {
	v, err := strconv.ParseFloat(strings.ReplaceAll(strings.TrimPrefix(c.Printed, "≈ "), ",", ""), 64)
	return v, err == nil
}

// UnmarshalYAML accepts a plain text for a cell without a flag.
func (c *Cell) UnmarshalYAML(unmarshal func(any) error) error {
	if unmarshal(&c.Printed) == nil {
		return nil
	}
	type layout Cell
	return unmarshal((*layout)(c))
}

// WithTargets returns the study with other names of its targets. The rows of another engine have the targets of their table.
func (p Paper) WithTargets(name func(string) string) Paper {
	rename := func(ref *Of) {
		if ref.Target != "" {
			ref.Target = name(ref.Target)
		}
		ref.Engine = ""
	}
	p.Tables, p.Claims = slices.Clone(p.Tables), slices.Clone(p.Claims)
	for i := range p.Tables {
		t := &p.Tables[i]
		t.Columns, t.Rows = slices.Clone(t.Columns), slices.Clone(t.Rows)
		if t.Reference != "" {
			t.Reference = name(t.Reference)
		}
		rename(&t.Of)
		for n := range t.Columns {
			rename(&t.Columns[n].Of)
		}
		for n := range t.Rows {
			rename(&t.Rows[n].Of)
		}
	}
	for i := range p.Claims {
		c := &p.Claims[i]
		c.Targets, c.Others, c.Pairs = slices.Clone(c.Targets), slices.Clone(c.Others), slices.Clone(c.Pairs)
		for n := range c.Targets {
			c.Targets[n] = name(c.Targets[n])
		}
		for n := range c.Others {
			c.Others[n] = name(c.Others[n])
		}
		for n := range c.Pairs {
			c.Pairs[n] = [2]string{name(c.Pairs[n][0]), name(c.Pairs[n][1])}
		}
	}
	return p
}
