package plan

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/cpuset"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// The checks below apply to files and flags. They return nil for a valid value.

// maxName is the maximum length of a name, and maxPath of a path, in bytes.
const (
	maxName = 128
	maxPath = 4096
	// maxArgs is the maximum number of arguments and of variables of a program, and maxExpression the maximum length of a regular
	// expression or JSON path, in bytes.
	maxArgs       = 1000
	maxExpression = 1000
	// leastPairs is the least number of blocks for a comparison.
	leastPairs = 6
)

// checkCount refuses numbers outside lo to hi.
func checkCount(n, lo, hi int) *problem {
	if n < lo || n > hi {
		return notCount(strconv.Itoa(n), lo, hi)
	}
	return nil
}

func notCount(text string, lo, hi int) *problem {
	return &problem{fmt.Sprintf("%s is not a whole number from %d to %d", text, lo, hi), ""}
}

// decimal matches whole numbers in the only spelling that every version of YAML reads alike.
var decimal = regexp.MustCompile(`^(0|[1-9][0-9]*)$`)

// checkDuration refuses durations that are not positive, or longer than MaxDuration.
func checkDuration(d time.Duration) *problem {
	switch {
	case d <= 0:
		return notDuration(formatDuration(d))
	case d > MaxDuration:
		return &problem{fmt.Sprintf("%s is longer than %s", formatDuration(d), formatDuration(MaxDuration)), "give less"}
	}
	return nil
}

func notDuration(text string) *problem {
	return &problem{text + " is not a duration", "write a number above 0 with a unit, such as 30s or 10m"}
}

var percentage = regexp.MustCompile(`^([0-9]{1,20}(?:\.[0-9]{1,20})?)%$`)

// parsePercent reads a percentage above 0 up to 100 as a share. It appends the exponent to the digits, so the result is the nearest
// float.
func parsePercent(s string) (Share, *problem) {
	bad := &problem{quote(s) + " is not a percentage above 0 % and up to 100 %", "write it like 2%"}
	m := percentage.FindStringSubmatch(s)
	if m == nil {
		return 0, bad
	}
	share, err := strconv.ParseFloat(m[1]+"e-2", 64)
	if err != nil || share <= 0 || share > 1 {
		return 0, bad
	}
	return Share(share), nil
}

// ParseShare reads the percentage of a flag, such as 2%. The error is an *Error.
func ParseShare(flag, value string) (Share, error) {
	share, problem := parsePercent(value)
	if problem != nil {
		return 0, Location{Flag: flag}.error(value, *problem)
	}
	return share, nil
}

// parseUntil reads the name of a rule.
func parseUntil(s string) (Until, *problem) {
	if Until(s) != Decided {
		return "", &problem{quote(s) + " is not a rule", didYouMean(s, []string{string(Decided)}, "the rule is decided; leave until out for a fixed number of blocks")}
	}
	return Decided, nil
}

// checkUntil refuses a rule that cannot work with the other keys: a comparison needs two targets, and a decision needs blocks.
func (p Plan) checkUntil() *problem {
	if len(p.Targets) == 1 {
		if tgt, ok := p.Targets[0].Exact(); ok {
			return &problem{string(p.Until) + " compares targets with the baseline, and the plan has only the target " + quote(tgt.String()), "add a target, or leave until out"}
		}
	}
	if limit := p.BlockLimit(); limit < leastPairs {
		return &problem{fmt.Sprintf("%s needs at least %d blocks for a comparison, and the plan has at most %d", p.Until, leastPairs, limit), "raise blocks or max-blocks"}
	}
	return nil
}

// formatPercent is the inverse of parsePercent. It moves the point of the shortest decimal for share, since a multiplication by 100
// would round.
func formatPercent(share Share) string {
	integer, frac, _ := strings.Cut(strconv.FormatFloat(float64(share), 'f', -1, 64), ".")
	for len(frac) < 2 {
		frac += "0"
	}
	s := strings.TrimLeft(integer+frac[:2], "0")
	if s == "" {
		s = "0"
	}
	if frac[2:] != "" {
		s += "." + frac[2:]
	}
	return s + "%"
}

// formatDuration spells a duration without the zero units of time.Duration.
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// parseTarget reads a target.
func parseTarget(s string) (target.Target, *problem) {
	t, err := target.Parse(s)
	if err == nil && (len(s) > maxName || !isPrintable(s)) {
		return t, &problem{quote(s) + " is too long or not printable", ""}
	}
	if err != nil {
		reason := err.Error()
		if syntax, ok := errors.AsType[*target.SyntaxError](err); ok {
			reason = syntax.Reason
		}
		return t, &problem{
			quote(s) + " is not a target: " + printable(reason),
			"write engine/runtime[@option=value,…], such as oci/runc, or native; put quotes around several options",
		}
	}
	return t, nil
}

// checkTargets refuses repeated targets and too many targets.
func checkTargets(targets []Pattern) *problem {
	if len(targets) > MaxTargets {
		return &problem{fmt.Sprintf("there are more than %d targets", MaxTargets), "split the plan"}
	}
	names := map[string]bool{}
	for _, t := range targets {
		s := t.String()
		if names[s] {
			return &problem{quote(s) + " is given twice", "leave one out"}
		}
		names[s] = true
	}
	return nil
}

// form is the syntax of a kind of name.
type form struct {
	pattern      *regexp.Regexp
	what, advice string
}

