package finding

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/lists"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// Answer answers a question that people bring to a run: the cheapest runtime, the addition of an engine, the price of a safer target, and the limits of the
// run itself.
type Answer struct {
	// Name is the subject in one word.
	Name string
	Text string
	// Brief is the part of the text that a screen has room for.
	Brief string
	// Benchmarks have the evidence.
	Benchmarks []analysis.Key
	// Claims are the orders that the text states as shown. All claims of a text are decided as one family of comparisons.
	Claims []Claim
}

// Claim is the statement that a target costs less than another one on a metric.
type Claim struct {
	analysis.Key
	Metric  string `json:"metric" doc:"Name of the metric."`
	Cheaper string `json:"cheaper" doc:"Name of the target that costs less."`
	Dearer  string `json:"dearer" doc:"Name of the target that costs more."`
}

// Limits of an answer.
const (
	// mostWithIntervals is the number of costs with an interval in a sentence about many.
	mostWithIntervals = 3
	// mostListed is the number of names in a list.
	mostListed = 6
	// wantedEffect is the relative difference that a run should be able to show. mostBlocks is the largest number of blocks that a text advises.
	wantedEffect = 0.02
	mostBlocks   = 100_000
	// mostBrief is the number of columns in a text for a screen.
	mostBrief = 4
)

// Answers are the answers of a run, in the order of their weight.
func Answers(a *analysis.Analysis, run int) []Answer {
	r := &a.Runs[run]
	standings := a.Standings(run)
	if len(standings) == 0 {
		return nil
	}
	if r.Unjudged && !slices.ContainsFunc(standings, func(s analysis.Standing) bool { return !s.Metric.OfSpeed() }) {
		return []Answer{{Name: "No answer", Text: "The run has no verdict, because the CPU is emulated.", Benchmarks: []analysis.Key{standings[0].Benchmark.Key}}}
	}
	var answers []Answer
	isBare := func(t *analysis.Target) bool { return t.Kind == result.KindRuntime }
	isEngine := func(t *analysis.Target) bool { return t.Kind == result.KindEngine }
	isOther := func(t *analysis.Target) bool { return t.Kind == "" }
	one := alone(r, standings)
	if one == nil {
		answers = append(answers, cheapest("Runtimes", standings, isBare)...)
		answers = append(answers, cheapest("Engines", standings, isEngine)...)
		answers = append(answers, cheapest("Targets", standings, isOther)...)
	}
	answers = append(answers, one...)
	answers = append(answers, additions(r, standings)...)
	if one == nil {
		answers = append(answers, safer(r, standings)...)
	}
	return append(answers, undecided(a, run, standings)...)
}

// cheapest names the target of a group that costs least, by column.
func cheapest(name string, standings []analysis.Standing, match func(*analysis.Target) bool) []Answer {
	leads := analysis.Leads(standings, match)
	if len(leads) == 0 {
		return nil
	}
	out := Answer{Name: name}
	type group struct {
		names []string
		leads []analysis.Lead
	}
	var sole, ties []group
	var equal, open []string
	for _, l := range leads {
		out.Benchmarks = append(out.Benchmarks, l.Benchmark.Key)
		names := []string{l.Best.Target.Name}
		for _, e := range l.Equal {
			names = append(names, e.Target.Name)
		}
		list := &sole
		switch {
		case l.Open != nil:
			open = append(open, heading(&l))
			continue
		case l.Dearer == nil:
			equal = append(equal, heading(&l))
			continue
		case l.Equal != nil:
			list = &ties
		}
		slices.Sort(names)
		g := lists.Place(list, func(g *group) bool { return slices.Equal(g.names, names) }, group{names: names})
		g.leads = append(g.leads, l)
	}
	var parts []string
	for _, g := range sole {
		parts = append(parts, g.names[0]+" costs least in "+columns(g.leads))
		for _, l := range g.leads {
			for _, e := range l.Dearer {
				out.Claims = append(out.Claims, Claim{l.Benchmark.Key, l.Metric.Name, l.Best.Target.Name, e.Target.Name})
			}
		}
	}
	out.Brief = "none is shown to cost least in " + headings(leads)
	if sole != nil {
		out.Brief = parts[0]
	}
	for _, g := range ties {
		parts = append(parts, fmt.Sprintf("in %s one of %s costs least", headings(g.leads), listed(g.names, mostListed)))
	}
	if equal != nil {
		parts = append(parts, "in "+listed(equal, mostListed)+" the cheapest is not shown")
	}
	if open != nil {
		parts = append(parts, "not decided in "+listed(open, mostListed))
	}
	out.Text = sentence(strings.Join(parts, "; "))
	return []Answer{out}
}

