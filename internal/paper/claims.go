package paper

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/goccy/go-yaml"
)

// The files below claims have the claims of each study. They are the statements of its abstract, results and conclusions that a
// comparison of two targets can test. A claim about Kata Containers stands alone, because few machines have them.
//
// A margin follows from the study:
//
//   - A statement of order, such as "faster", has the margin 1.
//   - A stated bound, such as "at least", is the margin.
//   - For another stated or printed factor below 10 the margin is the square root of the smallest printed one. That is halfway between no
//     difference and the study's difference, because a factor itself depends on the machine.
//   - For a factor of 10 or more the margin is 10: the order of magnitude.
//   - For "similar" it is the largest printed factor between these targets, rounded up to a multiple of 0.05. It is 1.05 without a
//     printed one.
//
//go:embed claims/*.yaml
var claimFiles embed.FS

// readClaims reads the claims and the figures of a study, which may have none.
func (p *Paper) readClaims(file string) error {
	name := path.Join("claims", file)
	text, err := claimFiles.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var list struct {
		Claims  []Claim  `yaml:"claims"`
		Figures []Figure `yaml:"figures"`
	}
	if err := yaml.UnmarshalWithOptions(text, &list, yaml.Strict()); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	p.Claims, p.Figures = list.Claims, list.Figures
	return nil
}

// Compared lists the comparisons of a claim for each of its values: a target and the other target.
func (c Claim) Compared() [][2]string {
	var pairs [][2]string
	for _, target := range c.Targets {
		for _, reference := range c.Others {
			pairs = append(pairs, [2]string{target, reference})
		}
	}
	return append(pairs, c.Pairs...)
}
