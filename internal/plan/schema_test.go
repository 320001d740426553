package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/bench/custom"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/target"
)

const schemaFile = "../../docs/schema/plan.schema.json"

// schema is a JSON Schema or a part of one.
type schema map[string]any

// with adds keywords to a schema.
func (s schema) with(overlay schema) schema {
	union := schema{}
	for _, part := range []schema{s, overlay} {
		for keyword, value := range part {
			union[keyword] = value
		}
	}
	return union
}

// The building blocks of the schema have the parser's limits.
func textOf(length int, pattern string, examples ...any) schema {
	s := schema{"type": "string", "maxLength": length, "pattern": pattern}
	if examples != nil {
		s["examples"] = examples
	}
	return s
}

func count(minimum int) schema {
	return schema{"type": "integer", "minimum": minimum, "maximum": MaxBlocks}
}

func listOf(maximum int, items schema) schema {
	return schema{"type": "array", "minItems": 1, "maxItems": maximum, "items": items}
}

func mapOf(maximum int, names, values schema) schema {
	return schema{"type": "object", "maxProperties": maximum, "propertyNames": names, "additionalProperties": values}
}

func ref(name string) schema { return schema{"$ref": "#/$defs/" + name} }

var plain = []string{"string", "number", "boolean"}

// shapes gives the constraints of each key by the path of its section and key in docs/plan.md.
func shapes() map[string]schema {
	boolean, name := schema{"type": "boolean"}, textOf(maxName, `^\S(.*\S)?$`).with(schema{"minLength": 1})
	export := textOf(maxName, `^[^./\\:][^/\\:]*\.json$`)
	cost := []string{}
	for _, m := range bench.CostMetrics() {
		cost = append(cost, m.Name)
	}
	return map[string]schema{
		"version":           {"const": Version},
		"name":              name,
		"targets":           listOf(MaxTargets, schema{"anyOf": []schema{ref("target"), ref("pattern")}}).with(schema{"uniqueItems": true}),
		"baseline":          ref("target"),
		"benchmarks":        listOf(MaxItems, schema{}),
		"benchmarks.name":   ref("filter"),
		"benchmarks.image":  {"enum": []string{probeImage, workloadImage}},
		"benchmarks.params": {"type": "object", "propertyNames": textOf(maxName, paramName.pattern.String()), "additionalProperties": textOf(maxName, `^\S+$`).with(schema{"type": plain})},
		"benchmarks.limits": {},
		"limits":            {},
		"limits.cpus":       {"type": []string{"number", "string"}, "minimum": leastCPUs, "maximum": mostCPUs, "pattern": `^([0-9]{1,4}(\.[0-9]{1,2})?|none)$`, "examples": []any{2, 0.5}},
		"limits.cpuset":     {"anyOf": []schema{ref("cpus"), {"const": noLimit}}},
		"limits.memory":     {"type": "string", "pattern": `^([1-9][0-9]{0,11}(GiB|GB|MiB|MB|KiB|kB)|none)$`, "examples": []string{"512MiB", "4GiB"}},
		"limits.pids":       {"type": []string{"integer", "string"}, "minimum": leastPIDs, "maximum": mostPIDs, "pattern": `^([1-9][0-9]{1,6}|none)$`, "examples": []int{512}},
		"parameters":        {"enum": []Parameters{QuickValues, PaperValues}, "default": QuickValues},
		"blocks":            count(1).with(schema{"default": DefaultBlocks}),
		"warmup":            count(0).with(schema{"default": DefaultWarmup}),
		"until":             {"enum": []Until{Decided}},
		"precision":         {"type": "string", "pattern": strings.ReplaceAll(percentage.String(), "?:", ""), "examples": []string{"2%"}},
		"max-blocks":        count(1),
		"budget":            ref("duration"),
		"timeout":           {},
		"timeout.trial":     ref("duration"),
		"timeout.call":      ref("duration").with(schema{"default": formatDuration(DefaultCallTimeout)}),
		"seed":              {"type": "integer", "minimum": 0, "maximum": uint64(1<<64 - 1)},
		"runtimes":          mapOf(MaxRuntimes, ref("name"), schema{}),
		"runtimes.path":     ref("path"),
		"runtimes.type":     textOf(maxName, runtimeType.pattern.String(), "io.containerd.kata.v2"),
		"runtimes.options":  mapOf(MaxOptions, ref("name"), textOf(maxPath, `^[^\s,]+$`).with(schema{"type": plain})),
		"engines":           {},
		"engines.managed":   boolean,
		"engines.sockets": mapOf(MaxRuntimes, schema{"allOf": []schema{ref("name"), {"not": schema{"enum": []string{target.Native, "oci", fake.Name}}}}},
			textOf(maxPath, `^(/|[a-z][a-z0-9+.-]*://)`, "/run/containerd/containerd.sock")),
		"engines.binaries":   mapOf(MaxRuntimes, ref("name"), ref("path")),
		"seccomp":            {"enum": []engine.Seccomp{engine.DefaultSeccomp, engine.Unconfined}},
		"pods":               {},
		"pods.pid":           {"enum": []string{sharedPIDs, ownPIDs}, "default": ownPIDs},
		"pods.grace":         ref("duration"),
		"nodes":              {},
		"nodes.selector":     {"type": "string", "minLength": 1, "maxLength": maxPath, "examples": []string{"pool=blue"}},
		"nodes.names":        listOf(MaxNodes, schema{"type": "string", "minLength": 1, "maxLength": maxPath}),
		"nodes.per-kind":     count(1).with(schema{"maximum": MaxNodes}),
		"trace":              count(0).with(schema{"default": 0}),
		"trace-paths":        {"type": "boolean", "default": false},
		"parallel":           count(1).with(schema{"maximum": MaxNodes}),
		"pinning":            {},
		"pinning.workload":   ref("cpus"),
		"pinning.engines":    ref("cpus"),
		"pinning.touchstone": ref("cpus"),
		"drop-caches":        boolean,
		"monitor":            {},
		"monitor.memory":     ref("duration").with(schema{"default": formatDuration(bench.MonitorInterval)}),
		"benchmarks.monitor": {},
		"benchmarks.blocks":  count(1),
		"workloads":          listOf(MaxWorkloads, schema{}),
		"workloads.name":     textOf(maxName, benchmarkName.pattern.String(), "app.start.cold"),
		"workloads.summary":  name,
		"workloads.image":    {"type": "string", "minLength": 1, "maxLength": maxPath, "examples": []string{"./my-image.tar", workloadImage}},
		"workloads.argv":     listOf(maxArgs, schema{"type": plain, "maxLength": maxPath}).with(schema{"prefixItems": []schema{ref("path")}}),
		"workloads.env":      mapOf(maxArgs, textOf(maxName, variable.pattern.String()).with(schema{"not": schema{"const": "PATH"}}), schema{"type": plain, "maxLength": maxPath}),
		"workloads.from-env": listOf(maxArgs, textOf(maxName, variable.pattern.String()).with(schema{"not": schema{"const": "PATH"}})).with(schema{"uniqueItems": true}),
		"workloads.writable": boolean.with(schema{"default": false}),
		"workloads.network":  {"enum": custom.Networks()},
		"workloads.parse":    listOf(MaxMetrics, schema{}),
		"parse.metric":       textOf(maxName, metricName.pattern.String(), "Rate", "LatencyP99").with(schema{"not": schema{"enum": cost}}),
		"parse.regex":        {"type": "string", "minLength": 1, "maxLength": maxExpression, "format": "regex", "examples": []string{"rate: ([0-9.]+) op/s"}},
		"parse.json":         {"type": "string", "minLength": 1, "maxLength": maxExpression, "examples": []string{"latency.p99", "jobs[0].read.iops"}},
		"parse.unit":         {"enum": custom.Units()},
		"parse.better":       {"enum": custom.Directions()},
		"parse.scale":        {"type": []string{"number", "string"}, "exclusiveMinimum": 0, "pattern": factor.String() + "|^(" + strings.Join(custom.Autos(), "|") + ")$", "default": 1},
		"export":             export,
		"touchstone-output":  export,
	}
}

