// Package selfcheck makes the document of a selfcheck, and of all stored ones.
package selfcheck

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/report/counts"
	"github.com/touchstone-bench/touchstone/internal/report/selfcheck"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

const (
	kind  = "selfcheck"
	whole = "touchstone selfcheck --show -o json"
)

// Document is the document of a selfcheck.
func Document(r *selfcheck.Record) *document.Document {
	d := &document.Document{
		Kind: kind, Title: "Selfcheck of " + r.Target, Answer: []document.Text{alarms(r)},
		Blocks: append([]document.Block{facts(r)}, parts(r)...), Records: func() document.Records { return records([]selfcheck.Record{*r}) }, Data: func() any { return r }, Whole: whole,
	}
	for i := range d.Blocks {
		if s, ok := d.Blocks[i].(document.Section); ok {
			s.ID = ids[s.Title]
			d.Blocks[i] = s
		}
	}
	return d
}

// Stored is the document of the stored selfchecks, in the order of their ends.
func Stored(list []selfcheck.Record) *document.Document {
	d := &document.Document{Kind: kind, Title: "Stored selfchecks", Records: func() document.Records { return records(list) }, Data: func() any { return list }, Whole: whole}
	for i := range list {
		r := &list[i]
		s := document.Section{ID: "selfcheck/" + r.Date.UTC().Format(time.RFC3339), Title: r.Target + ", " + date(r)}
		s.Blocks = append(s.Blocks, facts(r), alarms(r))
		s.Blocks = append(s.Blocks, parts(r)...)
		d.Blocks = append(d.Blocks, s)
	}
	return d
}

// The titles of the parts.
const (
	delaysTitle   = "Delays"
	smallestTitle = "Smallest delay found"
	ownTitle      = "Touchstone's own part"
	limitsTitle   = "Smallest delay that a verdict shows"
	countsTitle   = "Counts of system calls"
)

var ids = map[string]string{delaysTitle: "delays", smallestTitle: "smallest", ownTitle: "overhead", limitsTitle: "limits", countsTitle: "counts"}

// gaps are the reasons of dashes.
var gaps = map[string]string{
	delaysTitle: "no run has measured the effect of the delay.", smallestTitle: "not even the largest delay was found.",
	ownTitle: "the operation has no such call, or their number is unknown.", limitsTitle: "the time is too short for a verdict about any delay.",
}

func date(r *selfcheck.Record) string { return r.Date.Local().Format(time.DateTime) }

func facts(r *selfcheck.Record) document.Facts {
	f := document.Facts{Items: []document.Fact{{Name: "Target", Text: r.Target}}}
	if r.Runtime != "" {
		f.Items = append(f.Items, document.Fact{Name: "Runtime", Text: r.Runtime})
	}
	spent := quantity.RoundedTime(time.Duration(r.Spent * float64(time.Second)))
	f.Items = append(f.Items,
		document.Fact{Name: "Date", Text: date(r)}, document.Fact{Name: "Runs", Text: fmt.Sprintf("%d runs of %d blocks, %v", len(r.Runs), r.Blocks, spent)})
	return f
}

// expectedAlarms is the share of comparisons of a runtime with itself that show a difference by chance.
const expectedAlarms = 0.05

func alarms(r *selfcheck.Record) document.Text {
	a := r.Alarms
	return document.Text{Text: fmt.Sprintf("False alarms: %d of %d comparisons of the runtime with itself; about %.1f are expected by chance.",
		a.Shown, a.Comparisons, expectedAlarms*float64(a.Comparisons))}
}

