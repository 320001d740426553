package sides

import (
	"fmt"
	"io"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/stats"
)

// MostMarkdown is the largest size of a comparison in Markdown, in bytes. GitHub refuses comments above 65536 characters.
const MostMarkdown = 60_000

// Markdown writes the comparison for a comment of a pull request: the answer, the metrics that decide, and all others folded. A long
// comparison ends with the number of rows that are left out.
func (c *Comparison) Markdown(w io.Writer) error {
	var b strings.Builder
	headline := c.GateSummary()
	if headline == "" {
		headline = c.Summary()
	}
	fmt.Fprintf(&b, "### Touchstone: %s\n\n%s\n", escape(c.NameA+" against "+c.NameB), escape(headline))
	for _, n := range c.Notes {
		fmt.Fprintf(&b, "\n> %s\n", escape(n))
	}
	if len(c.Gates) > 0 {
		rows := [][]string{}
		for _, k := range c.sortedGates() {
			row := []string{string(k.Answer), k.subject(), k.Gate.String(), "", "", k.Why}
			if k.Index >= 0 {
				cell := &c.Cells[k.Index]
				row[3], row[4] = Change(cell.Ratio), ChangeInterval(cell.CI)
			}
			rows = append(rows, row)
		}
		table(&b, []string{"Answer", "Metric", "Gate", "B against A", "95 % interval", "Reason"}, rows)
	}
	var shown, others [][]string
	for i := range c.Cells {
		cell := &c.Cells[i]
		row := []string{
			cell.Title(), cell.Target, cell.Metric.Name, cell.side(cell.A), cell.side(cell.B), Change(cell.Ratio), ChangeInterval(cell.CI), because(cell.Word(), cell.Why),
		}
		if cell.Verdict == stats.Slower || cell.Verdict == stats.Faster {
			shown = append(shown, row)
		} else {
			others = append(others, row)
		}
	}
	header := []string{"Benchmark", "Target", "Metric", "A", "B", "B against A", "95 % interval", "Verdict"}
	if len(shown) > 0 {
		table(&b, header, shown)
	}
	fold(&b, fmt.Sprintf("%s without a shown difference", counted(len(others), "metric")), header, others)
	var oneSided [][]string
	for _, o := range c.OneSided {
		oneSided = append(oneSided, []string{o.Has, o.Title(), o.Target, o.Why})
	}
	fold(&b, counted(len(oneSided), "benchmark")+" only on one side", []string{"Side", "Benchmark", "Target", "Reason"}, oneSided)
	var differences [][]string
	for _, d := range c.Differences {
		differences = append(differences, []string{d.Fact, values(d.A), values(d.B)})
	}
	fold(&b, counted(len(differences), "fact")+" that the runs differ in", []string{"Fact", "A", "B"}, differences)
	var runs [][]string
	for _, side := range []struct {
		name string
		runs []Run
	}{{"A", c.A}, {"B", c.B}} {
		for _, r := range side.runs {
			runs = append(runs, []string{side.name, r.ID, r.Started, r.Host, r.Plan, counted(r.Trials, "trial")})
		}
	}
	fold(&b, counted(len(runs), "run"), []string{"Side", "Run", "Started", "Host", "Plan", "Trials"}, runs)
	_, err := io.WriteString(w, b.String())
	return err
}

// fold writes a table that a reader unfolds. It writes nothing without rows.
func fold(b *strings.Builder, summary string, header []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(b, "\n<details><summary>%s</summary>\n", escape(summary))
	table(b, header, rows)
	b.WriteString("\n</details>\n")
}

// table writes a table, up to MostMarkdown bytes of the whole text.
func table(b *strings.Builder, header []string, rows [][]string) {
	line := func(cells []string) string {
		text := "|"
		for _, cell := range cells {
			text += " " + escape(cell) + " |"
		}
		return text + "\n"
	}
	b.WriteString("\n" + line(header) + "|" + strings.Repeat("---|", len(header)) + "\n")
	for i, row := range rows {
		text := line(row)
		if b.Len()+len(text) > MostMarkdown {
			fmt.Fprintf(b, "\n%d of %d rows are left out; touchstone compare -o table has all of them.\n", len(rows)-i, len(rows))
			return
		}
		b.WriteString(text)
	}
}

// escape makes text from results plain in Markdown: it is one line, and no character has a meaning.
func escape(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return markdown.Replace(text)
}

var markdown = strings.NewReplacer(
	`\`, `\\`, "|", `\|`, "<", "&lt;", ">", "&gt;", "&", "&amp;", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "`", "\\`", "~", `\~`, "#", `\#`, "!", `\!`,
	// A mention would notify a user, and a bare address would become a link.
	"@", "@\u200b", "://", ":\u200b//",
)
