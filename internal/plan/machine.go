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

// Machine describes the machine for Check.
type Machine struct {
	// Online are the machine's CPUs.
	Online cpuset.Set
	// Cores are the CPUs of each core with several threads.
	Cores []cpuset.Set
	// Root is set if Touchstone runs as root.
	Root bool
}

// DropsCaches reports whether the run may drop the host's page cache for work that reads cold files. Without the plan's key, only
// root with paper parameters may, since these parameters request it.
func (p Plan) DropsCaches(root bool, work []Work) bool {
	if !slices.ContainsFunc(work, readsCold) {
		return false
	}
	if p.DropCaches != nil {
		return *p.DropCaches
	}
	return root && p.Parameters == PaperValues
}

// readsCold reports whether a benchmark reads files that are not in the page cache.
func readsCold(w Work) bool { return bench.Cache(w.Params["cache"]) == bench.Cold }

// Check finds the parts of the plan that cannot work on this machine before any measurement: missing CPUs and images, and
// operations that need root. Its errors have the types of Resolve's errors. The notes are about parts that work but distort the
// measurement.
func (p Plan) Check(m Machine) (notes []string, err error) {
	var problems problems
	sets := p.Pinning.sets()
	for _, part := range p.Pinning.parts() {
		if missing := sets[part.name].Without(m.Online); len(missing) > 0 {
			problems.add(p.at["pinning."+part.name], *part.cpus, problem{
				fmt.Sprintf("pinning: %s has CPU %s, which this machine does not have", part.name, missing), "the CPUs are " + m.Online.String(),
			})
		}
	}
	if p.DropCaches != nil && *p.DropCaches && !m.Root {
		problems.add(p.at["drop-caches"], "true", problem{"drop-caches: only root can drop the host's page cache", "run as root, or leave the key out"})
	}
	for _, w := range p.Workloads {
		if f := checkImageExists(w.Image); f != nil {
			problems.add(w.imageAt, string(w.Image), *f)
		}
	}
	return p.Pinning.shared(m), problems.err()
}

// checkImageExists refuses a path without an image. Only a read of the image shows whether it is valid.
func checkImageExists(image bench.Image) *problem {
	for _, ours := range images() {
		if image == ours {
			return nil
		}
	}
	path := string(image)
	shown := strconv.Quote(path) // unshortened, since files differ at the end of their paths
	const advice = "give the path of an OCI layout (a folder) or of an OCI or Docker archive (a file), relative to the plan"
	at, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		name := filepath.Base(path)
		return &problem{"workloads.image: " + shown + " does not exist", didYouMean(name, []string{probeImage, workloadImage}, advice)}
	case err != nil:
		return &problem{"workloads.image: " + printable(err.Error()), advice}
	case at.IsDir():
		if _, err := os.Stat(filepath.Join(path, "index.json")); err != nil {
			return &problem{"workloads.image: the folder " + shown + " has no index.json, so it is not an OCI layout", advice}
		}
	case !at.Mode().IsRegular() || at.Size() == 0:
		return &problem{"workloads.image: " + shown + " is empty or not a file", advice}
	}
	return nil
}