// definitions are the shared parts of the schema.
func definitions() schema {
	const word, options = `[A-Za-z0-9][A-Za-z0-9._-]*`, `(@[A-Za-z0-9][A-Za-z0-9._-]*=[^\s,]+(,[A-Za-z0-9][A-Za-z0-9._-]*=[^\s,]+)*)?`
	return schema{
		"target": textOf(maxName, "^(native|"+word+"/"+word+")"+options+"$", "native", "oci/runc", "oci/runsc@platform=systrap"),
		"pattern": textOf(maxName, `^(all|(\*/(\*|`+word+`)|`+word+`/\*)`+options+`)$`, "all", "containerd/*", "*/runc").
			with(schema{"not": schema{"pattern": "^native/"}}),
		"name":   textOf(maxName, "^"+word+"$"),
		"path":   textOf(maxPath, "^/"),
		"filter": textOf(maxName, filterSyntax.pattern.String(), "operations", "scalability.runtime.5"),
		"cpus": textOf(maxPath, "^[0-9]{1,4}(-[0-9]{1,4})?(,[0-9]{1,4}(-[0-9]{1,4})?)*$", "0-3,8").
			with(schema{"type": []string{"string", "integer"}, "minimum": 0, "maximum": 8191}),
		"duration": schema{"type": "string", "pattern": `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`, "examples": []string{"30s", "10m", "1h30m"}},
	}
}

