package plan

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/bench/custom"
)

// Workload is a custom workload: a program of the user, which is a benchmark of the plan.
type Workload struct {
	custom.Workload `yaml:",inline"`

	at, imageAt, fromEnvAt Location
}

// Names of Touchstone's images in plans. Other images are paths.
const (
	probeImage    = "probe"
	workloadImage = "workload"
)

// images returns Touchstone's images by their names in plans.
func images() map[string]bench.Image {
	return map[string]bench.Image{probeImage: bench.ProbeImage, workloadImage: bench.WorkloadImage}
}

// imageName is the inverse: the name of one of Touchstone's images, or a path.
func imageName(image bench.Image) string {
	for name, i := range images() {
		if i == image {
			return name
		}
	}
	return string(image)
}

// workloadFields are the keys of a workload.
func (r *reader) workloadFields(w *Workload) []field {
	return []field{
		{"name", func(n ast.Node) {
			w.at = r.at(n)
			r.text(n, "workloads.name", benchmarkName.check, &w.Name)
		}},
		{"summary", func(n ast.Node) { r.text(n, "workloads.summary", checkName, &w.Summary) }},
		{"image", func(n ast.Node) { r.image(n, w) }},
		{"argv", func(n ast.Node) { w.Args = r.argv(n) }},
		{"env", func(n ast.Node) { w.Env = r.env(n) }},
		{"from-env", func(n ast.Node) { w.fromEnvAt, w.FromEnv = r.at(n), r.fromEnv(n) }},
		{"writable", func(n ast.Node) { w.Writable = r.boolean(n, "workloads.writable", "") }},
		{"network", func(n ast.Node) {
			s, _ := text(n)
			if !slices.Contains(custom.Networks(), s) {
				r.fail(n, fmt.Sprintf("workloads.network: %s is neither host nor bridge", shown(n)), "leave it out to have only the loopback interface")
			}
			w.Network = s
		}},
		{"parse", func(n ast.Node) { w.Metrics = r.parse(n) }},
	}
}

// metricFields are the keys of an entry of parse.
func (r *reader) metricFields(m *custom.Metric) []field {
	return []field{
		{"metric", func(n ast.Node) { r.text(n, "parse.metric", checkMetric, &m.Name) }},
		{"regex", func(n ast.Node) { r.text(n, "parse.regex", checkExpression, &m.Regex) }},
		{"json", func(n ast.Node) { r.text(n, "parse.json", checkExpression, &m.JSON) }},
		{"unit", func(n ast.Node) { r.text(n, "parse.unit", checkUnit, &m.Unit) }},
		{"better", func(n ast.Node) {
			m.Better, _ = text(n)
			if directions := custom.Directions(); !slices.Contains(directions, m.Better) {
				r.fail(n, fmt.Sprintf("parse.better: %s is neither lower nor higher", shown(n)), didYouMean(m.Better, directions, "write lower or higher"))
			}
		}},
		{"scale", func(n ast.Node) { r.scale(n, &m.Scale) }},
	}
}

// reading checks the expression or the path of a metric, whose meaning depends on the scale.
func (r *reader) reading(entries []*ast.MappingValueNode, m custom.Metric) {
	key, text := "regex", m.Regex
	if m.JSON != "" {
		key, text = "json", m.JSON
	}
	if text == "" {
		return
	}
	if unit := m.Unit; m.Scale.Auto != "" && !slices.Contains(custom.AutoUnits(), unit) {
		if unit != "" {
			r.fail(valueOf(entries, "scale"), fmt.Sprintf("parse.scale: %s has no effect with the unit %s, which has no multiples", m.Scale.Auto, unit),
				"write a factor, or one of the units "+strings.Join(custom.AutoUnits(), ", "))
		}
		m.Scale = custom.Scale{}
	}
	if _, err := m.Reading(); err != nil {
		r.failKey(valueOf(entries, key), "parse."+key, &problem{quote(text) + ": " + printable(err.Error()), adviceOf(key)})
	}
}

