// Package diagnosis recognises known errors of engines and runtimes by their messages. A known error has a cause, one remedy, and an answer to the
// question whether another attempt may succeed.
//
// Engines report errors as text that passes several programs: the kernel's message reaches this program by way of a runtime, a shim and a
// daemon, and no error value survives. So the rules are patterns of text, as data, in rules.go. Each has at least one message of a real program in
// the tests. A rule for one program at one place was rejected: the same message comes from each engine above the same runtime, and from each
// runtime above the same kernel.
//
// An error without a rule is permanent if its text has an error number that does not change by itself, such as ENOENT, and nothing in it
// points to a race or to a limit of time.
package diagnosis

import (
	"os"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/process"
)

// Facts describe the target and the host of an error.
type Facts struct {
	engine.Info        // of the target; may be incomplete
	Engine      string // the engine's own name, such as containerd, cri-o, docker, podman; empty for a bare runtime
	Private     bool   // the engine is a private one of the run
	Root        bool   // this program is root
	RealTime    bool   // this program has a real-time policy, which runtimes inherit
	Kernel      string // its release
	Registry    string // address of the run's image registry
	Guest       string // file with the configuration of the target's virtual machine
	Log         string // the end of the log of a private engine
}

// Here returns the facts with those about this program and its host.
func (f Facts) Here() Facts {
	f.Root, f.RealTime = os.Geteuid() == 0, process.IsRealTime()
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		f.Kernel = unix.ByteSliceToString(name.Release[:])
	}
	return f
}

// Diagnosis is the result for an error.
type Diagnosis struct {
	// Cause is empty for an unknown error.
	Cause string
	// Excerpt is the part of the message that proves the cause, on one line.
	Excerpt string
	// Advice is the remedy. It may be empty.
	Advice string
	// Permanent reports that another attempt fails too.
	Permanent bool
}

// Known reports whether the cause is known.
func (d Diagnosis) Known() bool { return d.Cause != "" }

// Reason is the cause with its proof.
func (d Diagnosis) Reason() string { return d.Cause + " (" + d.Excerpt + ")" }

// Find returns the diagnosis of an error.
func Find(err error, f Facts) Diagnosis {
	text := clean(err.Error())
	for _, r := range rules {
		if d := r.find(text, f); d.Known() {
			return d
		}
	}
	return Diagnosis{Permanent: lasting.MatchString(text) && !passing.MatchString(text)}
}

// find applies the rule to a text. The diagnosis is of an unknown error if the rule does not match.
func (r rule) find(text string, f Facts) (d Diagnosis) {
	if r.when != nil && !r.when(f) {
		return d
	}
	for _, pattern := range r.patterns() {
		for _, match := range pattern.FindAllStringSubmatchIndex(text, -1) {
			if d = r.diagnose(f, pattern, text, match); d.Known() {
				return d
			}
		}
	}
	return d
}

// Explain returns the reason and the advice for an error. The operation and the advice are for an unknown one.
func Explain(err error, f Facts, operation, advice string) engine.UnsupportedError {
	explanation := engine.UnsupportedError{What: f.Target.String(), Output: err.Error(), Log: f.Log}
	if d := Find(err, f); d.Known() {
		explanation.Reason, explanation.Advice = d.Reason(), d.Advice
		return explanation
	}
	if operation != "" {
		operation += ": "
	}
	explanation.Reason, explanation.Advice = operation+significant(err.Error()), advice
	return explanation
}

// Lack is the reason why a target lacks a capability, with the advice.
func Lack(err error, f Facts, operation, advice string) string {
	explanation := Explain(err, f, operation, advice)
	if explanation.Advice == "" {
		return explanation.Reason
	}
	return explanation.Reason + "; " + explanation.Advice
}

// Recognise turns a known error into the refusal of the target. It returns other errors as they are.
func Recognise(err error, f Facts) error {
	if engine.Unsupported(err) || !Find(err, f).Known() {
		return err
	}
	return Refuse(err, f, "", "")
}

// Refuse returns the error of a target whose first container did not work. The operation and the advice are for an unknown error.
func Refuse(err error, f Facts, operation, advice string) *engine.OpenError {
	explanation := Explain(err, f, operation, advice)
	return &engine.OpenError{Info: f.Info, Err: &explanation, Transient: !Find(err, f).Permanent}
}

