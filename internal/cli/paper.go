package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/touchstone-bench/touchstone/internal/paper"
)

// paperRow is a paper in the listing.
type paperRow struct {
	Name    string `json:"name"`
	Year    int    `json:"year"`
	Authors string `json:"authors"`
	Title   string `json:"title"`
	Venue   string `json:"venue"`
	Tables  int    `json:"tables"`
	Numbers int    `json:"numbers"`
}

// paperData is a paper with its tables, in documents.
type paperData struct {
	Name    string      `json:"name"`
	Year    int         `json:"year"`
	Authors string      `json:"authors"`
	Title   string      `json:"title"`
	Venue   string      `json:"venue"`
	Tables  []tableData `json:"tables"`
}

type tableData struct {
	Name      string    `json:"name"`
	Title     string    `json:"title"`
	Place     string    `json:"place"`
	Reference string    `json:"reference,omitempty"`
	Columns   []string  `json:"columns"`
	Rows      []rowData `json:"rows"`
	Notes     []string  `json:"notes,omitempty"`
}

type rowData struct {
	Group string     `json:"group,omitempty"`
	Label string     `json:"label"`
	Cells []cellData `json:"cells"`
}

// cellData is a printed value with the words of Touchstone for it. The value is absent for an empty cell and for a text.
type cellData struct {
	Printed    string            `json:"printed"`
	Value      *float64          `json:"value,omitempty"`
	Unit       string            `json:"unit,omitempty"`
	Flag       string            `json:"flag,omitempty"`
	Compared   string            `json:"compared,omitempty"`
	Arch       string            `json:"arch,omitempty"`
	Target     string            `json:"target,omitempty"`
	Benchmark  string            `json:"benchmark,omitempty"`
	Metric     string            `json:"metric,omitempty"`
	Item       string            `json:"item,omitempty"`
	Params     map[string]string `json:"parameters,omitempty"`
	Unmeasured string            `json:"unmeasured,omitempty"`
}

func (a *App) paperCommand() *cobra.Command {
	var format format
	var table string
	cmd := &cobra.Command{
		Use:   "paper [NAME]",
		Short: "Show the published results of the studies that Touchstone repeats",
		Long: `Lists the studies, or shows the published tables of one. The numbers are as printed,
errors included: a number that contradicts another place of its study has a note. The
numbers of a study's text and of its figures, as far as it prints them, are tables too.
Nothing is measured.

The formats json and yaml name the target, the benchmark and the metric of each number,
or the reason why Touchstone does not measure it.`,
		Example: `  touchstone paper
  touchstone paper espe
  touchstone paper wang --table "table 3"
  touchstone paper wang -o json`,
		Args: atMost(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				if table != "" {
					return usage(errors.New("--table needs the name of a paper: touchstone paper NAME --table NAME"))
				}
				return a.listPapers(format)
			}
			p, err := loadPaper(args[0])
			if err != nil {
				return err
			}
			if table != "" {
				found, err := findTable(p, table)
				if err != nil {
					return err
				}
				p.Tables = []paper.Table{found}
			}
			return a.showPaper(p, format)
		},
		ValidArgsFunction: completePaper,
	}
	addOutput(cmd, &format, "output format", formatTable, formatJSON, formatYAML, formatMarkdown)
	cmd.Flags().StringVar(&table, "table", "", "show only the table `NAME`, such as \"table 1\" or 1")
	_ = cmd.RegisterFlagCompletionFunc("table", completeTable)
	return cmd
}

// completePaper completes the name of a paper.
func completePaper(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return paper.Names(), cobra.ShellCompDirectiveNoFileComp
}

// completeTable completes the name of a table of the paper in args.
func completeTable(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	p, err := paper.Load(args[0])
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return tableNames(p), cobra.ShellCompDirectiveNoFileComp
}

// loadPaper loads the paper with a name from the command line.
func loadPaper(name string) (paper.Paper, error) {
	p, err := paper.Load(name)
	if err != nil && !slices.Contains(paper.Names(), name) {
		err = usage(err)
	}
	return p, err
}

func (a *App) listPapers(f format) error {
	papers, err := paper.All()
	if err != nil {
		return err
	}
	var rows []paperRow
	for _, p := range papers {
		rows = append(rows, paperRow{p.Name, p.Year, p.Authors, p.Title, p.Venue, len(p.Tables), numbers(p)})
	}
	header := []string{"PAPER", "YEAR", "TABLES", "NUMBERS", "TITLE"}
	return printList(a.env.Stdout, f, rows, header, func(r paperRow) []string {
		return []string{r.Name, fmt.Sprint(r.Year), fmt.Sprint(r.Tables), fmt.Sprint(r.Numbers), r.Title}
	})
}

