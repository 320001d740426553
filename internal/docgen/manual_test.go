package docgen_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/docgen"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// Each verb has a manual page with the macros of man(7), and no line of its help is taken for another macro.
func TestManual(t *testing.T) {
	pages, err := docgen.Manual(t.Context(), "v0.1.0", time.Unix(1_800_000_000, 0))
	must.Do(t, err)
	commands, err := docgen.Commands(t.Context())
	must.Do(t, err)
	if len(pages) != len(commands) {
		t.Errorf("%d manual pages, want %d", len(pages), len(commands))
	}
	macro := regexp.MustCompile(`(?m)^[.'].*$`)
	allowance := regexp.MustCompile(`^\.(TH TOUCHSTONE(\\-[A-Z]+)? 1 2027-01-15 "Touchstone v0\.1\.0" "Touchstone"|SH [A-Z ]+|nf|fi|BR touchstone \(1\))$`)
	for name, page := range pages {
		for _, line := range macro.FindAllString(string(page), -1) {
			if !allowance.MatchString(line) {
				t.Errorf("%s has the macro %s", name, line)
			}
		}
		for _, part := range []string{".SH NAME\ntouchstone", `\- `, ".SH USAGE\n", ".SH FLAGS\n", ".SH EXIT CODES\n"} {
			if !strings.Contains(string(page), part) {
				t.Errorf("%s lacks %q", name, part)
			}
		}
	}
	if page := string(pages["touchstone-compare.1"]); !strings.Contains(page, `\-\-fail\-on MARGIN`) || !strings.Contains(page, "SEE ALSO") {
		t.Errorf("the page of compare is\n%s", page)
	}
}
