package result

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// The replacements of an anonymous run.
const (
	anonymousPath = "(path)"
	anonymousName = "(name)"
	// leftOut replaces text of programs.
	leftOut = "left out of an anonymous export"
)

var (
	// pathPattern matches a path or an address after the character before it.
	pathPattern = regexp.MustCompile(`(^|[\s"'=:(\[{<,;|@` + "`" + `])((?:~|\.{1,2})?/[^\s"')\]}>,;|` + "`" + `]+)`)
	// pathLine matches a line of a plan whose value is a path, which may have spaces.
	pathLine = regexp.MustCompile(`(?m)(^ *|: +|- +)["']?((?:~|\.{1,2})?/.*?)["']?$`)
	// homePattern finds the names of users in paths.
	homePattern = regexp.MustCompile(`/(?:home|Users)/([^\s/"':,;)]+)`)
	// optionPath matches the value of a target's option if it is a path.
	optionPath = regexp.MustCompile(`=/[^,]*`)
	// peerPattern matches the parameter with the address of another machine. Other values of it have no dot.
	peerPattern = regexp.MustCompile(`(^|\s)peer=(\S*\.\S*)`)
)

// Anonymous returns a run for publication, without host name, addresses of other machines, user names, paths, kernel command line, outputs of programs and reasons of
// failures, which quote outputs. users are further names of users. Names of plans, benchmarks, runtimes and targets stay, but paths
// in them do not. It does not change the caller's run.
//
// The host has no name afterwards, so no comparison takes two anonymous runs for runs of one machine.
func (r Run) Anonymous(users ...string) Run {
	a := newAnonymiser(&r, users)
	r = r.withTexts(a.text)
	r.Name, r.Baseline = a.words(r.Name), a.target(r.Baseline)
	r.Plan = a.text(pathLine.ReplaceAllString(r.Plan, "${1}"+anonymousPath))
	r.Host.Hostname, r.Host.Cmdline, r.Host.Identity = "", "", nil
	r.Host.OS, r.Host.Kernel, r.Host.Mitigation = a.text(r.Host.OS), a.text(r.Host.Kernel), a.text(r.Host.Mitigation)
	r.Host.Warnings = slices.Clone(r.Host.Warnings)
	for i, warning := range r.Host.Warnings {
		r.Host.Warnings[i] = a.text(warning)
	}
	if r.Host.Node != nil {
		n := *r.Host.Node
		n.Name, n.Labels = "", nil
		r.Host.Node = &n
	}
	if r.Host.Selfcheck != nil {
		c := *r.Host.Selfcheck
		c.Target = a.target(c.Target)
		r.Host.Selfcheck = &c
	}
	for i := range r.Targets {
		t := &r.Targets[i]
		t.Name, t.Runtime, t.Binary = a.target(t.Name), a.target(t.Runtime), ""
		if t.Unavailable != "" {
			t.Unavailable = leftOut
		}
	}
	for i := range r.Images {
		image := &r.Images[i]
		if strings.ContainsRune(image.Name, '/') || strings.Contains(image.Name, ".tar") {
			image.Name = fmt.Sprintf("image-%d", i+1)
		}
		if image.Unavailable != "" {
			image.Unavailable = leftOut
		}
	}
	if r.Stopping != nil {
		rule := *r.Stopping
		rule.Stopped = slices.Clone(rule.Stopped)
		for i := range rule.Stopped {
			rule.Stopped[i].Target = a.target(rule.Stopped[i].Target)
		}
		r.Stopping = &rule
	}
	for i := range r.Trials {
		t := &r.Trials[i]
		t.Target, t.Output = a.target(t.Target), ""
		t.Params = a.peer(t.Params)
		if t.Reason != "" {
			t.Reason = leftOut
		}
		t.Host.Marks = slices.Clone(t.Host.Marks)
		for j, mark := range t.Host.Marks {
			t.Host.Marks[j] = a.text(mark)
		}
	}
	for i := range r.Traces {
		t := &r.Traces[i]
		t.Target, t.Params = a.target(t.Target), a.peer(t.Params)
		if t.Reason != "" {
			t.Reason = leftOut
		}
		for j := range t.Counts { // of withTexts
			t.Counts[j].Paths = nil
		}
	}
	return r
}

