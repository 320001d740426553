package compare

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Field is a field of the configurations that differs. An empty value means that the image has none.
type Field struct {
	Name string `json:"name"`
	A    string `json:"a"`
	B    string `json:"b"`
}

// compareConfigs lists the fields that differ. Layers and their history are compared elsewhere.
func compareConfigs(a, b *v1.ConfigFile) []Field {
	fieldsA, fieldsB := fieldsOf(a), fieldsOf(b)
	names := slices.Collect(maps.Keys(fieldsA))
	for name := range fieldsB {
		if _, ok := fieldsA[name]; !ok {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(x, y string) int { return cmp.Or(cmp.Compare(rank(x), rank(y)), cmp.Compare(x, y)) })
	fields := []Field{}
	for _, name := range names {
		if fieldsA[name] != fieldsB[name] {
			fields = append(fields, Field{name, fieldsA[name], fieldsB[name]})
		}
	}
	return fields
}

// order is the order of the fields. Variables, labels and the like are behind them.
var order = []string{"architecture", "variant", "os", "os version", "os features", "entrypoint", "command", "shell", "working directory", "user"}

func rank(name string) int {
	if index := slices.Index(order, name); index >= 0 {
		return index
	}
	return len(order)
}

// fieldsOf returns the fields of a configuration by name. It omits empty fields.
func fieldsOf(f *v1.ConfigFile) map[string]string {
	c := f.Config
	fields := map[string]string{
		"architecture": f.Architecture, "variant": f.Variant, "os": f.OS, "os version": f.OSVersion, "os features": list(f.OSFeatures),
		"author": f.Author, "entrypoint": list(c.Entrypoint), "command": list(c.Cmd), "shell": list(c.Shell),
		"working directory": c.WorkingDir, "user": c.User, "stop signal": c.StopSignal,
		"volumes": list(slices.Sorted(maps.Keys(c.Volumes))), "ports": list(slices.Sorted(maps.Keys(c.ExposedPorts))), "on build": list(c.OnBuild),
	}
	if !f.Created.IsZero() {
		fields["created"] = f.Created.UTC().Format(time.RFC3339)
	}
	if c.Healthcheck != nil {
		text, _ := json.Marshal(c.Healthcheck) // it was decoded from JSON
		fields["health check"] = string(text)
	}
	for _, variable := range c.Env {
		name, value, _ := strings.Cut(variable, "=")
		fields["variable "+name] = cmp.Or(value, "(empty)")
	}
	for name, value := range c.Labels {
		fields["label "+name] = cmp.Or(value, "(empty)")
	}
	maps.DeleteFunc(fields, func(_, value string) bool { return value == "" })
	return fields
}

// list spells a list as JSON, or nothing if it is empty.
func list(items []string) string {
	if len(items) == 0 {
		return ""
	}
	text, _ := json.Marshal(items) // strings always can
	return string(text)
}