// descriptions reads the meaning of each key from docs/plan.md: the first paragraph of its section, or its row in a table.
func descriptions(t *testing.T) map[string]string {
	t.Helper()
	markup := regexp.MustCompile("\\[([^]]*)\\]\\([^)]*\\)|`")
	texts := map[string]string{}
	for _, section := range strings.Split(readPage(t), "\n### ")[1:] {
		key, body, _ := strings.Cut(section, "\n\n")
		first, _, _ := strings.Cut(body, "\n\n")
		texts[key] = markup.ReplaceAllString(strings.ReplaceAll(first, "\n", " "), "$1")
		for _, line := range strings.Split(body, "\n") {
			if strings.HasPrefix(line, "Each entry of `parse`") {
				key = "parse"
			}
			if row := regexp.MustCompile("^\\| `([a-z-]+)` \\| (.*) \\|$").FindStringSubmatch(line); row != nil {
				texts[key+"."+row[1]] = markup.ReplaceAllString(row[2], "$1")
			}
		}
	}
	return texts
}

// planSchema makes the schema of the keys that the parser reads, the shapes and the descriptions. Each key needs all three.
func planSchema(t *testing.T) schema {
	t.Helper()
	shapes, texts := shapes(), descriptions(t)
	keys := map[string]bool{"image": true} // a section about images
	object := func(path string, fields []field) schema {
		properties := schema{}
		for _, f := range fields {
			key := strings.TrimPrefix(path+"."+f.key, ".")
			if shapes[key] == nil || texts[key] == "" {
				t.Errorf("%s needs a shape here and a description in %s", key, page)
			}
			keys[key] = true
			properties[f.key] = shapes[key].with(schema{"description": texts[key]})
		}
		return schema{"type": "object", "additionalProperties": false, "properties": properties}
	}
	r := &reader{}
	plan := object("", r.fields())
	properties := plan["properties"].(schema)
	nest := func(key string, overlay schema) { properties[key] = properties[key].(schema).with(overlay) }
	nest("timeout", object("timeout", r.timeoutFields()))
	nest("engines", object("engines", r.enginesFields()))
	nest("pods", object("pods", r.podFields()))
	nest("nodes", object("nodes", r.nodeFields()))
	nest("pinning", object("pinning", r.pinningFields()))
	monitor := schema{"oneOf": []schema{{"const": "memory"}, object("monitor", r.monitorFields(&Monitor{})).with(schema{"required": []string{"memory"}})}}
	nest("monitor", monitor)
	item := object("benchmarks", r.itemFields(&Item{})).with(schema{"required": []string{"name"}})
	limits := object("limits", r.limitFields(&Limits{}, nil))
	nest("limits", limits)
	fields := item["properties"].(schema)
	fields["limits"] = fields["limits"].(schema).with(limits)
	fields["monitor"] = fields["monitor"].(schema).with(monitor)
	nest("benchmarks", schema{"items": schema{"oneOf": []schema{ref("filter"), item}}})
	runtime := object("runtimes", r.runtimeFields("x", &target.Runtime{})).with(schema{"minProperties": 1, "not": schema{"required": []string{"path", "type"}}})
	nest("runtimes", schema{"additionalProperties": schema{"oneOf": []schema{ref("path"), runtime}}})
	metric := object("parse", r.metricFields(&custom.Metric{})).with(schema{
		"required": []string{"metric", "unit", "better"}, "oneOf": []schema{{"required": []string{"regex"}}, {"required": []string{"json"}}},
	})
	workload := object("workloads", r.workloadFields(&Workload{})).with(schema{"required": []string{"name", "image", "argv", "parse"}})
	parse := workload["properties"].(schema)["parse"].(schema)
	parse["items"] = metric
	nest("workloads", schema{"items": workload})
	for key := range texts {
		if !keys[key] {
			t.Errorf("%s describes %s, which is not a key", page, key)
		}
	}
	for key := range shapes {
		if !keys[key] {
			t.Errorf("there is a shape for %s, which is not a key", key)
		}
	}
	return plan.with(schema{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": fmt.Sprintf("urn:touchstone:schema:plan:%d", Version),
		"title": fmt.Sprintf("Touchstone plan, version %d", Version), "description": "Targets × benchmarks × parameters × repetitions.",
		"required": []string{"version"}, "dependentSchemas": schema{"max-blocks": schema{"anyOf": []schema{{"required": []string{"precision"}}, {"required": []string{"until"}}}}}, "$defs": definitions(),
	})
}

