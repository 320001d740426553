package docgen

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// heading is a line of --help above an indented part.
var heading = regexp.MustCompile(`^(Usage|Examples|Available Commands|Flags|Global Flags|Exit codes):$`)

// Manual returns the manual pages of section 1 by their names: one of the whole program, and one of each verb. A page has the text of --help
// with its own line breaks, because the tables of a help have no other form.
func Manual(ctx context.Context, version string, date time.Time) (map[string][]byte, error) {
	verbs, err := verbs(ctx)
	if err != nil {
		return nil, err
	}
	pages := map[string][]byte{}
	for _, v := range append(verbs, verb{short: "measure the cost of container runtimes"}) {
		args, name := []string{"--help"}, "touchstone"
		if v.name != "" {
			args, name = []string{v.name, "--help"}, "touchstone-"+v.name
		}
		text, err := output(ctx, args...)
		if err != nil {
			return nil, err
		}
		pages[name+".1"] = manualPage(name, v.short, text, version, date)
	}
	return pages, nil
}

// manualPage writes a help as a manual page in the macros of man(7).
func manualPage(name, summary, help, version string, date time.Time) []byte {
	var w strings.Builder
	fmt.Fprintf(&w, ".TH %s 1 %s \"Touchstone %s\" \"Touchstone\"\n", strings.ToUpper(roff(name)), date.UTC().Format(time.DateOnly), roff(version))
	fmt.Fprintf(&w, ".SH NAME\n%s \\- %s\n.SH DESCRIPTION\n.nf\n", roff(name), roff(summary))
	for line := range strings.Lines(help) {
		line = strings.TrimRight(line, "\n")
		if part := heading.FindStringSubmatch(line); part != nil {
			fmt.Fprintf(&w, ".fi\n.SH %s\n.nf\n", strings.ToUpper(part[1]))
			continue
		}
		w.WriteString(roff(strings.TrimPrefix(line, "  ")) + "\n")
	}
	w.WriteString(".fi\n")
	if name != "touchstone" {
		w.WriteString(".SH SEE ALSO\n.BR touchstone (1)\n")
	}
	return []byte(w.String())
}

// roff escapes a line: a backslash, a minus sign that a reader can copy, and a first character that would make the line a macro.
func roff(line string) string {
	line = strings.NewReplacer(`\`, `\e`, "-", `\-`, "^", `\(ha`, "~", `\(ti`, "`", `\(ga`, "'", `\(aq`).Replace(line)
	if strings.HasPrefix(line, ".") {
		line = `\&` + line
	}
	return line
}
