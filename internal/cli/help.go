package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// exitCodes ends the help of each verb.
const exitCodes = `
Exit codes:
  0 ok   1 failure   2 usage   3 some trials failed   4 worse than the margin
  5 a target is missing   6 inconclusive   130 interrupted
`

// fitHelp limits the lines of the help of all verbs to the width of the terminal, and to the usual width.
func fitHelp(root *cobra.Command, terminal int) {
	width := usualWidth
	if terminal > 0 {
		width = min(width, terminal)
	}
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", fmt.Sprintf(".FlagUsagesWrapped %d", width)) + exitCodes)
	fitText(root, width)
}

// fitText breaks the wider paragraphs of a verb and of the verbs below it. Indented lines stay: their blanks have a meaning.
func fitText(cmd *cobra.Command, width int) {
	var lines, paragraph []string
	flush := func() {
		if slices.ContainsFunc(paragraph, func(line string) bool { return length(line) > width }) {
			paragraph = wrap(strings.Join(paragraph, " "), width, width)
		}
		lines, paragraph = append(lines, paragraph...), nil
	}
	for line := range strings.SplitSeq(cmd.Long, "\n") {
		if line == "" || strings.HasPrefix(line, " ") {
			flush()
			lines = append(lines, line)
			continue
		}
		paragraph = append(paragraph, line)
	}
	flush()
	cmd.Long = strings.Join(lines, "\n")
	for _, verb := range cmd.Commands() {
		fitText(verb, width)
	}
}
