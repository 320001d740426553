// Package document is the form of an answer that every format can show. An answer (a report, a comparison, a history) becomes a document
// once, and a renderer knows documents and nothing else. So a new answer has every format, and a new format shows every answer.
//
// A document has words and places. Everything is computed and spelled before: a renderer breaks lines, aligns columns, draws
// and escapes. Text may come from runs of others, and each renderer makes it harmless in its format.
package document

import (
	"fmt"
	"slices"
)

// Document is one answer.
type Document struct {
	// Kind names the answer in addresses and files: "report", "comparison", "history".
	Kind string
	// Title is one line.
	Title string
	// Notes stand before everything else. They can change the meaning of all that follows.
	Notes []Text
	// Answer is the answer in a few sentences. Pages begin with it. A terminal shows it last, where the reader's eye is. It may be empty.
	Answer []Text
	Blocks []Block
	// Checks are judgements that a server of continuous integration shows as test cases.
	Checks []Check
	// Suite names all checks together.
	Suite string
	// Records returns the numbers of the answer for programs that read rows. Most formats need none, and they take memory.
	Records func() Records
	// Data returns the answer for JSON: tagged structs with a published schema. Other formats do not pay for it.
	Data func() any
	// Whole names the command or the file that has what a format leaves out for its size.
	Whole string
}

// Block is a part of a document.
type Block interface{ block() }

// Section is a part with a title.
type Section struct {
	// ID is stable from one version to the next, and unique in the document: "findings", "benchmark/operations.container.lifecycle". A section within another has no
	// ID unless something refers to it.
	ID, Title string
	// Short is the title in a table of contents, if it has another one. Note continues the title. Only a page shows them.
	Short, Note string
	// Folded is set for a part that a page shows on request.
	Folded bool
	// Detail is set for a part that only a page shows: drawings, the runs of a value, the method. A terminal and a comment leave it out.
	Detail bool
	// Frame is set for a section whose title only a page shows. A terminal and a comment have its blocks in its place.
	Frame  bool
	Blocks []Block
	// Draw returns further blocks of a section with Detail, or is nil. They are large, and only a page calls it.
	Draw func() []Block
}

// Drawn has the blocks of all Draw in the sections.
func Drawn(blocks []Block) []Block {
	out := make([]Block, 0, len(blocks))
	for _, b := range blocks {
		if s, is := b.(Section); is {
			inner := s.Blocks
			if s.Draw != nil {
				inner = append(slices.Clip(inner), s.Draw()...)
			}
			s.Blocks, s.Draw = Drawn(inner), nil
			b = s
		}
		out = append(out, b)
	}
	return out
}

// WithoutDetails leaves out what only a page shows: sections, titles of sections, items of long lists, and lines of cells.
func WithoutDetails(blocks []Block) []Block {
	out := make([]Block, 0, len(blocks))
	for _, b := range blocks {
		switch b := b.(type) {
		case Section:
			switch {
			case b.Detail:
			case b.Frame:
				out = append(out, WithoutDetails(b.Blocks)...)
			default:
				out = append(out, b)
			}
		case List:
			out = append(out, b.brief())
		case Table:
			out = append(out, b.brief())
		default:
			out = append(out, b)
		}
	}
	return out
}

// Facts are names with their texts.
type Facts struct{ Items []Fact }

// Fact is a name with a text, which Notes continue.
type Fact struct {
	Name  string
	Tone  Tone // of the name
	Text  string
	Notes []Span
	// Details are items that only a page shows. It folds the lines of an item if there are many.
	Details []Item
}

// Text is a paragraph.
type Text Span

// Verbatim is text whose lines and blanks have a meaning, such as a plan or the output of a program.
type Verbatim struct{ Text string }

// List is a list of items.
type List struct {
	// Title may be empty.
	Title string
	// Ordered is set if the items have numbers.
	Ordered bool
	Items   []Item
	// Most is the largest number of items in a terminal and in a comment, or 0 without a limit. More is the format of the item in the place of
	// the others, with their number.
	Most int
	More string
}

