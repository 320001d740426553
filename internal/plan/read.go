package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// reader converts a syntax tree to a plan. It continues after an error, to report all errors together.
type reader struct {
	file     string
	plan     Plan
	problems problems
	// start is the start of the file's mapping; seen holds the location of the value of each key.
	start Location
	seen  map[string]Location
}

// field is a key with the function for its value.
type field struct {
	key  string
	read func(value ast.Node)
}

// fields are the keys of Touchstone's format, in canonical order. docs/plan.md describes each key; docs/schema/plan.schema.json is
// generated from both.
func (r *reader) fields() []field {
	p := &r.plan
	return []field{
		{"version", r.version},
		{"name", func(n ast.Node) { r.text(n, "name", checkName, &p.Name) }},
		{"targets", r.targets},
		{"baseline", func(n ast.Node) { p.Baseline, _ = parsed(r, n, "baseline", parseTarget) }},
		{"benchmarks", r.benchmarks},
		{"parameters", r.parameters},
		{"limits", func(n ast.Node) {
			r.object(n, "limits", "limits by name", limitExample, r.limitFields(&p.Limits, func(name bench.Limit, location Location) {
				r.seen["limits."+string(name)] = location
			}))
		}},
		{"blocks", func(n ast.Node) { r.count(n, "blocks", 1, &p.Blocks) }},
		{"warmup", func(n ast.Node) { r.count(n, "warmup", 0, &p.Warmup) }},
		{"until", r.until},
		{"precision", r.precision},
		{"max-blocks", func(n ast.Node) { r.count(n, "max-blocks", 1, &p.MaxBlocks) }},
		{"budget", func(n ast.Node) { r.duration(n, "budget", &p.Budget) }},
		{"timeout", func(n ast.Node) {
			r.object(n, "timeout", "trial, call or both", "{trial: 2m, call: 30s}", r.timeoutFields())
		}},
		{"seed", r.seed},
		{"runtimes", r.runtimes},
		{"engines", func(n ast.Node) {
			r.object(n, "engines", "managed, sockets or binaries", "{managed: true}", r.enginesFields())
		}},
		{"seccomp", r.seccomp},
		{"pods", func(n ast.Node) {
			r.object(n, "pods", "pid, grace or both", "{pid: pod, grace: 10s}", r.podFields())
		}},
		{"pinning", func(n ast.Node) {
			r.object(n, "pinning", "workload, engines or touchstone", `{workload: "1", engines: "0", touchstone: "0"}`, r.pinningFields())
		}},
		{"drop-caches", func(n ast.Node) {
			value := r.boolean(n, "drop-caches", "leave it out for the default: true for root with paper parameters")
			p.DropCaches = &value
		}},
		{"monitor", func(n ast.Node) { r.monitor(n, &p.Monitor) }},
		{"trace", func(n ast.Node) { r.count(n, "trace", 0, &p.Trace) }},
		{"trace-paths", func(n ast.Node) { p.TracePaths = r.boolean(n, "trace-paths", "leave it out for traces without paths") }},
		{"workloads", r.workloads},
		{"nodes", func(n ast.Node) {
			r.object(n, "nodes", "selector, names or per-kind", "{selector: pool=blue, per-kind: 3}", r.nodeFields())
		}},
		{"parallel", func(n ast.Node) { r.nodeCount(n, "parallel", &p.Parallel) }},
		{"export", func(n ast.Node) { r.text(n, "export", checkFileName, &p.Export) }},
		{"touchstone-output", func(n ast.Node) { r.text(n, "touchstone-output", checkFileName, &p.TouchstoneOutput) }},
	}
}

// timeoutFields are the keys of timeout.
func (r *reader) timeoutFields() []field {
	t := &r.plan.Timeout
	return []field{
		{"trial", func(n ast.Node) { r.duration(n, "timeout.trial", &t.Trial) }},
		{"call", func(n ast.Node) { r.duration(n, "timeout.call", &t.Call) }},
	}
}

// itemFields are the keys of a benchmark with parameters.
func (r *reader) itemFields(item *Item) []field {
	return []field{
		{"name", func(n ast.Node) {
			item.at = r.at(n)
			r.text(n, "name", filterSyntax.check, &item.Name)
		}},
		{"image", func(n ast.Node) {
			s, _ := text(n)
			if _, ours := images()[s]; !ours {
				r.fail(n, fmt.Sprintf("image: %s is not an image of Touchstone's", shown(n)), didYouMean(s, []string{probeImage, workloadImage}, "the images are probe and workload"))
			}
			item.Image = s
		}},
		{"params", func(n ast.Node) { r.params(n, item) }},
		{"limits", func(n ast.Node) {
			r.object(n, "limits", "limits by name", limitExample, r.limitFields(&item.Limits, func(name bench.Limit, location Location) {
				put(&item.limitAt, string(name), location)
			}))
		}},
		{"monitor", func(n ast.Node) { r.monitor(n, &item.Monitor) }},
		{"blocks", func(n ast.Node) { r.count(n, "blocks", 1, &item.Blocks) }},
	}
}

