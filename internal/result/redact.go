package result

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// hidden replaces a secret value in other text.
const hidden = "(redacted)"

// leastSecret is the length of the shortest value, in bytes, that is replaced within other text. Shorter values, such as "C" and "true", are
// part of ordinary words.
const leastSecret = 5

// leastPart is the length of the shortest beginning or end of a value, in bytes, that is replaced. Messages quote parts of outputs, and may cut
// a value.
const leastPart = 8

// Hider replaces secret values in the texts of runs.
type Hider struct{ values []string }

// NewHider returns a Hider of values. It ignores values that are shorter than five bytes.
func NewHider(values []string) Hider {
	var h Hider
	for _, v := range values {
		if len(v) < leastSecret {
			continue
		}
		h.values = append(h.values, v)
		if quoted := strings.Trim(strconv.Quote(v), `"`); quoted != v { // messages quote outputs
			h.values = append(h.values, quoted)
		}
	}
	// A value may contain another one.
	slices.SortFunc(h.values, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return h
}

// Text returns a text without the values.
func (h Hider) Text(text string) string {
	for _, v := range h.values {
		text = strings.ReplaceAll(text, v, hidden)
	}
	for _, v := range h.values {
		for n := len(v) - 1; n >= leastPart && strings.Contains(text, v[:leastPart]); n-- {
			text = strings.ReplaceAll(text, v[:n], hidden)
		}
		for n := len(v) - 1; n >= leastPart && strings.Contains(text, v[len(v)-leastPart:]); n-- {
			text = strings.ReplaceAll(text, v[len(v)-n:], hidden)
		}
	}
	return text
}

// Trial returns a trial without the values in texts of programs. It does not change the caller's trial.
func (h Hider) Trial(t Trial) Trial {
	return t.withTexts(h.Text)
}

// Run returns a run without the values in texts of programs and of the plan's workloads. It does not change the caller's run.
func (h Hider) Run(r Run) Run {
	if h.values == nil {
		return r
	}
	return r.withTexts(h.Text)
}

// WithoutTexts returns a run without its plan and without the texts that an export may hide. It does not change the caller's run.
func (r Run) WithoutTexts() Run {
	r.Plan = ""
	return r.withTexts(func(string) string { return "" })
}

// WithoutTexts is Run.WithoutTexts for one trial.
func (t Trial) WithoutTexts() Trial { return t.withTexts(func(string) string { return "" }) }

// withTexts returns a trial with changed texts: its reason, its output and its conditions.
func (t Trial) withTexts(change func(string) string) Trial {
	t.Reason, t.Output = change(t.Reason), change(t.Output)
	cloned := false
	for name, value := range t.Conditions {
		text := ConditionText(change(value))
		if text == value {
			continue
		}
		if !cloned {
			t.Conditions, cloned = maps.Clone(t.Conditions), true
		}
		t.Conditions[name] = text
	}
	return t
}

// withTexts returns a run with changed texts. Names, numbers and facts of the host stay.
func (r Run) withTexts(change func(string) string) Run {
	changeAll := func(texts []string) []string {
		texts = slices.Clone(texts)
		for i := range texts {
			texts[i] = change(texts[i])
		}
		return texts
	}
	r.Targets, r.Bench, r.Images, r.Trials = slices.Clone(r.Targets), slices.Clone(r.Bench), slices.Clone(r.Images), slices.Clone(r.Trials)
	for i := range r.Targets {
		t := &r.Targets[i]
		t.Version, t.Unavailable, t.Notes = change(t.Version), change(t.Unavailable), changeAll(t.Notes)
	}
	for i := range r.Bench {
		b := &r.Bench[i]
		b.Summary, b.Metrics = change(b.Summary), slices.Clone(b.Metrics)
		for j := range b.Metrics {
			b.Metrics[j].Help = change(b.Metrics[j].Help)
		}
	}
	for i := range r.Images {
		r.Images[i].Unavailable = change(r.Images[i].Unavailable)
	}
	r.Caveats = changeAll(r.Caveats)
	for i := range r.Trials {
		r.Trials[i] = r.Trials[i].withTexts(change)
	}
	r.Traces = slices.Clone(r.Traces)
	for i := range r.Traces {
		r.Traces[i] = r.Traces[i].withTexts(change)
	}
	return r
}
