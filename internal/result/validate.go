package result

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
)

// MaxNames is the greatest number of targets, benchmarks and images of a run, and of metrics of a benchmark.
const MaxNames = 2000

// maxID is the longest id of a run.
const maxID = 64

// idPattern matches the ids of runs, which become parts of paths and of command lines.
var idPattern = regexp.MustCompile(fmt.Sprintf(`^[A-Za-z0-9][A-Za-z0-9._-]{0,%d}$`, maxID-1))

// Validate refuses a run that is unfit to keep or to export: a missing name, an unknown word, a time that RFC 3339 cannot express,
// trials out of order, or a trial that ValidateTrial refuses. It protects the store from imported files and from our own faults.
func (r *Run) Validate() error {
	if err := r.validateFacts(); err != nil {
		return fmt.Errorf("run %q: %w", r.ID, err)
	}
	last := 0
	for i := range r.Trials {
		t := &r.Trials[i]
		if err := r.ValidateTrial(t); err != nil {
			return fmt.Errorf("run %q: %w", r.ID, err)
		}
		if t.Seq <= last {
			return fmt.Errorf("run %q: trial %d follows trial %d; trials must be in the order of their execution, without repetition", r.ID, t.Seq, last)
		}
		last = t.Seq
	}
	return nil
}

// ValidateTrial refuses a trial that is unfit for r: a value that is not a number, a sample of an undescribed metric, an unknown
// target, or samples of a trial that is not ok. The other trials of r have no effect.
func (r *Run) ValidateTrial(t *Trial) error {
	if err := r.validateTrial(t); err != nil {
		return fmt.Errorf("trial %d (%s on %s): %w", t.Seq, t.Benchmark, t.Target, err)
	}
	return nil
}

func (r *Run) validateFacts() error {
	switch r.State {
	case Running, Complete, Interrupted, Killed:
	default:
		return fmt.Errorf("state %q is none of %q, %q, %q, %q", r.State, Running, Complete, Interrupted, Killed)
	}
	switch {
	case r.ID == "":
		return errors.New("the id is missing")
	case !idPattern.MatchString(r.ID):
		return fmt.Errorf("the id has other characters than letters, digits, '-', '_' and '.', or is longer than %d characters", maxID)
	case !spellable(r.Started):
		return fmt.Errorf("the start %v is not a time between the years 0 and 9999", r.Started)
	case !spellable(r.Ended):
		return fmt.Errorf("the end %v is not a time between the years 0 and 9999", r.Ended)
	case r.Overhead.EmptyRegion < 0 || r.Overhead.Exec < 0:
		return errors.New("the overhead is negative")
	case r.Host.CPUs < 0 || r.Host.Memory < 0 || r.Host.Swap < 0 || r.Host.PageSize < 0:
		return errors.New("the host has a negative number of CPUs or bytes")
	}
	if n := max(len(r.Targets), len(r.Bench), len(r.Images)); n > MaxNames {
		return fmt.Errorf("it has %d targets, %d benchmarks and %d images; %d of each are allowed", len(r.Targets), len(r.Bench), len(r.Images), MaxNames)
	}
	for i, t := range r.Targets {
		if t.Name == "" {
			return fmt.Errorf("target %d has no name", i+1)
		}
		if slices.ContainsFunc(r.Targets[:i], func(o Target) bool { return o.Name == t.Name }) {
			return fmt.Errorf("target %q occurs twice", t.Name)
		}
		switch t.Kind {
		case "", KindNative, KindRuntime, KindEngine:
		default:
			return fmt.Errorf("target %q: the kind %q is none of %q, %q, %q", t.Name, t.Kind, KindNative, KindRuntime, KindEngine)
		}
	}
	for i, b := range r.Bench {
		if b.Name == "" {
			return fmt.Errorf("benchmark %d has no name", i+1)
		}
		if slices.ContainsFunc(r.Bench[:i], func(o Benchmark) bool { return o.Name == b.Name }) {
			return fmt.Errorf("benchmark %q is described twice", b.Name)
		}
		if err := validateMetrics(b.Metrics); err != nil {
			return fmt.Errorf("benchmark %q: %w", b.Name, err)
		}
	}
	for i, image := range r.Images {
		switch {
		case image.Name == "":
			return fmt.Errorf("image %d has no name", i+1)
		case image.Size < 0:
			return fmt.Errorf("image %q has a negative size", image.Name)
		case slices.ContainsFunc(r.Images[:i], func(o Image) bool { return o.Name == image.Name }):
			return fmt.Errorf("image %q occurs twice", image.Name)
		}
	}
	return nil
}

