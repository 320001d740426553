// Package docgen generates the parts of docs that repeat the code: docs/cli from the command line's own help, the tables of
// docs/benchmarks from the catalogue, the table of docs/image.md from the tools of package programs, the table of docs/troubleshooting.md from the
// known errors, the tables of docs/papers.md
// from the published results, and docs/invariants.md from comments. Its test fails if a page is stale; make gen writes the page again.
//
// A page of the command line is the output of --help, word for word. cobra's own Markdown generator was rejected: it omits
// the exit codes, turns every aligned table into a paragraph, and adds three modules.
package docgen

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/bench/catalogue"
	"github.com/touchstone-bench/touchstone/internal/cli"
	"github.com/touchstone-bench/touchstone/internal/engine/diagnosis"
	"github.com/touchstone-bench/touchstone/internal/paper"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/workload/programs"
)

// Commands returns the pages of docs/cli by their names.
func Commands(ctx context.Context) (map[string][]byte, error) {
	verbs, err := verbs(ctx)
	if err != nil {
		return nil, err
	}
	var index bytes.Buffer
	text, err := output(ctx, "--help")
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(&index, "# touchstone\n\n```text\n%s```\n\n| command | |\n|---|---|\n", text)
	pages := map[string][]byte{}
	for _, v := range verbs {
		text, err := output(ctx, v.name, "--help")
		if err != nil {
			return nil, err
		}
		pages[v.name+".md"] = fmt.Appendf(nil, "# touchstone %s\n\n```text\n%s```\n", v.name, text)
		fmt.Fprintf(&index, "| [%s](%s.md) | %s |\n", v.name, v.name, v.short)
	}
	pages["README.md"] = index.Bytes()
	return pages, nil
}

type verb struct{ name, short string }

// verbs lists the commands by the completion that shells use.
func verbs(ctx context.Context) ([]verb, error) {
	text, err := output(ctx, "__complete", "")
	if err != nil {
		return nil, err
	}
	var verbs []verb
	for line := range strings.Lines(text) {
		if name, summary, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok && name != "help" {
			verbs = append(verbs, verb{name, summary})
		}
	}
	return verbs, nil
}

// output runs the command line and returns its standard output.
func output(ctx context.Context, args ...string) (string, error) {
	var out bytes.Buffer
	if code := cli.New(cli.Environment{Stdout: &out, Stderr: io.Discard}).Run(ctx, args); code != cli.ExitOK {
		return "", fmt.Errorf("touchstone %s exited with code %d", strings.Join(args, " "), code)
	}
	return out.String(), nil
}

// generated finds the tables of a benchmark, which stand between two comments.
var generated = regexp.MustCompile(`(?s)(<!-- generated: ([a-zA-Z0-9.]+) -->\n).*?(<!-- end -->)`)

// numbered matches the end of the name of a benchmark that exists for any number.
var numbered = regexp.MustCompile(`\.[0-9]+$`)

// Suites returns the suites of the catalogue. Each has a page in docs/benchmarks.
func Suites() []string {
	var suites []string
	for _, b := range (catalogue.Catalogue{}).All() {
		suite, _, _ := strings.Cut(b.Name, ".")
		suites = append(suites, suite)
	}
	slices.Sort(suites)
	return slices.Compact(suites)
}

// Benchmarks returns the page of a suite with tables from the catalogue. The page must have a place for each benchmark of the
// suite, and for no other.
func Benchmarks(page []byte, suite string) ([]byte, error) {
	tables := map[string]string{}
	for _, b := range (catalogue.Catalogue{}).All() {
		if bench.Matches(suite, b.Name) {
			tables[numbered.ReplaceAllString(b.Name, ".N")] = table(b)
		}
	}
	var strangers []string
	page = generated.ReplaceAllFunc(page, func(block []byte) []byte {
		part := generated.FindSubmatch(block)
		name := string(part[2])
		text, ok := tables[name]
		if !ok {
			strangers = append(strangers, name)
		}
		delete(tables, name)
		return slices.Concat(part[1], []byte(text), part[3])
	})
	if len(strangers) > 0 {
		return nil, fmt.Errorf("the page has tables of benchmarks that the suite does not have, or has tables twice: %s", strings.Join(strangers, ", "))
	}
	for name := range tables {
		return nil, fmt.Errorf("the page has no section about %s: write a section with the lines <!-- generated: %[1]s --> and <!-- end -->", name)
	}
	return page, nil
}

