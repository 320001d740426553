package paper

import (
	"math"
	"slices"
	"strings"
)

// rates returns a column of the tables A.1 to A.9: the requests per second, or a latency, of an architecture and a target.
func (c *checker) rates(arch, target string, column int) []float64 {
	c.t.Helper()
	for _, table := range c.paper.Tables {
		if strings.HasPrefix(table.Name, "table A.") && table.Of.Arch == arch && table.Of.Target == target {
			var values []float64
			for r := range table.Rows {
				values = append(values, c.value(table.Name, r, column))
			}
			return values
		}
	}
	c.t.Fatalf("no table A has %s on %s", target, arch)
	return nil
}

// sevenzip returns the row of tables 4.7 and 4.8 with an item of a target: its usage, R/U and rating.
func (c *checker) sevenzip(arch, target, item string) (spot place, values []float64) {
	name := map[string]string{"amd64": "table 4.7", "arm64": "table 4.8"}[arch]
	for r, row := range c.table(name).Rows {
		if row.Of.Target == target && row.Of.Item == item {
			return place{name, r, 0}, c.row(name, r, 0)
		}
	}
	return place{}, nil
}

// items are the rows of 7z's tables.
var items = []string{"Compress", "Total", "Decompress"}

func ratios(a, b []float64) []float64 {
	quotients := make([]float64, len(a))
	for i := range a {
		quotients[i] = a[i] / b[i]
	}
	return quotients
}

func scaled(values []float64, scale, offset float64) []float64 {
	result := make([]float64, len(values))
	for i, v := range values {
		result[i] = v*scale + offset
	}
	return result
}

func checkSateri(c *checker) {
	// No computation finds these.
	c.fail(place{"table 4.9", 1, 0}, `section 4.6: the second "runc" is crun`)

	c.layers()
	c.requests()
	c.ratings()
	c.memory()
	const kataRow, arm, x86 = 2, 1, 3
	if c.value("table 4.9", kataRow, arm) != c.value("table 4.9", kataRow, x86) {
		c.fail(place{"table 4.9", kataRow, arm}, "section 4.6: ARM has the list of x86")
	}
	c.want("text 5.4", 3, 0, c.value("table 4.9", 0, 0))
	c.want("text 5.4", 3, 1, c.value("table 4.9", 0, 2))
}

// layers checks table 4.3: layers without a difference have one size, in bytes.
func (c *checker) layers() {
	const difference, arm, x86 = 2, 3, 4
	table := c.table("table 4.3")
	for r, row := range table.Rows {
		text := row.Cells[difference].Printed
		if (text == "None" || text == "Same") && c.value(table.Name, r, arm) != c.value(table.Name, r, x86) {
			c.fail(place{table.Name, r, difference}, "the sizes differ")
		}
		if !strings.HasSuffix(row.Of.Unit, "B") {
			c.fail(place{table.Name, r, arm}, "the unit is %s", row.Of.Unit)
			c.fail(place{table.Name, r, x86}, "the unit is %s", row.Of.Unit)
		}
	}
}