func validateMetrics(metrics []Metric) error {
	if len(metrics) > MaxNames {
		return fmt.Errorf("it has %d metrics; %d are allowed", len(metrics), MaxNames)
	}
	for i, m := range metrics {
		if m.Name == "" {
			return fmt.Errorf("metric %d has no name", i+1)
		}
		if slices.ContainsFunc(metrics[:i], func(o Metric) bool { return o.Name == m.Name }) {
			return fmt.Errorf("metric %q is described twice", m.Name)
		}
		if !known(m.Unit) {
			return fmt.Errorf("metric %q: unknown unit %q", m.Name, m.Unit)
		}
		switch m.Better {
		case Lower, Higher:
		default:
			return fmt.Errorf("metric %q: the better direction %q is neither %q nor %q", m.Name, m.Better, Lower, Higher)
		}
		switch m.Layer {
		case "", LayerTotal, LayerSandbox:
		default:
			return fmt.Errorf("metric %q: the layer %q is neither %q nor %q", m.Name, m.Layer, LayerTotal, LayerSandbox)
		}
		if !finite(m.Bound.Most) || m.Bound.Broken == "" && m.Bound.Most != 0 {
			return fmt.Errorf("metric %q: the bound %v is not a number, or has no text for a target that exceeds it", m.Name, m.Bound.Most)
		}
	}
	return nil
}

func (r *Run) validateTrial(t *Trial) error {
	switch t.Status {
	case OK, Failed, Timeout, Skipped:
	default:
		return fmt.Errorf("status %q is none of %q, %q, %q, %q", t.Status, OK, Failed, Timeout, Skipped)
	}
	switch {
	case t.Seq < 1:
		return errors.New("trials are counted from 1")
	case t.Block < 0:
		return fmt.Errorf("block %d: blocks are counted from 0", t.Block)
	case t.Elapsed < 0 || t.Self < 0:
		return errors.New("a duration is negative")
	case !spellable(t.Started):
		return fmt.Errorf("the start %v is not a time between the years 0 and 9999", t.Started)
	case t.Status != OK && len(t.Samples)+len(t.Distributions) > 0:
		return fmt.Errorf("it has samples although its status is %s; only trials with status ok have samples", t.Status)
	case !slices.ContainsFunc(r.Targets, func(o Target) bool { return o.Name == t.Target }):
		return errors.New("the run has no such target")
	}
	for i, p := range t.Phases {
		if p.Name == "" || p.Start < 0 || p.Duration < 0 {
			return fmt.Errorf("phase %d (%q) lacks a name or has a negative time", i+1, p.Name)
		}
	}
	at := slices.IndexFunc(r.Bench, func(b Benchmark) bool { return b.Name == t.Benchmark })
	if at < 0 {
		return errors.New("the run describes no such benchmark")
	}
	metrics := r.Bench[at].Metrics
	for i, s := range t.Samples {
		if !describes(metrics, s.Metric) {
			return fmt.Errorf("sample %d: the benchmark describes no metric %q", i+1, s.Metric)
		}
		if !finite(s.Value) {
			return fmt.Errorf("sample %d: the value of %s is %v, which is not a finite number", i+1, s.Metric, s.Value)
		}
	}
	for _, d := range t.Distributions {
		if !describes(metrics, d.Metric) {
			return fmt.Errorf("a distribution: the benchmark describes no metric %q", d.Metric)
		}
		if err := d.validate(); err != nil {
			return fmt.Errorf("distribution of %s: %w", d.Metric, err)
		}
	}
	if err := validateConditions(t.Conditions); err != nil {
		return err
	}
	return t.Host.validate()
}

// validateConditions refuses conditions that ConditionText does not return.
func validateConditions(conditions map[string]string) error {
	if len(conditions) > MaxConditions {
		return fmt.Errorf("it has %d conditions; %d are allowed", len(conditions), MaxConditions)
	}
	for name, value := range conditions {
		if name == "" || name != ConditionText(name) || value != ConditionText(value) {
			return fmt.Errorf("condition %.50q: names and values must be printable text on one line, at most %d bytes", name, MaxCondition)
		}
	}
	return nil
}

func (d *Distribution) validate() error {
	switch {
	case !known(d.Unit):
		return fmt.Errorf("unknown unit %q", d.Unit)
	case d.Batch < 1:
		return errors.New("its values are means of no events")
	case len(d.Lows) != len(d.Counts):
		return fmt.Errorf("it has %d buckets and %d counts", len(d.Lows), len(d.Counts))
	}
	for i, low := range d.Lows {
		if !finite(low) || i > 0 && low <= d.Lows[i-1] {
			return fmt.Errorf("bucket %d begins at %v; buckets must be in increasing order", i+1, low)
		}
	}
	return nil
}

