package limits

import (
	"math"
	"testing"
	"time"
)

// marked gives marks at moments in seconds, between which so much CPU time was used, in seconds, under half a CPU.
func marked(points ...[2]float64) []mark {
	all := []mark{{limit: 0.5, used: spent{known: true, alone: true}}}
	for _, p := range points {
		last := all[len(all)-1]
		last.at = time.Duration(p[0] * float64(time.Second))
		last.used.cpu += time.Duration(p[1] * float64(time.Second))
		all = append(all, last)
	}
	return all
}

// A second that was heard of late makes no short stretch in which a quota would be much.
func TestStretches(t *testing.T) {
	for _, tt := range []struct {
		what  string
		marks []mark
		want  []float64 // lengths in seconds
		most  float64   // 0 if it is not known
	}{
		{"a second each", marked([2]float64{1, 0.5}, [2]float64{2, 0.5}, [2]float64{3, 0.6}), []float64{1, 1, 1}, 1.2},
		{"one is late", marked([2]float64{1, 0.5}, [2]float64{2.9, 0.95}, [2]float64{3, 0.1}, [2]float64{4, 0.5}), []float64{1, 1.9, 1.1}, 0.6 / 0.55},
		{"the last is late", marked([2]float64{1, 0.5}, [2]float64{2.9, 0.95}, [2]float64{3, 0.1}), []float64{1, 1.9}, 1},
		{"the first output is late", marked([2]float64{0.8, 0.5}, [2]float64{1.8, 0.4}), []float64{1.8}, 1},
		{"none", marked(), nil, 0},
		{"a count that does not move", marked([2]float64{1, 0}, [2]float64{2, 0}), []float64{1, 1}, 0},
	} {
		p := progress{marks: tt.marks}
		all := p.stretches()
		var got []float64
		for _, s := range all {
			got = append(got, s.seconds)
		}
		if len(got) != len(tt.want) {
			t.Errorf("%s: stretches of %v seconds, want %v", tt.what, got, tt.want)
			continue
		}
		for i := range got {
			if math.Abs(got[i]-tt.want[i]) > 1e-9 {
				t.Errorf("%s: stretches of %v seconds, want %v", tt.what, got, tt.want)
			}
		}
		if got, known := most(all); known != (tt.most > 0) || math.Abs(got-tt.most) > 1e-9 {
			t.Errorf("%s: the most is %v, %v, want %v", tt.what, got, known, tt.most)
		}
	}
}

// What is not known of one moment is known of no stretch that it bounds, and a count that falls is none.
func TestStretchesOfWhatIsNotKnown(t *testing.T) {
	marks := marked([2]float64{1, 0.5}, [2]float64{2, 0.5}, [2]float64{3, 0.5}, [2]float64{4, 0.5})
	for i := range marks {
		marks[i].held = heldBack{periods: []int64{0, 10, 20, 15, 25}[i], known: true}
	}
	p := progress{marks: marks}
	for i, known := range []bool{true, true, false, true} {
		if got := p.stretches()[i]; got.held.known != known || !got.known {
			t.Errorf("stretch %d is %+v", i, got)
		}
	}
	marks[2].used.known = false
	if all := p.stretches(); all[1].known || all[2].known || !all[3].known {
		t.Errorf("what is known of the stretches beside an unknown mark: %+v", all)
	}
}
