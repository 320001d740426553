package docker

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes/kata"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// choice is the runtime of a target in the daemon's terms.
type choice struct {
	kind    runtimes.Kind
	kvm     bool                      // the target's sandboxes must run on KVM
	guest   *kata.Config              // of a virtual machine; nil for other runtimes
	shim    string                    // its path; empty for a binary
	names   map[engine.Network]string // values of HostConfig.Runtime
	missing engine.Missing            // networks
}

// groupName is the name of a container's cgroup. Kata changes the name that Docker gives it.
func (c choice) groupName(id string) string {
	if c.guest != nil {
		return "kata_" + id
	}
	return id
}

// useForAll makes one value of HostConfig.Runtime serve all networks.
func (c choice) useForAll(name string) {
	for _, n := range networks {
		c.names[n] = name
	}
}

// lookup returns the daemon's runtime for a target. The error is an *engine.UnsupportedError; the Info is valid in any case.
func (d *daemon) lookup(ctx context.Context, t target.Target) (choice, engine.Info, error) {
	r, err := runtimes.Get(ctx, d.sessionFor(t.Runtime), t)
	info := r.Info(t)
	info.Version = fmt.Sprintf("Docker %s, %s", d.info.ServerVersion, cmp.Or(r.Version, t.Runtime+" of an unknown version"))
	info.Cgroup, info.Rootless, info.Notes = d.session.CgroupMode(), d.secured("rootless"), slices.Clone(r.Notes)
	if d.session.Cgroups == nil && d.info.CgroupVersion != "" {
		info.Cgroup = "v" + d.info.CgroupVersion
	}
	if d.private == nil && r.Guest != nil {
		err = r.CheckUser(ctx, d.session, t)
	}
	if (d.private != nil || r.Guest != nil) && err != nil {
		return choice{}, info, err
	}
	var flags []string
	if !kata.IsType(r.Type) {
		if flags, err = runtimes.Flags(r.With(t)); err != nil {
			return choice{}, info, err
		}
	}
	c := choice{kind: r.Kind, kvm: r.UsesKVM(t), guest: r.Guest, shim: r.Shim, names: map[engine.Network]string{}, missing: engine.Missing{}}
	maps.Copy(c.missing, r.Missing)
	if d.private != nil {
		err = d.entries.choose(c, r, t, flags)
	} else {
		err = d.choose(c, &info, r, t, flags)
	}
	return c, info, err
}

// sessionFor returns a session that maps the name of a runtime to the entry of the user's daemon.
func (d *daemon) sessionFor(runtime string) engine.Session {
	s := d.session
	entry, ok := d.info.Runtimes[runtime]
	if d.private != nil || !ok {
		return s
	}
	settings := s.Runtimes[runtime]
	settings.Type = entry.Type
	switch path, ok := runtimes.SystemCopy(entry.Path); { // a daemon finds a name without a directory on its PATH
	case filepath.IsAbs(entry.Path):
		settings.Path = entry.Path
	case entry.Path != "" && ok:
		settings.Path = path
	}
	s.Runtimes = maps.Clone(s.Runtimes)
	if s.Runtimes == nil {
		s.Runtimes = map[string]target.Runtime{}
	}
	s.Runtimes[runtime] = settings
	return s
}

// choose finds the entry of the user's daemon for the runtime with exactly these flags.
func (d *daemon) choose(c choice, info *engine.Info, r runtimes.Runtime, t target.Target, flags []string) error {
	if kata.IsType(r.Type) && len(t.Options) > 0 {
		return &engine.UnsupportedError{
			What: t.String(), Reason: "the options of Kata Containers are set in the configuration of the daemon",
			Advice: "remove them, and name a runtime of the daemon with these options, or use a private daemon with --managed",
		}
	}
	var entryName string
	var args []string
	for _, candidate := range slices.Sorted(maps.Keys(d.info.Runtimes)) {
		entry := d.info.Runtimes[candidate]
		isNamed, hasPath := candidate == t.Runtime, entry.Path != "" && entry.Path == r.Binary
		if isNamed && len(flags) == 0 || (isNamed || hasPath) && len(flags) > 0 && equalSets(entry.Args, flags) {
			entryName, args = candidate, entry.Args
			break
		}
	}
	if entryName == "" && r.Type != "" && len(flags) == 0 {
		entryName = r.Type // the daemon finds shims by their type
	}
	if entryName == "" {
		return d.unknown(r, t, flags)
	}
	c.useForAll(entryName)
	if len(args) > 0 && len(flags) == 0 {
		info.Notes = append(info.Notes, fmt.Sprintf("the daemon runs %s with %s", t.Runtime, strings.Join(args, " ")))
	}
	for _, flag := range r.HostNetwork {
		if !slices.Contains(args, flag) {
			c.missing[engine.NetworkHost] = fmt.Sprintf("%s needs the flag %s, which the daemon's runtime %s lacks", r.Kind.Name, flag, entryName)
		}
	}
	for _, flag := range r.NoNetwork {
		if slices.Contains(args, flag) {
			c.missing[engine.NetworkBridge] = fmt.Sprintf("the daemon's runtime %s has the flag %s, which rules it out", entryName, flag)
		}
	}
	return nil
}

func equalSets(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// unknown is the error for a target that the user's daemon lacks, with the remedy.
func (d *daemon) unknown(r runtimes.Runtime, t target.Target, flags []string) error {
	entry := t.Runtime
	reason := fmt.Sprintf("the daemon does not know the runtime %s", t.Runtime)
	args := ""
	if len(flags) > 0 {
		entry = strings.NewReplacer("@", "-", "=", "-", ",", "-", "/", "-").Replace(strings.TrimPrefix(t.String(), name+"/"))
		reason = fmt.Sprintf("the daemon has no runtime %s with exactly %s", t.Runtime, strings.Join(flags, " "))
		args = fmt.Sprintf(`, "runtimeArgs": ["%s"]`, strings.Join(flags, `", "`))
	}
	return &engine.UnsupportedError{
		What:   t.String(),
		Reason: fmt.Sprintf("%s; it has %s", reason, strings.Join(slices.Sorted(maps.Keys(d.info.Runtimes)), ", ")),
		Advice: fmt.Sprintf(`add "runtimes": {"%s": {"path": "%s"%s}} to its /etc/docker/daemon.json and restart it, or use a private daemon with --managed`,
			entry, cmp.Or(r.Binary, "/path/to/"+t.Runtime), args),
	}
}

// secured reports whether the daemon has a security option, such as seccomp.
func (d *daemon) secured(option string) bool {
	return slices.ContainsFunc(d.info.SecurityOptions, func(o string) bool {
		return o == "name="+option || strings.HasPrefix(o, "name="+option+",")
	})
}