// brief leaves out the items above the limit. A single item above it stays, because its replacement has the same size.
func (l List) brief() List {
	if l.Most == 0 || len(l.Items) <= l.Most+1 {
		return l
	}
	rest := Item{Span: Span{Text: fmt.Sprintf(l.More, len(l.Items)-l.Most), Tone: l.Items[l.Most].Tone}}
	l.Items = append(slices.Clone(l.Items[:l.Most]), rest)
	return l
}

// Item is an item of a list: its text, and the lines that belong to it.
type Item struct {
	Span
	Lines []string
}

// Table is rows of cells. The first row is the heading of the columns, and the first cell of a row its heading. A row with this cell alone is the heading of the rows
// below it. The last cell of another short row is as wide as the missing ones.
type Table struct {
	Rows [][]Cell
	// Listing is set for a table of records: a row has texts of many kinds. A table of numbers for comparison has none.
	Listing bool
	// Prose is set for a table with long headings, labels or texts. They break where lines are short, and a column of texts begins at the left.
	Prose bool
	// Turns is set if rows and columns may change places where the table is too wide.
	Turns bool
}

// brief leaves out the lines that only a page shows.
func (t Table) brief() Table {
	isDetail := func(s Span) bool { return s.Detail }
	rows := make([][]Cell, len(t.Rows))
	for i, row := range t.Rows {
		rows[i] = slices.Clone(row)
		for n, cell := range row {
			if slices.ContainsFunc(cell, isDetail) {
				rows[i][n] = slices.DeleteFunc(slices.Clone(cell), isDetail)
			}
		}
	}
	t.Rows = rows
	return t
}

// Explained is the table, and a text with the reason of its dashes if a cell has nothing else.
func (t Table) Explained(dash, reason string) []Block {
	isDash := func(c Cell) bool { return len(c) == 1 && c[0].Text == dash }
	if !slices.ContainsFunc(t.Rows, func(row []Cell) bool { return slices.ContainsFunc(row, isDash) }) {
		return []Block{t}
	}
	return []Block{t, Text{Text: dash + ": " + reason, Tone: Faint}}
}

// Cell is the lines of a cell. The first one is the value.
type Cell []Span

// Cells are cells of one plain line each.
func Cells(texts ...string) []Cell {
	cells := make([]Cell, 0, len(texts))
	for _, text := range texts {
		cells = append(cells, Cell{{Text: text}})
	}
	return cells
}

// Span is a piece of text with its tone.
type Span struct {
	Text string
	Tone Tone
	// Link is the address of a page beside the document, or "#" with the ID of a section. It may be empty.
	Link string
	// Strength is the strength of a good or bad tone, from 1 to 5, or 0 if it has none. A page fills a cell by it.
	Strength int
	// Detail is set for a line of a cell that only a page shows.
	Detail bool
}

// Tone is the meaning that a format may show by a colour or a mark. It never stands alone: the words say the same.
type Tone int

// The tones. An alarm is a broken bound, or a reason not to trust anything.
const (
	Plain Tone = iota
	Strong
	Faint
	Good
	Bad
	Alarm
	Advice
)

// Check is a judgement of one value.
type Check struct {
	// Suite groups checks.
	Suite, Name string
	Status      Status
	// Answer is the status in the words of the answer, and Message its reason.
	Answer, Message string
}

// Status is the result of a check.
type Status int

// The results. An undecided check is no pass, unless [Document.Settle] makes it one.
const (
	Undecided Status = iota
	Failed
	Passed
	Warned
	Skipped
)

// Records are rows of values with the same columns.
type Records struct {
	Columns []string
	// Rows have a string, a float64, an int, a bool or nil for each column. A number is in the base unit that the row or the column names. nil is a value that does not exist.
	Rows [][]any
}

func (Section) block()  {}
func (Facts) block()    {}
func (Text) block()     {}
func (Verbatim) block() {}
func (List) block()     {}
func (Table) block()    {}
func (Lanes) block()    {}
func (Course) block()   {}
func (Plot) block()     {}
func (Bars) block()     {}
func (Matrix) block()   {}