// anonymiser replaces the paths and names of one run.
type anonymiser struct {
	names *regexp.Regexp // nil without names
	known *strings.Replacer
	// options are the paths in options of targets, and peers the addresses of other machines, in the order of their numbers.
	options, peers []string
}

func newAnonymiser(r *Run, users []string) *anonymiser {
	a := &anonymiser{}
	host, _, _ := strings.Cut(r.Host.Hostname, ".")
	names := append([]string{r.Host.Hostname, host}, users...)
	var paths []string
	for _, t := range r.Targets {
		paths = append(paths, t.Binary)
	}
	for _, i := range r.Images {
		paths = append(paths, i.Name)
	}
	for _, m := range pathLine.FindAllStringSubmatch(r.Plan, -1) {
		paths = append(paths, m[2])
	}
	collect := func(text string) string {
		for _, m := range homePattern.FindAllStringSubmatch(text, -1) {
			names = append(names, m[1])
		}
		return text
	}
	r.withTexts(collect)
	collect(r.Plan)
	for _, text := range slices.Concat(paths, r.Host.Warnings, []string{r.Host.Cmdline}) {
		collect(text)
	}
	var quoted []string
	for _, n := range names {
		if n != "" && n != "root" && n != "localhost" {
			quoted = append(quoted, regexp.QuoteMeta(n))
		}
	}
	if quoted != nil {
		// The longest name is first, since the first alternative wins.
		slices.SortFunc(quoted, func(x, y string) int { return len(y) - len(x) })
		a.names = regexp.MustCompile(`(^|[^\pL\pN_])(?:` + strings.Join(slices.Compact(quoted), "|") + `)($|[^\pL\pN_])`)
	}
	for _, t := range r.Trials {
		if m := peerPattern.FindStringSubmatch(t.Params); m != nil && !slices.Contains(a.peers, m[2]) {
			a.peers = append(a.peers, m[2])
		}
	}
	var pairs []string
	// The first pair that matches wins, so the longest address comes first.
	for _, p := range slices.SortedFunc(slices.Values(a.peers), func(x, y string) int { return len(y) - len(x) }) {
		pairs = append(pairs, p, anonymousPeer(slices.Index(a.peers, p)))
	}
	slices.SortFunc(paths, func(x, y string) int { return len(y) - len(x) })
	for _, p := range paths {
		if strings.ContainsRune(p, '/') {
			pairs = append(pairs, p, anonymousPath)
		}
	}
	a.known = strings.NewReplacer(pairs...)
	return a
}

func (a *anonymiser) text(text string) string {
	return a.words(pathPattern.ReplaceAllString(a.known.Replace(text), "${1}"+anonymousPath))
}

// words replaces names. Two passes find names that share the character between them.
func (a *anonymiser) words(text string) string {
	if a.names == nil {
		return text
	}
	for range 2 {
		text = a.names.ReplaceAllString(text, "${1}"+anonymousName+"${2}")
	}
	return text
}

// peer replaces the address of another machine in parameters, so that different machines stay distinct.
func (a *anonymiser) peer(params string) string {
	return peerPattern.ReplaceAllStringFunc(params, func(item string) string {
		key, address, _ := strings.Cut(item, "=")
		return key + "=" + anonymousPeer(slices.Index(a.peers, address))
	})
}

// anonymousPeer replaces the address of another machine. It has a dot, like the address.
func anonymousPeer(index int) string { return fmt.Sprintf("machine-%d.", index+1) }

// target replaces paths in the options of a target by numbers, so that targets stay distinct.
func (a *anonymiser) target(name string) string {
	return optionPath.ReplaceAllStringFunc(name, func(path string) string {
		i := slices.Index(a.options, path)
		if i < 0 {
			i = len(a.options)
			a.options = append(a.options, path)
		}
		return fmt.Sprintf("=path-%d", i+1)
	})
}
