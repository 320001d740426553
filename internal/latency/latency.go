// Package latency reduces many times to a bounded size while they arrive: a histogram, and the largest times whole, with their places. A million times
// take as much memory as ten thousand.
//
// The histogram is HDR (G. Tene, HdrHistogram) with three digits. The places of the largest times keep their order, so that the dependence and
// the drift of rare times can be tested later. A place is the number of times before.
//
// A time is refused if it is negative or longer than a day: it is no measurement then.
package latency

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// Kept is the number of the largest times that are kept whole.
const Kept = 4000

const (
	longest = 24 * time.Hour
	digits  = 3
)

// Recorder collects times. It is not for several goroutines.
type Recorder struct {
	histogram *hdrhistogram.Histogram
	largest   smallestFirst
	n         int
}

// New returns an empty Recorder.
func New() *Recorder {
	return &Recorder{histogram: hdrhistogram.New(1, longest.Nanoseconds(), digits)}
}

// Record adds a time.
func (r *Recorder) Record(d time.Duration) error {
	if d < 0 || d > longest {
		return fmt.Errorf("record time %d: %v is not between 0 and %v: the clock is wrong", r.n+1, d, longest)
	}
	if err := r.histogram.RecordValue(d.Nanoseconds()); err != nil {
		return fmt.Errorf("record time %d: %w", r.n+1, err)
	}
	sample := placed{r.n, d}
	r.n++
	switch {
	case len(r.largest) < Kept:
		heap.Push(&r.largest, sample)
	case d > r.largest[0].time:
		r.largest[0] = sample
		heap.Fix(&r.largest, 0)
	}
	return nil
}

// Quantile is the time that a share q of the times does not exceed, with three digits. Quantile(1) is the largest time, and exact. It is 0
// without a time.
func (r *Recorder) Quantile(q float64) time.Duration {
	if q >= 1 && len(r.largest) > 0 {
		return slices.MaxFunc(r.largest, func(a, b placed) int { return cmp.Compare(a.time, b.time) }).time
	}
	return time.Duration(r.histogram.ValueAtQuantile(100 * q))
}

// Distribution is the result as the distribution of a metric, in seconds.
func (r *Recorder) Distribution(metric string) result.Distribution {
	d := result.Distribution{Metric: metric, Unit: result.Seconds, Batch: 1, Tail: &result.Tail{}}
	for _, bar := range r.histogram.Distribution() {
		if bar.Count > 0 {
			d.Lows, d.Counts = append(d.Lows, time.Duration(bar.From).Seconds()), append(d.Counts, uint64(bar.Count))
		}
	}
	inOrder := slices.SortedFunc(slices.Values(r.largest), func(a, b placed) int { return cmp.Compare(a.at, b.at) })
	for _, p := range inOrder {
		d.Tail.At, d.Tail.Values = append(d.Tail.At, p.at), append(d.Tail.Values, p.time.Seconds())
	}
	return d
}

type placed struct {
	at   int
	time time.Duration
}

// smallestFirst is a heap for package heap.
type smallestFirst []placed

func (s smallestFirst) Len() int           { return len(s) }
func (s smallestFirst) Less(i, j int) bool { return s[i].time < s[j].time }
func (s smallestFirst) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }

// Push implements heap.Interface.
func (s *smallestFirst) Push(x any) { *s = append(*s, x.(placed)) }

// Pop implements heap.Interface.
func (s *smallestFirst) Pop() any {
	last := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return last
}
