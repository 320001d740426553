package plan

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/cpuset"
)

// Machine is what a plan has to fit.
type Machine struct {
	// Online are the CPUs there are.
	Online cpuset.Set
	// Cores are the CPUs of each core that has several.
	Cores []cpuset.Set
	// Root tells that Touchstone runs as root.
	Root bool
}

// DropsCaches tells whether the run may drop the host's page cache for work that reads cold files: as the plan says, and
// else as root with the paper's parameters, which ask for them.
func (p Plan) DropsCaches(root bool, work []Work) bool {
	if !slices.ContainsFunc(work, readsCold) {
		return false
	}
	if p.DropCaches != nil {
		return *p.DropCaches
	}
	return root && p.Parameters == PaperValues
}

// readsCold tells whether a benchmark reads files that are not in the page cache.
func readsCold(w Work) bool { return bench.Cache(w.Params["cache"]) == bench.Cold }

// Check tells what of the plan cannot be on this machine, before anything is measured: CPUs and images that are not there, and what only
// root may do. Errors are as Resolve has them. The notes are about what can be, and should not.
func (p Plan) Check(m Machine) (notes []string, err error) {
	var problems problems
	sets := p.Pinning.sets()
	for _, part := range p.Pinning.parts() {
		if missing := sets[part.name].Without(m.Online); len(missing) > 0 {
			problems.add(p.at["pinning."+part.name], *part.cpus, problem{
				fmt.Sprintf("pinning: %s is to run on CPU %s, which this machine does not have", part.name, missing), "there are " + m.Online.String(),
			})
		}
	}
	if p.DropCaches != nil && *p.DropCaches && !m.Root {
		problems.add(p.at["drop-caches"], "true", problem{"drop-caches: only root can drop the host's page cache", "run as root, or leave it out"})
	}
	for _, w := range p.Workloads {
		if f := checkImageExists(w.Image); f != nil {
			problems.add(w.imageAt, string(w.Image), *f)
		}
	}
	return p.Pinning.shared(m), problems.err()
}

// checkImageExists refuses the path of an image at which there is none. Whether it is sound shows when it is read.
func checkImageExists(image bench.Image) *problem {
	for _, ours := range images() {
		if image == ours {
			return nil
		}
	}
	path := string(image)
	shown := strconv.Quote(path) // whole: its end is what tells files apart
	const advice = "give the path of an OCI layout (a folder) or of an OCI or Docker archive (a file), from where the plan lies"
	at, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		name := filepath.Base(path)
		return &problem{"workloads.image: there is no " + shown, didYouMean(name, []string{probeImage, workloadImage}, advice)}
	case err != nil:
		return &problem{"workloads.image: " + printable(err.Error()), advice}
	case at.IsDir():
		if _, err := os.Stat(filepath.Join(path, "index.json")); err != nil {
			return &problem{"workloads.image: the folder " + shown + " has no index.json, so that it is no OCI layout", advice}
		}
	case !at.Mode().IsRegular() || at.Size() == 0:
		return &problem{"workloads.image: " + shown + " is empty or no file", advice}
	}
	return nil
}
