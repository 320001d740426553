package decision

import (
	"cmp"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Measured holds the values of one benchmark for the stop rule: a series for each metric on each target. Each trial adds its values once, and
// is not kept. A check sorts whole series, but as few as possible, and [stats.StopRule] makes checks rarer as the blocks grow. So the checks hardly add to the time
// of a block, however many blocks there are.
type Measured struct {
	series []*series
	at     map[seriesKey]int // index in series
	// imprecise is the series that the last check found imprecise. The next check begins with it.
	imprecise int
	// open is one more than the largest number of blocks that was not enough.
	open int
}

type seriesKey struct{ target, metric string }

// series is the values of a metric on a target.
type series struct {
	// read are the values of the blocks that a check has read, in the order of the blocks.
	read []float64
	// next are the values of the other blocks, in the order of the blocks.
	next []blockValue
}

type blockValue struct {
	block int
	value float64
}

// Add adds the values of a trial. Costs of single components are left out: they are often near zero, and no verdict uses them.
func (m *Measured) Add(t *result.Trial, metrics []result.Metric) {
	if t.Status != result.OK {
		return
	}
	for _, metric := range metrics {
		if metric.Component != "" {
			continue
		}
		values := t.Values(metric.Name)
		if len(values) == 0 {
			continue
		}
		key := seriesKey{t.Target, metric.Name}
		i, ok := m.at[key]
		if !ok {
			if m.at == nil {
				m.at = map[seriesKey]int{}
			}
			i = len(m.series)
			m.at[key] = i
			m.series = append(m.series, &series{})
		}
		m.series[i].add(blockValue{t.Block, valueOf(metric, values)})
	}
}

func (s *series) add(v blockValue) {
	index := len(s.next)
	for index > 0 && s.next[index-1].block > v.block {
		index--
	}
	s.next = slices.Insert(s.next, index, v)
}

// first returns the values of the first blocks, in the order of the blocks: the precision depends on it. A resumed run may already hold trials of
// later blocks. The first part of the run decided without them. The number of blocks must not fall from call to call.
func (s *series) first(blocks int) []float64 {
	n, _ := slices.BinarySearchFunc(s.next, blocks, func(v blockValue, block int) int { return cmp.Compare(v.block, block) })
	for _, v := range s.next[:n] {
		s.read = append(s.read, v.value)
	}
	s.next = s.next[n:]
	return s.read
}

// valueOf is the value of a trial with these values of a metric, as in reports: the last one of an amount that grows, else the median. There
// is at least one.
func valueOf(m result.Metric, values []float64) float64 {
	if m.Growth {
		return values[len(values)-1]
	}
	return stats.Median(values)
}

// Enough reports whether a rule needs no block after the first blocks. The rule requires the precision of every series, so the first
// imprecise one decides.
func (m *Measured) Enough(rule stats.StopRule, blocks int) bool {
	if blocks < m.open {
		return false
	}
	for n := range m.series {
		i := (m.imprecise + n) % len(m.series)
		if !rule.Enough(blocks, func() [][]float64 { return [][]float64{m.series[i].first(blocks)} }) {
			m.imprecise, m.open = i, blocks+1
			return false
		}
	}
	if rule.Enough(blocks, func() [][]float64 { return nil }) {
		return true
	}
	m.open = blocks + 1
	return false
}
