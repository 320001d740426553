package analysis

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/lists"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// Disturbance is a mark of trials that other activity on the host disturbed.
type Disturbance struct {
	// Trials is the number of trials with the mark.
	Trials int
	// Mark is the mark in words, with the range of each amount over the trials.
	Mark string
}

// disturbances counts the trials behind the numbers by their marks. Marks that differ only in their amounts are counted together, with the range of
// each amount.
func disturbances(trials []result.Trial) []Disturbance {
	var kinds []markKind
	for i := range trials {
		t := &trials[i]
		if t.Warmup || t.Status != result.OK {
			continue
		}
		for _, mark := range t.Host.Marks {
			var amounts []amount
			pattern := replaceAmounts(mark, func(a amount) string {
				amounts = append(amounts, a)
				return "0"
			})
			lists.Place(&kinds, func(k *markKind) bool { return k.alike == pattern }, markKind{alike: pattern}).add(amounts)
		}
	}
	var list []Disturbance
	for _, k := range kinds {
		list = append(list, Disturbance{k.trials, k.text()})
	}
	return list
}

// markKind is the marks that differ only in their amounts. alike is their text with 0 for each amount, and least and most are the range of each.
type markKind struct {
	alike       string
	trials      int
	least, most []amount
}

// add adds the amounts of one more trial.
func (k *markKind) add(amounts []amount) {
	if k.trials++; k.trials == 1 {
		k.least, k.most = amounts, slices.Clone(amounts)
		return
	}
	for i, a := range amounts {
		if a.value < k.least[i].value {
			k.least[i] = a
		}
		if a.value > k.most[i].value {
			k.most[i] = a
		}
	}
}

// text spells the kind: "programs waited for I/O 3.0 to 14.2 % of the time". A mark with several amounts may have a "to" of its own, so its ranges have a
// dash: "fell from 2700–2800 to 2400–2600 MHz".
func (k *markKind) text() string {
	dash := " to "
	if len(k.least) > 1 {
		dash = "–"
	}
	index := -1
	return replaceAmounts(k.alike, func(amount) string {
		index++
		if k.least[index].value == k.most[index].value {
			return k.least[index].spelled
		}
		return k.least[index].spelled + dash + k.most[index].spelled
	})
}

// amount is a number in a mark, with its spelling there.
type amount struct {
	spelled string
	value   float64
}

var (
	// word is a word of a mark, without punctuation behind it.
	word = regexp.MustCompile(`[\p{L}\p{N}_−-](?:[\p{L}\p{N}_.,−-]*[\p{L}\p{N}_])?`)
	// amountForm is a word that is an amount. A number within a word, as in cpu3 or 0-3, is a name and has no range.
	amountForm = regexp.MustCompile(`^(?:[0-9]+|[0-9]{1,3}(?:,[0-9]{3})+)(?:\.[0-9]+)?$`)
)

// replaceAmounts replaces each amount of a mark.
func replaceAmounts(mark string, spell func(amount) string) string {
	return word.ReplaceAllStringFunc(mark, func(w string) string {
		if !amountForm.MatchString(w) {
			return w
		}
		value, err := strconv.ParseFloat(strings.ReplaceAll(w, ",", ""), 64)
		if err != nil {
			return w // too large
		}
		return spell(amount{w, value})
	})
}
