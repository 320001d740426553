package reportjson_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/report"
	reportjson "github.com/touchstone-bench/touchstone/internal/report/json"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
)

type refusal struct {
	Test, Reason, Advice string
	Needed               int `json:"samples_needed"`
}

type worstCase struct {
	Samples  int
	Max      float64
	Clusters int
	Weight   string
	Bounds   []struct {
		Probability, Value float64
		Interval           struct{ Lo, Hi float64 }
	}
	Refusal *refusal
	Rarer   *refusal `json:"rarer_refusal"`
}

type worstCell struct {
	Target string
	Worst  *worstCase `json:"worst_case"`
}

// worstCells are the cells of the only metric in the document of a report.
func worstCells(t *testing.T, r report.Report) []worstCell {
	t.Helper()
	var b bytes.Buffer
	if err := reportjson.Write(&b, r); err != nil {
		t.Fatal(err)
	}
	var document struct {
		Benchmarks []struct {
			Metrics []struct{ Cells []worstCell }
		}
	}
	if err := json.Unmarshal(b.Bytes(), &document); err != nil {
		t.Fatal(err)
	}
	return document.Benchmarks[0].Metrics[0].Cells
}

func TestWorstCaseInTheDocument(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range worstCells(t, report.New([]result.Run{reporttest.Latencies()}, report.Options{})) {
		w := c.Worst
		if w == nil || w.Samples == 0 || w.Max == 0 {
			t.Errorf("%s has the worst case %+v", c.Target, w)
			continue
		}
		seen[c.Target] = true
		switch c.Target {
		case reporttest.BoundedTarget:
			if len(w.Bounds) != 2 || w.Refusal != nil || w.Rarer != nil || w.Bounds[1].Value < w.Bounds[0].Value || w.Bounds[0].Interval.Hi < w.Bounds[0].Value || w.Clusters < 100 || w.Weight == "" {
				t.Errorf("%s has the worst case %+v", c.Target, w)
			}
		case reporttest.ShortTarget:
			if w.Refusal == nil || w.Refusal.Test != "exceedances" || w.Refusal.Needed < 2000 || w.Refusal.Advice == "" || w.Bounds != nil {
				t.Errorf("%s has the worst case %+v", c.Target, w)
			}
		}
	}
	if len(seen) != 4 {
		t.Errorf("the targets with a worst case are %v", seen)
	}
}

// Bounds stay if rarer values have none. The reason has a field of its own: a document with refusal has no bounds.
func TestWorstCaseWithoutRarerBounds(t *testing.T) {
	for _, c := range worstCells(t, reporttest.PartlyBounded()) {
		if c.Target != reporttest.BoundedTarget {
			continue
		}
		if w := c.Worst; len(w.Bounds) != 1 || w.Refusal != nil || w.Rarer == nil || *w.Rarer != (refusal{"tail weight", reporttest.RarerRefused, "take more samples", 60_000}) {
			t.Errorf("%s has the worst case %+v", c.Target, w)
		}
		return
	}
	t.Error("the document lacks the target with bounds")
}
