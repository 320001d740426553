package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"
)

// format is the value of a listing's --output flag.
type format string

const (
	formatTable format = "table"
	formatJSON  format = "json"
	formatYAML  format = "yaml"
)

func (f *format) String() string { return string(*f) }
func (f *format) Type() string   { return "table|json|yaml" }

func (f *format) Set(s string) error {
	switch format(s) {
	case formatTable, formatJSON, formatYAML:
		*f = format(s)
		return nil
	default:
		return fmt.Errorf("must be table, json or yaml")
	}
}

// addFormat adds the --output flag of a listing.
func addFormat(cmd *cobra.Command, f *format) {
	*f = formatTable
	cmd.Flags().VarP(f, "output", "o", "output format: table, json or yaml")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
}

// print writes a listing: data as JSON or YAML, or rows below a header as a table.
func (f format) print(w io.Writer, data any, header []string, rows [][]string) error {
	switch f {
	case formatJSON:
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(data)
	case formatYAML:
		text, err := yaml.MarshalWithOptions(data, yaml.UseJSONMarshaler())
		if err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	default:
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, row := range append([][]string{header}, rows...) {
			for i, cell := range row {
				if i > 0 {
					_, _ = io.WriteString(t, "\t")
				}
				_, _ = io.WriteString(t, printable(cell))
			}
			_, _ = io.WriteString(t, "\n")
		}
		return t.Flush()
	}
}

// printable removes control characters, so that the output of programs cannot control the terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0:
			return '\uFFFD'
		default:
			return r
		}
	}, s)
}

// usualWidth is the assumed width of a terminal of unknown width.
const usualWidth = 80

// hanging is the indentation of all lines of a text but the first.
const hanging = "    "

// printWrapped writes text in lines of the terminal's width: the first after lead, the others indented. Each line of the
// text, such as one of several errors, starts a new line. Text may contain the output of programs.
func printWrapped(w io.Writer, width int, lead, text string) {
	if width <= 0 {
		width = usualWidth
	}
	for part := range strings.Lines(text) {
		printLine(w, width, lead, part)
		lead = hanging
	}
}

func printLine(w io.Writer, width int, lead, text string) {
	line, empty := lead, true
	for _, word := range strings.Fields(printable(text)) {
		if !empty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			fmt.Fprintln(w, line)
			line, empty = hanging, true
		}
		if !empty {
			line += " "
		}
		line += word
		empty = false
	}
	fmt.Fprintln(w, line)
}
