package render_test

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/render"
)

// TestEveryAnswerFollowsItsSchema holds that each document with JSON follows the closed schema of its kind, and that the schema refuses it after any
// field gets another name.
//
// Invariant published-schemas: The JSON of every kind of answer follows the published schema, which comes from the types that make the JSON.
func TestEveryAnswerFollowsItsSchema(t *testing.T) {
	for _, d := range answers(t) {
		name := map[bool]string{true: "joint-report", false: d.Kind}[strings.HasSuffix(d.Title, "side by side")]
		c := jsonschema.NewCompiler()
		c.AssertFormat()
		schema, err := c.Compile("../../docs/schema/" + name + ".schema.json")
		must.Do(t, err)
		tree := parsed(t, d)
		if err := schema.Validate(tree); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		renameEach(tree, "", map[string]bool{}, func(path string) {
			if schema.Validate(tree) == nil {
				t.Errorf("%s: the schema accepts another name of %s", name, path)
			}
		})
	}
}

// parsed is the JSON of a document.
func parsed(t *testing.T, d *document.Document) any {
	t.Helper()
	formats := render.Formats()
	f := slices.IndexFunc(formats, func(f render.Format) bool { return f.Name == "json" })
	var b bytes.Buffer
	must.Do(t, formats[f].Write(&b, d, render.Options{}))
	tree, err := jsonschema.UnmarshalJSON(&b)
	must.Do(t, err)
	return tree
}

// renameEach gives another name to one field of each path, calls check, and puts the name back. Objects with names of the user have no fields.
func renameEach(tree any, path string, paths map[string]bool, check func(path string)) {
	switch tree := tree.(type) {
	case []any:
		for _, item := range tree {
			renameEach(item, path, paths, check)
		}
	case map[string]any:
		if strings.HasSuffix(path, ".params") || strings.HasSuffix(path, ".parameters") || strings.HasSuffix(path, ".requests_ns") {
			return
		}
		for _, key := range slices.Sorted(maps.Keys(tree)) {
			value, field := tree[key], path+"."+key
			if !paths[field] {
				paths[field] = true
				delete(tree, key)
				tree["renamed"] = value
				check(field)
				delete(tree, "renamed")
				tree[key] = value
			}
			renameEach(value, field, paths, check)
		}
	}
}