// keys lists the keys of fields.
func keys(fields []field) []string {
	var names []string
	for _, f := range fields {
		names = append(names, f.key)
	}
	return names
}

func (r *reader) at(n ast.Node) Location { return position(r.file, n) }

// fail records a problem of a value.
func (r *reader) fail(n ast.Node, message, advice string) {
	value, _ := scalar(n)
	r.problems.add(r.at(n), value, problem{message, advice})
}

// failKey records a problem of the value of a key.
func (r *reader) failKey(n ast.Node, key string, f *problem) {
	r.fail(n, key+": "+f.message, f.advice)
}

// read reads a file of either format.
func (r *reader) read(root ast.Node) {
	entries, ok := pairs(root)
	if !ok {
		r.fail(root, "a plan is a mapping of keys to values, not "+shown(root), `begin with "version: 1"`)
		return
	}
	r.start, r.seen = r.at(root), map[string]Location{}
	for _, e := range entries {
		if key, ok := text(e.Key); ok {
			r.seen[key] = r.at(e.Value)
		}
	}
	switch touchstone, isMixed := r.format(entries); {
	case isMixed: // one error is enough
	case touchstone:
		r.readTouchstone(entries)
	default:
		r.readPlan(entries)
	}
}

// wrongKind records a value of the wrong kind.
func (r *reader) wrongKind(n ast.Node, key, what, advice string) {
	r.fail(n, fmt.Sprintf("%s: want %s, not %s", key, what, shown(n)), advice)
}

// readPlan reads a plan in Touchstone's format.
func (r *reader) readPlan(entries []*ast.MappingValueNode) {
	r.plan = Plan{
		Name:       nameFrom(r.file),
		Parameters: QuickValues,
		Blocks:     DefaultBlocks,
		Warmup:     DefaultWarmup,
		Timeout:    Timeout{Call: DefaultCallTimeout},
	}
	r.entries(entries, "a plan", r.fields())
	r.plan.at = r.seen
	if r.plan.Timeout.Trial == 0 {
		r.plan.Timeout.Trial = r.plan.Parameters.trialTimeout()
	}
	if !r.has("version") {
		r.problems.add(r.start, "", problem{"version is missing", fmt.Sprintf(`write "version: %d"`, Version)})
	}
	r.checkCombinations()
}

func (r *reader) has(key string) bool { _, ok := r.seen[key]; return ok }

// checkCombinations checks keys that depend on each other. Problems of single keys are already recorded.
func (r *reader) checkCombinations() {
	p := &r.plan
	if location, ok := r.seen["baseline"]; ok && p.Targets != nil && p.Baseline.Engine != "" {
		if f := checkBaseline(p.Baseline, p.Targets); f != nil {
			r.problems.add(location, p.Baseline.String(), *f)
		}
	}
	if location, ok := r.seen["pods.grace"]; ok && p.Pods.Grace >= p.Timeout.Call {
		r.problems.add(location, formatDuration(p.Pods.Grace), problem{
			fmt.Sprintf("pods.grace (%s) is not shorter than timeout.call (%s), so a kill that needs the grace would time out", formatDuration(p.Pods.Grace), formatDuration(p.Timeout.Call)),
			"give a shorter grace, or raise timeout.call",
		})
	}
	if location, ok := r.seen["touchstone-output"]; ok && p.TouchstoneOutput != "" && p.TouchstoneOutput == p.Export {
		r.problems.add(location, p.Export, problem{"touchstone-output and export name the same file", "give them different names"})
	}
	if location, ok := r.seen["until"]; ok && p.Until != "" {
		if f := p.checkUntil(); f != nil {
			r.problems.add(location, string(p.Until), problem{"until: " + f.message, f.advice})
		}
	}
	if location, ok := r.seen["max-blocks"]; ok && p.MaxBlocks != 0 {
		switch {
		case !r.has("precision") && !r.has("until"):
			r.problems.add(location, strconv.Itoa(p.MaxBlocks), problem{"max-blocks has no effect without precision or until", "give a precision such as 2% or until: decided, or leave max-blocks out"})
		case p.MaxBlocks < p.Blocks:
			r.problems.add(location, strconv.Itoa(p.MaxBlocks), problem{fmt.Sprintf("max-blocks (%d) is less than blocks (%d)", p.MaxBlocks, p.Blocks), "raise max-blocks or lower blocks"})
		}
	}
}