// requests checks the values of Redis: tables 4.5, 4.6, 5.1 and A.1 to A.9.
func (c *checker) requests() {
	for _, table := range c.paper.Tables {
		if !strings.HasPrefix(table.Name, "table A.") {
			continue
		}
		for r := range table.Rows {
			v := c.row(table.Name, r, 0)
			rate, average, minimum, percentiles := v[0], v[1], v[2], v[2:]
			// redis-benchmark divides its 100 000 requests by whole milliseconds, in single precision.
			if ms := 1e8 / rate; !near(ms, math.Round(ms), 1e8/rate/rate*0.01) {
				c.fail(place{table.Name, r, 0}, "100000 requests in %.3f ms", ms)
			}
			if !slices.IsSorted(percentiles) || average < minimum || average > percentiles[4] {
				c.fail(place{table.Name, r, 1}, "the latencies are not in order")
			}
		}
	}

	// Section 4.2 lists the tests with runc (ARM) or crun (x86) as the better one of the two.
	table := map[string][]string{
		"table 4.5": {"PING_INLINE", "SET", "RPUSH", "RPOP", "HSET", "LRANGE_300", "LRANGE_600"},
		"table 4.6": {"LPUSH", "ZADD", "MSET"},
	}
	for name, metrics := range table {
		table := c.table(name)
		column := map[string]int{}
		for k, heading := range table.Columns {
			column[heading.Of.Target] = k
			for r, rate := range c.rates(table.Of.Arch, heading.Of.Target, 0) {
				c.want(name, r, k, rate)
			}
		}
		for r, row := range table.Rows {
			if label := c.table("table A.1").Rows[r].Label; row.Label != label {
				c.fail(place{name, r, 0}, "the label is %s", label)
			}
			runc, crun, kata := c.value(name, r, column["docker/runc"]), c.value(name, r, column["docker/crun"]), c.value(name, r, column["docker/kata"])
			leads := runc > crun
			if name == "table 4.6" {
				leads = crun > runc
			}
			if leads != slices.Contains(metrics, row.Of.Metric) {
				c.fail(place{name, r, column["docker/runc"]}, "section 4.2 says the opposite")
			}
			if worst := kata < min(runc, crun); worst == (row.Of.Metric == "RPUSH") && name == "table 4.5" {
				c.fail(place{name, r, column["docker/kata"]}, "section 4.2.1: Kata is the worst, except in one test")
			}
		}
	}

	shares := func(arch, target string) []float64 {
		return scaled(ratios(c.rates(arch, target, 0), c.rates(arch, "native", 0)), 100, 0)
	}
	for k, end := range []func([]float64) float64{slices.Min[[]float64], slices.Max[[]float64]} {
		loss := func(target string) []float64 { return scaled(shares("arm64", target), -1, 100) }
		c.want("text 4.2.1", 0, k, end(loss("docker/kata")))
		losses := append(loss("docker/runc"), loss("docker/crun")...)
		losses = slices.DeleteFunc(losses, func(v float64) bool { return v < 0 }) // LRANGE_500 and LRANGE_600
		c.want("text 4.2.1", 1, k, end(losses))
	}
	for k, target := range []string{"docker/kata", "docker/runsc", "docker/crun", "docker/runc"} {
		c.want("text 4.2.2", 0, k, slices.Max(shares("amd64", target)))
	}
	for r, row := range c.table("table 5.1").Rows {
		for k, column := range c.table("table 5.1").Columns {
			if row.Cells[k].Printed != "-" {
				c.want("table 5.1", r, k, shares(row.Of.Arch, column.Of.Target)...)
			}
		}
	}
	c.want("text 5.2", 0, 0, slices.Min(shares("arm64", "docker/runc")))
	c.want("text 5.2", 0, 1, slices.Min(shares("amd64", "docker/runc")))
	factors := ratios(c.rates("amd64", "docker/runsc", 1), c.rates("amd64", "native", 1))
	slices.Sort(factors)
	if median := factors[len(factors)/2]; !near(c.value("text 5.2", 1, 1)/median, 1, 0.1) {
		c.fail(place{"text 5.2", 1, 1}, "the median is %.3g", median)
	}
}

// ratings checks the values of 7z: tables 4.7, 4.8, 5.2 and 5.3.
func (c *checker) ratings() {
	const usage, perUsage, rating = 0, 1, 2
	share := func(arch, target, item string, column int) float64 {
		_, v := c.sevenzip(arch, target, item)
		_, native := c.sevenzip(arch, "native", item)
		return 100 * v[column] / native[column]
	}
	var usages []float64
	for arch, targets := range map[string][]string{
		"arm64": {"native", "docker/runc", "docker/crun", "docker/kata"},
		"amd64": {"native", "docker/runc", "docker/crun", "docker/kata", "docker/runsc"},
	} {
		for _, target := range targets {
			_, compress := c.sevenzip(arch, target, "Compress")
			_, total := c.sevenzip(arch, target, "Total")
			spot, decompress := c.sevenzip(arch, target, "Decompress")
			for k := range total { // the total is the mean, and all three are rounded
				if !near(2*total[k], compress[k]+decompress[k], 2) {
					c.fail(place{spot.table, spot.row, k}, "the total implies %g", 2*total[k]-compress[k])
				}
			}
			if target != "docker/kata" {
				usages = append(usages, compress[usage], total[usage], decompress[usage])
			}
		}
	}
	if ends := c.values(place{"text 5.3", 1, 0}); slices.Min(usages) < ends[0] || slices.Max(usages) > ends[1] {
		c.fail(place{"text 5.3", 1, 0}, "the usage is %g to %g", slices.Min(usages), slices.Max(usages))
	}

	c.want("text 4.3.1", 0, 0, share("amd64", "docker/kata", "Decompress", rating))
	c.want("text 4.3.1", 0, 1, share("amd64", "docker/runsc", "Decompress", rating))
	c.want("text 4.3.1", 1, 1, share("amd64", "docker/runsc", "Compress", rating))
	c.want("text 4.3.2", 0, 0, share("arm64", "docker/kata", "Compress", rating))
	c.want("text 4.3.2", 0, 1, share("arm64", "docker/runc", "Compress", rating)-100)
	c.want("text 4.3.2", 1, 1, share("arm64", "docker/runc", "Decompress", rating)-100)
	c.want("text 4.3.2", 1, 2, 100-share("arm64", "docker/crun", "Decompress", rating))
	c.want("text 4.3.2", 0, 3, share("arm64", "docker/crun", "Compress", rating)-100)

	for k, column := range c.table("table 5.2").Columns {
		target := column.Of.Target
		for r, row := range c.table("table 5.2").Rows {
			if row.Cells[k].Printed == "-" {
				continue
			}
			var shares []float64
			for _, item := range items {
				shares = append(shares, share(row.Of.Arch, target, item, rating))
			}
			c.want("table 5.2", r, k, shares...)
		}
		for r, row := range c.table("table 5.3").Rows {
			if row.Cells[k].Printed != "-" {
				c.want("table 5.3", r, k, share(row.Of.Arch, target, row.Of.Item, perUsage))
			}
		}
	}
	c.want("text 5.3", 0, 0, share("amd64", "docker/runsc", "Compress", rating))
	if _, arm := c.sevenzip("arm64", "docker/runsc", "Compress"); arm == nil {
		c.fail(place{"text 5.3", 0, 0}, "gVisor did not run on both architectures")
	}
}

