package document

// Timeline is a figure of rows over time: each row has one of several states at a time, or none. Its panels are below each other. A table beside it has its sums,
// so that a format without drawings loses nothing.
type Timeline struct {
	Name, Caption string
	States        []State
	// Mark names the marks of the rows.
	Mark   string
	Panels []TimelinePanel
}

// State is a state of a row.
type State struct {
	Name   string
	Height Height
}

// Height is the height of a state in a drawing: the more a state does, the higher it is.
type Height int

// The heights.
const (
	Full Height = iota
	Half
	Low
)

// TimelinePanel is a drawing of a timeline.
type TimelinePanel struct {
	Name string
	// Text says the panel in words.
	Text string
	// Folded is set for a panel that a page shows on request.
	Folded bool
	// End is the end of the axis, in seconds from its begin.
	End   float64
	Bands []Band
	Rows  []TimelineRow
}

// TimelineRow is a row of a panel. Text is all of its name.
type TimelineRow struct {
	Name, Text string
	Start, End float64
	Pieces     []TimelinePiece
	Marks      []TimelineMark
}

// TimelinePiece is a time in a state, which is an index of the timeline's states.
type TimelinePiece struct {
	State      int
	Start, End float64
}

// TimelineMark is an event of a row, in words.
type TimelineMark struct {
	At   float64
	Text string
}

func (Timeline) block() {}
