// Package doctor makes the report for a bug: versions, the facts of the machine, the settings of engines that matter, and each target that does not
// work, with the failing call and the end of its engine's log.
//
// A report is made to be published. So [Redactor] removes what identifies the machine, its owner and its users, and secrets, from every text of a
// report, and of configuration files a report has only the keys that decide whether a container starts. A list of forbidden keys was rejected: it
// would lack each new key of an engine.
package doctor

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// Report is a report.
type Report struct {
	Touchstone    result.Tool `json:"touchstone"`
	Platform      string      `json:"platform"`
	Host          result.Host `json:"host"`
	Configuration []File      `json:"configuration,omitempty"`
	// Problem is the reason why no target could be tried.
	Problem string   `json:"problem,omitempty"`
	Targets []Target `json:"targets,omitempty"`
	Logs    []Log    `json:"logs,omitempty"`
}

// Target is an engine × runtime of the machine.
type Target struct {
	Target  string `json:"target"`
	Works   bool   `json:"works"`
	Version string `json:"version,omitempty"`
	Binary  string `json:"binary,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Advice  string `json:"advice,omitempty"`
	// Output is the whole message of the failing call. It is empty if the reason has everything.
	Output string `json:"output,omitempty"`
}

// Log is the end of the log of an engine.
type Log struct {
	Engine string `json:"engine"`
	Text   string `json:"text"`
}

// Redacted returns the report with every text redacted, and without the name and the identity of the machine.
func (r Report) Redacted(redactor Redactor) (Report, error) {
	r.Host.Hostname, r.Host.Identity = "", nil
	var tree any
	text, err := json.Marshal(r)
	if err == nil {
		err = json.Unmarshal(text, &tree)
	}
	if err == nil {
		text, err = json.Marshal(redactor.tree(tree))
	}
	var publication Report
	if err == nil {
		err = json.Unmarshal(text, &publication)
	}
	if err != nil {
		return Report{}, fmt.Errorf("redact the report: %w", err)
	}
	return publication, nil
}

// Text is the report for a reader.
func (r Report) Text() string {
	var w strings.Builder
	line := func(label, value string) {
		if value != "" {
			fmt.Fprintf(&w, "  %-14s %s\n", label, value)
		}
	}
	h := r.Host
	fmt.Fprintln(&w, "Versions")
	line("touchstone", strings.TrimSpace(r.Touchstone.Version+" "+r.Touchstone.Commit))
	line("Go", r.Touchstone.Go+" "+r.Platform)
	label := "programs"
	for _, version := range r.versions() {
		line(label, version)
		label = "" // one for all
	}
	fmt.Fprintln(&w, "\nMachine")
	line("system", h.OS)
	line("kernel", h.Kernel)
	line("architecture", h.Arch)
	line("CPU", fmt.Sprintf("%d × %s", h.CPUs, h.CPU))
	line("memory", fmt.Sprintf("%d MiB", h.Memory>>20))
	line("cgroups", h.Cgroup)
	line("hypervisor", h.Virtual)
	line("container", h.Container)
	line("security", h.LSM)
	line("command line", h.Cmdline)
	line("root", strconv.FormatBool(h.Root))
	for _, warning := range h.Warnings {
		line("warning", warning)
	}
	for _, f := range r.Configuration {
		fmt.Fprintf(&w, "\nConfiguration %s\n", f.Path)
		line("problem", f.Problem)
		for _, s := range f.Settings {
			fmt.Fprintf(&w, "  %s = %s\n", s.Key, s.Value)
		}
	}
	if r.Problem != "" {
		fmt.Fprintf(&w, "\nNo target could be tried\n%s", indent(r.Problem))
	}
	r.writeTargets(&w)
	for _, l := range r.Logs {
		fmt.Fprintf(&w, "\nThe end of the log of %s\n%s", l.Engine, indent(l.Text))
	}
	return w.String()
}

// versions lists the programs behind working and failing targets, each once.
func (r Report) versions() []string {
	var list []string
	for _, t := range r.Targets {
		for version := range strings.SplitSeq(t.Version, ", ") {
			if version != "" && !slices.Contains(list, version) {
				list = append(list, version)
			}
		}
	}
	return list
}

// writeTargets writes the working targets, and the others by their failures: several targets may have the same.
func (r Report) writeTargets(w io.Writer) {
	var works []string
	var failures []Target
	names := map[Target][]string{} // by failure
	for _, t := range r.Targets {
		if t.Works {
			works = append(works, t.Target)
			continue
		}
		failure := Target{Reason: t.Reason, Advice: t.Advice, Output: t.Output}
		if t.Output != "" {
			failure.Binary = t.Binary
		}
		if names[failure] == nil {
			failures = append(failures, failure)
		}
		names[failure] = append(names[failure], t.Target)
	}
	if len(works) > 0 {
		fmt.Fprintf(w, "\nWorks: %s\n", strings.Join(works, ", "))
	}
	for _, f := range failures {
		fmt.Fprintf(w, "\nDoes not work: %s\n%s", strings.Join(names[f], ", "), indent(f.Reason))
		if f.Binary != "" {
			fmt.Fprintf(w, "  binary: %s\n", f.Binary)
		}
		if f.Advice != "" {
			fmt.Fprint(w, indent("remedy: "+f.Advice))
		}
		if f.Output != "" && f.Output != f.Reason {
			fmt.Fprintf(w, "  the failing call:\n%s", indent(indent(f.Output)))
		}
	}
}

// indent indents the lines of a text, and ends the last one.
func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  ") + "\n"
}

// Bundle returns a tar.gz with the report as text and as JSON.
func (r Report) Bundle() ([]byte, error) {
	document, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the report as JSON: %w", err)
	}
	var bundle bytes.Buffer
	packer := gzip.NewWriter(&bundle)
	archive := tar.NewWriter(packer)
	for _, file := range []struct {
		name    string
		content []byte
	}{{"touchstone-doctor/report.txt", []byte(r.Text())}, {"touchstone-doctor/report.json", append(document, '\n')}} {
		if err := archive.WriteHeader(&tar.Header{Name: file.name, Mode: 0o600, Size: int64(len(file.content))}); err != nil {
			return nil, fmt.Errorf("write the bundle: %w", err)
		}
		if _, err := archive.Write(file.content); err != nil {
			return nil, fmt.Errorf("write the bundle: %w", err)
		}
	}
	if err := archive.Close(); err != nil {
		return nil, fmt.Errorf("write the bundle: %w", err)
	}
	if err := packer.Close(); err != nil {
		return nil, fmt.Errorf("write the bundle: %w", err)
	}
	return bundle.Bytes(), nil
}