// adviceOf returns advice for the syntax of regular expressions and JSON paths.
func adviceOf(key string) string {
	if key == "json" {
		return "write a JSON path such as latency.p99 or jobs[0].read.iops"
	}
	return `write one with one group for the number, such as 'rate: ([0-9.]+) op/s'`
}

func (r *reader) workloads(n ast.Node) {
	for _, v := range r.list(n, "workloads", MaxWorkloads) {
		entries, ok := pairs(v)
		if !ok {
			r.wrongKind(v, "workloads", "a mapping", "write it like {name: app.start.cold, image: ./app.tar, argv: [/app], parse: […]}")
			continue
		}
		w := Workload{at: r.at(v)}
		r.entries(entries, "a workload", r.workloadFields(&w))
		r.required(v, entries, "the workload", "name", "image", "argv", "parse")
		for _, name := range w.FromEnv {
			if _, duplicate := w.Env[name]; duplicate {
				r.problems.add(w.fromEnvAt, name, problem{"workloads.from-env: " + quote(name) + " is in env too", "leave it out of one of them"})
			}
		}
		if slices.ContainsFunc(r.plan.Workloads, func(o Workload) bool { return o.Name == w.Name && w.Name != "" }) {
			r.problems.add(w.at, w.Name, problem{"workloads: the name " + quote(w.Name) + " occurs twice", "rename one of the workloads"})
		}
		r.plan.Workloads = append(r.plan.Workloads, w)
	}
}

// required records missing keys of a mapping.
func (r *reader) required(n ast.Node, entries []*ast.MappingValueNode, what string, names ...string) {
	var missing []string
	for _, key := range names {
		if !hasKey(entries, key) {
			missing = append(missing, key)
		}
	}
	if missing != nil {
		r.problems.add(r.at(n), "", problem{what + " has no " + strings.Join(missing, ", no "), "it needs " + strings.Join(names, ", ")})
	}
}

// image reads the name of one of Touchstone's images, or a path relative to the plan.
func (r *reader) image(n ast.Node, w *Workload) {
	w.imageAt = r.at(n)
	var s string
	r.text(n, "workloads.image", checkImage, &s)
	if s == "" {
		return
	}
	if image, ours := images()[s]; ours {
		w.Image = image
		return
	}
	path := s
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(r.file), path)
	}
	// Abs fails only if the working directory was removed. Check then reports the missing image.
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	w.Image = bench.Image(path)
}

// argv reads the program with its arguments.
func (r *reader) argv(n ast.Node) []string {
	values := r.listOr(n, "workloads.argv", maxArgs, "write the program and each argument as an entry, like [/usr/bin/sysbench, cpu, run]; there is no shell",
		"begin with the path of the program in the image", "put the arguments into a file of the image")
	var args []string
	for i, v := range values {
		s, ok := scalar(v)
		switch {
		case !ok:
			r.wrongKind(v, "workloads.argv", "a single value", "")
		case len(s) > maxPath || !isPrintable(s):
			r.fail(v, "workloads.argv: "+quote(s)+" is too long or not printable", "write it on one line")
		case i == 0 && !strings.HasPrefix(s, "/"):
			r.fail(v, "workloads.argv: the program "+quote(s)+" is not an absolute path", "write it from the root of the image, such as /usr/bin/"+filepath.Base(s))
		default:
			args = append(args, s)
		}
	}
	return args
}

// env reads the environment variables of a program.
func (r *reader) env(n ast.Node) map[string]string {
	var env map[string]string
	r.values(n, "workloads.env", "{LC_ALL: C}", maxArgs, checkVariable, checkVariableValue, func(_ *ast.MappingValueNode, name, value string) {
		put(&env, name, value)
	})
	return env
}

// checkVariable and checkVariableValue refuse strings that cannot be environment variables on every target.
func checkVariable(name string) *problem {
	if name == "PATH" {
		return &problem{"PATH is already set to the usual folders on every target", "call programs by their paths"}
	}
	return variable.check(name)
}

