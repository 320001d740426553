package result

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/touchstone-bench/touchstone/internal/must"
)

const schemaFile = "../../docs/schema/result.schema.json"

func compiledSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	schema, err := c.Compile(schemaFile)
	must.Do(t, err)
	return schema
}

func TestSchemaAcceptsWhatEncodeWrites(t *testing.T) {
	schema := compiledSchema(t)
	for name, doc := range map[string]Document{
		"full":    fullDocument(),
		"empty":   {},
		"minimal": {Runs: []Run{{ID: "a", State: Running, Targets: []Target{{Name: "native"}}, Bench: []Benchmark{{Name: "b"}}, Trials: []Trial{{Seq: 1, Cell: Cell{Benchmark: "b", Target: "native"}, Status: Skipped}}}}},
	} {
		instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(encoded(t, doc)))
		must.Do(t, err)
		if err := schema.Validate(instance); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSchemaMatchesTypes compares the types, words and keys: here is one of a kind.
func TestSchemaRefuses(t *testing.T) {
	schema := compiledSchema(t)
	full := string(encoded(t, fullDocument()))
	for name, c := range map[string]struct{ old, new string }{
		"another version":             {`"schema_version": 1`, `"schema_version": 2`},
		"an unknown unit":             {`"unit": "s"`, `"unit": "ms"`},
		"a field that is not defined": {`"seq": 1`, `"seq": 1, "note": ""`},
		"a trial 0":                   {`"seq": 1`, `"seq": 0`},
		"a duration with a fraction":  {`"exec_ns": 700000`, `"exec_ns": 700000.5`},
		"a time that is none":         {`"started": "2026-11-20T10:00:00.123456789Z"`, `"started": "20 Nov 2026"`},
		"samples of a failed trial":   {`"output": "cannot\n"`, `"output": "", "samples": [{"metric": "Create", "value": 1}]`},
		"a bound without words":       {`"broken": "does not hold its limit"`, `"broken": ""`},
		"an image without a name":     {`"name": "workload"`, `"name": ""`},
		"a condition that is no text": {`"cache": "cold"`, `"cache": 1`},
		"a target without a name":     {`"name": "native"`, `"name": ""`},
	} {
		t.Run(name, func(t *testing.T) {
			old := strings.ReplaceAll(c.old, "\n", `\n`)
			if !strings.Contains(full, old) {
				t.Fatalf("the full document has no %s", old)
			}
			instance, err := jsonschema.UnmarshalJSON(strings.NewReader(strings.Replace(full, old, c.new, 1)))
			must.Do(t, err)
			if err := schema.Validate(instance); err == nil {
				t.Error("the schema accepts it")
			}
		})
	}
}

// object is the part of a schema that TestSchemaMatchesTypes compares.
type object struct {
	Description string            `json:"description"`
	Type        string            `json:"type"`
	Properties  map[string]object `json:"properties"`
	Required    []string          `json:"required"`
	Additional  json.RawMessage   `json:"additionalProperties"`
	Enum        []string          `json:"enum"`
	Const       any               `json:"const"`
	Ref         string            `json:"$ref"`
	Items       *object           `json:"items"`
	Defs        map[string]object `json:"$defs"`
}

// TestSchemaMatchesTypes checks that the schema and the Go types have the same fields, of the same types. The schema describes each
// field, and requires it exactly if Encode always writes it.
func TestSchemaMatchesTypes(t *testing.T) {
	data, err := os.ReadFile(schemaFile)
	must.Do(t, err)
	var root object
	must.Do(t, json.Unmarshal(data, &root))
	if version := root.Properties["schema_version"].Const; version != float64(SchemaVersion) {
		t.Errorf("the schema is of version %v, want %d", version, SchemaVersion)
	}
	words := constants(t)
	names := map[string]bool{}
	var match func(path string, typ reflect.Type, schema object)
	match = func(path string, typ reflect.Type, schema object) {
		if schema.Description == "" && !strings.HasSuffix(path, "[]") {
			t.Errorf("%s: the schema describes it nowhere", path)
		}
		if typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		if want := jsonType(typ); typ.Kind() != reflect.Struct && words[typ.Name()] == nil && schema.Const == nil && schema.Type != want {
			t.Errorf("%s: the type is %q, want %q for %v", path, schema.Type, want, typ)
		}
		switch {
		case words[typ.Name()] != nil:
			if diff := cmp.Diff(words[typ.Name()], slices.Sorted(slices.Values(schema.Enum))); diff != "" {
				t.Errorf("%s: other words than the constants of %v (-constants +schema):\n%s", path, typ, diff)
			}
		case typ.Kind() == reflect.Slice:
			if schema.Items == nil {
				t.Errorf("%s: the schema gives no items", path)
				return
			}
			match(path+"[]", typ.Elem(), *schema.Items)
		case typ.Kind() == reflect.Map && typ.Elem().Kind() == reflect.Struct:
			var values object
			must.Do(t, json.Unmarshal(schema.Additional, &values))
			match(path+"[]", typ.Elem(), values)
		case typ == reflect.TypeFor[time.Time]():
		case typ.Kind() == reflect.Struct:
			if path != "Document" {
				if schema.Ref != "#/$defs/"+typ.Name() {
					t.Errorf("%s: it refers to %q, want %q", path, schema.Ref, "#/$defs/"+typ.Name())
				}
				schema = root.Defs[typ.Name()]
				path = typ.Name()
			}
			if names[path] {
				return
			}
			names[path] = true
			if schema.Type != "object" || string(schema.Additional) != "false" {
				t.Errorf("%s: the schema does not close the object", path)
			}
			required := []string{}
			for _, f := range fields(typ) {
				property, ok := schema.Properties[f.name]
				if !ok {
					t.Errorf("%s: the schema lacks %q", path, f.name)
					continue
				}
				delete(schema.Properties, f.name)
				if f.always {
					required = append(required, f.name)
				}
				if f.quoted { // ",string" makes a number a string
					f.typ = reflect.TypeFor[string]()
				}
				match(path+"."+f.name, f.typ, property)
			}
			for name := range schema.Properties {
				t.Errorf("%s: the schema has %q, which %v lacks", path, name, typ)
			}
			slices.Sort(required)
			if diff := cmp.Diff(required, append([]string{}, slices.Sorted(slices.Values(schema.Required))...)); diff != "" {
				t.Errorf("%s: other fields are required (-types +schema):\n%s", path, diff)
			}
		}
	}
	match("Document", reflect.TypeFor[Document](), root)
	for name := range root.Defs {
		if !names[name] {
			t.Errorf("the schema defines %q, which no type needs", name)
		}
	}
}

type field struct {
	name           string
	typ            reflect.Type
	always, quoted bool
}

// fields returns the fields of a struct in the view of encoding/json.
func fields(typ reflect.Type) []field {
	var list []field
	for i := range typ.NumField() {
		f := typ.Field(i)
		if f.Anonymous {
			list = append(list, fields(f.Type)...)
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		list = append(list, field{name, f.Type, !strings.HasPrefix(options, "omit"), options == "string"})
	}
	return list
}

func jsonType(typ reflect.Type) string {
	switch {
	case typ == reflect.TypeFor[time.Time](), typ.Kind() == reflect.String:
		return "string"
	case typ.Kind() == reflect.Slice:
		return "array"
	case typ.Kind() == reflect.Bool:
		return "boolean"
	case typ.Kind() == reflect.Map:
		return "object"
	case typ.Kind() == reflect.Float64:
		return "number"
	default:
		return "integer"
	}
}

// constants reads the sorted constants of the string types in result.go.
func constants(t *testing.T) map[string][]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "result.go", nil, parser.SkipObjectResolution)
	must.Do(t, err)
	words := map[string][]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		typ, ok := spec.Type.(*ast.Ident)
		if !ok {
			return true
		}
		if literal, ok := spec.Values[0].(*ast.BasicLit); ok && literal.Kind == token.STRING {
			word, err := strconv.Unquote(literal.Value)
			must.Do(t, err)
			words[typ.Name] = append(words[typ.Name], word)
		}
		return true
	})
	for _, list := range words {
		slices.Sort(list)
	}
	if len(words) != 10 {
		t.Fatalf("result.go has %d types of words, want State, Status, Unit, Direction, Layer, Dimension, Column, Surface, Kind and StopReason: %v", len(words), words)
	}
	return words
}

