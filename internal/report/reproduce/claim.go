package reproduce

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/paper"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Verdict is the result of a claim or of one of its comparisons. It is no [stats.Verdict] or [stats.Answer]: it states whether a sentence of the paper holds
// here, in either direction or as a similarity, and a sentence may have no measured value.
type Verdict string

// The verdicts. The package comment has their conditions.
const (
	Agrees      Verdict = "agrees"
	Disagrees   Verdict = "disagrees"
	CannotTell  Verdict = "cannot tell"
	NotMeasured Verdict = "not measured"
)

// Verdicts lists the verdicts in display order.
func Verdicts() []Verdict { return []Verdict{Agrees, Disagrees, CannotTell, NotMeasured} }

// Claim is a claim with its verdict.
type Claim struct {
	paper.Claim
	Verdict     Verdict      `json:"verdict" doc:"The verdict of all comparisons together."`
	Reason      string       `json:"reason,omitempty" doc:"The reason of the verdict; absent if all comparisons agree."`
	Comparisons []Comparison `json:"-"`
}

// Comparison is a target against another one on one value.
type Comparison struct {
	Of            paper.Of
	Target, Other string
	// Metric is the zero value if nothing was measured.
	Metric result.Metric
	// Compared is nil if it was not measured.
	Compared *stats.Comparison
	Verdict  Verdict
	// Reason explains the verdicts cannot tell and not measured.
	Reason string
}

// Title names the value of a comparison: "performance.cpu.time TotalTime, threads=4".
func Title(value paper.Of) string {
	return withParams(value, strings.TrimSpace(value.Benchmark+" "+value.Metric))
}

// Short is the title without the benchmark.
func Short(value paper.Of) string { return withParams(value, value.Metric) }

func withParams(origin paper.Of, title string) string {
	var params []string
	for name, value := range origin.Params {
		params = append(params, name+"="+value)
	}
	slices.Sort(params)
	if params != nil {
		title += ", " + strings.Join(params, " ")
	}
	return title
}

// Ratio spells the ratio of the comparison with its interval: "3.20 × slower (3.10 to 3.30)". It is [quantity.None] if it was not measured.
func (c *Comparison) Ratio() string {
	if c.Compared == nil {
		return quantity.None
	}
	text := quantity.Ratio(c.Compared, c.Metric)
	if interval := quantity.FactorInterval(c.Compared); interval != quantity.None {
		text += " (" + interval + ")"
	}
	return text
}

// Stated spells the relation of a claim: "better by at least 1.41 ×".
func (c *Claim) Stated() string {
	margin := quantity.Number(c.Margin) + " ×"
	switch {
	case c.Relation == paper.Similar:
		return "similar, within " + margin
	case c.Margin == 1:
		return string(c.Relation)
	default:
		return string(c.Relation) + " by at least " + margin
	}
}

// claim compares the targets of a claim.
func (s *source) claim(c paper.Claim) Claim {
	out := Claim{Claim: c}
	for _, value := range c.Of {
		for _, pair := range c.Compared() {
			out.Comparisons = append(out.Comparisons, s.compare(c, value, pair[0], pair[1]))
		}
	}
	out.judge()
	return out
}

func (s *source) compare(c paper.Claim, value paper.Of, target, partner string) Comparison {
	out := Comparison{Of: value, Target: target, Other: partner, Verdict: NotMeasured}
	if reason := s.otherArch(c.Arch); reason != "" {
		out.Reason = reason
		return out
	}
	m := s.measure(value, target, partner)
	out.Reason = cmp.Or(m.lack, m.lackRatio)
	if out.Reason != "" {
		return out
	}
	out.Metric, out.Compared = m.metric, m.Comparison
	out.Verdict, out.Reason = judge(c, m.metric, *m.Comparison, m.Emulated)
	return out
}

