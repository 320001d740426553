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

func TestWorstCaseInTheDocument(t *testing.T) {
	var b bytes.Buffer
	if err := reportjson.Write(&b, report.New([]result.Run{reporttest.Latencies()}, report.Options{})); err != nil {
		t.Fatal(err)
	}
	var document struct {
		Benchmarks []struct {
			Metrics []struct {
				Cells []struct {
					Target string
					Worst  *struct {
						Samples  int
						Max      float64
						Clusters int
						Weight   string
						Bounds   []struct {
							Probability, Value float64
							Interval           struct{ Lo, Hi float64 }
						}
						Refusal *struct {
							Test, Reason, Advice string
							Needed               int `json:"samples_needed"`
						}
					} `json:"worst_case"`
				}
			}
		}
	}
	if err := json.Unmarshal(b.Bytes(), &document); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, c := range document.Benchmarks[0].Metrics[0].Cells {
		w := c.Worst
		if w == nil || w.Samples == 0 || w.Max == 0 {
			t.Errorf("%s has the worst case %+v", c.Target, w)
			continue
		}
		seen[c.Target] = true
		switch c.Target {
		case reporttest.BoundedTarget:
			if len(w.Bounds) != 2 || w.Refusal != nil || w.Bounds[1].Value < w.Bounds[0].Value || w.Bounds[0].Interval.Hi < w.Bounds[0].Value || w.Clusters < 100 || w.Weight == "" {
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