// TestSchemaIsCurrent compares the published schema with the parser's keys and docs/plan.md.
func TestSchemaIsCurrent(t *testing.T) {
	var want bytes.Buffer
	enc := json.NewEncoder(&want)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	must.Do(t, enc.Encode(planSchema(t)))
	if *update {
		must.Do(t, os.WriteFile(schemaFile, want.Bytes(), 0o644))
	}
	got, err := os.ReadFile(schemaFile)
	must.Do(t, err)
	expect.Equal(t, "the schema is out of date; run: make gen", want.String(), string(got))
}

func compiledSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	schema, err := c.Compile(schemaFile)
	must.Do(t, err)
	return schema
}

// validate checks the text of a plan against the schema, like an editor.
func validate(schema *jsonschema.Schema, text []byte) error {
	var instance any
	if err := yaml.Unmarshal(text, &instance); err != nil {
		return err
	}
	return schema.Validate(instance)
}

func TestSchemaAcceptsExamples(t *testing.T) {
	schema := compiledSchema(t)
	paths, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || paths == nil {
		t.Fatalf("no examples: %v", err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		must.Do(t, err)
		err = validate(schema, text)
		if ours := !strings.HasPrefix(filepath.Base(path), "touchstone-"); ours != (err == nil) {
			t.Errorf("%s: in our format: %t, but the schema says %v", path, ours, err)
		}
	}
}

func TestSchemaAcceptsWhatYAMLWrites(t *testing.T) {
	schema := compiledSchema(t)
	for _, p := range []Plan{Quick(), mustParse(t, "p", whole), mustParse(t, "p", "oci: [runc]\noutput: a.json\n"), mustParse(t, "p", "version: 1\ntargets: [all, '*/*', 'crio/*@a=b', '*/runc']\n")} {
		if err := validate(schema, p.YAML()); err != nil {
			t.Errorf("%v\n%s", err, p.YAML())
		}
	}
	must.Do(t, validate(schema, []byte(whole)))
}

func TestSchemaRefusesWhatParseRefuses(t *testing.T) {
	schema := compiledSchema(t)
	for _, c := range invalid {
		if err := validate(schema, []byte(c.text)); (err != nil) != c.structural {
			t.Errorf("%s: structural: %t, but the schema says %v", c.name, c.structural, err)
		}
	}
}