// parts are the sections of a selfcheck, without those that have nothing.
func parts(r *selfcheck.Record) []document.Block {
	var blocks []document.Block
	add := func(title string, rows [][]document.Cell, notes ...string) {
		s := document.Section{Title: title}
		if len(rows) > 1 {
			s.Blocks = append(s.Blocks, document.Table{Rows: rows}.Explained(quantity.None, gaps[title])...)
		}
		for _, n := range notes {
			s.Blocks = append(s.Blocks, document.Text{Text: n})
		}
		if s.Blocks != nil {
			blocks = append(blocks, s)
		}
	}
	add(delaysTitle, delays(r), undelayed(r)...)
	add(smallestTitle, smallest(r))
	add(ownTitle, overhead(r), fmt.Sprintf("Touchstone's own CPU time: %s of the time of all trials.", quantity.Percent(r.Self)))
	add(limitsTitle, limits(r), fmt.Sprintf("In any part of the distribution, with a probability of %s, as a share of the median.", quantity.Percent(stats.Power)))
	if r.Counts != nil {
		add(countsTitle, nil, append(learned(r.Counts), fmt.Sprintf("Of %s. Gates by counts leave out the calls that vary, in the steps and components where they do.", wording.Counted(r.Counts.Traces, "trace")))...)
	}
	return blocks
}

// learned is a sentence for each benchmark with the names of the calls that vary.
func learned(l *counts.Learned) (notes []string) {
	for i := range l.Benchmarks {
		b := &l.Benchmarks[i]
		notes = append(notes, fmt.Sprintf("%s: %d counts are stable. Calls that vary: %s.", b.Title(), b.Stable, cmp.Or(strings.Join(b.Names(), ", "), "none")))
	}
	return notes
}

func delays(r *selfcheck.Record) [][]document.Cell {
	rows := [][]document.Cell{document.Cells("delayed", "by", "delay", "share", "found in runs", "measured")}
	for _, d := range r.Delays {
		rows = append(rows, document.Cells(d.Verb, string(d.Kind), seconds(&d.Delay), quantity.Percent(d.Share), fmt.Sprintf("%d of %d", d.Found, d.Runs), seconds(d.Measured)))
	}
	return rows
}

// undelayed names the operations without delays.
func undelayed(r *selfcheck.Record) []string {
	var notes []string
	for _, o := range r.Operations {
		if !slices.ContainsFunc(r.Smallest, func(s selfcheck.Smallest) bool { return s.Verb == o.Verb }) {
			notes = append(notes, fmt.Sprintf("No delay of %s: the engine does not call the runtime in it.", o.Verb))
		}
	}
	return notes
}

func smallest(r *selfcheck.Record) [][]document.Cell {
	rows := [][]document.Cell{document.Cells("operation", "by", "delay", "share")}
	for _, s := range r.Smallest {
		rows = append(rows, document.Cells(s.Verb, string(s.Kind), seconds(s.Delay), share(s.Share)))
	}
	return rows
}

func overhead(r *selfcheck.Record) [][]document.Cell {
	rows := [][]document.Cell{document.Cells("operation", "median", "stopwatch", "calls", "start of a process", "empty request")}
	for _, o := range r.Operations {
		calls := quantity.None
		if o.Calls > 0 {
			calls = strconv.FormatFloat(o.Calls, 'g', 3, 64)
		}
		rows = append(rows, document.Cells(o.Verb, seconds(&o.Median), seconds(&o.Region), calls, seconds(o.Launch), seconds(o.Request)))
	}
	return rows
}

func limits(r *selfcheck.Record) [][]document.Cell {
	head := document.Cells("metric")
	for _, m := range selfcheck.Minutes() {
		head = append(head, document.Cells(fmt.Sprintf("in %d min", m))...)
	}
	rows := [][]document.Cell{head}
	for _, l := range r.Limits {
		if last := rows[len(rows)-1]; len(rows) > 1 && last[0][0].Text == l.Metric {
			rows[len(rows)-1] = append(last, document.Cells(share(l.Difference))...)
		} else {
			rows = append(rows, document.Cells(l.Metric, share(l.Difference)))
		}
	}
	return rows
}

// seconds spells a time, or a dash.
func seconds(s *float64) string {
	if s == nil {
		return quantity.None
	}
	return quantity.Text(*s, result.Seconds)
}

func share(s *float64) string {
	if s == nil {
		return quantity.None
	}
	return quantity.Percent(*s)
}
