package layouttest

const (
	usualPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	// userPath is the PATH of an ordinary user of openSUSE, and of root after su.
	userPath = "/usr/local/bin:/usr/bin:/bin"
)

// merged are the links of distributions that have all programs in /usr, and the link of all distributions with /run.
var merged = Package{"UsrMerge, https://systemd.io/THE_CASE_FOR_THE_USR_MERGE", []string{"/bin -> usr/bin", "/sbin -> usr/sbin", "/var/run -> /run"}}

// defaults are the sockets of running daemons.
var defaults = Package{"the daemons' defaults: containerd config default, crio.conf(5), dockerd(8)", []string{
	"/run/containerd/containerd.sock", "/run/crio/crio.sock", "/run/docker.sock",
}}

// layouts are the layouts of distributions. A path in Go's text of a specification, such as %{_bindir}/crio, is written out.
var layouts = []Layout{
	{
		Name: "Debian 12", Path: usualPath, Packages: []Package{
			merged, defaults,
			{"dash 0.5.12, dpkg -L", []string{"/usr/bin/dash", "/usr/bin/sh -> dash"}},
			{"containerd 1.6.20~ds1-1, dpkg -L", []string{"/usr/bin/containerd", "/usr/bin/containerd-shim-runc-v2"}},
			{"docker.io 20.10.24+dfsg1-1, dpkg -L", []string{"/usr/sbin/dockerd", "/usr/sbin/docker-proxy", "/usr/bin/docker-init"}},
			{"runc 1.1.5+ds1-1, dpkg -L", []string{"/usr/sbin/runc", "/usr/bin/runc -> ../sbin/runc"}},
			{"crun 1.8.1-1, dpkg -L", []string{"/usr/bin/crun"}},
			{"podman 4.3.1+ds1-8, dpkg -L", []string{"/usr/bin/podman", "/usr/lib/podman/rootlessport"}},
			{"conmon 2.1.6+ds1-1, dpkg -L", []string{"/usr/bin/conmon"}},
			{"containernetworking-plugins 1.1.1+ds1-3, dpkg -L", []string{"/usr/lib/cni/bridge", "/usr/lib/cni/host-local", "/usr/lib/cni/loopback"}},
			{"golang-github-containers-common 0.50.1+ds1-4, dpkg -L", []string{"/usr/share/containers/containers.conf"}},
		},
	},
	{
		// sshd and su give this PATH to a user; dockerd is in no directory of it.
		Name: "Debian 12 after su", Path: userPath, Packages: []Package{
			merged, defaults,
			{"containerd 1.6.20~ds1-1, dpkg -L", []string{"/usr/bin/containerd", "/usr/bin/containerd-shim-runc-v2"}},
			{"docker.io 20.10.24+dfsg1-1, dpkg -L", []string{"/usr/sbin/dockerd"}},
			{"runc 1.1.5+ds1-1, dpkg -L", []string{"/usr/sbin/runc"}},
			{"containernetworking-plugins 1.1.1+ds1-3, dpkg -L", []string{"/usr/lib/cni/bridge", "/usr/lib/cni/host-local", "/usr/lib/cni/loopback"}},
		},
	},
	{
		Name: "Ubuntu 24.04 with packages of Docker and of CRI-O", Path: usualPath, Packages: []Package{
			merged, defaults,
			{"containerd.io 1.7.27-1, https://docs.docker.com/engine/install/ubuntu", []string{
				"/usr/bin/containerd", "/usr/bin/containerd-shim-runc-v2", "/usr/bin/runc", "/etc/containerd/config.toml",
			}},
			{"docker-ce 28, https://docs.docker.com/engine/install/ubuntu", []string{"/usr/bin/dockerd", "/usr/bin/docker-proxy", "/etc/docker/daemon.json"}},
			{"netavark 1.14.0-2 and podman, podman info", []string{"/usr/bin/podman", "/usr/bin/conmon", "/usr/lib/podman/netavark", "/usr/lib/podman/aardvark-dns"}},
			{"cri-o 1.29, github.com/cri-o/packaging templates/latest/cri-o: cri-o.spec, bundle/10-crio.conf", []string{
				"/usr/bin/crio", "/usr/bin/pinns", "/usr/libexec/crio/crun", "/usr/libexec/crio/conmonrs", "/etc/crio/crio.conf.d/10-crio.conf",
			}},
			{"kubernetes-cni, https://kubernetes.io/docs/setup/production-environment/container-runtimes", []string{
				"/opt/cni/bin/bridge", "/opt/cni/bin/host-local", "/opt/cni/bin/loopback",
			}},
			{"kata-containers, https://github.com/kata-containers/documentation/blob/master/install/snap-installation-guide.md", []string{
				"/snap/kata-containers/current/usr/bin/containerd-shim-kata-v2",
				"/snap/kata-containers/current/usr/share/defaults/kata-containers/configuration.toml",
			}},
		},
		Bundled: []string{"crun"},
	},
	{
		Name: "Fedora", Path: "/usr/local/sbin:/usr/local/bin:/usr/bin:/var/lib/snapd/snap/bin", Packages: []Package{
			{"filesystem 3.18 (the merge of /usr/sbin), https://fedoraproject.org/wiki/Changes/Unify_bin_and_sbin", []string{
				"/bin -> usr/bin", "/sbin -> usr/sbin", "/usr/sbin -> bin", "/var/run -> /run",
			}},
			defaults,
			{"containernetworking-plugins, containernetworking-plugins.spec", []string{
				"/usr/libexec/cni/bridge", "/usr/libexec/cni/host-local", "/usr/libexec/cni/loopback",
			}},
			{"podman 5, github.com/containers/podman rpm/podman.spec", []string{"/usr/bin/podman", "/usr/libexec/podman/rootlessport"}},
			{"netavark and aardvark-dns, netavark.spec", []string{"/usr/libexec/podman/netavark", "/usr/libexec/podman/aardvark-dns"}},
			{"conmon 2.1, conmon.spec", []string{"/usr/bin/conmon", "/usr/libexec/crio/conmon"}},
			{"cri-o, cri-o.spec", []string{"/usr/bin/crio", "/usr/bin/pinns", "/etc/crio/crio.conf"}},
			{"moby-engine, moby-engine.spec", []string{"/usr/bin/dockerd", "/usr/libexec/docker/docker-proxy", "/usr/libexec/docker/docker-init"}},
			{"containerd, containerd.spec", []string{"/usr/bin/containerd", "/usr/bin/containerd-shim-runc-v2", "/etc/containerd/config.toml"}},
			{"runc and crun, their spec files", []string{"/usr/bin/runc", "/usr/bin/crun"}},
			{"containers-common, containers-common.spec", []string{"/usr/share/containers/containers.conf", "/usr/share/containers/storage.conf"}},
			{"kata-containers, kata-containers.spec", []string{
				"/usr/bin/containerd-shim-kata-v2", "/usr/share/kata-containers/defaults/configuration.toml",
			}},
		},
	},
	{
		Name: "Alpine", Path: usualPath, Packages: []Package{
			{"alpine-baselayout, https://wiki.alpinelinux.org/wiki/Release_Notes_for_Alpine_3.22.0", []string{"/var/run -> ../run"}},
			{"busybox and musl, https://wiki.alpinelinux.org/wiki/BusyBox", []string{"/bin/busybox", "/bin/sh -> /bin/busybox", "/lib/ld-musl-x86_64.so.1"}},
			defaults,
			{"cni-plugins 1.1.1, alpinelinux/aports community/cni-plugins/APKBUILD", []string{
				"/usr/libexec/cni/bridge", "/usr/libexec/cni/host-local", "/usr/libexec/cni/loopback",
			}},
			{"containerd 1.7.1, alpinelinux/aports community/containerd/APKBUILD", []string{
				"/usr/bin/containerd", "/usr/bin/containerd-shim-runc-v2", "/etc/containerd/config.toml",
			}},
			{"docker-engine 20.10.11, alpinelinux/aports community/docker/APKBUILD", []string{
				"/usr/bin/dockerd", "/usr/bin/docker-proxy", "/sbin/tini-static", "/usr/bin/docker-init -> /sbin/tini-static",
			}},
			{"runc 1.0.0_rc95, alpinelinux/aports community/runc/APKBUILD", []string{"/usr/bin/runc"}},
			{"crun, alpinelinux/aports community/crun/APKBUILD", []string{"/usr/bin/crun"}},
			{"conmon 2.0.29, alpinelinux/aports community/conmon/APKBUILD", []string{"/usr/bin/conmon"}},
			{"cri-o 1.32.1, alpinelinux/aports community/cri-o/APKBUILD", []string{"/usr/bin/crio", "/usr/bin/pinns", "/etc/crio/crio.conf"}},
			{"podman and netavark 1.14.1, alpinelinux/aports community/netavark/APKBUILD", []string{"/usr/bin/podman", "/usr/libexec/podman/netavark"}},
		},
	},
	{
		Name: "Arch", Path: "/usr/local/sbin:/usr/local/bin:/usr/bin", Packages: []Package{
			{"filesystem, https://wiki.archlinux.org/title/File_systems", []string{"/bin -> usr/bin", "/sbin -> usr/bin", "/usr/sbin -> bin", "/var/run -> ../run"}},
			defaults,
			{"cni-plugins 0.9.0, archlinux/svntogit-community cni-plugins/trunk/PKGBUILD", []string{
				"/usr/lib/cni/bridge", "/usr/lib/cni/host-local", "/usr/lib/cni/loopback", "/opt/cni/bin/bridge", "/opt/cni/bin/host-local", "/opt/cni/bin/loopback",
			}},
			{"netavark 1.6.0, archlinux/svntogit-community netavark/trunk/PKGBUILD", []string{"/usr/lib/podman/netavark"}},
			{"catatonit, archlinux/svntogit-community catatonit/trunk/PKGBUILD", []string{"/usr/bin/catatonit", "/usr/lib/podman/catatonit -> /usr/bin/catatonit"}},
			{"podman and conmon, their PKGBUILD", []string{"/usr/bin/podman", "/usr/bin/conmon"}},
			{"cri-o 1.21.1, archlinux/svntogit-community cri-o/trunk/PKGBUILD", []string{"/usr/bin/crio", "/usr/bin/pinns", "/etc/crio/crio.conf"}},
			{"docker 20.10.3, archlinux/svntogit-community docker/trunk/PKGBUILD", []string{"/usr/bin/dockerd", "/usr/bin/docker-init", "/usr/bin/docker-proxy"}},
			{"containerd, runc and crun, their PKGBUILD", []string{"/usr/bin/containerd", "/usr/bin/containerd-shim-runc-v2", "/usr/bin/runc", "/usr/bin/crun"}},
		},
	},
	{
		Name: "openSUSE", Path: userPath, Packages: []Package{
			merged, defaults,
			{"containerd 1.7, containerd.spec of Virtualization:containers", []string{"/usr/sbin/containerd", "/usr/sbin/containerd-shim-runc-v2", "/etc/containerd/config.toml"}},
			{"runc 1.2, runc.spec of Virtualization:containers", []string{"/usr/sbin/runc"}},
			{"docker 27, docker.service of Virtualization:containers", []string{"/usr/bin/dockerd"}},
			{"cni-plugins, the macro cni_bin_dir of devel:kubic", []string{"/usr/libexec/cni/bridge", "/usr/libexec/cni/host-local", "/usr/libexec/cni/loopback"}},
		},
	},
	{
		Name: "Flatcar", Path: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", Packages: []Package{
			merged, defaults,
			{"containerd 2.0.2, flatcar/scripts app-containers/containerd/containerd-2.0.2.ebuild", []string{"/usr/bin/containerd", "/usr/bin/containerd-shim-runc-v2"}},
			{"docker and runc, flatcar/scripts app-containers", []string{"/usr/bin/dockerd", "/usr/bin/runc"}},
			{"kubeadm's plug-ins and programs, https://www.flatcar.org/docs/latest/container-runtimes/getting-started-with-kubernetes", []string{
				"/opt/cni/bin/bridge", "/opt/cni/bin/host-local", "/opt/cni/bin/loopback", "/opt/bin/crun",
			}},
		},
	},
	{
		Name: "Bottlerocket", Path: usualPath, Packages: []Package{
			merged,
			{"containerd, bottlerocket-core-kit containerd-config-toml_k8s_containerd_sock", []string{"/run/containerd/containerd.sock"}},
			{"containerd-2.1 2.1.5, bottlerocket-core-kit packages/containerd-2.1/containerd-2.1.spec", []string{"/usr/bin/containerd", "/usr/bin/containerd-shim-runc-v2"}},
			{"runc, bottlerocket-core-kit packages/runc/runc.spec", []string{"/usr/bin/runc"}},
			{"cni-plugins 1.9.0, bottlerocket-core-kit packages/cni-plugins/cni-plugins.spec", []string{
				"/usr/libexec/cni/bin/bridge", "/usr/libexec/cni/bin/host-local", "/usr/libexec/cni/bin/loopback",
			}},
		},
	},
	{
		Name: "NixOS", Path: "/run/wrappers/bin:/run/current-system/sw/bin", Packages: []Package{
			{"the profile of a system, nixos/modules/config/system-path.nix", []string{
				"/run/current-system -> /nix/store/s-system", "/nix/store/s-system/sw -> /nix/store/p-system-path", "/var/run -> /run", "/run/wrappers/bin -> /run/wrappers/wrappers.x",
				"/run/wrappers/wrappers.x/mount",
			}},
			{"/bin/sh and /usr/bin/env, nixos/modules/config/shells-environment.nix", []string{
				"/nix/store/b-bash-5.2/bin/bash", "/nix/store/b-bash-5.2/bin/sh -> bash", "/bin/sh -> /nix/store/b-bash-5.2/bin/sh",
				"/nix/store/e-coreutils-9.5/bin/coreutils", "/nix/store/e-coreutils-9.5/bin/env -> coreutils", "/usr/bin/env -> /nix/store/e-coreutils-9.5/bin/env",
			}},
			defaults,
			{"docker 27.0.3, nixpkgs pkgs/applications/virtualization/docker/default.nix", []string{
				"/nix/store/p-system-path/bin/dockerd -> /nix/store/d-docker-27.0.3/bin/dockerd", "/nix/store/d-docker-27.0.3/bin/dockerd -> /nix/store/m-moby-27.0.3/bin/dockerd",
				"/nix/store/m-moby-27.0.3/bin/dockerd = #! /nix/store/b-bash-5.2/bin/bash -e\n" +
					"PATH=${PATH:+':'$PATH':'}\nPATH='/nix/store/m-moby-27.0.3/libexec/docker:/nix/store/i-iproute2-6.8/bin'$PATH\nexport PATH\n" +
					"exec -a \"$0\" \"/nix/store/m-moby-27.0.3/libexec/docker/dockerd\"  \"$@\"\n",
				"/nix/store/m-moby-27.0.3/libexec/docker/dockerd", "/nix/store/i-iproute2-6.8/bin/ip",
				"/nix/store/c-docker-containerd-27.0.3/bin/containerd", "/nix/store/c-docker-containerd-27.0.3/bin/containerd-shim-runc-v2",
				"/nix/store/m-moby-27.0.3/libexec/docker/containerd -> /nix/store/c-docker-containerd-27.0.3/bin/containerd",
				"/nix/store/r-docker-runc-27.0.3/bin/runc", "/nix/store/m-moby-27.0.3/libexec/docker/runc -> /nix/store/r-docker-runc-27.0.3/bin/runc",
			}},
			{"podman 6.1.3, nixpkgs pkgs/by-name/po/podman/package.nix", []string{
				"/nix/store/p-system-path/bin/podman -> /nix/store/o-podman-6.1.3/bin/podman", "/nix/store/o-podman-6.1.3/bin/podman",
				"/nix/store/o-podman-6.1.3/libexec/podman/conmon -> /nix/store/h-podman-helper-binary-wrapper/bin/conmon",
				"/nix/store/h-podman-helper-binary-wrapper/bin/conmon -> /nix/store/n-conmon-2.1.13/bin/conmon",
				"/nix/store/n-conmon-2.1.13/bin/conmon", "/nix/store/u-crun-1.23/bin/crun",
				"/nix/store/o-podman-6.1.3/libexec/podman/crun -> /nix/store/u-crun-1.23/bin/crun",
			}},
			{"cri-o 1.32, nixpkgs pkgs/applications/virtualization/cri-o/wrapper.nix, nixos/modules/virtualisation/cri-o.nix", []string{
				"/nix/store/p-system-path/bin/crio -> /nix/store/w-cri-o-wrapper-1.32/bin/crio", "/nix/store/p-system-path/bin/pinns -> /nix/store/w-cri-o-wrapper-1.32/bin/pinns",
				"/nix/store/w-cri-o-wrapper-1.32/bin/crio = \x7fELF\x00PATH\x00:\x00/nix/store/u-crun-1.23/bin:/nix/store/n-conmon-2.1.13/bin\x00",
				"/nix/store/w-cri-o-wrapper-1.32/bin/pinns",
				"/etc/crio/crio.conf.d/00-default.conf = [crio.network]\nplugin_dirs = [\"/nix/store/l-cni-plugins-1.7/bin/\"]\n",
				"/nix/store/l-cni-plugins-1.7/bin/bridge", "/nix/store/l-cni-plugins-1.7/bin/host-local", "/nix/store/l-cni-plugins-1.7/bin/loopback",
			}},
		},
		Bundled: []string{"containerd", "containerd-shim-runc-v2", "conmon", "crun", "runc"},
	},
	{
		Name: "NixOS with containerd", Path: "/run/wrappers/bin:/run/current-system/sw/bin", Packages: []Package{
			{"the profile of a system, nixos/modules/config/system-path.nix", []string{
				"/run/current-system -> /nix/store/s-system", "/nix/store/s-system/sw -> /nix/store/p-system-path", "/run/wrappers/wrappers.x/mount",
				"/run/wrappers/bin -> /run/wrappers/wrappers.x",
			}},
			{"containerd, nixos/modules/virtualisation/containerd.nix", []string{
				"/nix/store/p-system-path/bin/containerd -> /nix/store/c-containerd-2.1/bin/containerd", "/nix/store/c-containerd-2.1/bin/containerd",
				"/nix/store/p-system-path/bin/containerd-shim-runc-v2 -> /nix/store/c-containerd-2.1/bin/containerd-shim-runc-v2",
				"/nix/store/c-containerd-2.1/bin/containerd-shim-runc-v2", "/run/containerd/containerd.sock",
			}},
			{"environment.systemPackages = [ cni-plugins runc ]", []string{
				"/nix/store/p-system-path/bin/bridge -> /nix/store/l-cni-plugins-1.7/bin/bridge", "/nix/store/l-cni-plugins-1.7/bin/bridge",
				"/nix/store/p-system-path/bin/host-local -> /nix/store/l-cni-plugins-1.7/bin/host-local", "/nix/store/l-cni-plugins-1.7/bin/host-local",
				"/nix/store/p-system-path/bin/loopback -> /nix/store/l-cni-plugins-1.7/bin/loopback", "/nix/store/l-cni-plugins-1.7/bin/loopback",
				"/nix/store/p-system-path/bin/runc -> /nix/store/r-runc-1.3/bin/runc", "/nix/store/r-runc-1.3/bin/runc",
			}},
		},
	},
	{
		Name: "NixOS in a job of cron", Path: userPath, Packages: []Package{
			{"the profile of a system, nixos/modules/config/system-path.nix", []string{
				"/run/current-system -> /nix/store/s-system", "/nix/store/s-system/sw -> /nix/store/p-system-path",
			}},
			{"runc, environment.systemPackages = [ runc ]", []string{
				"/nix/store/p-system-path/bin/runc -> /nix/store/r-runc-1.3/bin/runc", "/nix/store/r-runc-1.3/bin/runc",
			}},
		},
	},
	{
		Name: "Guix", Path: userPath, Packages: []Package{
			{"the profile of a system, https://guix.gnu.org/manual/en/html_node/operating_002dsystem-Reference.html", []string{
				"/run/current-system -> /var/guix/profiles/system", "/var/guix/profiles/system -> system-7-link", "/var/guix/profiles/system-7-link -> /gnu/store/s-system",
				"/gnu/store/s-system/profile -> /gnu/store/p-profile",
			}},
			{"containerd, runc and kmod, gnu/packages/docker.scm, containers.scm and linux.scm", []string{
				"/gnu/store/p-profile/bin/containerd -> ../../c-containerd-1.6/bin/containerd", "/gnu/store/c-containerd-1.6/bin/containerd",
				"/gnu/store/p-profile/bin/containerd-shim-runc-v2 -> ../../c-containerd-1.6/bin/containerd-shim-runc-v2",
				"/gnu/store/c-containerd-1.6/bin/containerd-shim-runc-v2", "/gnu/store/p-profile/sbin/runc -> ../../r-runc-1.1/sbin/runc", "/gnu/store/r-runc-1.1/sbin/runc",
			}},
		},
	},
	{
		Name: "k3s", Path: usualPath, Packages: []Package{
			{"k3s 1.35, k3s-io/k3s scripts/package-cli", []string{
				"/var/lib/rancher/k3s/data/current -> /var/lib/rancher/k3s/data/5a1b", "/var/lib/rancher/k3s/data/5a1b/bin/k3s", "/var/lib/rancher/k3s/data/5a1b/bin/cni",
				"/var/lib/rancher/k3s/data/5a1b/bin/containerd -> k3s", "/var/lib/rancher/k3s/data/5a1b/bin/containerd-shim-runc-v2",
				"/var/lib/rancher/k3s/data/5a1b/bin/runc", "/run/k3s/containerd/containerd.sock",
				"/var/lib/rancher/k3s/data/cni/bridge -> ../5a1b/bin/cni", "/var/lib/rancher/k3s/data/cni/host-local -> ../5a1b/bin/cni",
				"/var/lib/rancher/k3s/data/cni/loopback -> ../5a1b/bin/cni", "/var/lib/rancher/k3s/agent/etc/containerd/config.toml",
			}},
		},
	},
	{
		Name: "RKE2", Path: usualPath, Packages: []Package{
			{"rke2, https://docs.rke2.io/reference/cli_tools", []string{
				"/var/lib/rancher/rke2/bin -> data/v1/bin", "/var/lib/rancher/rke2/data/v1/bin/containerd", "/var/lib/rancher/rke2/data/v1/bin/containerd-shim-runc-v2",
				"/var/lib/rancher/rke2/data/v1/bin/runc", "/run/k3s/containerd/containerd.sock", "/var/lib/rancher/rke2/agent/etc/containerd/config.toml",
				"/opt/cni/bin/bridge", "/opt/cni/bin/host-local", "/opt/cni/bin/loopback",
			}},
		},
	},
	{
		Name: "k0s", Path: usualPath, Packages: []Package{
			{"k0s, https://docs.k0sproject.io/stable/runtime", []string{
				"/var/lib/k0s/bin/containerd", "/var/lib/k0s/bin/containerd-shim-runc-v2", "/var/lib/k0s/bin/runc", "/run/k0s/containerd.sock", "/etc/k0s/containerd.toml",
				"/opt/cni/bin/bridge", "/opt/cni/bin/host-local", "/opt/cni/bin/loopback",
			}},
		},
	},
	{
		Name: "MicroK8s", Path: usualPath + ":/snap/bin", Packages: []Package{
			{"microk8s, canonical/microk8s build-scripts/components: containerd, runc and cni", []string{
				"/snap/microk8s/current -> 8000", "/snap/microk8s/8000/bin/containerd", "/snap/microk8s/8000/bin/containerd-shim-runc-v2", "/snap/microk8s/8000/bin/runc",
				"/var/snap/microk8s/current -> 8000", "/var/snap/microk8s/8000/opt/cni/bin/cni", "/var/snap/microk8s/8000/opt/cni/bin/bridge -> ./cni",
				"/var/snap/microk8s/8000/opt/cni/bin/host-local -> ./cni", "/var/snap/microk8s/8000/opt/cni/bin/loopback -> ./cni",
			}},
			{"microk8s, canonical/microk8s microk8s-resources/default-args/containerd", []string{
				"/var/snap/microk8s/common/run/containerd.sock", "/var/snap/microk8s/8000/args/containerd.toml",
			}},
		},
	},
	{
		Name: "MicroK8s on Fedora", Path: usualPath, Packages: []Package{
			{"microk8s and snapd, https://snapcraft.io/docs/installing-snap-on-fedora", []string{
				"/snap -> var/lib/snapd/snap", "/var/lib/snapd/snap/microk8s/current -> 8000", "/var/lib/snapd/snap/microk8s/8000/bin/containerd",
				"/var/lib/snapd/snap/microk8s/8000/bin/containerd-shim-runc-v2", "/var/lib/snapd/snap/microk8s/8000/bin/runc",
				"/var/snap/microk8s/current -> 8000", "/var/snap/microk8s/8000/opt/cni/bin/cni", "/var/snap/microk8s/8000/opt/cni/bin/bridge -> ./cni",
				"/var/snap/microk8s/8000/opt/cni/bin/host-local -> ./cni", "/var/snap/microk8s/8000/opt/cni/bin/loopback -> ./cni",
			}},
		},
	},
	{
		Name: "rootless Docker", Path: "/home/ann/bin:" + userPath, Packages: []Package{
			{"docker-ce-rootless-extras, https://docs.docker.com/engine/security/rootless", []string{
				"/home/ann/bin/dockerd", "/home/ann/bin/containerd", "/home/ann/bin/containerd-shim-runc-v2", "/home/ann/bin/runc", "/run/user/1000/docker.sock",
			}},
		},
	},
}
