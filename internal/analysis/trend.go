package analysis

// Trends returns the metrics of the only run with a trend on some target.
func (b *Benchmark) Trends() []*Metric {
	var metrics []*Metric
	for i := range b.Metrics {
		for _, r := range b.Metrics[i].Rows {
			if r.Cells[0].Trend != nil {
				metrics = append(metrics, &b.Metrics[i])
				break
			}
		}
	}
	return metrics
}
