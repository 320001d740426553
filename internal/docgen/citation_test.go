package docgen_test

import (
	"os"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// The file has all fields that version 1.2.0 of the Citation File Format requires, and no field under a wrong name.
func TestCitation(t *testing.T) {
	data, err := os.ReadFile("../../CITATION.cff")
	must.Do(t, err)
	var citation struct {
		Version    string              `yaml:"cff-version"`
		Message    string              `yaml:"message"`
		Type       string              `yaml:"type"`
		Title      string              `yaml:"title"`
		Abstract   string              `yaml:"abstract"`
		Authors    []map[string]string `yaml:"authors"`
		Repository string              `yaml:"repository-code"`
		License    string              `yaml:"license"`
		Keywords   []string            `yaml:"keywords"`
	}
	must.Do(t, yaml.UnmarshalWithOptions(data, &citation, yaml.Strict()))
	module, err := os.ReadFile("../../go.mod")
	must.Do(t, err)
	switch path := strings.TrimPrefix(citation.Repository, "https://"); {
	case citation.Version != "1.2.0", citation.Message == "", citation.Title != "Touchstone", citation.Type != "software", citation.License != "Apache-2.0":
		t.Errorf("a field is missing or wrong: %+v", citation)
	case len(citation.Authors) == 0 || citation.Authors[0]["name"] == "":
		t.Error("no author is named")
	case !strings.HasPrefix(string(module), "module "+path+"\n"):
		t.Errorf("%s is not the module's repository", citation.Repository)
	}
}