// numbers is the number of printed values, ranges and bounds included.
func numbers(p paper.Paper) int {
	n := 0
	for _, t := range p.Tables {
		for _, row := range t.Rows {
			for _, c := range row.Cells {
				if hasNumber(c) {
					n++
				}
			}
		}
	}
	return n
}

// hasNumber reports whether a cell is a number, a bound or a range.
func hasNumber(c paper.Cell) bool {
	return strings.IndexAny(strings.TrimLeft(c.Printed, "<>≤≥≈ (-"), "0123456789") == 0
}

func tableNames(p paper.Paper) []string {
	var names []string
	for _, t := range p.Tables {
		names = append(names, t.Name)
	}
	return names
}

// findTable returns the table with a name. Its first word, table or text, may be left out.
func findTable(p paper.Paper, name string) (paper.Table, error) {
	for _, t := range p.Tables {
		_, short, _ := strings.Cut(t.Name, " ")
		if strings.EqualFold(t.Name, name) || strings.EqualFold(short, name) {
			return t, nil
		}
	}
	return paper.Table{}, usage(fmt.Errorf("%s has no table %q; it has %s", p.Name, name, strings.Join(tableNames(p), ", ")))
}

func (a *App) showPaper(p paper.Paper, f format) error {
	w := a.env.Stdout
	switch f {
	case formatTable:
		printWrapped(w, a.env.Width, "", p.Name+": "+p.Citation()+".")
		for _, t := range p.Tables {
			fmt.Fprintln(w)
			printPaperTable(w, a.env.Width, t)
		}
		return nil
	case formatMarkdown:
		fmt.Fprintf(w, "# %s\n\n%s\n", p.Name, inMarkdown(p.Citation()+"."))
		for _, t := range p.Tables {
			fmt.Fprintln(w)
			markdownPaperTable(w, t)
		}
		return nil
	default:
		return f.print(w, documentOf(p), nil, nil)
	}
}

func documentOf(p paper.Paper) paperData {
	d := paperData{p.Name, p.Year, p.Authors, p.Title, p.Venue, nil}
	for _, t := range p.Tables {
		table := tableData{Name: t.Name, Title: t.Title, Place: t.Place, Reference: t.Reference, Notes: t.Notes}
		for _, c := range t.Columns {
			table.Columns = append(table.Columns, c.Heading)
		}
		for r, row := range t.Rows {
			data := rowData{Group: row.Group, Label: row.Label}
			for c, cell := range row.Cells {
				if cell.Printed == "" {
					data.Cells = append(data.Cells, cellData{})
					continue
				}
				of := t.OfCell(r, c)
				item := cellData{
					Printed: cell.Printed, Unit: of.Unit, Flag: cell.Flag, Compared: string(of.Compared), Arch: of.Arch, Target: of.Target,
					Benchmark: of.Benchmark, Metric: of.Metric, Item: of.Item, Params: of.Params, Unmeasured: of.Unmeasured,
				}
				if v, ok := cell.Number(); ok {
					item.Value = &v
				}
				data.Cells = append(data.Cells, item)
			}
			table.Rows = append(table.Rows, data)
		}
		d.Tables = append(d.Tables, table)
	}
	return d
}

// remarks are the texts below a table.
type remarks struct {
	flags      []string // the numbered notes
	notes      []string
	unmeasured []string
}

// mark returns the mark of a cell, and keeps its note. Equal notes have one number.
func (r *remarks) mark(flag string) string {
	if flag == "" {
		return ""
	}
	i := slices.Index(r.flags, flag)
	if i < 0 {
		i = len(r.flags)
		r.flags = append(r.flags, flag)
	}
	return fmt.Sprintf("[%d]", i+1)
}

// lines returns the remarks, in order.
func (r *remarks) lines() []string {
	var lines []string
	for i, f := range r.flags {
		lines = append(lines, fmt.Sprintf("[%d] %s", i+1, f))
	}
	for _, n := range r.notes {
		lines = append(lines, "- "+n)
	}
	for _, u := range r.unmeasured {
		lines = append(lines, "- not measured by Touchstone: "+u)
	}
	return lines
}