// alone states the cost of the only target beside the reference.
func alone(r *analysis.Run, standings []analysis.Standing) []Answer {
	reference, target := standings[0].Reference, ""
	for _, s := range standings {
		for _, e := range s.Entries {
			if target != "" && target != e.Target.Name || s.Reference != reference {
				return nil
			}
			target = e.Target.Name
		}
	}
	for i := range r.Targets {
		if t := &r.Targets[i]; t.Name == target {
			if a, has := price(r, t, reference, standings); has {
				a.Name = "Cost"
				return []Answer{a}
			}
		}
	}
	return nil
}

// columns lists the columns of leads of the same target, with the cost on the first one.
func columns(leads []analysis.Lead) string {
	texts := make([]string, 0, len(leads))
	for i := range leads {
		l := &leads[i]
		text := heading(l)
		if c := l.Best.Comparison; i == 0 && c != nil {
			text = note(l.Heading, cost(l.Standing, c, " "+l.Reference), among(l))
		}
		texts = append(texts, text)
	}
	return listed(texts, mostListed)
}

func headings(leads []analysis.Lead) string {
	return listed(lists.Convert(leads, heading), mostListed)
}

// heading is the column of a lead. Without a value on some targets, a reader would take the others for all.
func heading(l *analysis.Lead) string { return note(l.Heading, among(l)) }

// among is the number of targets with a value, if others lack one; otherwise it is empty.
func among(l *analysis.Lead) string {
	if l.Lacking == 0 {
		return ""
	}
	count := 1 + len(l.Dearer) + len(l.Equal) + len(l.Open)
	return fmt.Sprintf("%d of %d measured", count, count+l.Lacking)
}

// note adds texts that are not empty to a name, in brackets.
func note(name string, texts ...string) string {
	texts = slices.DeleteFunc(texts, func(text string) bool { return text == "" })
	if len(texts) == 0 {
		return name
	}
	return name + " (" + strings.Join(texts, "; ") + ")"
}

// listed lists names as a sentence does: the first of many, and the number of the others.
func listed(names []string, limit int) string {
	if rest := len(names) - limit; rest > 1 {
		names = append(slices.Clone(names[:limit]), fmt.Sprintf("%d more", rest))
	}
	return wording.Listed(names)
}

// cost spells a cost with its interval: "2.04 × native, 1.75 to 2.37", or with the part that decides the difference. It is below 1 for a target that costs
// less. The reference begins with a blank, or is empty.
func cost(s *analysis.Standing, c *stats.Comparison, reference string) string {
	text := quantity.Cost(c.DecidingRatio(), s.Metric.Metric) + reference
	switch part := quantity.DecidingPart(c, s.Metric.Metric); {
	case part != "":
		return text + " in its " + part
	case c.CI != nil:
		return text + ", " + quantity.CostInterval(c.CI, s.Metric.Metric)
	}
	return text
}

// sentence makes the first letter of a text large if the text begins with a word, and ends it.
func sentence(s string) string {
	if strings.HasPrefix(s, "in ") || strings.HasPrefix(s, "not ") {
		s = wording.Capital(s)
	}
	return s + "."
}