// checkBaseline refuses a baseline that is not among the targets.
func checkBaseline(baseline target.Target, targets []Pattern) *problem {
	name := baseline.String()
	var names []string
	for _, t := range targets {
		if match, ok := t.Select(baseline); ok && match.String() == name {
			return nil
		}
		names = append(names, t.String())
	}
	return &problem{"baseline " + quote(name) + " is not among the targets", didYouMean(name, names, "add it to targets")}
}

// entries reads a mapping with known keys.
func (r *reader) entries(entries []*ast.MappingValueNode, owner string, fields []field) {
	for _, e := range entries {
		key, ok := r.key(e.Key)
		if !ok {
			continue
		}
		i := slices.IndexFunc(fields, func(f field) bool { return f.key == key })
		if i < 0 {
			if !r.problems.full() {
				names := keys(fields)
				r.fail(e.Key, "unknown key "+quote(key)+" in "+owner, didYouMean(key, names, "the keys are "+strings.Join(names, ", ")))
			}
			continue
		}
		fields[i].read(e.Value)
	}
}

// object reads a mapping with known keys.
func (r *reader) object(n ast.Node, key, want, example string, fields []field) {
	entries, ok := pairs(n)
	if !ok {
		r.wrongKind(n, key, want, "write it like "+example)
		return
	}
	r.entries(entries, key, fields)
}

// named reads a mapping with free names, with at most `limit` entries. It calls add for each entry whose name check accepts.
func (r *reader) named(n ast.Node, key, values, example string, limit int, check func(name string) *problem, add func(name string, e *ast.MappingValueNode)) {
	entries, ok := pairs(n)
	switch {
	case !ok:
		r.wrongKind(n, key, "a mapping of names to "+values, "write it like "+example)
		return
	case len(entries) > limit:
		r.fail(entries[limit].Key, fmt.Sprintf("%s has more than %d entries", key, limit), "leave out unused entries")
		return
	}
	for _, e := range entries {
		if name, ok := r.key(e.Key); !ok {
			continue
		} else if f := check(name); f != nil {
			r.failKey(e.Key, key, f)
		} else {
			add(name, e)
		}
	}
}

// values reads a mapping of free names to single values, like named. check also gets the name.
func (r *reader) values(n ast.Node, key, example string, limit int, checkName func(string) *problem, check func(name, value string) *problem, add func(e *ast.MappingValueNode, name, value string)) {
	r.named(n, key, "values", example, limit, checkName, func(name string, e *ast.MappingValueNode) {
		value, single := scalar(e.Value)
		if !single {
			r.wrongKind(e.Value, key, "a single value for "+quote(name), "")
		} else if f := check(name, value); f != nil {
			r.failKey(e.Value, key, f)
		} else {
			add(e, name, value)
		}
	})
}

// boolean reads true or false.
func (r *reader) boolean(n ast.Node, key, advice string) bool {
	b, ok := n.(*ast.BoolNode)
	if !ok {
		r.wrongKind(n, key, "true or false", advice)
		return false
	}
	return b.Value
}

// key reads a key, which must be a string.
func (r *reader) key(n ast.MapKeyNode) (string, bool) {
	key, ok := text(n)
	if !ok {
		r.fail(n, "a key must be a string", "put quotes around it if it looks like a number")
	}
	return key, ok
}

// hasKey reports whether a mapping has a key.
func hasKey(entries []*ast.MappingValueNode, key string) bool {
	return slices.ContainsFunc(entries, func(e *ast.MappingValueNode) bool { s, _ := text(e.Key); return s == key })
}

// valueOf returns the value of a key of a mapping that has the key.
func valueOf(entries []*ast.MappingValueNode, key string) ast.Node {
	return entries[slices.IndexFunc(entries, func(e *ast.MappingValueNode) bool { s, _ := text(e.Key); return s == key })].Value
}

// list reads a list with 1 to limit entries.
func (r *reader) list(n ast.Node, key string, limit int) []ast.Node {
	return r.listOr(n, key, limit, "write it in brackets or with dashes", "leave the key out to select all", "split the plan")
}

// listOr is list with other advice: for a value that is no list, for an empty list, and for a list that is too long.
func (r *reader) listOr(n ast.Node, key string, limit int, noList, empty, excess string) []ast.Node {
	seq, ok := n.(*ast.SequenceNode)
	switch {
	case !ok:
		r.wrongKind(n, key, "a list", noList)
		return nil
	case len(seq.Values) == 0:
		r.fail(n, key+" is empty", empty)
	case len(seq.Values) > limit:
		r.fail(seq.Values[limit], fmt.Sprintf("%s has more than %d entries", key, limit), excess)
		return nil
	}
	return seq.Values
}

