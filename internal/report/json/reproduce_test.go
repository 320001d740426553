package reportjson_test

import (
	"bytes"
	"encoding/json"
	"testing"

	reportjson "github.com/touchstone-bench/touchstone/internal/report/json"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
)

func TestReproduction(t *testing.T) {
	var b bytes.Buffer
	if err := reportjson.WriteReproduction(&b, reporttest.Study()); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Kind     string
		Verdicts map[string]int
		Claims   []struct {
			Name, Verdict, Reason string
			Comparisons           []struct {
				Target, Other, Verdict string
				Ratio                  *float64
				Interval               *struct{ Lo, Hi float64 }
			}
		}
		Tables []struct {
			Name, Reason string
			Rows         []struct {
				Cells []struct {
					Printed, Flag, Reason string
					Published             *float64 `json:"published_ratio"`
					Ratio, Median         *float64
				}
			}
		}
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Kind != reportjson.ReproductionKind || got.Verdicts["agrees"] != 1 || got.Verdicts["disagrees"] != 1 || got.Verdicts["cannot tell"] != 1 || got.Verdicts["not measured"] != 1 {
		t.Errorf("the kind is %q and the verdicts are %v", got.Kind, got.Verdicts)
	}
	if k := got.Claims[0].Comparisons[0]; k.Verdict != "agrees" || k.Ratio == nil || k.Interval == nil || k.Interval.Lo < 2 {
		t.Errorf("the first comparison is %+v", k)
	}
	if c := got.Claims[2]; c.Verdict != "not measured" || c.Reason == "" || c.Comparisons[0].Ratio != nil {
		t.Errorf("the claim without a benchmark is %+v", c)
	}
	cells := got.Tables[0].Rows[0].Cells
	if *cells[1].Published != 20 || cells[1].Ratio == nil || cells[0].Ratio != nil || cells[0].Median == nil {
		t.Errorf("the first row is %+v", cells)
	}
	if got.Tables[0].Rows[1].Cells[1].Flag == "" || got.Tables[1].Reason == "" {
		t.Errorf("the tables are %+v", got.Tables)
	}
}