// memory checks table 5.4 and the text about the memory.
func (c *checker) memory() {
	redis := map[string]string{"arm64": "text 4.4.1", "amd64": "text 4.4.2"}
	sevenzip := map[string]string{"arm64": "text 4.5.1", "amd64": "text 4.5.2"}
	const start, usage = 0, 1
	column := func(name, target string) int {
		return slices.IndexFunc(c.table(name).Columns, func(col Column) bool { return col.Of.Target == target })
	}
	var overheads, ofKata []float64 // the upper ends with Redis
	worstOnARM := 0.0
	for r, row := range c.table("table 5.4").Rows {
		spot := place{"table 5.4", r, 0}
		ends := c.values(spot)
		if row.Of.Benchmark == "performance.cpu.sevenzip" {
			name := sevenzip[row.Of.Arch]
			k := column(name, row.Of.Target)
			if growth := c.value(name, 0, k) - c.value(name, 0, 0); !near(spread(ends), math.Abs(growth), 1) {
				c.fail(spot, "the ends should be %g MB apart", math.Abs(growth))
			}
			continue
		}
		name := redis[row.Of.Arch]
		runtime, native := c.values(place{name, usage, column(name, row.Of.Target)}), c.values(place{name, usage, 0})
		c.want(spot.table, r, 0, runtime[0]-native[0], runtime[1]-native[1])
		if row.Of.Target == "docker/kata" {
			ofKata = append(ofKata, ends[1])
		} else {
			overheads = append(overheads, ends[1])
		}
		if row.Of.Arch == "arm64" {
			worstOnARM = max(worstOnARM, ends[1])
		}
	}

	const ideal, share, limit = 0, 1, 2 // the rows of text 5.4
	for k, name := range []string{redis["arm64"], redis["amd64"]} {
		percent := c.value("text 5.4", ideal, k) // 1 % of the memory, in MB, rounded
		spot := place{"text 5.4", share, k}
		for i, memory := range []float64{slices.Min(c.row(name, start, 1)), slices.Max(c.row(name, start, 1))} {
			if text := c.texts(spot)[i]; !prints(text, memory/(percent-0.5)) && !prints(text, memory/(percent+0.5)) {
				c.fail(spot, "it should print %.3g", memory/percent)
			}
		}
	}
	if worst := worstOnARM / c.value("text 5.4", ideal, 0); worst > c.value("text 5.4", limit, 0) {
		c.fail(place{"text 5.4", limit, 0}, "Kata needs %.3g %%", worst)
	}

	if best := slices.Min(overheads); best >= c.value("text 6", 0, 0) {
		c.fail(place{"text 6", 0, 0}, "the best needs %g MB", best)
	}
	if worst := slices.Max(ofKata); !near(c.value("text 6", 1, 0)/worst, 1, 0.05) {
		c.fail(place{"text 6", 1, 0}, "the worst needs %g MB", worst)
	}
	if worst := slices.Max(overheads); worst >= c.value("text 6", 2, 0) {
		c.fail(place{"text 6", 2, 0}, "another runtime needs %g MB", worst)
	}
}
