package finding

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// Cautions are the reasons to read all numbers of a run with care, one line each: the run is not whole, a runtime is not today's, the
// machine was load, trials failed.
func Cautions(a *analysis.Analysis, run int) []string {
	r := &a.Runs[run]
	var texts []string
	for _, text := range state(r.State).Items {
		texts = append(texts, wording.Capital(wording.Clause(text)))
	}
	texts = append(texts, dated(r).Items...)
	if n := r.Counts[result.Failed] + r.Counts[result.Timeout]; n > 0 {
		text := wording.Counted(n, "trial") + " failed or timed out"
		for _, miss := range r.Missing {
			if miss.Status == result.Failed || miss.Status == result.Timeout {
				text += fmt.Sprintf(", the first of %s on %s: %s", miss.Name, miss.Target, firstLine(miss.Reason))
				break
			}
		}
		texts = append(texts, text)
	}
	var load []string
	for _, text := range r.Host.Warnings {
		load = append(load, wording.Clause(text))
	}
	if items := disturbed(r).Items; items != nil {
		load = append(load, "in "+strings.Replace(items[0], ": ", " ", 1))
	}
	if load != nil {
		texts = append(texts, wording.Capital(strings.Join(load, "; ")))
	}
	for _, caveat := range r.Caveats {
		if !result.IsBudgetCaveat(caveat) {
			texts = append(texts, wording.Capital(wording.Clause(caveat)))
		}
	}
	return texts
}

// Span spells a range of counts: "11 to 14 blocks".
func Span(lo, hi int, noun string) string {
	if lo == hi {
		return wording.Counted(hi, noun)
	}
	return fmt.Sprintf("%d to %s", lo, wording.Counted(hi, noun))
}

// oldAge is the age of a runtime that is not today's.
const oldAge = 2 * 365 * 24 * time.Hour

// systrapDefault begins the time of systrap as gVisor's default platform, by its announcement of 28 April 2023.
var systrapDefault = time.Date(2023, time.May, 1, 0, 0, 0, 0, time.UTC)

// versionDate is the date in a version of gVisor: "release-20220905.0", "0.0~20221219.0", "v0.0.0-20260905035102-160fafc42237".
var versionDate = regexp.MustCompile(`\b20\d{6}|[-~.]20\d{6}`)

// dated lists the runtimes whose costs today may be others: old versions, and gVisor on a platform that is not its default.
func dated(r *analysis.Run) WarningGroup {
	g := WarningGroup{Title: "Runtimes that are not today's", Advice: "install a current release, and measure again: docs/runtimes.md says where each runtime is from"}
	versions := map[string]bool{}
	for i := range r.Targets {
		t := &r.Targets[i]
		if t.OK == 0 {
			continue
		}
		if text := Dated(r, t); text != "" && !versions[t.Runtime] {
			versions[t.Runtime] = true
			g.Items = append(g.Items, fmt.Sprintf("%s: gVisor %s is not today's gVisor", t.Name, text))
		}
	}
	return g
}

// Dated is the difference of a target's runtime from today's: "of 2022-09, with ptrace". It is empty for a runtime that is not known to be old.
func Dated(r *analysis.Run, t *analysis.Target) string {
	if !strings.Contains(t.Version, "runsc") {
		return ""
	}
	_, version, _ := strings.Cut(t.Version, "runsc")
	digits := strings.TrimLeft(versionDate.FindString(version), "-~.")
	date, err := time.Parse("20060102", digits)
	var parts []string
	if err == nil && !r.Started.IsZero() && r.Started.Sub(date) > oldAge {
		parts = append(parts, "of "+date.Format("2006-01"))
	}
	platform := optionOf(t.Runtime, "platform")
	if platform == "ptrace" || platform == "" && err == nil && date.Before(systrapDefault) {
		parts = append(parts, "with ptrace")
	}
	return strings.Join(parts, ", ")
}

// optionOf is the value of an option of a runtime: "runsc@platform=ptrace". It is empty without the option.
func optionOf(runtime, name string) string {
	_, options, _ := strings.Cut(runtime, "@")
	for option := range strings.SplitSeq(options, ",") {
		if value, has := strings.CutPrefix(option, name+"="); has {
			return value
		}
	}
	return ""
}
