package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/touchstone-bench/touchstone/internal/render/text"
)

// format is the value of a --format flag.
type format string

const (
	formatTable format = "table"
	formatJSON  format = "json"
	formatYAML  format = "yaml"
	formatHTML  format = "html"
	// formatMarkdown is for a comment, a summary, a wiki or a repository.
	formatMarkdown format = "markdown"
)

// formatFlag is a --format flag with its possible values.
type formatFlag struct {
	value   *format
	allowed []format
}

func (f formatFlag) String() string { return string(*f.value) }
func (f formatFlag) Type() string   { return strings.Join(f.names(), "|") }

func (f formatFlag) Set(s string) error {
	if !slices.Contains(f.allowed, format(s)) {
		return errors.New("must be " + f.choice())
	}
	*f.value = format(s)
	return nil
}

func (f formatFlag) names() []string {
	var names []string
	for _, a := range f.allowed {
		names = append(names, string(a))
	}
	return names
}

// choice lists the values as in "table, json or yaml".
func (f formatFlag) choice() string {
	names := f.names()
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// addOutput adds a --format flag with the first format as its default. text describes the formatted output.
func addOutput(cmd *cobra.Command, f *format, text string, formats ...format) {
	*f = formats[0]
	flag := formatFlag{f, formats}
	cmd.Flags().VarP(flag, "format", "o", flagText(text+": "+flag.choice()))
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(flag.names(), cobra.ShellCompDirectiveNoFileComp))
}

// flagText breaks the description of a flag into lines.
func flagText(text string) string { return strings.Join(wrap(text, 60, 60), "\n") }

// addFormat adds the --format flag of a listing.
func addFormat(cmd *cobra.Command, f *format) {
	addOutput(cmd, f, "output `FORMAT`", formatTable, formatJSON, formatYAML)
}

// printList writes a listing of items, with a row of the table for each.
func printList[T any](a *App, f format, items []T, header []string, row func(T) []string) error {
	var rows [][]string
	for _, i := range items {
		rows = append(rows, row(i))
	}
	return a.print(f, items, header, rows)
}

// print writes a listing: data as JSON or YAML, or rows below a header as a table.
func (a *App) print(f format, data any, header []string, rows [][]string) error {
	w := a.env.Stdout
	switch f {
	case formatJSON:
		enc := json.NewEncoder(jsonWriter(w))
		enc.SetIndent("", "  ")
		return enc.Encode(data)
	case formatYAML:
		document, err := yaml.MarshalWithOptions(data, yaml.UseJSONMarshaler())
		if err != nil {
			return err
		}
		_, err = w.Write(document)
		return err
	default:
		return text.Listing(w, header, rows, a.env.Width)
	}
}

// usualWidth is the width of lines without a terminal.
const usualWidth = 100

// hanging is the indentation of all lines of a text but the first.
const hanging = "    "

// printWrapped writes text in lines of the terminal's width: the first after lead, the others indented. Each line of the
// text, such as one of several errors, starts a new line. Text may contain the output of programs.
func printWrapped(w io.Writer, width int, lead, text string) {
	if width <= 0 {
		width = usualWidth
	}
	for part := range strings.Lines(text) {
		for _, line := range wrap(part, width-length(lead), width-length(hanging)) {
			fmt.Fprintln(w, lead+line)
			lead = hanging
		}
	}
}

// wrap breaks a text at spaces into lines of at most a width: first for the first line, and rest for the others. It returns at least one line.
// A longer word has a line of its own.
func wrap(text string, first, rest int) []string {
	lines, width := []string{""}, first
	for _, word := range strings.Fields(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case length(*last)+1+length(word) <= width:
			*last += " " + word
		default:
			lines, width = append(lines, word), rest
		}
	}
	return lines
}

// length is the number of characters of a text.
func length(s string) int { return utf8.RuneCountInString(s) }

// status is the line on standard error that shows the work under way. Only a terminal can redraw it.
type status struct {
	env Environment
	// terminal is standard error without a cleaner, for the control sequences of this program.
	terminal io.Writer
}

// show replaces the status line. Without a terminal it does nothing.
func (s status) show(line string) {
	if !s.env.Live {
		return
	}
	if runes := []rune(line); s.env.Width > 0 && len(runes) >= s.env.Width {
		line = string(runes[:s.env.Width-1])
	}
	s.clear()
	fmt.Fprint(s.env.Stderr, line)
}

// step shows a step that takes time: in the status line on a terminal, else as a line of its own.
func (s status) step(what string) {
	if s.env.Live {
		s.show(what + " …")
		return
	}
	fmt.Fprintln(s.env.Stderr, what)
}

// patience is the longest time without a line about the step under way.
const patience = 2 * time.Second

// slow shows a step in the status line as soon as it has taken longer than patience. The returned function ends the step. It must be called before
// anything is printed, and may be called again.
func (s status) slow(what string) (end func()) {
	if !s.env.Live {
		return func() {}
	}
	step, finish := context.WithCancel(context.Background())
	silence, stop := context.WithTimeout(step, patience)
	exit := make(chan struct{})
	go func() {
		defer close(exit)
		<-silence.Done()
		if step.Err() == nil {
			s.show(what + " …")
			<-step.Done()
			s.clear()
		}
	}()
	return func() {
		finish()
		<-exit
		stop()
	}
}

// line prints a line that stays.
func (s status) line(text string) {
	s.clear()
	fmt.Fprintln(s.env.Stderr, text)
}

// clear clears the status line.
func (s status) clear() {
	if s.env.Live {
		fmt.Fprint(s.terminal, "\r\x1b[K")
	}
}
