package paper

import "slices"

// checkEspe computes the factors of section 5.2.2 from table 1.
func checkEspe(c *checker) {
	const minimum, average, spike = 4, 5, 6
	var factors []float64
	for _, row := range []int{minimum, average} {
		for _, runc := range []int{0, 2} {
			factors = append(factors, c.value("table 1", row, runc+1)/c.value("table 1", row, runc))
		}
	}
	c.want("text 5.2.2", 0, 0, slices.Min(factors))
	c.want("text 5.2.2", 0, 1, slices.Max(factors))
	if c.value("table 1", spike, 0) > c.value("table 1", spike, 1) {
		c.fail(place{"table 1", spike, 0}, "section 5.2.2 calls this spike a feature of containerd/runsc")
	}
}

// checkWang computes the losses from tables 2 and 3 and from the speeds of section 5.8, and compares sections that repeat values.
func checkWang(c *checker) {
	decrease := func(value, reference float64) float64 { return 100 * (reference - value) / reference }
	increase := func(value, reference float64) float64 { return -decrease(value, reference) }
	native := func(table string, row, column int) (value, reference float64) {
		return c.value(table, row, column), c.value(table, row, 0)
	}
	const runc, kata = 1, 4 // columns of tables 2 and 3
	c.want("text 5.3", 4, 0, decrease(native("table 2", 0, runc)))
	c.want("text 5.4", 5, 1, decrease(native("table 3", 0, kata)))
	c.want("text 5.4", 6, 1, decrease(native("table 3", 1, kata)))
	c.want("text 5.4", 7, 1, increase(native("table 3", 2, kata)))
	c.want("text 5.4", 8, 1, increase(native("table 3", 3, kata)))

	if ptrace, kvm := c.value("text 5.5", 1, 1), c.value("text 5.5", 1, 2); kvm > ptrace {
		c.fail(place{"text 5.5", 1, 1}, "as a loss it is less than KVM's")
		c.fail(place{"text 5.5", 1, 2}, "as a loss it is more than ptrace's")
	}

	start, kataStart := c.value("text 5.6 start-up", 0, 0), c.value("text 5.6 start-up", 0, 2)
	c.want("text 5.6 start-up", 1, 2, increase(kataStart, start))
	c.want("text 5.6 start-up", 2, 1, start*c.value("text 5.6 start-up", 1, 1)/100)
	c.want("text 5.6 start-up", 2, 2, kataStart-start)

	share := func(row int) float64 { return c.value("text 5.7", row, 0) }
	c.want("text 5.7", 3, 0, 100-share(2))
	c.want("text 5.7", 6, 0, share(4)-share(5))
	c.want("text 5.7", 10, 0, 100-share(8)-share(9))

	const baseline, load, drop, loss = 5, 6, 4, 7 // columns of section 5.8
	for row := range 4 {
		c.want("text 5.8", row, loss, decrease(c.value("text 5.8", row, load), c.value("text 5.8", row, baseline))/100)
	}
	const ptrace, kvm = 2, 3 // rows of section 5.8
	for row, column := range map[int]int{kvm: 1, ptrace: 2} {
		c.want("text 5.8.4", 0, column, c.value("text 5.8", row, loss))
		c.want("text 5.8.4", 1, column, c.value("text 5.8", row, drop))
		c.want("text 5.8", row, drop, c.value("text 5.8.4", 1, column))
	}
	losses := func(row int) float64 { return c.value("text 5.8", row, loss) }
	c.want("text 5.8.4", 3, 0, increase(losses(0), losses(1)))
	for _, row := range []int{ptrace, kvm} {
		c.want("text 5.8.4", 4, 3, losses(1)/losses(row))
		c.want("text 5.8.4", 5, 2, c.value("text 5.8", row, drop)/decrease(c.value("text 5.8", 1, 3), c.value("text 5.8", 1, 2)))
	}
}
