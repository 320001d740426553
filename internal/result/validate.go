package result

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
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
	last = 0
	for i := range r.Traces {
		if err := r.checkNextTrace(&r.Traces[i], last); err != nil {
			return err
		}
		last = r.Traces[i].Seq
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
	if err := oneOf("state", r.State, Running, Complete, Interrupted, Killed); err != nil {
		return err
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
	if n := len(r.Overhead.Requests); n > MaxNames {
		return fmt.Errorf("it has requests to %d engines; %d are allowed", n, MaxNames)
	}
	for name, took := range r.Overhead.Requests {
		if took < 0 {
			return fmt.Errorf("the overhead of a request to %s is negative", name)
		}
	}
	if err := r.Host.Node.validate(); err != nil {
		return err
	}
	if c := r.Host.Selfcheck; c != nil {
		if len(c.Limits) > maxDetectionLimits || !spellable(c.Date) {
			return fmt.Errorf("the selfcheck has %d limits, of %v; %d limits are allowed, and times between the years 0 and 9999", len(c.Limits), c.Date, maxDetectionLimits)
		}
		if n := max(len(c.Version), len(c.Target), len(c.Metric)); n > MaxCondition {
			return fmt.Errorf("the selfcheck has a name of %d bytes; %d are allowed", n, MaxCondition)
		}
		for _, l := range c.Limits {
			if l.Minutes < 1 || !(l.Difference >= 0) || math.IsInf(l.Difference, 0) {
				return fmt.Errorf("the selfcheck has the limit %g in %d minutes", l.Difference, l.Minutes)
			}
		}
	}
	if n := max(len(r.Targets), len(r.Bench), len(r.Images)); n > MaxNames {
		return fmt.Errorf("it has %d targets, %d benchmarks and %d images; %d of each are allowed", len(r.Targets), len(r.Bench), len(r.Images), MaxNames)
	}
	if err := cmp.Or(
		distinct("target", r.Targets, func(t Target) string { return t.Name }),
		distinct("benchmark", r.Bench, func(b Benchmark) string { return b.Name }),
		distinct("image", r.Images, func(i Image) string { return i.Name }),
	); err != nil {
		return err
	}
	for _, t := range r.Targets {
		if err := oneOf("the kind", t.Kind, "", KindNative, KindRuntime, KindEngine); err != nil {
			return fmt.Errorf("target %q: %w", t.Name, err)
		}
		if t.FailedTries < 0 {
			return fmt.Errorf("target %q: it has %d failed tries", t.Name, t.FailedTries)
		}
	}
	for _, b := range r.Bench {
		if err := validateMetrics(b.Metrics); err != nil {
			return fmt.Errorf("benchmark %q: %w", b.Name, err)
		}
		if len(b.Statements) > MaxConditions {
			return fmt.Errorf("benchmark %q: it has %d statements; %d are allowed", b.Name, len(b.Statements), MaxConditions)
		}
		if len(b.Judged) > MaxConditions {
			return fmt.Errorf("benchmark %q: it has %d judged conditions; %d are allowed", b.Name, len(b.Judged), MaxConditions)
		}
	}
	for _, image := range r.Images {
		if image.Size < 0 {
			return fmt.Errorf("image %q has a negative size", image.Name)
		}
	}
	return r.Stopping.validate()
}

// validate refuses a rule whose looks a report cannot use.
func (s *Stopping) validate() error {
	if s == nil {
		return nil
	}
	ascending := slices.Equal(s.Looks, slices.Compact(slices.Sorted(slices.Values(s.Looks))))
	if len(s.Looks) == 0 || len(s.Looks) > MaxLooks || s.Looks[0] < 1 || !ascending {
		return fmt.Errorf("stopping: the looks must be 1 to %d numbers of blocks in ascending order", MaxLooks)
	}
	if s.Comparisons < 0 || !(s.Precision >= 0 && s.Precision <= 1) {
		return fmt.Errorf("stopping: %d comparisons and the precision %g are not possible", s.Comparisons, s.Precision)
	}
	for _, stop := range s.Stopped {
		if err := oneOf("the reason", stop.Reason, Decided, Precise, Incomparable, AllStopped); err != nil {
			return fmt.Errorf("stopping: %s on %s: %w", stop.Benchmark, stop.Target, err)
		}
		if stop.Blocks < 0 {
			return fmt.Errorf("stopping: %s on %s: %d blocks", stop.Benchmark, stop.Target, stop.Blocks)
		}
	}
	return nil
}

// distinct refuses an item without a name, and a repeated name.
func distinct[T any](what string, items []T, name func(T) string) error {
	names := map[string]bool{}
	for i, item := range items {
		n := name(item)
		switch {
		case n == "":
			return fmt.Errorf("%s %d has no name", what, i+1)
		case names[n]:
			return fmt.Errorf("%s %q occurs twice", what, n)
		}
		names[n] = true
	}
	return nil
}

// oneOf refuses an unknown word. One of the words may be empty.
func oneOf[T ~string](what string, word T, words ...T) error {
	if slices.Contains(words, word) {
		return nil
	}
	var quoted []string
	for _, w := range words {
		if w != "" {
			quoted = append(quoted, strconv.Quote(string(w)))
		}
	}
	return fmt.Errorf("%s %q is none of %s", what, word, strings.Join(quoted, ", "))
}

func validateMetrics(metrics []Metric) error {
	if len(metrics) > MaxNames {
		return fmt.Errorf("it has %d metrics; %d are allowed", len(metrics), MaxNames)
	}
	if err := distinct("metric", metrics, func(m Metric) string { return m.Name }); err != nil {
		return err
	}
	for _, m := range metrics {
		if err := cmp.Or(
			oneOf("the unit", m.Unit, Units()...),
			oneOf("the better direction", m.Better, Lower, Higher),
			oneOf("the layer", m.Layer, "", LayerTotal, LayerSandbox),
			oneOf("the dimension", m.Dimension, append(Dimensions(), "")...),
			oneOf("the column", m.Column, append(Columns(), "")...),
			oneOf("the surface", m.Surface, SurfaceReached, SurfaceAllowed, ""),
		); err != nil {
			return fmt.Errorf("metric %q: %w", m.Name, err)
		}
		if m.Trend != "" && !m.Series {
			return fmt.Errorf("metric %q: only a series can have a trend", m.Name)
		}
		if m.Growth && !m.Series {
			return fmt.Errorf("metric %q: only a series can have a growth", m.Name)
		}
		if partner := m.Agreement.With; partner != "" && !describes(metrics, partner) || !(m.Agreement.Tolerance >= 0) {
			return fmt.Errorf("metric %q: it cannot agree with %q up to %v: the benchmark has no such metric, or the tolerance is no number from 0", m.Name, partner, m.Agreement.Tolerance)
		}
		if !finite(m.Bound.Most) || m.Bound.Broken == "" && m.Bound.Most != 0 {
			return fmt.Errorf("metric %q: the bound %v is not a number, or has no text for a target that exceeds it", m.Name, m.Bound.Most)
		}
	}
	return nil
}

func (r *Run) validateTrial(t *Trial) error {
	if err := oneOf("status", t.Status, OK, Failed, Timeout, Skipped); err != nil {
		return err
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
	case t.Status != OK && len(t.Samples)+len(t.Distributions)+len(t.Timelines) > 0:
		return fmt.Errorf("it has samples although its status is %s; only trials with status ok have samples", t.Status)
	case !slices.ContainsFunc(r.Targets, func(o Target) bool { return o.Name == t.Target }):
		return errors.New("the run has no such target")
	}
	for i, p := range t.Phases {
		if p.Name == "" || p.Start < 0 || p.Duration < 0 {
			return fmt.Errorf("phase %d (%q) lacks a name or has a negative time", i+1, p.Name)
		}
	}
	index := slices.IndexFunc(r.Bench, func(b Benchmark) bool { return b.Name == t.Benchmark })
	if index < 0 {
		return errors.New("the run describes no such benchmark")
	}
	metrics := r.Bench[index].Metrics
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
	if len(t.Timelines) > MaxTimelines {
		return fmt.Errorf("it has %d timelines; %d are allowed", len(t.Timelines), MaxTimelines)
	}
	for i := range t.Timelines {
		if err := t.Timelines[i].validate(); err != nil {
			return fmt.Errorf("timeline %d (%.50q): %w", i+1, t.Timelines[i].Name, err)
		}
	}
	if err := validateConditions(t.Conditions); err != nil {
		return err
	}
	if len(t.FailedCalls) > MaxConditions {
		return fmt.Errorf("it has %d names of failed calls; %d are allowed", len(t.FailedCalls), MaxConditions)
	}
	for name, n := range t.FailedCalls {
		if name == "" || name != ConditionText(name) || n < 1 {
			return fmt.Errorf("failed call %.50q: the name must be printable text on one line, and the count %d above 0", name, n)
		}
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
	if err := oneOf("the unit", d.Unit, Units()...); err != nil {
		return err
	}
	switch {
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
	return d.validateTail()
}

func (d *Distribution) validateTail() error {
	t := d.Tail
	if t == nil {
		return nil
	}
	var values uint64
	for _, n := range d.Counts {
		values += min(n, math.MaxUint64-values)
	}
	switch {
	case d.Batch != 1:
		return fmt.Errorf("its tail has single values, and its values are means of %d events", d.Batch)
	case len(t.At) != len(t.Values):
		return fmt.Errorf("its tail has %d places and %d values", len(t.At), len(t.Values))
	case len(t.At) > MaxTail:
		return fmt.Errorf("its tail has %d values; %d are allowed", len(t.At), MaxTail)
	}
	for i, place := range t.At {
		if place < 0 || i > 0 && place <= t.At[i-1] || uint64(place) >= values {
			return fmt.Errorf("place %d of its tail is %d of %d values; places must be in ascending order from 0", i+1, place, values)
		}
		if !finite(t.Values[i]) {
			return fmt.Errorf("value %d of its tail is %v, which is not a finite number", i+1, t.Values[i])
		}
	}
	return nil
}

func (l *Timeline) validate() error {
	if err := oneOf("the unit", l.Unit, Units()...); err != nil {
		return err
	}
	for _, text := range []string{l.Group, l.Name} {
		if text == "" || text != ConditionText(text) {
			return fmt.Errorf("the name or the group %.50q must be printable text on one line, at most %d bytes", text, MaxCondition)
		}
	}
	switch {
	case len(l.At) != len(l.Values):
		return fmt.Errorf("it has %d times and %d values", len(l.At), len(l.Values))
	case len(l.At) > MaxTimelinePoints:
		return fmt.Errorf("it has %d values; %d are allowed", len(l.At), MaxTimelinePoints)
	}
	for i, time := range l.At {
		if time < 0 || i > 0 && time < l.At[i-1] {
			return fmt.Errorf("time %d is %v; times must be in ascending order from 0", i+1, time)
		}
		if !finite(l.Values[i]) {
			return fmt.Errorf("value %d is %v, which is not a finite number", i+1, l.Values[i])
		}
	}
	return nil
}

func (d *Disturbance) validate() error {
	for name, value := range fieldsOf[*float64](d) {
		if value != nil && !finite(*value) {
			return fmt.Errorf("the host's %s is %v, which is not a finite number", name, *value)
		}
	}
	return nil
}

// fieldsOf lists the fields of type T of the struct behind v, by their names in JSON.
func fieldsOf[T any](v any) iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		for field, value := range reflect.ValueOf(v).Elem().Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if object, ok := value.Interface().(T); ok && !yield(name, object) {
				return
			}
		}
	}
}

