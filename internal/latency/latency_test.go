package latency

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/must"
)

func TestRecorder(t *testing.T) {
	r, random := New(), rand.New(rand.NewPCG(1, 2))
	times := make([]time.Duration, 50_000)
	for i := range times {
		times[i] = time.Duration(1e6 * (1 + random.ExpFloat64()))
		must.Do(t, r.Record(times[i]))
	}
	sorted := slices.Sorted(slices.Values(times))
	for _, q := range []float64{0.01, 0.5, 0.99, 0.999} {
		got, want := r.Quantile(q), sorted[int(q*float64(len(sorted)))]
		if math.Abs(got.Seconds()/want.Seconds()-1) > 0.002 {
			t.Errorf("Quantile(%v) = %v, want %v", q, got, want)
		}
	}
	if got, want := r.Quantile(1), sorted[len(sorted)-1]; got != want {
		t.Errorf("the largest time is %v, want %v", got, want)
	}
	d := r.Distribution("Exec")
	var count uint64
	for _, n := range d.Counts {
		count += n
	}
	if count != uint64(len(times)) || len(d.Lows) != len(d.Counts) || !slices.IsSorted(d.Lows) {
		t.Errorf("%d times in %d and %d buckets", count, len(d.Lows), len(d.Counts))
	}
	if len(d.Tail.At) != Kept || !slices.IsSorted(d.Tail.At) || slices.Min(d.Tail.Values) != sorted[len(sorted)-Kept].Seconds() {
		t.Errorf("the tail has %d times from %v on, want the %d from %v on", len(d.Tail.At), slices.Min(d.Tail.Values), Kept, sorted[len(sorted)-Kept])
	}
	for i, index := range d.Tail.At {
		if d.Tail.Values[i] != times[index].Seconds() {
			t.Fatalf("time %d of the tail is %v, but time %d was %v", i, d.Tail.Values[i], index, times[index])
		}
	}
}

// The memory of the recorder and of its result does not grow with the number of times.
//
// Invariant many-times: A series of many times takes bounded memory in the runner, and bounds lose nothing by it.
func TestMemoryIsBounded(t *testing.T) {
	r := New()
	for i := range 200_000 {
		must.Do(t, r.Record(time.Duration(i%977)*12_345_678))
	}
	if size := r.histogram.ByteSize(); size > 512<<10 || cap(r.largest) > 2*Kept {
		t.Errorf("the histogram has %d bytes, the tail room for %d times", size, cap(r.largest))
	}
	recorder := New()
	for d := time.Duration(1); d < longest; d += d/2000 + 1 {
		must.Do(t, recorder.Record(d))
	}
	if n := len(recorder.Distribution("Exec").Lows); n > 40_000 {
		t.Errorf("a distribution has %d buckets", n)
	}
}

func TestClockSteps(t *testing.T) {
	r := New()
	for _, d := range []time.Duration{-1, -time.Hour, 25 * time.Hour} {
		if err := r.Record(d); err == nil {
			t.Errorf("Record(%v) succeeded", d)
		}
	}
	if d := r.Distribution("Exec"); len(d.Lows) != 0 || len(d.Tail.At) != 0 || r.Quantile(1) != 0 || r.Quantile(0.5) != 0 {
		t.Errorf("refused times are in %+v", d)
	}
}
