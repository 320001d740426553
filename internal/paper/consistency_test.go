package paper

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// A cell has a flag exactly if it contradicts another place of its study. The checks compute all values that a study derives from its own
// tables.
//
// Invariant published-numbers.
func TestContradictionsAreFlagged(t *testing.T) {
	for name, check := range map[string]func(*checker){
		"espe": checkEspe, "nishimura": checkNishimura, "sateri": checkSateri, "wang": checkWang,
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Load(name)
			must.Do(t, err)
			c := &checker{t: t, paper: p, wrong: map[place]string{}}
			check(c)
			for _, table := range p.Tables {
				for r, row := range table.Rows {
					for k, cell := range row.Cells {
						spot := place{table.Name, r, k}
						if reason, ok := c.wrong[spot]; ok != (cell.Flag != "") {
							t.Errorf("%s, row %d (%s), column %d is %q with the flag %q, and the check says %q", spot.table, r, row.Label, k, cell.Printed, cell.Flag, reason)
						}
						delete(c.wrong, spot)
					}
				}
			}
			for spot, reason := range c.wrong {
				t.Errorf("%v is no cell: %s", spot, reason)
			}
		})
	}
}

// place is a cell.
type place struct {
	table       string
	row, column int
}

// checker collects the cells that contradict another place.
type checker struct {
	t     *testing.T
	paper Paper
	wrong map[place]string
}

func (c *checker) fail(spot place, format string, args ...any) {
	c.wrong[spot] = fmt.Sprintf(format, args...)
}

func (c *checker) table(name string) Table {
	c.t.Helper()
	i := slices.IndexFunc(c.paper.Tables, func(t Table) bool { return t.Name == name })
	if i < 0 {
		c.t.Fatalf("no %s", name)
	}
	return c.paper.Tables[i]
}

// numberAt matches a number of a range such as "(-5) - (-1)".
var numberAt = regexp.MustCompile(`\(-[\d.]+\)|[\d.]+`)

// texts returns the numbers of a cell as printed: one, or the two ends of a range.
func (c *checker) texts(spot place) []string {
	found := numberAt.FindAllString(c.table(spot.table).Rows[spot.row].Cells[spot.column].Printed, -1)
	for i := range found {
		found[i] = strings.Trim(found[i], "()")
	}
	return found
}

func (c *checker) values(spot place) []float64 {
	c.t.Helper()
	var values []float64
	for _, text := range c.texts(spot) {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			c.t.Fatalf("%v: %v", spot, err)
		}
		values = append(values, v)
	}
	return values
}

func (c *checker) value(table string, row, column int) float64 {
	c.t.Helper()
	values := c.values(place{table, row, column})
	if len(values) != 1 {
		c.t.Fatalf("%s, row %d, column %d has no number", table, row, column)
	}
	return values[0]
}

// row returns the numbers of a row from a column on.
func (c *checker) row(table string, row, first int) []float64 {
	var values []float64
	for k := first; k < len(c.table(table).Columns); k++ {
		values = append(values, c.values(place{table, row, k})...)
	}
	return values
}

// want checks that a cell prints a value, or the least and the greatest value of a range.
func (c *checker) want(table string, row, column int, values ...float64) {
	c.t.Helper()
	spot := place{table, row, column}
	texts := c.texts(spot)
	if len(texts) == 0 {
		c.t.Fatalf("%v has no number", spot)
	}
	for i, v := range []float64{slices.Min(values), slices.Max(values)} {
		if !prints(texts[min(i, len(texts)-1)], v) {
			c.fail(spot, "it should print %.6g", v)
		}
	}
}

// prints reports whether a text is a value that is rounded or cut off at the text's digits.
func prints(text string, v float64) bool {
	number, err := strconv.ParseFloat(text, 64)
	_, decimals, _ := strings.Cut(text, ".")
	scale := math.Pow10(len(decimals))
	number = math.Round(number * scale)
	return err == nil && (number == math.Floor(v*scale+1e-9) || number == math.Round(v*scale))
}