// otherArch is the reason why a value of an architecture is not compared with these runs. It is empty if it is.
func (s *source) otherArch(arch string) string {
	if ours := s.runs[0].Host.Arch; arch != "" && arch != ours {
		machine := "this machine"
		if s.where != "here" {
			machine = "the machine of the runs"
		}
		return fmt.Sprintf("the study measured it on %s, and %s is %s", arch, machine, ours)
	}
	return ""
}

// judge gives the verdict of one comparison, and a reason if it cannot tell.
func judge(c paper.Claim, m result.Metric, k stats.Comparison, emulated bool) (Verdict, string) {
	switch {
	case emulated:
		return CannotTell, quantity.EmulatedCPU
	case k.Verdict == stats.NotComparable:
		return CannotTell, "a value is not above zero"
	case k.CI == nil:
		return CannotTell, fmt.Sprintf("an interval needs %d blocks with both targets, and there are %d", stats.MinSamples, k.N)
	}
	// The interval in the direction of the claim: above 1 if the claimed side is ahead.
	lo, hi := k.CI.Lo, k.CI.Hi
	if (c.Relation == paper.Worse) == (m.Better == result.Higher) {
		lo, hi = 1/hi, 1/lo
	}
	agrees := lo >= c.Margin && lo > 1
	disagrees := hi < c.Margin || hi <= 1
	if c.Relation == paper.Similar {
		agrees = lo >= 1/c.Margin && hi <= c.Margin
		disagrees = hi < 1/c.Margin || lo > c.Margin
	}
	if loss := lostBy(m, k); (agrees || disagrees) && loss != "" {
		return CannotTell, loss
	}
	switch {
	case agrees:
		return Agrees, ""
	case disagrees:
		return Disagrees, ""
	}
	return CannotTell, "the interval includes the margin"
}

// lostBy names the lost trials of the side that looks better. Trials are not lost by chance: a slow one exceeds a limit and a fast one does not.
func lostBy(m result.Metric, k stats.Comparison) string {
	isTarget, side := (k.Ratio > 1) == (m.Better == result.Higher), "other target"
	if isTarget {
		side = "target"
	}
	share := k.Lost.OfBetter(isTarget)
	if share == 0 {
		return ""
	}
	return fmt.Sprintf("the %s looks better and has lost %s of its trials", side, quantity.Percent(share))
}

// brief is a reason without the cause that a report of the run explains: "docker/kata is not available".
func brief(reason string) string {
	head, _, _ := strings.Cut(reason, " is not available: ")
	if head == reason {
		return reason
	}
	return head + " is not available"
}

// judge combines the verdicts of the comparisons.
func (c *Claim) judge() {
	counts := map[Verdict]int{}
	var reasons []string
	for _, one := range c.Comparisons {
		counts[one.Verdict]++
		if one.Reason != "" && !slices.Contains(reasons, one.Reason) {
			reasons = append(reasons, one.Reason)
		}
	}
	total := len(c.Comparisons)
	if counts[NotMeasured] < total { // the list of claims that are not measured has the whole reasons
		for i, reason := range reasons {
			reasons[i] = brief(reason)
		}
		for i := range c.Comparisons {
			if one := &c.Comparisons[i]; one.Verdict == NotMeasured {
				one.Reason = brief(one.Reason)
			}
		}
	}
	share := func(v Verdict) string { return fmt.Sprintf("%d of %d comparisons", counts[v], total) }
	switch {
	case counts[Agrees] == total:
		c.Verdict = Agrees
	case counts[NotMeasured] == total:
		c.Verdict, c.Reason = NotMeasured, strings.Join(reasons, "; ")
	case counts[Disagrees] == total:
		c.Verdict = Disagrees
	case counts[Disagrees] > 0:
		c.Verdict, c.Reason = Disagrees, share(Disagrees)+" disagree, "+fmt.Sprint(counts[Agrees])+" agree"
	case counts[CannotTell] == total:
		c.Verdict, c.Reason = CannotTell, strings.Join(reasons, "; ")
	default:
		c.Verdict, c.Reason = CannotTell, share(Agrees)+" agree; "+strings.Join(reasons, "; ")
	}
}
