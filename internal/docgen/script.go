package docgen

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/evanw/esbuild/pkg/api"
)

// Script returns the script of the pages, page.ts in JavaScript, and the file for it below root. The file is in the repository, because the build of the program
// must not need the compiler.
func Script(root string) (file string, script []byte, err error) {
	dir := filepath.Join(root, "internal/render/html")
	source, err := os.ReadFile(filepath.Join(dir, "page.ts"))
	if err != nil {
		return "", nil, err
	}
	out := api.Transform(string(source), api.TransformOptions{
		Loader: api.LoaderTS, Target: api.ES2020, Format: api.FormatIIFE, MinifySyntax: true, MinifyWhitespace: true, MinifyIdentifiers: true, LegalComments: api.LegalCommentsNone,
	})
	var errs []error
	for _, e := range out.Errors {
		errs = append(errs, fmt.Errorf("compile page.ts: line %d: %s", e.Location.Line, e.Text))
	}
	return filepath.Join(dir, "page.js"), out.Code, errors.Join(errs...)
}