func mean(values ...float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

func spread(values []float64) float64 { return slices.Max(values) - slices.Min(values) }

func near(a, b, tolerance float64) bool { return math.Abs(a-b) <= tolerance }

// The columns of nishimura's tables 3 and 4.
const (
	runc = iota
	crun
	gvisor
	kata
)

func checkNishimura(c *checker) {
	// No computation finds these.
	c.fail(place{"text 4.7.1", 0, 1}, "section 5: on ARM the options of gVisor cannot be set")

	for k, name := range []string{"table 3", "table 4"} {
		table := c.table(name)
		row := map[string]int{}
		for r := range table.Rows {
			ref := table.OfCell(r, 0)
			row[ref.Metric] = r
			if ref.Benchmark == "performance.cpu.time" {
				row["CPU"] = r
			}
			if strings.HasPrefix(ref.Benchmark, "performance.disk.") && c.value(name, r, kata) < slices.Max(c.row(name, r, 0)) {
				c.fail(place{name, r, kata}, "section 4.5: Kata comes last")
			}
			if ref.Unit != "s" {
				continue
			}
			for n := range table.Columns[1:] {
				text := table.Rows[r].Cells[n+1].Printed
				if slices.ContainsFunc(table.Rows[r].Cells[:n+1], func(c Cell) bool { return c.Printed == text && text != "" }) {
					c.fail(place{name, r, n + 1}, "it is printed twice in its row")
				}
			}
		}
		value := func(metric string, column int) float64 { return c.value(name, row[metric], column) }
		rest := func(metric string) float64 { // without gVisor and Kata
			values := append(c.row(name, row[metric], kata+1), value(metric, runc), value(metric, crun))
			return mean(values...)
		}
		c.want("text 4.2", 0, k, value("Run", kata)/value("Run", runc))
		c.want("text 4.3", 0, k, spread(c.row(name, row["CPU"], 0)))
		c.want("text 4.4", 0, k, spread(c.row(name, row["TotalTime"], 0)))
		c.want("text 4.6", 0, k, rest("Index")/value("Index", gvisor))
		c.want("text 4.7", 0, k, rest("Receive")/value("Receive", gvisor))
		share, fraction := value("Receive", kata)/rest("Receive"), c.value("text 4.7", 2, k)/c.value("text 4.7", 1, k)
		if !near(share/fraction, 1, 0.05) {
			c.fail(place{"text 4.7", 1, k}, "the share is %.3f", share)
		}
		if k == 0 {
			c.want("text 4.5", 0, k, value("RndRead", gvisor)/value("RndRead", runc))
			for r := range c.table("table 5").Rows {
				c.want("table 5", r, 0, value(c.table("table 5").OfCell(r, 0).Metric, kata))
			}
		} else {
			c.want("text 4.5", 1, k, value("SeqRead", kata)/value("SeqRead", runc))
			c.want("text 4.6", 1, k, value("Index", kata)/rest("Index"))
			c.want("text 4.7.1", 1, k, c.value("text 4.7.1", 0, k)-value("Receive", kata))
		}
		if bind := 3 * k; c.value("table 6", bind, runc) < value("SeqWrite", runc)/2 {
			c.fail(place{"table 6", bind, runc}, "the disk is slower: the value belongs to a tmpfs")
		}
	}
	c.want("text 4.5.1", 0, 0, c.value("table 5", 0, 0)-c.value("table 5", 0, 1))
	bind, tmpfs := c.value("table 6", 3, 1), c.value("table 6", 4, 1)
	if limit := c.value("text 4.5.2", 0, 0); bind <= limit || tmpfs <= limit {
		c.fail(place{"text 4.5.2", 0, 0}, "one is less")
	}
	c.want("text 4.5.2", 1, 0, bind-tmpfs)
}
