package finding

import (
	"fmt"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// EmulatedVerdictsFlag is the flag of the report that asks for [analysis.Options].EmulatedVerdicts.
const EmulatedVerdictsFlag = "--emulated-verdicts"

// Emulation describes the runs of machines with an emulated CPU.
type Emulation struct {
	Runs     []int  `json:"runs" schema:"minItems=1" doc:"Places of the runs in the report, from 0."`
	Certain  bool   `json:"certain" doc:"Set if all of these CPUs are known to be emulated; the others may be."`
	Verdicts bool   `json:"speed_verdicts" doc:"Set if the report has verdicts about speed for these runs, because of --emulated-verdicts."`
	Note     string `json:"note" doc:"The same in sentences, for the top of the report."`
}

// EmulationOf is nil if no run is of a machine whose CPU is emulated, or may be.
func EmulationOf(a *analysis.Analysis) *Emulation {
	e := Emulation{Certain: true, Verdicts: a.EmulatedVerdicts}
	var machines []string
	for i := range a.Runs {
		run := &a.Runs[i]
		if !run.Host.MayBeEmulated() {
			continue
		}
		e.Runs = append(e.Runs, i)
		e.Certain = e.Certain && run.Host.Nature() == result.Emulated
		machines = append(machines, run.Label+": "+run.Host.NatureText())
	}
	if e.Runs == nil {
		return nil
	}
	is := "is"
	if !e.Certain {
		is = "may be"
	}
	subject := "The CPU of this machine"
	switch {
	case len(a.Runs) == 1:
	case len(e.Runs) == len(a.Runs):
		subject = "The CPU of each of these machines"
	default:
		subject = "The CPU of some of these machines"
	}
	e.Note = fmt.Sprintf("%s %s emulated (%s). Times, rates, CPU time and energy are the emulator's, and even their ratios may differ on a real machine. ",
		subject, is, strings.Join(machines, "; "))
	if e.Verdicts {
		e.Note += "Verdicts about speed are in this report because of " + EmulatedVerdictsFlag + ". They hold for the emulator alone."
	} else {
		e.Note += "So this report has no verdicts about speed for it; touchstone report " + EmulatedVerdictsFlag + " gives them. Verdicts about memory, numbers of things and limits hold."
	}
	return &e
}

// EmulatedNote explains the cells with the verdict [stats.Withheld]. It is empty without such cells.
func EmulatedNote(a *analysis.Analysis) string {
	if !a.AnyWithheld() {
		return ""
	}
	return `"emulated" stands in the place of a verdict: the CPU is emulated, or may be. The ratio is target / baseline then, without a direction. touchstone report ` +
		EmulatedVerdictsFlag + " gives the verdicts."
}
