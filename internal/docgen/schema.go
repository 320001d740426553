package docgen

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/answer/advise"
	"github.com/touchstone-bench/touchstone/internal/answer/compare"
	"github.com/touchstone-bench/touchstone/internal/answer/counts"
	"github.com/touchstone-bench/touchstone/internal/answer/explain"
	"github.com/touchstone-bench/touchstone/internal/answer/fleet"
	"github.com/touchstone-bench/touchstone/internal/answer/history"
	"github.com/touchstone-bench/touchstone/internal/answer/paper"
	"github.com/touchstone-bench/touchstone/internal/answer/runs"
	"github.com/touchstone-bench/touchstone/internal/answer/study"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/report/ab"
	"github.com/touchstone-bench/touchstone/internal/report/selfcheck"
)

// answer is a kind of JSON with a generated schema.
type answer struct {
	name, id, title, text string
	kind                  string
	// types are the documents of the kind: structs, or lists of structs.
	types []reflect.Type
}

const laterFields = " A later touchstone may add fields without a rise of the version; a reader should ignore unknown fields."

// answers are the kinds. docs/schema has a file NAME.schema.json for each.
func answers() []answer {
	return []answer{
		{
			"report", "report:1", "Touchstone report of one run", "The output of `touchstone report RUN -o json`. Values are in base units (seconds, bytes, per second). An unknown value is null or absent, never zero." + laterFields,
			runs.SingleKind,
			[]reflect.Type{reflect.TypeFor[runs.Data]()},
		},
		{
			"joint-report", "joint-report:1", "Touchstone report of several runs", "The output of `touchstone report RUN RUN... -o json`: several runs side by side. Values are in base units (seconds, bytes, per second). An unknown value is null or absent, never zero." + laterFields,
			runs.JointKind,
			[]reflect.Type{reflect.TypeFor[runs.JointData]()},
		},
		{
			"fleet", "fleet:1", "Report of a fleet, touchstone report FLEET -o json", "The verdict about the nodes of a cluster run. Values are in base units (seconds, bytes, per second). A number that does not exist is null or absent.",
			fleet.Kind,
			[]reflect.Type{reflect.TypeFor[fleet.Data]()},
		},
		{
			"reproduction", "reproduction:1", "Reproduction of a study, touchstone reproduce -o json", "The claims and tables of a study beside the values of its runs. Values are in base units (seconds, bytes, per second). An unknown value is null or absent, never zero." + laterFields,
			study.Kind,
			[]reflect.Type{reflect.TypeFor[study.Data]()},
		},
		{
			"comparison", "comparison:1", "Comparison of touchstone compare -o json", "Two sides of runs, compared metric by metric. Values are in the unit of the metric. A number that does not exist is null.",
			compare.Kind,
			[]reflect.Type{reflect.TypeFor[compare.Data]()},
		},
		{
			"ab", "ab:1", "Comparison of two builds, touchstone ab -o json", "Two builds of a runtime, compared over several runs. Ratios are B / A. A number that does not exist is absent.",
			ab.Kind,
			[]reflect.Type{reflect.TypeFor[ab.Document]()},
		},
		{
			"counts", "counts:1", "Counts against a file, touchstone counts check -o json", "The numbers of system calls of a target, compared with a file of expected counts." + laterFields,
			counts.Kind,
			[]reflect.Type{reflect.TypeFor[counts.Data]()},
		},
		{
			"history", "history:1", "History of a metric, touchstone history -o json", "The values of a metric over runs, by cell and machine. Values are in the unit of the metric.",
			history.Kind,
			[]reflect.Type{reflect.TypeFor[history.Data]()},
		},
		{
			"advice", "advice:1", "Advice for a use, touchstone advise -o json", "A ranking of targets for a use, with its evidence. A number that does not exist is null or absent.",
			advise.Kind,
			[]reflect.Type{reflect.TypeFor[advise.Data]()},
		},
		{
			"explanation", "explanation:1", "Explanation of a difference, touchstone explain -o json", "The causes of the differences between two targets of a run. Times are in seconds. A number that does not exist is null or absent.",
			explain.Kind,
			[]reflect.Type{reflect.TypeFor[explain.Data]()},
		},
		{
			"selfcheck", "selfcheck:1", "Selfcheck, touchstone selfcheck -o json", "A selfcheck, or with --show the list of all stored ones. Times are in seconds.",
			selfcheck.DocumentKind,
			[]reflect.Type{reflect.TypeFor[selfcheck.Record](), reflect.TypeFor[[]selfcheck.Record]()},
		},
		{
			"paper", "paper:1", "Published results, touchstone paper -o json", "The tables of a study as they are printed, or the list of the studies.",
			"",
			[]reflect.Type{reflect.TypeFor[paper.Data](), reflect.TypeFor[[]paper.Row]()},
		},
	}
}

