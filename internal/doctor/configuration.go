package doctor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// File is a configuration file with the settings that matter.
type File struct {
	Path     string    `json:"path"`
	Settings []Setting `json:"settings,omitempty"`
	// Problem is the reason why the file could not be read.
	Problem string `json:"problem,omitempty"`
}

// Setting is a key with its value.
type Setting struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// source is a pattern of configuration files with the last elements of the keys that a report has.
type source struct {
	pattern string
	keys    []string
}

// sources are the configuration files of engines. Keys with registries, proxies and credentials are left out.
func sources() []source {
	containerd := []string{
		"version", "root", "state", "disabled_plugins", "required_plugins", "sandbox", "sandbox_image", "restrict_oom_score_adj", "disable_apparmor",
		"disable_cgroup", "enable_selinux", "enable_cdi", "snapshotter", "default_runtime_name", "runtime_type", "runtime_path", "BinaryName",
		"SystemdCgroup", "ConfigPath", "Root", "bin_dir", "bin_dirs", "conf_dir", "enable_unprivileged_ports", "enable_unprivileged_icmp",
		"tolerate_missing_hugetlb_controller", "privileged_without_host_devices", "pod_annotations", "oom_score", "path",
	}
	crio := []string{
		"root", "runroot", "storage_driver", "storage_option", "cgroup_manager", "conmon", "conmon_cgroup", "default_runtime", "runtime_path", "runtime_type",
		"runtime_root", "runtime_config_path", "monitor_path", "monitor_cgroup", "monitor_exec_cgroup", "drop_infra_ctr", "selinux", "apparmor_profile",
		"seccomp_profile", "pinns_path", "pause_image", "pause_command", "signature_policy", "network_dir", "plugin_dirs", "pids_limit", "default_ulimits",
	}
	podman := []string{
		"cgroup_manager", "cgroups", "cgroupns", "runtime", "runtime_supports_kvm", "conmon_path", "helper_binaries_dir", "network_backend", "network_cmd_path",
		"cni_plugin_dirs", "network_config_dir", "events_logger", "log_driver", "lock_type", "default_ulimits", "userns", "apparmor_profile", "seccomp_profile",
		"label", "pids_limit", "image_copy_tmp_dir", "static_dir", "tmp_dir", "driver", "graphroot", "runroot", "mount_program", "mountopt",
	}
	return []source{
		{"etc/containerd/config.toml", containerd},
		{"etc/containerd/conf.d/*.toml", containerd},
		{"var/lib/rancher/k3s/agent/etc/containerd/config.toml", containerd},
		{"var/lib/rancher/rke2/agent/etc/containerd/config.toml", containerd},
		{"etc/k0s/containerd.toml", containerd},
		{"var/snap/microk8s/current/args/containerd.toml", containerd},
		{"etc/docker/daemon.json", []string{
			"data-root", "exec-root", "exec-opts", "cgroup-parent", "storage-driver", "storage-opts", "default-runtime", "path", "runtimeArgs", "runtimeType",
			"userns-remap", "oom-score-adjust", "live-restore", "iptables", "ip6tables", "ip-masq", "userland-proxy", "selinux-enabled", "seccomp-profile",
			"no-new-privileges", "init", "init-path", "default-ulimits", "default-cgroupns-mode", "log-driver", "containerd", "containerd-snapshotter", "snapshotter",
		}},
		{"etc/crio/crio.conf", crio},
		{"etc/crio/crio.conf.d/*", crio},
		{"usr/share/containers/containers.conf", podman},
		{"usr/share/containers/storage.conf", podman},
		{"etc/containers/containers.conf", podman},
		{"etc/containers/containers.conf.d/*.conf", podman},
		{"etc/containers/storage.conf", podman},
	}
}

// largest is the largest configuration file in bytes.
const largest = 1 << 20

// Configuration reads the configuration files of engines below a root directory.
func Configuration(root string) []File {
	var files []File
	for _, s := range sources() {
		paths, _ := filepath.Glob(filepath.Join(root, s.pattern)) // the patterns are valid
		for _, path := range paths {
			f := File{Path: strings.TrimPrefix(path, strings.TrimSuffix(root, "/"))}
			settings, err := read(path)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				f.Problem = strings.TrimPrefix(err.Error(), path+": ")
			}
			f.Settings = slices.DeleteFunc(settings, func(setting Setting) bool { return !s.shows(setting.Key) })
			files = append(files, f)
		}
	}
	return files
}

// shows reports whether a report has the key: its last element is on the list, or is the name of a runtime.
func (s source) shows(key string) bool {
	elements := strings.Split(key, separator)
	last := len(elements) - 1
	return slices.Contains(s.keys, elements[last]) || last > 0 && elements[last-1] == "runtimes"
}

// read returns all settings of a file.
func read(path string) ([]Setting, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, largest))
	if err != nil {
		return nil, err
	}
	tree := map[string]any{}
	if filepath.Ext(path) == ".json" {
		err = json.Unmarshal(text, &tree)
	} else {
		err = toml.Unmarshal(text, &tree)
	}
	if err != nil {
		return nil, errors.New("it cannot be parsed") // the error may quote a secret
	}
	return flatten("", tree), nil
}

// separator stands between the elements of a key. Elements may contain dots.
const separator = " / "

// flatten lists the values of a tree by their keys, sorted.
func flatten(key string, value any) []Setting {
	branch, ok := value.(map[string]any)
	if !ok {
		return []Setting{{key, fmt.Sprint(value)}}
	}
	var list []Setting
	for _, name := range slices.Sorted(maps.Keys(branch)) {
		list = append(list, flatten(strings.TrimPrefix(key+separator+name, separator), branch[name])...)
	}
	return list
}
