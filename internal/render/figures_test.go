package render_test

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/render/chart"
)

// drawn are the answers with figures.
func drawn(t *testing.T) []*document.Document {
	var list []*document.Document
	for _, d := range answers(t) {
		if len(chart.Charts(d)) > 0 {
			list = append(list, d)
		}
	}
	if len(list) < 4 {
		t.Fatalf("%d answers have figures", len(list))
	}
	return list
}

// TestVegaLiteDrawsItsValues: a specification has a view for each figure, each point of it, and encodings whose fields are in its values.
func TestVegaLiteDrawsItsValues(t *testing.T) {
	type channel struct{ Field string }
	type layer struct {
		Data     struct{ Values []map[string]any }
		Encoding map[string]channel
	}
	for _, d := range drawn(t) {
		var spec struct {
			Schema string                    `json:"$schema"`
			Views  []struct{ Layer []layer } `json:"vconcat"`
		}
		must.Do(t, json.Unmarshal([]byte(written(t, "vega-lite", d)), &spec))
		charts := chart.Charts(d)
		if spec.Schema != "https://vega.github.io/schema/vega-lite/v6.json" || len(spec.Views) != len(charts) {
			t.Fatalf("%s: the schema is %q, and %d of %d figures have a view", d.Kind, spec.Schema, len(spec.Views), len(charts))
		}
		for i, view := range spec.Views {
			points := 0
			for _, s := range charts[i].Series {
				points += len(s.Points)
			}
			if got := len(view.Layer[0].Data.Values); got != points {
				t.Errorf("%s: %s has %d values, want %d", d.Kind, charts[i].Title, got, points)
			}
			for _, l := range view.Layer {
				for name, c := range l.Encoding {
					hasField := slices.ContainsFunc(l.Data.Values, func(v map[string]any) bool { _, has := v[c.Field]; return has })
					if isAxis := name == "x" || name == "y"; c.Field != "" && !isAxis && !hasField {
						t.Errorf("%s: %s: the values lack the field %s", d.Kind, charts[i].Title, c.Field)
					}
				}
			}
		}
	}
}

// TestSVGIsWellFormed: a drawing is XML without scripts, links and styles, and each coordinate is a number.
func TestSVGIsWellFormed(t *testing.T) {
	for _, d := range drawn(t) {
		text := written(t, "svg", d)
		if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
			t.Errorf("%s: a coordinate is no number", d.Kind)
		}
		for dec := xml.NewDecoder(strings.NewReader(text)); ; {
			token, err := dec.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			must.Do(t, err)
			if e, is := token.(xml.StartElement); is && !slices.Contains([]string{"svg", "title", "rect", "text", "path", "circle"}, e.Name.Local) {
				t.Errorf("%s: the drawing has the element %s", d.Kind, e.Name.Local)
			}
		}
	}
}

// TestLaTeXHasNoCommandOfAText: the braces of all answers are balanced, and a text is no command, comment or column.
func TestLaTeXHasNoCommandOfAText(t *testing.T) {
	for text, want := range map[string]string{
		`a_b & 50 % of $x$ #1 {y} ~z^2 \input{/etc/passwd}`: `a\_b \& 50 \% of \$x\$ \#1 \{y\} \textasciitilde{}z\textasciicircum{}2 \textbackslash{}input\{/etc/passwd\}`,
		"2.4 × slower, 3 ± 1 µs, ≥ 95 %":                    `2.4 $\times$ slower, 3 $\pm$ 1 \textmu{}s, $\geq$ 95 \%`,
		"[x]\n\x1b[2J世":                                     `{[}x{]} ?{[}2J?`,
	} {
		d := &document.Document{Title: "t", Blocks: []document.Block{document.Table{Rows: [][]document.Cell{document.Cells("head"), document.Cells(text)}}}}
		if got := written(t, "latex", d); !strings.Contains(got, "\\midrule\n"+want+" \\\\\n") {
			t.Errorf("%q is not %q in\n%s", text, want, got)
		}
	}
	for _, d := range answers(t) {
		for _, format := range []string{"latex", "pgfplots"} {
			if format == "pgfplots" && len(chart.Charts(d)) == 0 {
				continue
			}
			depth := 0
			for line := range strings.Lines(written(t, format, d)) {
				if strings.HasPrefix(line, "%") {
					continue
				}
				for i := 0; i < len(line); i++ {
					switch line[i] {
					case '\\':
						i++
					case '{':
						depth++
					case '}':
						depth--
					}
				}
			}
			if depth != 0 {
				t.Errorf("%s of a %s: %d braces are open", format, d.Kind, depth)
			}
		}
	}
}

