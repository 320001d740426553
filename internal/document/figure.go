package document

import (
	"slices"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// Lanes is a figure of estimates on one axis: a lane for each row, with a mark for each estimate. Its numbers are in the document's tables
// too, so that a format without drawings loses nothing.
type Lanes struct {
	// Name is the quantity on the axis, and Caption the rest of the description.
	Name, Caption string
	Unit          result.Unit
	// Lines are places with a meaning, such as the ratio 1 or a margin.
	Lines []Line
	// Groups are the kinds of marks, which have their own shape and colour.
	Groups []string
	Lanes  []Lane
}

// Line is a place on the axis of a figure.
type Line struct {
	Name  string
	Value float64
	// Limit is set for a bound of a decision.
	Limit bool
}

// Lane is a row of a figure.
type Lane struct {
	Name  string
	Marks []Mark
}

// Mark is an estimate. Low and High are the ends of its interval; nil is an end that does not exist.
type Mark struct {
	Group     int
	Value     float64
	Low, High *float64
	// Text says the same in words.
	Text string
}

// Course is a figure of values in the order of their time, with the breaks between them.
type Course struct {
	Name string
	Unit result.Unit
	// Columns are the headings of the labels, of the value and of the remark. They may be absent.
	Columns []string
	Points  []Point
	Breaks  []Break
}

// Table is the course as a table, for a format without drawings or beside one.
func (c *Course) Table() *Table {
	t := &Table{Listing: true}
	add := func(texts []string) {
		var row []Cell
		for _, text := range texts {
			row = append(row, Cell{{Text: text}})
		}
		t.Rows = append(t.Rows, row)
	}
	add(c.Columns)
	for _, p := range c.Points {
		add(append(slices.Clone(p.Labels), p.Text, p.Remark))
	}
	if c.Columns == nil && len(c.Points) > 0 {
		t.Rows[0] = make([]Cell, len(t.Rows[1]))
	}
	return t
}

// Point is a value of a course.
type Point struct {
	// Labels say when and where the value is from.
	Labels []string
	Value  float64
	// Text is the value in words. Remark is a reason to look at it, and may be empty.
	Text, Remark string
}

// Break is a change of the level before the point with an index, in words.
type Break struct {
	Index int
	// Before and After are the levels.
	Before, After float64
	Text          string
	Lines         []string
}