// Programs returns docs/image.md with a table of the programs of the workload image.
func Programs(page []byte) ([]byte, error) {
	var w strings.Builder
	w.WriteString("\n| program | packages of Debian |\n|---|---|\n")
	for _, tool := range programs.Tools() {
		fmt.Fprintf(&w, "| %s | %s |\n", tool.Name, strings.Join(tool.Packages, ", "))
	}
	w.WriteString("\n")
	return fill(page, "<!-- programs -->\n", w.String())
}

// KnownErrors returns docs/troubleshooting.md with a table of the known errors.
func KnownErrors(page []byte) ([]byte, error) {
	var w strings.Builder
	w.WriteString("\n| cause | remedy | more |\n|---|---|---|\n")
	for _, s := range diagnosis.Signatures() {
		link := ""
		if s.Page != "" {
			link = fmt.Sprintf("[section](#%s)", s.Page)
		}
		fmt.Fprintf(&w, "| %s | %s | %s |\n", text(s.Cause), text(s.Advice), link)
	}
	w.WriteString("\n")
	return fill(page, "<!-- known errors -->\n", w.String())
}

// Papers returns docs/papers.md with the flags and the notes of the published results.
func Papers(page []byte) ([]byte, error) {
	papers, err := paper.All()
	if err != nil {
		return nil, err
	}
	var flags, notes strings.Builder
	flags.WriteString("\n| paper | table | row | column | printed | flag |\n|---|---|---|---|---|---|\n")
	notes.WriteString("\n| paper | table | note |\n|---|---|---|\n")
	for _, p := range papers {
		for _, t := range p.Tables {
			for _, row := range t.Rows {
				for c, cell := range row.Cells {
					if cell.Flag != "" {
						label := strings.TrimPrefix(row.Group+": "+row.Label, ": ")
						fmt.Fprintf(&flags, "| %s | %s | %s | %s | %s | %s |\n", p.Name, t.Name, text(label), text(t.Columns[c].Heading), text(cell.Printed), text(cell.Flag))
					}
				}
			}
			for _, note := range t.Notes {
				fmt.Fprintf(&notes, "| %s | %s | %s |\n", p.Name, t.Name, text(note))
			}
		}
	}
	flags.WriteString("\n")
	notes.WriteString("\n")
	page, err = fill(page, "<!-- flags -->\n", flags.String())
	if err != nil {
		return nil, err
	}
	return fill(page, "<!-- notes -->\n", notes.String())
}

// fill returns a page with a text between a mark and the next end.
func fill(page []byte, mark, text string) ([]byte, error) {
	const end = "<!-- end -->"
	head, rest, hasMark := strings.Cut(string(page), mark)
	_, tail, hasEnd := strings.Cut(rest, end)
	if !hasMark || !hasEnd {
		return nil, fmt.Errorf("the page has no place for a table: %sand %s", mark, end)
	}
	return []byte(head + mark + text + end + tail), nil
}

// table formats the declaration of a benchmark.
func table(b bench.Benchmark) string {
	var w strings.Builder
	fmt.Fprintf(&w, "\nSource: %s.", b.Source)
	if capabilities := b.Capabilities(); len(capabilities) > 0 {
		var needs []string
		for _, n := range capabilities {
			needs = append(needs, string(n))
		}
		fmt.Fprintf(&w, " Needs of the target: %s.", strings.Join(needs, ", "))
	}
	if limits := (plan.Work{Limits: b.PaperLimits}).Key(); limits != "" {
		fmt.Fprintf(&w, " With paper parameters: %s.", strings.ReplaceAll(limits, " ", ", "))
	}
	if len(b.OwnLimits) > 0 {
		var limits []string
		for _, l := range b.OwnLimits {
			limits = append(limits, "limits."+string(l))
		}
		fmt.Fprintf(&w, " Sets by itself: %s.", strings.Join(limits, ", "))
	}
	w.WriteString("\n\n| metric | unit | better | meaning |\n|---|---|---|---|\n")
	for _, m := range b.Metrics {
		help := m.Help
		if m.Series {
			help += " (a series: one value each, in order)"
		}
		fmt.Fprintf(&w, "| %s | %s | %s | %s |\n", cell(m.Name), m.Unit, m.Better, cell(help))
	}
	if len(b.Params) > 0 {
		w.WriteString("\n| parameter | quick | paper | meaning |\n|---|---|---|---|\n")
	}
	for _, p := range b.Params {
		fmt.Fprintf(&w, "| %s | %s | %s | %s |\n", cell(p.Name), cell(p.Quick), cell(p.Paper), cell(p.Help))
	}
	w.WriteString("\n")
	return w.String()
}

// text escapes a text that is no Markdown.
func text(s string) string {
	return strings.NewReplacer("_", `\_`, "*", `\*`, "<", "&lt;").Replace(cell(s))
}

// cell escapes the characters that would end a cell.
func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