// unmeasured lists the reasons for values that Touchstone does not measure, each once, with the rows or columns that have it.
func unmeasured(t paper.Table) []string {
	var reasons []string
	names := map[string][]string{}
	everywhere := true
	for r, row := range t.Rows {
		for c, cell := range row.Cells {
			reason := t.OfCell(r, c).Unmeasured
			if reason == "" || cell.Printed == "" {
				everywhere = everywhere && cell.Printed == ""
				continue
			}
			name := row.Label
			if t.Columns[c].Of.Unmeasured == reason {
				name = t.Columns[c].Heading
			}
			if len(names[reason]) == 0 {
				reasons = append(reasons, reason)
			}
			if !slices.Contains(names[reason], name) {
				names[reason] = append(names[reason], name)
			}
		}
	}
	if len(reasons) == 1 && everywhere {
		return reasons
	}
	for i, reason := range reasons {
		reasons[i] = strings.Join(names[reason], "; ") + ": " + reason
	}
	return reasons
}

// paperGrid is a table as texts: the units are at the shortest place.
type paperGrid struct {
	unit     string // the unit of all values
	headings []string
	groups   []string
	labels   []string
	cells    [][]gridCell
	remarks  remarks
}

type gridCell struct{ text, mark string }

func gridOf(t paper.Table) paperGrid {
	g := paperGrid{remarks: remarks{notes: t.Notes, unmeasured: unmeasured(t)}}
	of := func(r, c int) string {
		if !hasNumber(t.Rows[r].Cells[c]) {
			return ""
		}
		return t.OfCell(r, c).Unit
	}
	var all unitSet
	texts := false
	rows, columns := make([]unitSet, len(t.Rows)), make([]unitSet, len(t.Columns))
	for r := range t.Rows {
		for c := range t.Columns {
			all.add(of(r, c))
			texts = texts || strings.ContainsFunc(t.Rows[r].Cells[c].Printed, unicode.IsLetter)
			rows[r].add(of(r, c))
			columns[c].add(of(r, c))
		}
	}
	isOne := func(u unitSet) bool { return len(u) <= 1 }
	inRows, inColumns := false, false
	switch {
	case isOne(all):
		g.unit = all.only()
	case !texts && !slices.ContainsFunc(rows, func(u unitSet) bool { return !isOne(u) }):
		inRows = true
	case !slices.ContainsFunc(columns, func(u unitSet) bool { return !isOne(u) }):
		inColumns = true
	}
	for c, column := range t.Columns {
		g.headings = append(g.headings, withUnit(column.Heading, columns[c], inColumns))
	}
	for r, row := range t.Rows {
		g.groups = append(g.groups, row.Group)
		g.labels = append(g.labels, withUnit(row.Label, rows[r], inRows))
		var cells []gridCell
		for c, cell := range row.Cells {
			text := cell.Printed
			if unit := of(r, c); unit != "" && g.unit == "" && !inRows && !inColumns {
				text += " " + unit
			}
			cells = append(cells, gridCell{text, g.remarks.mark(cell.Flag)})
		}
		g.cells = append(g.cells, cells)
	}
	return g
}

// unitSet is a set of units.
type unitSet []string

func (u *unitSet) add(unit string) {
	if unit != "" && !slices.Contains(*u, unit) {
		*u = append(*u, unit)
	}
}

func (u unitSet) only() string {
	if len(u) == 1 {
		return u[0]
	}
	return ""
}

// withUnit appends the only unit to a label that does not have it.
func withUnit(label string, units unitSet, wanted bool) string {
	unit := units.only()
	if !wanted || unit == "" || strings.Contains(label, "("+unit+")") || strings.HasSuffix(label, "/ "+unit) || strings.EqualFold(label, unit) {
		return label
	}
	return label + " (" + unit + ")"
}

// caption describes a table below its title.
func (g paperGrid) caption(t paper.Table) string {
	caption := t.Place
	if g.unit != "" {
		caption += "; unit: " + g.unit
	}
	if t.Reference != "" {
		caption += "; compared with " + t.Reference
	}
	return caption
}

func markdownPaperTable(w io.Writer, t paper.Table) {
	g := gridOf(t)
	fmt.Fprintf(w, "## %s: %s\n\n%s\n\n", inMarkdown(t.Name), inMarkdown(t.Title), inMarkdown(g.caption(t)))
	var rows [][]string
	for r, label := range g.labels {
		if g.groups[r] != "" {
			label = g.groups[r] + ": " + label
		}
		row := []string{label}
		for _, c := range g.cells[r] {
			row = append(row, strings.TrimSpace(c.text+" "+c.mark))
		}
		rows = append(rows, row)
	}
	printMarkdown(w, "--:", slices.Insert(g.headings, 0, ""), rows)
	for i, line := range g.remarks.lines() {
		if i == 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "- %s\n", inMarkdown(strings.TrimPrefix(line, "- ")))
	}
}