func (d *Disturbance) validate() error {
	for _, f := range []struct {
		name  string
		value *float64
	}{
		{"steal", d.Steal},
		{"cpu_pressure", d.CPUPressure},
		{"memory_pressure", d.MemoryPressure},
		{"io_pressure", d.IOPressure},
		{"load1", d.Load},
		{"cpu_mhz", d.MHz},
	} {
		if f.value != nil && !finite(*f.value) {
			return fmt.Errorf("the host's %s is %v, which is not a finite number", f.name, *f.value)
		}
	}
	return nil
}

// maxText is the longest text, in bytes, on one line of a report. It is far longer than any name.
const maxText = 10_000

// validateText refuses control characters and overlong text in fields that reports print on one line. Output of programs, plans,
// reasons and advice have their own lines and may contain anything: reports remove their control characters.
func (r *Run) validateText() error {
	var l lines
	h := &r.Host
	for _, t := range []struct{ name, text string }{
		{"name", r.Name},
		{"baseline", r.Baseline},
		{"version of the tool", r.Tool.Version},
		{"commit of the tool", r.Tool.Commit},
		{"go of the tool", r.Tool.Go},
		{"hostname", h.Hostname},
		{"os", h.OS},
		{"kernel", h.Kernel},
		{"arch", h.Arch},
		{"cpu", h.CPU},
		{"governor", h.Governor},
		{"turbo", h.Turbo},
		{"smt", h.SMT},
		{"cgroup", h.Cgroup},
		{"virtualisation", h.Virtual},
		{"lsm", h.LSM},
		{"mitigations", h.Mitigation},
		{"kernel_cmdline", h.Cmdline},
	} {
		l.check(t.text, "the %s", t.name)
	}
	for _, t := range r.Targets {
		l.check(t.Name, "the name of a target")
		l.check(t.Version, "the version of target %s", t.Name)
		l.check(t.Isolation, "the isolation of target %s", t.Name)
		l.check(t.Cgroup, "the cgroup of target %s", t.Name)
		l.check(t.Runtime, "the runtime of target %s", t.Name)
	}
	for _, b := range r.Bench {
		l.check(b.Name, "the name of a benchmark")
		l.check(b.Summary, "the summary of benchmark %s", b.Name)
		l.check(b.Source, "the source of benchmark %s", b.Name)
		l.check(b.Place, "the place of benchmark %s", b.Name)
		for _, m := range b.Metrics {
			l.check(m.Name, "the name of a metric of benchmark %s", b.Name)
			l.check(m.Phrase, "the phrase of metric %s of benchmark %s", m.Name, b.Name)
			l.check(m.Group, "the group of metric %s of benchmark %s", m.Name, b.Name)
			l.check(m.Component, "the component of metric %s of benchmark %s", m.Name, b.Name)
			l.check(m.DerivedFrom, "the source of metric %s of benchmark %s", m.Name, b.Name)
		}
	}
	for _, i := range r.Images {
		l.check(i.Name, "the name of an image")
		l.check(i.Digest, "the digest of image %s", i.Name)
	}
	for i := range r.Trials {
		t := &r.Trials[i]
		l.check(t.Params, "the params of trial %d", t.Seq)
		for _, p := range t.Phases {
			l.check(p.Name, "the name of a phase of trial %d", t.Seq)
		}
	}
	return l.err
}

// lines checks texts for one line, and keeps the first error.
type lines struct{ err error }

func (l *lines) check(text, format string, args ...any) {
	switch {
	case l.err != nil:
	case len(text) > maxText:
		l.err = fmt.Errorf("%s (%.50q…) has %d bytes; %d are allowed", fmt.Sprintf(format, args...), text, len(text), maxText)
	case strings.ContainsFunc(text, unicode.IsControl):
		l.err = fmt.Errorf("%s (%.50q) has a control character", fmt.Sprintf(format, args...), text)
	}
}

func describes(metrics []Metric, name string) bool {
	return slices.ContainsFunc(metrics, func(m Metric) bool { return m.Name == name })
}

func known(u Unit) bool {
	switch u {
	case Seconds, Bytes, BytesPerSecond, BitsPerSecond, PerSecond, FlopPerSecond, Ratio, Score:
		return true
	default:
		return false
	}
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// spellable reports whether RFC 3339, which has four digits for the year, can express t in UTC.
func spellable(t time.Time) bool {
	year := t.UTC().Year()
	return 0 <= year && year <= 9999
}