// TestEveryWordIsValid checks that Validate knows all constants.
func TestEveryWordIsValid(t *testing.T) {
	set := map[string]func(r *Run, word string){
		"State":      func(r *Run, word string) { r.State = State(word) },
		"Status":     func(r *Run, word string) { r.Trials[1].Status = Status(word) },
		"Unit":       func(r *Run, word string) { r.Bench[0].Metrics[0].Unit = Unit(word) },
		"Direction":  func(r *Run, word string) { r.Bench[0].Metrics[0].Better = Direction(word) },
		"Layer":      func(r *Run, word string) { r.Bench[0].Metrics[0].Layer = Layer(word) },
		"Column":     func(r *Run, word string) { r.Bench[0].Metrics[0].Column = Column(word) },
		"Surface":    func(r *Run, word string) { r.Bench[0].Metrics[0].Surface = Surface(word) },
		"Dimension":  func(r *Run, word string) { r.Bench[0].Metrics[0].Dimension = Dimension(word) },
		"Kind":       func(r *Run, word string) { r.Targets[0].Kind = Kind(word) },
		"StopReason": func(r *Run, word string) { r.Stopping.Stopped[0].Reason = StopReason(word) },
	}
	for typ, words := range constants(t) {
		for _, word := range words {
			run := fullDocument().Runs[0]
			set[typ](&run, word)
			if err := run.Validate(); err != nil {
				t.Errorf("%s %q: %v", typ, word, err)
			}
		}
	}
}
