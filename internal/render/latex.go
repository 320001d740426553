package render

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/render/rows"
)

// writeLaTeX writes the tables of a document for \input in a paper, each as a table of the package booktabs, with the titles of its sections as its caption. Notes that change
// the meaning of all tables stand before them. The rest of the document is left out.
func writeLaTeX(w io.Writer, d *document.Document, _ Options) error {
	var out strings.Builder
	fmt.Fprintf(&out, "%% %s\n%% \\usepackage{booktabs}; pdflatex also needs \\usepackage[T1]{fontenc}\n", comment(d.Title))
	for _, note := range d.Notes {
		fmt.Fprintf(&out, "\n\\noindent\\textbf{%s}\n", tex(note.Text))
	}
	count := 0
	var walk func(blocks []document.Block, title string)
	walk = func(blocks []document.Block, title string) {
		for _, b := range document.WithoutDetails(blocks) {
			switch b := b.(type) {
			case document.Section:
				walk(b.Blocks, strings.TrimPrefix(title+": "+b.Title, ": "))
			case document.Table:
				count++
				booktabs(&out, &b, title)
			case document.Course:
				count++
				booktabs(&out, b.Table(), strings.TrimPrefix(title+": "+b.Name, ": "))
			}
		}
	}
	walk(d.Blocks, "")
	if count == 0 {
		return nothing("a %s without tables has no LaTeX", d.Kind)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// booktabs writes a table. The lines of a cell are in rows below each other, and a row with one cell is a heading of the rows below it.
func booktabs(out *strings.Builder, t *document.Table, title string) {
	width := 0
	for _, row := range t.Rows {
		width = max(width, len(row))
	}
	columns := "l" + strings.Repeat("r", max(0, width-1))
	if t.Listing || t.Prose {
		columns = strings.Repeat("l", width)
	}
	fmt.Fprintf(out, "\n\\begin{table}\n\\centering\n\\caption{%s}\n\\begin{tabular}{%s}\n\\toprule\n", tex(strings.TrimSuffix(title, ": ")), columns)
	for i, row := range t.Rows {
		if len(row) == 1 && width > 1 && i > 0 {
			fmt.Fprintf(out, "\\multicolumn{%d}{l}{\\textit{%s}} \\\\\n", width, tex(lineOf(row[0], 0)))
			continue
		}
		lines := 1
		for _, cell := range row {
			lines = max(lines, len(cell))
		}
		for n := range lines {
			var cells []string
			for _, cell := range row {
				cells = append(cells, tex(lineOf(cell, n)))
			}
			if rest := width - len(row); rest > 0 && len(cells) > 0 {
				last := len(cells) - 1
				cells[last] = fmt.Sprintf("\\multicolumn{%d}{l}{%s}", rest+1, cells[last])
			}
			out.WriteString(strings.Join(cells, " & ") + " \\\\\n")
		}
		if i == 0 {
			out.WriteString("\\midrule\n")
		}
	}
	out.WriteString("\\bottomrule\n\\end{tabular}\n\\end{table}\n")
}

// lineOf is a line of a cell, or nothing.
func lineOf(cell document.Cell, line int) string {
	if line < len(cell) {
		return cell[line].Text
	}
	return ""
}

// comment makes a text one line, as a comment of TeX is.
func comment(text string) string { return strings.Join(strings.Fields(rows.OneLine(text)), " ") }

// texWords spell the characters with a meaning in TeX, and those that its usual fonts lack. A bracket after \\ would be an argument of it.
var texWords = map[rune]string{
	'\\': `\textbackslash{}`, '{': `\{`, '}': `\}`, '$': `\$`, '&': `\&`, '#': `\#`, '%': `\%`, '_': `\_`, '^': `\textasciicircum{}`, '~': `\textasciitilde{}`,
	'[': `{[}`, ']': `{]}`, '<': `\textless{}`, '>': `\textgreater{}`, '|': `\textbar{}`, '"': `\textquotedbl{}`, '`': `\textasciigrave{}`, '*': `{*}`, '-': `{-}`,
	'–': `--`, '—': `---`, '−': `$-$`, '×': `$\times$`, '±': `$\pm$`, '·': `$\cdot$`, '≥': `$\geq$`, '≤': `$\leq$`, '≈': `$\approx$`, '√': `$\surd$`, '→': `$\to$`,
	'µ': `\textmu{}`, 'μ': `\textmu{}`, '…': `\dots{}`, '“': "``", '”': "''", '’': "'", '‘': "`", '⁻': `$^{-}$`, '⁰': `$^{0}$`, '⁴': `$^{4}$`, '⁵': `$^{5}$`, '⁶': `$^{6}$`,
	'⁷': `$^{7}$`, '⁸': `$^{8}$`, '⁹': `$^{9}$`, '\u00a0': `~`, '\u202f': `\,`,
}

// tex makes a text one line without commands. A character that TeX's usual fonts lack becomes a question mark.
func tex(text string) string {
	var out strings.Builder
	for _, r := range strings.Join(strings.Fields(text), " ") {
		word, special := texWords[r]
		switch {
		case special:
			out.WriteString(word)
		case r < unicode.MaxLatin1 && unicode.IsPrint(r):
			out.WriteRune(r)
		default:
			out.WriteString("?")
		}
	}
	return out.String()
}