func checkVariableValue(name, value string) *problem {
	if len(value) > maxPath || !isPrintable(value) {
		return &problem{fmt.Sprintf("the value %s of %s is too long or not printable", quote(value), name), "write it on one line"}
	}
	return nil
}

// parse reads the metrics with their places in a program's output.
func (r *reader) parse(n ast.Node) []custom.Metric {
	var metrics []custom.Metric
	const empty = "write an entry for each metric; a workload needs at least one"
	for _, v := range r.listOr(n, "parse", MaxMetrics, "write it in brackets or with dashes", empty, "split the plan") {
		entries, ok := pairs(v)
		if !ok {
			r.wrongKind(v, "parse", "a mapping", `write it like {metric: Rate, regex: 'rate: ([0-9.]+) op/s', unit: 1/s, better: higher}`)
			continue
		}
		var m custom.Metric
		r.entries(entries, "an entry of parse", r.metricFields(&m))
		r.required(v, entries, "the entry of parse", "metric", "unit", "better")
		if hasKey(entries, "regex") == hasKey(entries, "json") {
			r.fail(v, "the entry of parse needs either regex or json", adviceOf("regex")+", or "+adviceOf("json"))
		}
		r.reading(entries, m)
		if slices.ContainsFunc(metrics, func(o custom.Metric) bool { return o.Name == m.Name && m.Name != "" }) {
			r.fail(v, "parse: the metric "+quote(m.Name)+" occurs twice", "rename one of the metrics")
		}
		metrics = append(metrics, m)
	}
	return metrics
}

var factor = regexp.MustCompile(`^([0-9]+(\.[0-9]+)?|\.[0-9]+)([eE][+-]?[0-9]+)?$`)

// scale reads the factor for values, or the word for units that the program prints.
func (r *reader) scale(n ast.Node, dest *custom.Scale) {
	s, _ := scalar(n) // YAML reads 1e-3 as a string, unlike 1.0e-3
	if slices.Contains(custom.Autos(), s) {
		dest.Auto = s
		return
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f <= 0 || !factor.MatchString(s) {
		r.fail(n, fmt.Sprintf("parse.scale: %s is not a number above 0", shown(n)), "write the factor from the number to the unit, such as 0.001 for a program that prints milliseconds, "+
			"or auto for a program that changes its unit")
		return
	}
	if f != 1 { // the default
		dest.Factor = f
	}
}

// checkMetric also refuses names of metrics that every workload has.
func checkMetric(s string) *problem {
	for _, m := range bench.CostMetrics() {
		if m.Name == s {
			return &problem{quote(s) + " is the name of a metric that every workload has", "choose another name"}
		}
	}
	return metricName.check(s)
}

// checkImage refuses strings that are neither a name nor a path.
func checkImage(s string) *problem {
	if s == "" || len(s) > maxPath || !isPrintable(s) {
		return &problem{quote(s) + " is not an image", "write workload, probe, or the path of an OCI layout or an archive, such as ./my-image.tar"}
	}
	return nil
}

// checkExpression refuses strings that are unfit for a message.
func checkExpression(s string) *problem {
	if s == "" || len(s) > maxExpression || !isPrintable(s) {
		return &problem{quote(s) + " is empty, too long or not printable", ""}
	}
	return nil
}

// checkUnit refuses unknown units, and explains the use of scale for a multiple of a unit.
func checkUnit(s string) *problem {
	units := custom.Units()
	if slices.Contains(units, s) {
		return nil
	}
	advice := didYouMean(s, units, "the units are "+strings.Join(units, ", ")+"; use scale for multiples of them")
	if slices.Contains(custom.Autos(), s) {
		advice = "write the unit of the results, and scale: " + s
	} else if unit, scale, ok := custom.Multiple(s); ok {
		advice = "write unit: " + unit
		if scale != "" {
			advice += " and scale: " + scale
		}
		advice += "; if the program changes its unit, scale: auto"
	}
	return &problem{quote(s) + " is not a unit", advice}
}