// additions states what engines add to the start of the bare runtime that they drive. It takes the runtime with the most engines.
func additions(r *analysis.Run, standings []analysis.Standing) []Answer {
	start := slices.IndexFunc(standings, func(s analysis.Standing) bool { return s.Metric.Layer == result.LayerTotal })
	if start < 0 {
		return nil
	}
	s := &standings[start]
	var pairs []analysis.Pair
	for i := range r.Targets {
		bare := &r.Targets[i]
		if bare.Kind != result.KindRuntime {
			continue
		}
		var list []analysis.Pair
		for _, t := range r.Targets {
			if t.Kind == result.KindEngine && t.Runtime == bare.Runtime {
				list = append(list, analysis.Pair{Target: t.Name, Reference: bare.Name})
			}
		}
		if len(list) > len(pairs) {
			pairs = list
		}
	}
	type addition struct {
		analysis.Versus
		stats.Difference
	}
	var sums []addition
	var gains, open, equal []string
	var claims []Claim
	for _, v := range analysis.Compare(standings[start:start+1], pairs) {
		d := s.Addition(v.Target, v.Reference)
		switch verdict := v.Comparison.Verdict; {
		case verdict == stats.Slower && d != nil && d.Shown() && d.Median > 0:
			sums = append(sums, addition{v, *d})
		case verdict == stats.Faster:
			gains = append(gains, v.Target)
			claims = append(claims, Claim{s.Benchmark.Key, s.Metric.Name, v.Target, v.Reference})
		case slices.Contains([]stats.Verdict{stats.Mixed, stats.TooFew, stats.NotComparable, stats.TrialsLost, stats.Withheld}, verdict):
			open = append(open, v.Target)
		default:
			equal = append(equal, v.Target)
		}
	}
	if sums == nil {
		return nil
	}
	slices.SortStableFunc(sums, func(a, b addition) int { return cmp.Compare(a.Median, b.Median) })
	out := Answer{Name: "Added", Benchmarks: []analysis.Key{s.Benchmark.Key}, Claims: claims}
	var texts []string
	for _, a := range sums {
		out.Claims = append(out.Claims, Claim{s.Benchmark.Key, s.Metric.Name, a.Reference, a.Target})
		text := a.Target + " " + quantity.Text(a.Median, s.Metric.Unit)
		if a.CI != nil {
			text += " (" + quantity.Range(a.CI.Lo, a.CI.Hi, s.Metric.Unit) + ")"
		}
		texts = append(texts, text)
	}
	out.Text = fmt.Sprintf("To the %s of %s add %s", s.Heading, pairs[0].Reference, wording.Listed(texts))
	for _, part := range []struct {
		phrase  string
		targets []string
	}{{"less is shown for ", gains}, {"not decided for ", open}, {"nothing is shown for ", equal}} {
		if part.targets != nil {
			out.Text += "; " + part.phrase + wording.Listed(part.targets)
		}
	}
	out.Text += "."
	return []Answer{out}
}

// safer states what the targets with a sandbox cost against a target of the same engine that shares the kernel.
func safer(r *analysis.Run, standings []analysis.Standing) []Answer {
	var answers []Answer
	for i := range r.Targets {
		t := &r.Targets[i]
		counterpart := counterpartOf(r, t)
		if !t.Sandboxed() || counterpart == "" || len(answers) == mostSafer {
			continue
		}
		if a, has := price(r, t, counterpart, standings); has {
			answers = append(answers, a)
		}
	}
	return answers
}

// mostSafer is the largest number of safer targets with an answer.
const mostSafer = 2

// counterpartOf is the target of the same engine that shares the kernel: with runc, or with another runtime. It is empty without one.
func counterpartOf(r *analysis.Run, t *analysis.Target) string {
	engine, _, _ := strings.Cut(t.Name, "/")
	var found string
	for _, peer := range r.Targets {
		prefix, _, _ := strings.Cut(peer.Name, "/")
		if prefix != engine || peer.Sandboxed() || peer.Kind == result.KindNative || peer.OK == 0 {
			continue
		}
		if found == "" || peer.Runtime == "runc" {
			found = peer.Name
		}
	}
	return found
}

// price compares a target with its counterpart on all columns.
func price(r *analysis.Run, t *analysis.Target, counterpart string, standings []analysis.Standing) (Answer, bool) {
	out := Answer{Name: "Safer"}
	var losses, gains []analysis.Versus
	var equal, open []string
	for _, v := range analysis.Compare(standings, []analysis.Pair{{Target: t.Name, Reference: counterpart}}) {
		out.Benchmarks = append(out.Benchmarks, v.Benchmark.Key)
		switch v.Comparison.Verdict {
		case stats.Slower:
			losses = append(losses, v)
			out.Claims = append(out.Claims, Claim{v.Benchmark.Key, v.Metric.Name, counterpart, t.Name})
		case stats.Faster:
			gains = append(gains, v)
			out.Claims = append(out.Claims, Claim{v.Benchmark.Key, v.Metric.Name, t.Name, counterpart})
		case stats.NoDifference, stats.TooNoisy, stats.Negligible:
			equal = append(equal, v.Heading)
		case stats.Mixed, stats.TooFew, stats.NotComparable, stats.TrialsLost, stats.Withheld:
			open = append(open, v.Heading)
		}
	}
	var parts []string
	if losses != nil {
		parts = append(parts, "costs more in "+costs(losses, mostWithIntervals, mostListed))
	}
	if gains != nil {
		parts = append(parts, "costs less in "+costs(gains, mostWithIntervals, mostListed))
	}
	if equal != nil {
		parts = append(parts, "no difference is shown in "+listed(equal, mostListed))
	}
	if open != nil {
		parts = append(parts, "not decided in "+listed(open, mostListed))
	}
	if parts == nil {
		return Answer{}, false
	}
	name := t.Name
	if text := Dated(r, t); text != "" {
		name += " " + text
	}
	subject := name
	if t.Isolation != "" {
		subject += " (" + t.Isolation + ")"
	}
	out.Text = fmt.Sprintf("%s, against %s: %s.", subject, counterpart, strings.Join(parts, "; "))
	out.Brief = fmt.Sprintf("%s against %s: %s", name, counterpart, costs(slices.Concat(losses, gains), 1, mostBrief))
	if losses == nil && gains == nil {
		out.Brief = fmt.Sprintf("%s against %s: %s", name, counterpart, strings.Join(parts, "; "))
	}
	return out, true
}