var (
	filterSyntax  = form{regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`), "the name of a benchmark", "write whole components, such as operations or scalability.runtime.5"}
	benchmarkName = form{regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+){2}$`), "the name of a benchmark", "write context.component.facet, such as app.start.cold"}
	metricName    = form{regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*$`), "the name of a metric", "use letters and digits, such as Rate or LatencyP99"}
	paramName     = form{regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`), "the name of a parameter", "use letters, digits, _ and -"}
	variable      = form{regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`), "the name of a variable", "use letters, digits and _"}
	// runtimeType matches the types that containerd can map to a shim.
	runtimeType = form{regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)+$`), "the runtime type of a containerd shim", "write it like io.containerd.kata.v2; give a binary with path instead"}
)

// check refuses strings of another form, and strings that are too long.
func (f form) check(s string) *problem {
	if len(s) > maxName || !f.pattern.MatchString(s) {
		return &problem{quote(s) + " is not " + f.what, f.advice}
	}
	return nil
}

// checkName refuses plan names that are unfit for one line.
func checkName(s string) *problem {
	if s == "" || len(s) > maxName || strings.TrimSpace(s) != s || !isPrintable(s) {
		return &problem{quote(s) + " is not a name", fmt.Sprintf("write up to %d printable characters on one line", maxName)}
	}
	return nil
}

// nameFrom derives the name of a plan from its file.
func nameFrom(file string) string {
	base := filepath.Base(file)
	name := strings.TrimSuffix(base, filepath.Ext(base))
	if checkName(name) != nil || !strings.ContainsFunc(name, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
		return "plan"
	}
	return name
}

// checkRuntimeName refuses names that cannot be part of a target.
func checkRuntimeName(name string) *problem {
	if t, err := target.Parse("oci/" + name); err != nil || t.Runtime != name || len(name) > maxName {
		return &problem{quote(name) + " is not a name for a runtime", "use letters, digits and . _ -"}
	}
	return nil
}

// checkBinary refuses relative paths, which depend on the working directory.
func checkBinary(name, path string) *problem {
	if !filepath.IsAbs(path) || len(path) > maxPath || !isPrintable(path) {
		return &problem{fmt.Sprintf("the binary %s of %s is not an absolute path", quote(path), name), "write it from the root, such as /usr/bin/crun"}
	}
	return nil
}

// checkFileName accepts only a plain file name: a plan must not select files of the machine to overwrite. The extension protects
// the database.
func checkFileName(s string) *problem {
	if len(s) > maxName || !isPrintable(s) || strings.HasPrefix(s, ".") || strings.ContainsAny(s, `/\:`) || !strings.HasSuffix(s, ".json") {
		return &problem{quote(s) + " is not a plain file name that ends in .json", "write a name such as results.json; Touchstone writes it to the output folder"}
	}
	return nil
}

// checkParam refuses values that the form "name=value name=value" cannot express.
func checkParam(name, value string) *problem {
	if value == "" || len(value) > maxName || strings.ContainsRune(value, ' ') || !isPrintable(value) {
		return &problem{fmt.Sprintf("%s is not a value for %s", quote(value), name), "write it without blanks"}
	}
	return nil
}

// isPrintable reports whether s is printable text for one line.
func isPrintable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// Machine describes the machine for Check.
type Machine struct {
	// Online are the machine's CPUs.
	Online cpuset.Set
	// Usable are the online CPUs that this process may use; nil for all.
	Usable cpuset.Set
	// Isolated are CPUs between which the kernel moves no process.
	Isolated cpuset.Set
	// Cores are the CPUs of each core with several threads.
	Cores []cpuset.Set
	// Root is set if Touchstone runs as root.
	Root bool
}

// closed returns the CPUs of a set that this process may not use.
func (m Machine) closed(set cpuset.Set) cpuset.Set {
	if m.Usable == nil {
		return nil
	}
	return set.Without(m.Usable)
}

func (m Machine) usableAdvice() string {
	return "the CPUs that may be used are " + m.Usable.String() + "; start touchstone without taskset, or in another cpuset, for others"
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
		} else if closedCPUs := m.closed(sets[part.name]); len(closedCPUs) > 0 {
			problems.add(p.at["pinning."+part.name], *part.cpus, problem{
				fmt.Sprintf("pinning: %s has CPU %s, which the cpuset or the mask of this process excludes", part.name, closedCPUs), m.usableAdvice(),
			})
		}
	}
	notes = slices.Concat(p.checkLimits(m, &problems), p.Pinning.shared(m), p.Pinning.places(m))
	if p.DropCaches != nil && *p.DropCaches && !m.Root {
		problems.add(p.at["drop-caches"], "true", problem{"drop-caches: only root can drop the host's page cache", "run as root, or leave the key out"})
	}
	for _, w := range p.Workloads {
		if f := checkImageExists(w.Image); f != nil {
			problems.add(w.imageAt, string(w.Image), *f)
		}
	}
	return notes, problems.err()
}

// checkImageExists refuses a path without an image. Only a read of the image shows whether it is valid.
func checkImageExists(image bench.Image) *problem {
	for _, ours := range images() {
		if image == ours {
			return nil
		}
	}
	path := string(image)
	text := strconv.Quote(path) // unshortened, since files differ at the end of their paths
	const advice = "give the path of an OCI layout (a folder) or of an OCI or Docker archive (a file), relative to the plan"
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		name := filepath.Base(path)
		return &problem{"workloads.image: " + text + " does not exist", didYouMean(name, []string{probeImage, workloadImage}, advice)}
	case err != nil:
		return &problem{"workloads.image: " + printable(err.Error()), advice}
	case info.IsDir():
		if _, err := os.Stat(filepath.Join(path, "index.json")); err != nil {
			return &problem{"workloads.image: the folder " + text + " has no index.json, so it is not an OCI layout", advice}
		}
	case !info.Mode().IsRegular() || info.Size() == 0:
		return &problem{"workloads.image: " + text + " is empty or not a file", advice}
	}
	return nil
}