// schema is a JSON Schema or a part of one, in the order of its keywords.
type schema struct {
	Dialect     string          `json:"$schema,omitempty"`
	ID          string          `json:"$id,omitempty"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Ref         string          `json:"$ref,omitempty"`
	Type        any             `json:"type,omitempty"`
	Const       any             `json:"const,omitempty"`
	Enum        []string        `json:"enum,omitempty"`
	Format      string          `json:"format,omitempty"`
	Pattern     string          `json:"pattern,omitempty"`
	Minimum     *float64        `json:"minimum,omitempty"`
	Above       *float64        `json:"exclusiveMinimum,omitempty"`
	Maximum     *float64        `json:"maximum,omitempty"`
	MinLength   int             `json:"minLength,omitempty"`
	MinItems    int             `json:"minItems,omitempty"`
	MaxItems    int             `json:"maxItems,omitempty"`
	Items       *schema         `json:"items,omitempty"`
	Properties  properties      `json:"properties,omitempty"`
	Required    []string        `json:"required,omitempty"`
	Names       *schema         `json:"propertyNames,omitempty"`
	Additional  any             `json:"additionalProperties,omitempty"`
	AnyOf       []*schema       `json:"anyOf,omitempty"`
	If          json.RawMessage `json:"if,omitempty"`
	Then        json.RawMessage `json:"then,omitempty"`
	Else        json.RawMessage `json:"else,omitempty"`
	Defs        map[string]any  `json:"$defs,omitempty"`
}

// properties are the fields of an object in their order.
type properties []property

type property struct {
	name string
	*schema
}

// MarshalJSON implements [json.Marshaler].
func (p properties) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	for i, f := range p {
		text, err := encode(f.schema)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%c%q:%s", "{,"[min(i, 1)], f.name, text)
	}
	return append(b.Bytes(), '}'), nil
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(v)
	return b.Bytes(), err
}

// outcomeRule is the rule of the answers of ab: an inconclusive one has a reason, and another one has a ratio.
const outcomeRule = `{
	"if": {"properties": {"answer": {"const": "inconclusive"}}},
	"then": {"required": ["reason"], "properties": {"decided_after_runs": false}},
	"else": {"required": ["decided_after_runs", "ratio"], "properties": {"reason": false}}
}`

// resultPackage has the types whose schemas are in the schema of the export.
const resultPackage = "result"

// generator makes the schema of one kind.
type generator struct {
	words  map[string][]string        // the constants of the string types, by package and type
	result map[string]json.RawMessage // the definitions of the export's schema
	defs   map[string]any
	types  map[string]reflect.Type // of the definitions
	errs   []error
}

// Schemas returns the generated files of docs/schema by their names. A schema has the fields of the Go types, with the tags "doc" (the description)
// and "schema" (further keywords, like minimum=0;maximum=1). It is closed. root is the directory of the repository: the words of string types
// come from the constants in the source, and the types of package result have their definitions from the schema of the export.
//
// We rejected google/jsonschema-go: it has no definitions, so it repeats each type at each use, and refuses the steps of a phase, which have steps.
func Schemas(root string) (map[string][]byte, error) {
	words, err := constants(root)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "schema", "result.schema.json"))
	if err != nil {
		return nil, err
	}
	var export struct {
		Defs map[string]json.RawMessage `json:"$defs"`
	}
	if err := json.Unmarshal(text, &export); err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, a := range answers() {
		g := &generator{words: words, result: export.Defs, defs: map[string]any{}, types: map[string]reflect.Type{}}
		document := g.document(a)
		if err := errors.Join(g.errs...); err != nil {
			return nil, fmt.Errorf("schema of %s: %w", a.name, err)
		}
		if files[a.name+".schema.json"], err = encode(document); err != nil {
			return nil, err
		}
	}
	return files, nil
}

func (g *generator) document(a answer) *schema {
	s := &schema{}
	if len(a.types) == 1 {
		s = g.object(a.types[0])
	} else {
		for _, t := range a.types {
			s.AnyOf = append(s.AnyOf, g.value(t))
		}
	}
	main := s
	if len(a.types) > 1 {
		main = g.defs[name(a.types[0])].(*schema)
	}
	for _, p := range main.Properties {
		switch {
		case p.name == "kind" && a.kind != "":
			p.Type, p.Const = nil, a.kind
		case p.name == "schema_version", p.name == "schema":
			p.Type, p.Minimum, p.Const = nil, nil, 1
		}
	}
	s.Dialect, s.ID, s.Title, s.Description, s.Defs = "https://json-schema.org/draft/2020-12/schema", "urn:touchstone:schema:"+a.id, a.title, a.text, g.defs
	return s
}

// object is the schema of a struct.
func (g *generator) object(t reflect.Type) *schema {
	s := &schema{Type: "object", Additional: false}
	g.fields(s, t, true)
	if t == reflect.TypeFor[ab.Outcome]() {
		g.errs = append(g.errs, json.Unmarshal([]byte(outcomeRule), s))
	}
	return s
}

// fields adds the fields of a struct. No field of an embedded pointer is required.
func (g *generator) fields(s *schema, t reflect.Type, required bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		key, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && key == "":
			if f.Type.Kind() == reflect.Pointer {
				g.fields(s, f.Type.Elem(), false)
			} else {
				g.fields(s, f.Type, required)
			}
			continue
		case key == "-" || !f.IsExported():
			continue
		}
		optional := strings.HasPrefix(options, "omit")
		var value *schema
		if options == "string" {
			value = &schema{Type: "string"}
		} else {
			value = g.value(f.Type)
		}
		switch {
		case optional && f.Type == reflect.TypeFor[document.Decimal]():
			value.Type = "number"
		case !optional && f.Type.Kind() == reflect.Pointer:
			value = &schema{AnyOf: []*schema{value, {Type: "null"}}}
		}
		value.Description = f.Tag.Get("doc")
		if value.Description == "" {
			g.errs = append(g.errs, fmt.Errorf("%v.%s has no description: add the tag doc", t, f.Name))
		}
		if err := json.Unmarshal(keywords(f.Tag.Get("schema")), value); err != nil {
			g.errs = append(g.errs, fmt.Errorf("%v.%s: the tag schema: %w", t, f.Name, err))
		}
		s.Properties = append(s.Properties, property{key, value})
		if required && !optional {
			s.Required = append(s.Required, key)
		}
	}
}

// keywords is a tag as JSON: "minimum=0;enum=a|b" is {"minimum":0,"enum":["a","b"]}.
func keywords(tag string) []byte {
	out := map[string]any{}
	for part := range strings.SplitSeq(tag, ";") {
		key, value, ok := strings.Cut(part, "=")
		number, err := strconv.ParseFloat(value, 64)
		switch {
		case !ok:
		case key == "enum":
			out[key] = strings.Split(value, "|")
		case err == nil:
			out[key] = number
		default:
			out[key] = value
		}
	}
	text, _ := json.Marshal(out) // strings and numbers
	return text
}

// value is the schema of a type. An integer is a number of things or a place, so it is not negative.
func (g *generator) value(t reflect.Type) *schema {
	words := g.words[filepath.Base(t.PkgPath())+"."+t.Name()]
	switch {
	case t == reflect.TypeFor[document.Decimal]():
		return &schema{Type: []string{"number", "null"}}
	case t == reflect.TypeFor[time.Time]():
		return &schema{Type: "string", Format: "date-time"}
	case t.Kind() == reflect.Struct:
		return &schema{Ref: "#/$defs/" + g.define(t)}
	case t.Kind() == reflect.Pointer:
		return g.value(t.Elem())
	case t.Kind() == reflect.Slice:
		return &schema{Type: "array", Items: g.value(t.Elem())}
	case t.Kind() == reflect.Map:
		s := &schema{Type: "object", Additional: g.value(t.Elem())}
		if key := g.value(t.Key()); key.Enum != nil {
			s.Names = key
		}
		return s
	case words != nil:
		return &schema{Type: "string", Enum: words}
	case t.Kind() == reflect.String:
		return &schema{Type: "string"}
	case t.Kind() == reflect.Bool:
		return &schema{Type: "boolean"}
	case t.Kind() == reflect.Float64:
		return &schema{Type: "number"}
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int64, t.Kind() == reflect.Uint64:
		return &schema{Type: "integer", Minimum: new(float64)}
	}
	g.errs = append(g.errs, fmt.Errorf("no schema for %v", t))
	return &schema{}
}

// name is the name of the definition of a type.
func name(t reflect.Type) string {
	n := strings.TrimSuffix(t.Name(), "Data")
	if n == "" {
		n = t.Name()
	}
	return strings.ToUpper(n[:1]) + n[1:]
}

// define adds the definition of a struct, and returns its name.
func (g *generator) define(t reflect.Type) string {
	if filepath.Base(t.PkgPath()) == resultPackage {
		g.adopt(t.Name())
		return resultPackage + "." + t.Name()
	}
	n := name(t)
	if previous := g.types[n]; previous == nil {
		g.types[n] = t
		g.defs[n] = g.object(t)
	} else if previous != t {
		g.errs = append(g.errs, fmt.Errorf("%v and %v have the same definition %s", previous, t, n))
	}
	return n
}

// adopt adds a definition of the export's schema, with those that it refers to.
func (g *generator) adopt(n string) {
	const local = `"#/$defs/`
	if g.defs[resultPackage+"."+n] != nil {
		return
	}
	text := string(g.result[n])
	if text == "" {
		g.errs = append(g.errs, fmt.Errorf("the schema of the export does not define %s", n))
		return
	}
	g.defs[resultPackage+"."+n] = json.RawMessage(strings.ReplaceAll(text, local, local+resultPackage+"."))
	for _, rest := range strings.Split(text, local)[1:] {
		g.adopt(rest[:strings.IndexAny(rest, `"/`)])
	}
}

// constants reads the constants of the string types, in the order of the source. A package may add words to a type of another one.
func constants(root string) (map[string][]string, error) {
	words := map[string][]string{}
	for _, dir := range []string{"analysis", "paper", "report", "result", "stats"} {
		err := filepath.WalkDir(filepath.Join(root, "internal", dir), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, d := range file.Decls {
				if d, ok := d.(*ast.GenDecl); ok && d.Tok == token.CONST {
					for _, s := range d.Specs {
						addWord(words, file.Name.Name, s.(*ast.ValueSpec))
					}
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return words, nil
}

// addWord adds a constant with a named string type. The empty word stands for an absent field.
func addWord(words map[string][]string, pkg string, s *ast.ValueSpec) {
	var typ string
	switch t := s.Type.(type) {
	case *ast.Ident:
		typ = pkg + "." + t.Name
	case *ast.SelectorExpr:
		typ = fmt.Sprint(t.X) + "." + t.Sel.Name
	default:
		return
	}
	if literal, ok := s.Values[0].(*ast.BasicLit); ok && literal.Kind == token.STRING {
		if word, err := strconv.Unquote(literal.Value); err == nil && word != "" {
			words[typ] = append(words[typ], word)
		}
	}
}
