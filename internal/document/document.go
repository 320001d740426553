// Package document is the form of an answer that every format can show. An answer (a report, a comparison, a history) becomes a document
// once, and a renderer knows documents and nothing else. So a new answer has every format, and a new format shows every answer.
//
// A document has words and places. Everything is computed and spelled before: a renderer breaks lines, aligns columns, draws
// and escapes. Text may come from runs of others, and each renderer makes it harmless in its format.
package document

import "slices"

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
	// Data is the answer for JSON: tagged structs with a published schema.
	Data any
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
	// Folded is set for a part that a page shows on request.
	Folded bool
	// Detail is set for a part that only a page shows: drawings, the runs of a value, the method. A terminal and a comment leave it out.
	Detail bool
	Blocks []Block
}

// WithoutDetails leaves out the sections that only a page shows.
func WithoutDetails(blocks []Block) []Block {
	return slices.DeleteFunc(slices.Clone(blocks), func(b Block) bool {
		s, is := b.(Section)
		return is && s.Detail
	})
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

// List is a list of items.
type List struct {
	// Title may be empty.
	Title string
	// Ordered is set if the items have numbers.
	Ordered bool
	Items   []Item
}

// Item is an item of a list: its text, and the lines that belong to it.
type Item struct {
	Span
	Lines []string
}

// Table is rows of cells. The first row is the heading of the columns, and the first cell of a row its heading. A row with this cell alone is the heading of the rows
// below it.
type Table struct {
	Rows [][]Cell
	// Listing is set for a table of records: a row has texts of many kinds. A table of numbers for comparison has none.
	Listing bool
	// Prose is set for a table with long headings, labels or texts. They break where lines are short, and a column of texts begins at the left.
	Prose bool
	// Turns is set if rows and columns may change places where the table is too wide.
	Turns bool
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
	// Link is the address of a page beside the document. It may be empty.
	Link string
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

// The results. An undecided check is no pass.
const (
	Undecided Status = iota
	Failed
	Passed
)

// Records are rows of values with the same columns.
type Records struct {
	Columns []string
	// Rows have a string, a float64, an int, a bool or nil for each column. A number is in the base unit that the row or the column names. nil is a value that does not exist.
	Rows [][]any
}

func (Section) block() {}
func (Facts) block()   {}
func (Text) block()    {}
func (List) block()    {}
func (Table) block()   {}
func (Lanes) block()   {}
func (Course) block()  {}
func (Plot) block()    {}
func (Bars) block()    {}
