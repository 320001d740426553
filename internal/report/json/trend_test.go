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

// The document has the slope of each series with its interval, and the only knee.
func TestTrendInTheDocument(t *testing.T) {
	var b bytes.Buffer
	if err := reportjson.Write(&b, report.New([]result.Run{reporttest.UnderLoad()}, report.Options{})); err != nil {
		t.Fatal(err)
	}
	var document struct {
		Benchmarks []struct {
			Metrics []struct {
				TrendPer string `json:"trend_per"`
				Cells    []struct {
					Target string
					Trend  *struct {
						Places   int
						Slope    float64
						Interval *struct{ Lo, Hi float64 }
						Knee     *struct{ At float64 }
					}
				}
			}
		}
	}
	if err := json.Unmarshal(b.Bytes(), &document); err != nil {
		t.Fatal(err)
	}
	m := document.Benchmarks[0].Metrics[0]
	if m.TrendPer != "running container" {
		t.Errorf("the trend is per %q", m.TrendPer)
	}
	for _, c := range m.Cells {
		if c.Trend == nil || c.Trend.Places != 50 || c.Trend.Interval == nil || c.Trend.Interval.Lo > c.Trend.Slope || c.Trend.Interval.Hi < c.Trend.Slope {
			t.Errorf("%s has the trend %+v", c.Target, c.Trend)
			continue
		}
		if k := c.Trend.Knee; (k != nil) != (c.Target == reporttest.KneeTarget) {
			t.Errorf("%s has the knee %+v", c.Target, k)
		}
	}
}
