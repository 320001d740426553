package tail

import (
	"encoding/json"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// The daily rainfall of S. Coles (2001), section 4.4.1: 152 of 17 531 days have more than 30 mm (testdata/rain.txt). The published fit has scale 7.44 and
// shape 0.184, the logarithm of the likelihood is −485.1, and the level of 100 years is 106.3 mm. The tolerances are those of the printed digits.
func TestRainfallPublished(t *testing.T) {
	const days, threshold = 17531, 30
	text, err := os.ReadFile("testdata/rain.txt")
	must.Do(t, err)
	var excesses []float64
	for _, field := range strings.Fields(string(text)) {
		amount, err := strconv.ParseFloat(field, 64)
		must.Do(t, err)
		excesses = append(excesses, amount-threshold)
	}
	if len(excesses) != 152 {
		t.Fatalf("there are %d excesses, want 152", len(excesses))
	}
	g := MaxLikelihood(excesses, cautiousShape)
	near(t, "scale", g.Scale, 7.44, 0.005)
	near(t, "shape", g.Shape, 0.184, 0.001)
	near(t, "log-likelihood", g.LogLikelihood(excesses), -485.1, 0.05)
	near(t, "level of 100 years", threshold+g.Quantile(days/(365*100*float64(len(excesses)))), 106.3, 0.3)
}

// testdata/reference.py made the figures with SciPy.
func TestReference(t *testing.T) {
	var reference struct {
		Fits []struct {
			Excesses                   []float64
			P, Shape, Scale, Level, CV float64
			LogLikelihood              float64    `json:"log_likelihood"`
			LevelInterval              [2]float64 `json:"level_interval"`
			ShapeInterval              [2]float64 `json:"shape_interval"`
			AndersonDarling            float64    `json:"anderson_darling"`
			PWM                        struct{ Shape, Scale float64 }
		}
		Series []struct {
			N               int
			At              []int
			Values          []float64
			Index, Spearman float64
			LjungBox        float64 `json:"ljung_box"`
			LjungBoxP       float64 `json:"ljung_box_p"`
			SpearmanP       float64 `json:"spearman_p"`
			Kolmogorov      float64 `json:"kolmogorov_smirnov"`
			KolmogorovP     float64 `json:"kolmogorov_smirnov_p"`
		}
	}
	data, err := os.ReadFile("testdata/reference.json")
	if err == nil {
		err = json.Unmarshal(data, &reference)
	}
	if err != nil || len(reference.Fits) == 0 || len(reference.Series) == 0 {
		t.Fatalf("%d fits, %d series: %v", len(reference.Fits), len(reference.Series), err)
	}
	for _, r := range reference.Fits {
		g := MaxLikelihood(r.Excesses, cautiousShape)
		near(t, "shape", g.Shape, r.Shape, 2e-4)
		near(t, "scale", g.Scale, r.Scale, 2e-4*r.Scale)
		near(t, "log-likelihood", g.LogLikelihood(r.Excesses), r.LogLikelihood, 1e-5)
		near(t, "level", g.Quantile(r.P), r.Level, 1e-3*r.Level)
		ci, ok := QuantileInterval(r.Excesses, g, r.P)
		if !ok {
			t.Errorf("shape %v: no interval", r.Shape)
		}
		near(t, "lower end of the level", ci.Lo, r.LevelInterval[0], 1e-3*r.Level)
		near(t, "upper end of the level", ci.Hi, r.LevelInterval[1], 1e-3*r.LevelInterval[1])
		shape := ShapeInterval(r.Excesses, g)
		near(t, "lower end of the shape", shape.Lo, r.ShapeInterval[0], 1e-3)
		near(t, "upper end of the shape", shape.Hi, r.ShapeInterval[1], 1e-3)
		near(t, "Anderson–Darling", AndersonDarling(r.Excesses, g), r.AndersonDarling, 1e-3)
		near(t, "coefficient of variation", VariationOf(r.Excesses).CV, r.CV, 1e-9)
		pwm := PWM(r.Excesses)
		near(t, "shape by PWM", pwm.Shape, r.PWM.Shape, 1e-8)
		near(t, "scale by PWM", pwm.Scale, r.PWM.Scale, 1e-8)
	}
	for _, r := range reference.Series {
		near(t, "extremal index", ExtremalIndex(r.At), r.Index, 1e-12)
		q, p := LjungBox(r.Values)
		near(t, "Ljung–Box", q, r.LjungBox, 1e-9*r.LjungBox)
		near(t, "p of Ljung–Box", p, r.LjungBoxP, 1e-9)
		rho, p := Trend(r.Values)
		near(t, "Spearman", rho, r.Spearman, 1e-12)
		near(t, "p of Spearman", p, r.SpearmanP, 1e-9)
		d, p := EvenRate(r.At, r.N)
		near(t, "Kolmogorov–Smirnov", d, r.Kolmogorov, 1e-12)
		near(t, "p of Kolmogorov–Smirnov", p, r.KolmogorovP, 2e-3) // SciPy's is exact
	}
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s = %.9g, want %.9g ± %g", what, got, want, tolerance)
	}
}