// maxText is the longest text, in bytes, on one line of a report. It is far longer than any name.
const maxText = 10_000

// validateText refuses control characters and overlong text in fields that reports print on one line. Output of programs, plans,
// reasons and advice have their own lines and may contain anything: reports remove their control characters. It does not look at trials.
func (r *Run) validateText() error {
	var l lines
	l.check(r.Name, "the name")
	l.check(r.Baseline, "the baseline")
	for name, text := range fieldsOf[string](&r.Tool) {
		l.check(text, "the %s of the tool", name)
	}
	for name, text := range fieldsOf[string](&r.Host) {
		l.check(text, "the %s", name)
	}
	for _, t := range r.Targets {
		l.check(t.Name, "the name of a target")
		l.check(t.Version, "the version of target %s", t.Name)
		l.check(t.Isolation, "the isolation of target %s", t.Name)
		l.check(t.Cgroup, "the cgroup of target %s", t.Name)
		l.check(t.Runtime, "the runtime of target %s", t.Name)
		for i := range t.Installed {
			for name, text := range fieldsOf[string](&t.Installed[i]) {
				l.check(text, "the %s of an installed program of target %s", name, t.Name)
			}
		}
	}
	for _, b := range r.Bench {
		l.check(b.Name, "the name of a benchmark")
		l.check(b.Summary, "the summary of benchmark %s", b.Name)
		l.check(b.Source, "the source of benchmark %s", b.Name)
		l.check(b.Place, "the place of benchmark %s", b.Name)
		for _, name := range b.Statements {
			l.check(name, "a statement of benchmark %s", b.Name)
		}
		for _, name := range b.Judged {
			l.check(name, "a judged condition of benchmark %s", b.Name)
		}
		for _, m := range b.Metrics {
			l.check(m.Name, "the name of a metric of benchmark %s", b.Name)
			l.check(m.Phrase, "the phrase of metric %s of benchmark %s", m.Name, b.Name)
			l.check(m.Trend, "the trend of metric %s of benchmark %s", m.Name, b.Name)
			l.check(m.Bound.Broken, "the bound of metric %s of benchmark %s", m.Name, b.Name)
			l.check(m.Group, "the group of metric %s of benchmark %s", m.Name, b.Name)
			l.check(m.Component, "the component of metric %s of benchmark %s", m.Name, b.Name)
			l.check(m.Agreement.Rest, "the rest of metric %s of benchmark %s", m.Name, b.Name)
			l.check(m.DerivedFrom, "the source of metric %s of benchmark %s", m.Name, b.Name)
		}
	}
	for _, i := range r.Images {
		l.check(i.Name, "the name of an image")
		l.check(i.Digest, "the digest of image %s", i.Name)
	}
	return l.err
}

// validateText is Run.validateText for a trial.
func (t *Trial) validateText() error {
	var l lines
	l.check(t.Params, "the params of trial %d", t.Seq)
	for _, p := range t.Phases {
		l.check(p.Name, "the name of a phase of trial %d", t.Seq)
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

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// spellable reports whether RFC 3339, which has four digits for the year, can express t in UTC.
func spellable(t time.Time) bool {
	year := t.UTC().Year()
	return 0 <= year && year <= 9999
}
