package report

import (
	"fmt"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// EmulatedScore is the verdict of a scorecard on a goal of speed on an emulated CPU.
const EmulatedScore ScoreVerdict = "emulated"

// EmulatedVerdictsFlag is the flag of the report that asks for [Options].EmulatedVerdicts.
const EmulatedVerdictsFlag = "--emulated-verdicts"

// judge judges a family, or withholds its verdicts.
func judge(family []stats.Comparison, unjudged bool, margin float64) []stats.Comparison {
	if !unjudged {
		return stats.Judge(family, stats.Alpha, margin)
	}
	var all []stats.Comparison
	for _, c := range family {
		all = append(all, c.Withhold())
	}
	return all
}

// Emulation describes the runs of machines with an emulated CPU.
type Emulation struct {
	// Runs are indexes into Report.Runs.
	Runs []int
	// Certain is false if some of the CPUs only may be emulated.
	Certain bool
	// Verdicts reports whether the report has verdicts about speed for these runs, because the user asked for them.
	Verdicts bool
	// Note states it in sentences, for the top of the report.
	Note string
}

// Emulation is nil if no run is of a machine whose CPU is emulated, or may be.
func (r *Report) Emulation() *Emulation {
	e := Emulation{Certain: true, Verdicts: r.EmulatedVerdicts}
	var machines []string
	for i := range r.Runs {
		of := &r.Runs[i]
		if !of.Host.MayBeEmulated() {
			continue
		}
		e.Runs = append(e.Runs, i)
		e.Certain = e.Certain && of.Host.Nature() == result.Emulated
		machines = append(machines, of.Label+": "+of.Host.NatureText())
	}
	if e.Runs == nil {
		return nil
	}
	is := "is"
	if !e.Certain {
		is = "may be"
	}
	where := "The CPU of this machine"
	switch {
	case len(r.Runs) == 1:
	case len(e.Runs) == len(r.Runs):
		where = "The CPU of each of these machines"
	default:
		where = "The CPU of some of these machines"
	}
	e.Note = fmt.Sprintf("%s %s emulated (%s). Times, rates, CPU time and energy are the emulator's, and even their ratios may differ on a real machine. ",
		where, is, strings.Join(machines, "; "))
	if e.Verdicts {
		e.Note += "Verdicts about speed are in this report because of " + EmulatedVerdictsFlag + ". They hold for the emulator alone."
	} else {
		e.Note += "So this report has no verdicts about speed for it; touchstone report " + EmulatedVerdictsFlag + " gives them. Verdicts about memory, numbers of things and limits hold."
	}
	return &e
}

// noVerdictOf explains a missing verdict in a few words.
func noVerdictOf(run *result.Run) string {
	if run.Host.Nature() == result.Emulated {
		return "no verdict, because the CPU is emulated"
	}
	return "no verdict, because the CPU may be emulated"
}

// anyWithheld reports whether some run has comparisons without a verdict because of an emulated CPU.
func (r *Report) anyWithheld() bool {
	for i := range r.Runs {
		if r.Runs[i].Withheld > 0 {
			return true
		}
	}
	return false
}

// EmulatedNote explains the cells with the verdict [stats.Withheld]. It is empty without such cells.
func (r *Report) EmulatedNote() string {
	if !r.anyWithheld() {
		return ""
	}
	return `"emulated" stands in the place of a verdict: the CPU is emulated, or may be. The ratio is target / baseline then, without a direction. touchstone report ` +
		EmulatedVerdictsFlag + " gives the verdicts."
}