// TestTeXReadsIt: pdflatex typesets the tables and the pictures of all answers, with text that is hostile to it.
func TestTeXReadsIt(t *testing.T) {
	if testing.Short() {
		t.Skip("TeX takes long")
	}
	if _, err := exec.LookPath("pdflatex"); err != nil {
		t.Skip("no pdflatex")
	}
	dir := t.TempDir()
	body := ""
	for i, d := range answers(t) {
		for _, format := range []string{"latex", "pgfplots"} {
			if format == "pgfplots" && len(chart.Charts(d)) == 0 {
				continue
			}
			name := fmt.Sprintf("%s%d.tex", format, i)
			must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(written(t, format, d)), 0o600))
			body += "\\input{" + name + "}\n\\clearpage\n"
		}
	}
	const head = "\\documentclass{article}\n\\usepackage[T1]{fontenc}\n\\usepackage{booktabs}\n\\usepackage{pgfplots}\n\\pgfplotsset{compat=1.18}\n\\begin{document}\n"
	must.Do(t, os.WriteFile(filepath.Join(dir, "all.tex"), []byte(head+body+"\\end{document}\n"), 0o600))
	cmd := exec.CommandContext(t.Context(), "pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-draftmode", "all.tex")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("pdflatex: %v\n%s", err, out[max(0, len(out)-2000):])
	}
}

// TestPGFPlotsHasAllDigits: each value of a figure is in the picture with all its digits. The values of stacked bars are sums.
func TestPGFPlotsHasAllDigits(t *testing.T) {
	for _, d := range drawn(t) {
		text := written(t, "pgfplots", d)
		for _, c := range chart.Charts(d) {
			for _, s := range c.Series {
				for _, p := range s.Points {
					if !c.Stacked && !strings.Contains(text, chart.Number(p.Value)) {
						t.Fatalf("%s: %s lacks the value %v", d.Kind, c.Title, p.Value)
					}
				}
			}
		}
	}
}

// TestInconclusiveChecks: an inconclusive check is an error, a passed case with a warning, or a skipped case, and Markdown has a sentence about it.
func TestInconclusiveChecks(t *testing.T) {
	for status, want := range map[document.Status][2]string{
		document.Undecided: {`<error type="inconclusive" message="reason"></error>`, ""},
		document.Warned:    {"<system-out>warning: inconclusive: reason</system-out>", "> Inconclusive checks count as warnings here: 1 of 2."},
		document.Skipped:   {`<skipped message="inconclusive: reason"></skipped>`, "> Inconclusive checks count as skipped checks here: 1 of 2."},
	} {
		d := &document.Document{Kind: "ab", Checks: []document.Check{
			{Suite: "s", Name: "open", Answer: "inconclusive", Message: "reason"}, {Suite: "s", Name: "bad", Status: document.Failed, Answer: "worse", Message: "10 %"},
		}}
		if status != document.Undecided {
			d.Settle(status)
		}
		if got := written(t, "junit", d); !strings.Contains(got, want[0]) || !strings.Contains(got, `<failure type="worse"`) {
			t.Errorf("%v is not %s:\n%s", status, want[0], got)
		}
		if got := written(t, "markdown", d); !strings.Contains(got, want[1]) {
			t.Errorf("%v is not %q:\n%s", status, want[1], got)
		}
	}
}