// costs lists columns with their costs, the largest first and some of them with intervals.
func costs(list []analysis.Versus, intervals, limit int) string {
	size := func(v analysis.Versus) float64 {
		return math.Abs(math.Log(v.Comparison.DecidingRatio()))
	}
	slices.SortStableFunc(list, func(a, b analysis.Versus) int { return cmp.Compare(size(b), size(a)) })
	var texts []string
	for i, v := range list {
		text, interval, _ := strings.Cut(cost(v.Standing, v.Comparison, ""), ", ")
		if i < intervals && interval != "" {
			text += " (" + interval + ")"
		}
		texts = append(texts, v.Heading+" "+text)
	}
	return listed(texts, limit)
}

// undecided states where no difference from the reference is shown, which difference would have been, and how many blocks may show a small one.
func undecided(a *analysis.Analysis, run int, standings []analysis.Standing) []Answer {
	r := &a.Runs[run]
	out := Answer{Name: "Undecided"}
	var parts, brief []string
	blocks := 0
	for i := range standings {
		s := &standings[i]
		var total, equal, open int
		detectable := 0.0
		for _, e := range s.Entries {
			if e.Comparison == nil || s.Metric.OfSpeed() && r.Unjudged {
				continue
			}
			total++
			switch e.Comparison.Verdict {
			case stats.NoDifference, stats.TooNoisy:
				equal++
				detectable = max(detectable, e.Comparison.Detectable)
				if effect := e.Comparison.Detectable; effect > wantedEffect && !math.IsInf(effect, 0) {
					need := float64(e.Comparison.N) * math.Pow(math.Log1p(effect)/math.Log1p(wantedEffect), 2)
					blocks = max(blocks, int(math.Ceil(min(need, mostBlocks+1))))
				}
			case stats.TooFew, stats.TrialsLost, stats.NotComparable:
				open++
			case stats.Slower, stats.Faster, stats.Mixed, stats.Negligible, stats.Withheld:
			}
		}
		if equal+open == 0 {
			continue
		}
		out.Benchmarks = append(out.Benchmarks, s.Benchmark.Key)
		text := fmt.Sprintf("%s on %d of %d", s.Heading, equal+open, total)
		if equal > 0 && detectable > 0 && !math.IsInf(detectable, 0) {
			text += " (" + quantity.Percent(detectable) + " would have shown)"
			brief = append(brief, s.Heading+" "+quantity.Percent(detectable))
		}
		parts = append(parts, text)
	}
	if parts == nil {
		return nil
	}
	out.Text = "No difference from the baseline is shown in " + listed(parts, mostListed) + "."
	if brief != nil {
		out.Brief = "May hide " + listed(brief, mostBrief)
	}
	if 0 < blocks && blocks <= mostBlocks {
		need := fmt.Sprintf("≈%s blocks%s", rounded(blocks), duration(a, run, blocks))
		out.Text += fmt.Sprintf(" To show %s takes %s.", quantity.Significant(100*wantedEffect, 1)+" %", need)
		out.Brief += fmt.Sprintf("; %s takes %s", quantity.Significant(100*wantedEffect, 1)+" %", need)
	}
	return []Answer{out}
}

// rounded rounds a number to two digits.
func rounded(n int) string {
	unit := math.Pow(10, max(0, math.Floor(math.Log10(float64(n)))-1))
	return strconv.Itoa(int(math.Round(float64(n)/unit) * unit))
}

// duration estimates the time of a number of blocks from the time of the run. It is empty if the run's time is not known.
func duration(a *analysis.Analysis, run, blocks int) string {
	r, count := &a.Runs[run], 0
	for _, b := range a.Benchmarks() {
		if s := b.Sections[run]; s != nil {
			count = max(count, s.Blocks)
		}
	}
	took := r.Ended.Sub(r.Started)
	if r.Started.IsZero() || r.Ended.IsZero() || took <= 0 || count == 0 {
		return ""
	}
	need := took / time.Duration(count) * time.Duration(blocks)
	if need < time.Minute {
		return ", " + quantity.RoundedTime(need).String()
	}
	return ", " + strings.TrimSuffix(need.Round(time.Minute).String(), "0s")
}
