// Package docgen makes the pages of docs that repeat what the code says: docs/cli from the
// command line's own help, and the tables of docs/benchmarks.md from the catalogue. Its test
// fails when a page is stale; make gen writes it anew.
//
// A page of the command line is what --help prints, word for word. cobra's own generator of
// Markdown was rejected: it leaves out the exit codes, makes a paragraph of every aligned
// table, and brings three modules along.
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
)

// Commands gives the pages of docs/cli by their names.
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

// verbs asks for the commands as a shell does to complete them.
func verbs(ctx context.Context) ([]verb, error) {
	text, err := output(ctx, "__complete", "")
	if err != nil {
		return nil, err
	}
	var verbs []verb
	for line := range strings.Lines(text) {
		if name, short, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok && name != "help" {
			verbs = append(verbs, verb{name, short})
		}
	}
	return verbs, nil
}

// output runs the command line and gives what it prints.
func output(ctx context.Context, args ...string) (string, error) {
	var out bytes.Buffer
	if code := cli.New(cli.Environment{Stdout: &out, Stderr: io.Discard}).Run(ctx, args); code != cli.ExitOK {
		return "", fmt.Errorf("touchstone %s ended with exit code %d", strings.Join(args, " "), code)
	}
	return out.String(), nil
}

// generated finds the tables of a benchmark: what lies between two comments.
var generated = regexp.MustCompile(`(?s)(<!-- generated: ([a-zA-Z0-9.]+) -->\n).*?(<!-- end -->)`)

// numbered is a benchmark that there is for any number.
var numbered = regexp.MustCompile(`\.[0-9]+$`)

// Benchmarks gives docs/benchmarks.md with its tables as the catalogue has them. The page
// must have a place for each benchmark of the catalogue, and for no other.
func Benchmarks(page []byte) ([]byte, error) {
	tables := map[string]string{}
	for _, b := range (catalogue.Catalogue{}).All() {
		tables[numbered.ReplaceAllString(b.Name, ".N")] = table(b)
	}
	var unknown []string
	page = generated.ReplaceAllFunc(page, func(block []byte) []byte {
		part := generated.FindSubmatch(block)
		name := string(part[2])
		text, ok := tables[name]
		if !ok {
			unknown = append(unknown, name)
		}
		delete(tables, name)
		return slices.Concat(part[1], []byte(text), part[3])
	})
	if len(unknown) > 0 {
		return nil, fmt.Errorf("the page has tables of %s, which the catalogue has not, or has them twice", strings.Join(unknown, ", "))
	}
	for name := range tables {
		return nil, fmt.Errorf("the page says nothing of %s: write a section with the lines <!-- generated: %[1]s --> and <!-- end -->", name)
	}
	return page, nil
}

// table describes a benchmark by its own words.
func table(b bench.Benchmark) string {
	var w strings.Builder
	fmt.Fprintf(&w, "\nSource: %s.", b.Source)
	if len(b.Needs) > 0 {
		var needs []string
		for _, n := range b.Needs {
			needs = append(needs, string(n))
		}
		fmt.Fprintf(&w, " Needs of the target: %s.", strings.Join(needs, ", "))
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

// cell keeps a text from ending its cell.
func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