// text reads a string that check accepts.
func (r *reader) text(n ast.Node, key string, check func(string) *problem, dest *string) {
	s, ok := text(n)
	if !ok {
		r.wrongKind(n, key, "a string", "put quotes around it if it looks like a number")
		return
	}
	if f := check(s); f != nil {
		r.failKey(n, key, f)
		return
	}
	*dest = s
}

// count reads a whole number from lo to MaxBlocks.
func (r *reader) count(n ast.Node, key string, lo int, dest *int) {
	v, err := 0, error(nil)
	number, ok := n.(*ast.IntegerNode)
	if ok = ok && decimal.MatchString(number.Token.Value); ok {
		v, err = strconv.Atoi(number.Token.Value)
	}
	if !ok || err != nil || v < lo || v > MaxBlocks {
		r.failKey(n, key, notCount(shown(n), lo, MaxBlocks))
		return
	}
	*dest = v
}

// duration reads a duration.
func (r *reader) duration(n ast.Node, key string, dest *time.Duration) {
	s, _ := scalar(n)
	d, err := time.ParseDuration(s)
	f := checkDuration(d)
	if err != nil || d <= 0 {
		f = notDuration(shown(n))
	}
	if f != nil {
		r.failKey(n, key, f)
		return
	}
	*dest = d
}

func (r *reader) version(n ast.Node) {
	if number, ok := n.(*ast.IntegerNode); !ok || number.Token.Value != strconv.Itoa(Version) {
		r.fail(n, fmt.Sprintf("version %s of the plan format is unknown", shown(n)), fmt.Sprintf(`write "version: %d", or use a newer Touchstone`, Version))
	}
}

// parsed reads a target or a pattern.
func parsed[T any](r *reader, n ast.Node, key string, parse func(string) (T, *problem)) (t T, ok bool) {
	s, ok := text(n)
	if !ok {
		r.wrongKind(n, key, "a string such as oci/runc", "")
		return t, false
	}
	t, f := parse(s)
	if f != nil {
		r.failKey(n, key, f)
	}
	return t, f == nil
}

func (r *reader) targets(n ast.Node) {
	var targets []Pattern
	for _, v := range r.list(n, "targets", MaxTargets) {
		t, ok := parsed(r, v, "targets", parsePattern)
		if !ok {
			continue
		}
		if f := checkTargets(append(targets, t)); f != nil {
			r.failKey(v, "targets", f)
			continue
		}
		targets = append(targets, t)
	}
	r.plan.Targets = targets
}

func (r *reader) benchmarks(n ast.Node) {
	for _, v := range r.list(n, "benchmarks", MaxItems) {
		item := Item{at: r.at(v)}
		if entries, ok := pairs(v); ok {
			r.entries(entries, "a benchmark", r.itemFields(&item))
			if !hasKey(entries, "name") {
				r.fail(v, "the benchmark has no name", `write "name: …" beside params`)
			}
		} else {
			r.text(v, "benchmarks", filterSyntax.check, &item.Name)
		}
		r.plan.Benchmarks = append(r.plan.Benchmarks, item)
	}
}

func (r *reader) params(n ast.Node, item *Item) {
	r.values(n, "params", "{mode: parallel}", MaxItems, paramName.check, checkParam, func(e *ast.MappingValueNode, name, value string) {
		put(&item.Params, name, value)
		put(&item.paramAt, name, r.at(e.Value))
	})
}

func (r *reader) parameters(n ast.Node) {
	s, _ := text(n)
	switch p := Parameters(s); p {
	case QuickValues, PaperValues:
		r.plan.Parameters = p
	default:
		r.fail(n, fmt.Sprintf("parameters: %s is neither quick nor paper", shown(n)), didYouMean(s, []string{"quick", "paper"}, "write one of the two"))
	}
}

func (r *reader) until(n ast.Node) {
	s, _ := text(n)
	rule, f := parseUntil(s)
	if f != nil {
		r.fail(n, fmt.Sprintf("until: %s is not a rule", shown(n)), f.advice)
		return
	}
	r.plan.Until = rule
}

func (r *reader) precision(n ast.Node) {
	s, _ := scalar(n)
	share, f := parsePercent(s)
	if f != nil {
		r.failKey(n, "precision", f)
		return
	}
	r.plan.Precision = share
}

func (r *reader) seed(n ast.Node) {
	s, _ := scalar(n)
	seed, err := strconv.ParseUint(s, 10, 64)
	if _, quoted := text(n); quoted || err != nil || !decimal.MatchString(s) {
		r.fail(n, fmt.Sprintf("seed: %s is not a whole number from 0 to %d", shown(n), uint64(1<<64-1)), "leave it out to have one drawn")
		return
	}
	r.plan.Seed = &seed
}