var (
	// lasting are the error numbers that do not change by themselves, in the spelling of the C library, of Go and of Rust.
	lasting = regexp.MustCompile(`(?i)no such file or directory|not a directory|executable file not found|permission denied|operation not permitted|` +
		`invalid argument|exec format error|function not implemented|not supported|read-only file system|no such device|\bE(NOENT|ACCES|PERM|INVAL|NOEXEC|NOSYS|ROFS|NODEV)\b`)
	// passing are signs of a race, of a limit of time, of a busy resource and of a crash. A process that has exited takes its files in /proc along.
	passing = regexp.MustCompile(`(?i)no answer within|time(d )?-?out|deadline exceeded|\bEOF\b|signal|temporar|resource busy|text file busy|try again|` +
		`connection (reset|refused)|broken pipe|interrupted|already exists|locked|too many requests|terminate suc|/proc/[0-9]+|exit status 1(2[89]|[3-9][0-9])`)
)

// benign matches a line of a log that is no error. containerd logs the failure of a plug-in, also of CRI, as a warning.
var (
	benign = regexp.MustCompile(`level="?(trace|debug|info|warn)|"level":"(trace|debug|info|warn)`)
	plugin = regexp.MustCompile(`failed to load plugin.*io\.containerd\.(grpc\.v1\.cri|cri\.v1)`)
)

var (
	quotes = regexp.MustCompile(`\\+"`)
	// noLog is containerd's remark about the log of a runtime that could not start. The missing log is an effect and no cause.
	noLog = regexp.MustCompile(`unable to retrieve OCI runtime error \([^)]*\): `)
)

// clean prepares a message for the patterns: it unifies quotation marks, and removes lines and remarks that are no errors.
func clean(text string) string {
	return significant(noLog.ReplaceAllString(quotes.ReplaceAllString(text, `"`), ""))
}

// significant removes the lines of a log that are no errors.
func significant(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if !benign.MatchString(line) || plugin.MatchString(line) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return strings.Join(lines, "\n")
}

// diagnose applies the rule to a text that matches a pattern.
func (r rule) diagnose(f Facts, pattern *regexp.Regexp, text string, match []int) Diagnosis {
	values := map[string]string{
		"engine": f.Engine, "guest": f.Guest, "runtime": f.Target.Runtime, "binary": f.Binary, "version": f.Version, "kernel": f.Kernel, "registry": f.Registry,
		"release": release(f),
	}
	if f.Engine == "" {
		values["engine"] = "the runtime"
	}
	for n, name := range pattern.SubexpNames() {
		if name != "" && match[2*n] >= 0 {
			values[name] = text[match[2*n]:match[2*n+1]]
		}
	}
	cause, advice := r.cause, r.advice
	if r.refine != nil {
		cause, advice = r.refine(f, values, cause, advice)
	}
	fill := func(template string) string {
		return os.Expand(template, func(name string) string { return values[name] })
	}
	return Diagnosis{Cause: fill(cause), Excerpt: excerpt(text, match[0], match[1]), Advice: fill(advice), Permanent: !r.transient && (!r.vague || !passing.MatchString(text))}
}

// longestExcerpt bounds an excerpt, in bytes.
const longestExcerpt = 240

// excerpt returns the line around a match. Of a long line it keeps the end of the match and the text before it, because the messages of
// callers precede the cause.
func excerpt(text string, begin, end int) string {
	left := strings.LastIndexByte(text[:begin], '\n') + 1
	right := len(text)
	if n := strings.IndexByte(text[end:], '\n'); n >= 0 {
		right = end + n
	}
	line := text[left:right]
	if len(line) <= longestExcerpt {
		return oneLine(line)
	}
	right = min(right, end+longestExcerpt/4)
	left = max(left, min(begin, right-longestExcerpt))
	line = text[left:min(right, left+longestExcerpt)]
	return "… " + oneLine(line) + " …"
}

// oneLine makes all blanks of a text single ones.
func oneLine(text string) string {
	return strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ")
}
