package reproduce

import (
	"fmt"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Heading is the title of the comparison: "espe on host1, quick parameters".
func (r *Reproduction) Heading() string {
	heading := r.Paper.Name + " on " + r.Runs[0].Runs[0].Host.Hostname
	if r.Table != "" {
		heading += ", " + r.Table
	}
	if r.Quick {
		heading += ", quick parameters"
	}
	return heading
}

// Summary counts the claims by verdict: "12 agree, 3 disagree, 2 cannot tell, 6 not measured".
func (r *Reproduction) Summary() string {
	counts := r.Counts()
	text := fmt.Sprintf("%d agree, %d disagree, %d cannot tell, %d not measured", counts[Agrees], counts[Disagrees], counts[CannotTell], counts[NotMeasured])
	if r.Omitted > 0 {
		text += fmt.Sprintf("; %d need other tables", r.Omitted)
	}
	return text
}

// Reasons are the reasons of claims that were not measured, each once.
func (r *Reproduction) Reasons() []string {
	var reasons []string
	for _, c := range r.Claims {
		if c.Verdict == NotMeasured && !slices.Contains(reasons, c.Reason) {
			reasons = append(reasons, c.Reason)
		}
	}
	return reasons
}

// Method explains the verdicts and the numbers of the tables, in paragraphs.
func (r *Reproduction) Method() []string {
	notes := []string{
		"A claim compares two targets block by block. It agrees if the 95 % interval of the ratio is wholly on the claimed side of the margin, and " +
			"disagrees if it is wholly on the other side. Otherwise it cannot tell. A claim of several comparisons agrees only if all do, and disagrees if one does. " +
			"Margins are from the words and numbers of the paper. Intervals are not adjusted for the number of claims.",
		fmt.Sprintf("An interval needs at least %d blocks with both targets.", stats.MinSamples),
		"A cell of a table has the printed value, our median, and the ratio to the reference: the paper's, then ours with its 95 % interval. Only " +
			"ratios survive a change of the machine. A ratio is value / reference, so below 1 means shorter for a time and slower for a rate.",
	}
	if r.Quick {
		notes = append(notes, "The parameters are shorter than the paper's, so absolute values differ also for that reason. A ratio may depend on the length of the work.")
	}
	return notes
}

// Lacks are the reasons for missing values, each with the number of its cells.
func (t *Table) Lacks() []string {
	counts := map[string]int{}
	var reasons []string
	for _, row := range t.Cells {
		for i := range row {
			if reason := row[i].Reason; reason != "" {
				if counts[reason] == 0 {
					reasons = append(reasons, reason)
				}
				counts[reason]++
			}
		}
	}
	for i, reason := range reasons {
		if n := counts[reason]; n > 1 {
			reasons[i] = fmt.Sprintf("%s (%d cells)", reason, n)
		}
	}
	return reasons
}

// Flags are the remarks on printed values, and the notes of the table.
func (t *Table) Flags() []string {
	var flags []string
	for i, row := range t.Cells {
		for n := range row {
			if flag := row[n].Flag; flag != "" {
				text := strings.TrimSpace(t.Rows[i].Label+" "+t.Columns[n].Heading) + ": " + flag
				if !slices.Contains(flags, text) {
					flags = append(flags, text)
				}
			}
		}
	}
	return append(flags, t.Notes...)
}
