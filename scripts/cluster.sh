#!/usr/bin/env bash
# Runs a Kubernetes cluster on this machine, for tests: a control plane and nodes, each with its own kubelet and container runtime.
#
#   cluster.sh up [--nodes N] [--engine containerd|crio] [--image TAR]… [--runtime NAME=PATH[@NODE]]…
#   cluster.sh hold [the options of up]    as up; takes the cluster down at the end of standard input
#   cluster.sh down
#   cluster.sh status
#   cluster.sh load TAR…                   loads images, archives of docker or OCI, into every node
#   cluster.sh kubectl ARGUMENT…           with the administrator's rights; DIR/kubeconfig has them too
#   cluster.sh node N COMMAND…             runs a command in the namespaces of node N
#   cluster.sh control COMMAND…            runs a command in the namespaces of the control plane
#   cluster.sh stop-node N                 kills all processes of a node, like a power failure
#   cluster.sh start-node N                boots it again, and waits for its kubelet
#   cluster.sh wait                        waits until the API answers and all nodes are ready
#   cluster.sh signal SIGNAL PROGRAM [N]   sends a signal to a program of node N, or of the control plane; a program that ends starts again
#   cluster.sh kwok N [FILE]               adds N fake nodes; FILE is the log of each of their pods, in the format of containerd
#
# --dir DIR before the command, or CLUSTER_DIR, names the directory of the cluster. Each directory is a cluster of its own, and clusters run
# side by side. The default is touchstone-k8s in TMPDIR.
#
# It needs root and these programs in PATH: kube and cluster-host (scripts/tools.sh kube), ip, runc, and containerd 2 with ctr and
# containerd-shim-runc-v2, or crio with pinns, conmon and podman. It uses crun, and for containerd runsc with containerd-shim-runsc-v1, if they exist.
# CNI_BIN names the folder of the CNI plug-ins. Each runtime is a handler and a RuntimeClass. --runtime adds a program with the command line of runc,
# or of runsc if its name is runsc; with @NODE only on this node. Each node has the image localhost/probe:1, with the probe. It is also the image of
# sandboxes.
#
#   PATH=$(scripts/tools.sh kube):$(scripts/runtimes.sh containerd crun runsc):$PATH scripts/cluster.sh up
#
# The cluster leaves nothing behind. It is a PID namespace with its own network, mounts and hostname, and so is every node inside it. No interface,
# address, packet rule, mount or sysctl belongs to this machine, which has only DIR, a cgroup in every hierarchy, and a port of the
# loopback address. When the first process is killed, the kernel ends all others, with their mounts and networks.
set -euo pipefail
export LC_ALL=C

die() {
	echo "cluster: $*" >&2
	exit 1
}

# The addresses belong to the range for benchmarks (RFC 2544). They exist only in the network of the cluster.
net=198.19.0       # .1 is the control plane, .(10+N) is node N
pods=198.18        # .N.0/24 are the pods of node N
service=198.19.255 # .1 is the API

pause=localhost/probe:1 # the image of sandboxes

dir=${CLUSTER_DIR:-${TMPDIR:-/tmp}/touchstone-k8s}
if [ "${1:-}" = --dir ]; then
	dir=$2
	shift 2
fi
case $dir in /*) ;; *) dir=$PWD/$dir ;; esac
case $dir/ in /run/* | /var/lib/* | /var/log/* | /proc/* | /sys/*) die "the nodes hide the directory $dir: choose one outside of /run, /var/lib, /var/log, /proc and /sys" ;; esac
group=${dir//\//-}
[ ${#group} -le 150 ] || group=${group: -150}
group=touchstone-k8s$group-$(printf %s "$dir" | sha256sum | cut -c 1-6)
self=$(readlink -f "$0")
components=(etcd kube-apiserver kube-controller-manager kube-scheduler kubelet kubectl)

# --- Cgroups ----------------------------------------------------------------------------

# hierarchies prints the mount points of the cgroup hierarchies with controllers, of v1 or else of v2.
hierarchies() { awk '$3 == "cgroup" { v1 = v1 $2 "\n" } $3 == "cgroup2" { v2 = v2 $2 "\n" } END { printf "%s", v1 == "" ? v2 : v1 }' /proc/mounts; }

# unified succeeds if the machine has only cgroup v2.
unified() { ! grep -qv '^0::' /proc/self/cgroup; }

# enter_group PATH makes a cgroup in every hierarchy and moves this shell there.
enter_group() {
	local mount at file part
	while read -r mount; do
		at=$mount
		for part in ${1//\// }; do
			! unified || delegate "$at" >>"$dir/delegated${at//\//-}"
			at=$at/$part
			mkdir -p "$at"
			for file in cpus mems; do
				unified || [ ! -e "$at/cpuset.$file" ] || [ -n "$(cat "$at/cpuset.$file")" ] || cat "${at%/*}/cpuset.$file" >"$at/cpuset.$file"
			done
		done
		echo $BASHPID >"$at/cgroup.procs"
	done < <(hierarchies)
}

# delegate PATH gives the controllers of a v2 cgroup to the cgroups in it, and prints those that they did not have. A cgroup with processes cannot do
# so, except the root.
delegate() {
	local controller
	for controller in $(cat "$1/cgroup.controllers"); do
		! grep -qw "$controller" "$1/cgroup.subtree_control" || continue
		echo "$controller"
		echo "+$controller" >"$1/cgroup.subtree_control"
	done
}

# processes PATH prints the processes in a cgroup of the cluster and below it.
processes() {
	local mount
	while read -r mount; do
		[ ! -d "$mount/$group/$1" ] || find "$mount/$group/$1" -name cgroup.procs -exec cat {} +
	done < <(hierarchies) 2>/dev/null | sort -nu
}

# first DEPTH PATH prints the process with ID 1 in a PID namespace at this depth below the caller's, in a cgroup of the cluster.
first() {
	local pid
	for pid in $(processes "$2"); do
		awk -v fields=$(($1 + 2)) -v pid="$pid" '$1 == "NSpid:" && NF == fields && $NF == 1 { print pid }' "/proc/$pid/status" 2>/dev/null || true
	done | head -n 1
}

# stop DEPTH PATH kills the PID namespace in a cgroup of the cluster.
stop() {
	local pid
	pid=$(first "$1" "$2")
	[ -z "$pid" ] || kill -KILL "$pid"
}

# clear_group PATH kills the processes in a cgroup of the cluster, waits for their end, and removes the cgroup.
clear_group() {
	local pids mount round
	for ((round = 0; round < 500; round++)); do
		pids=$(processes "$1")
		[ -n "$pids" ] || break
		# shellcheck disable=SC2086
		[ $((round % 50)) -ne 0 ] || kill -KILL $pids 2>/dev/null || true
		sleep 0.02
	done
	[ -z "$pids" ] || die "these processes do not end: $pids"
	while read -r mount; do
		for ((round = 0; round < 100; round++)); do
			[ ! -d "$mount/$group/$1" ] || find "$mount/$group/$1" -depth -type d -exec rmdir {} + 2>/dev/null || true
			[ -d "$mount/$group/$1" ] || continue 2
			sleep 0.02
		done
		die "cannot remove the cgroup $mount/$group/$1"
	done < <(hierarchies)
}

# --- The parts of up --------------------------------------------------------------------

# await OBJECT COMMAND… repeats a command until it succeeds, for at most ten minutes. The subshell keeps an exit of the command away from this
# script.
await() {
	local start=$SECONDS
	until ("${@:2}") >/dev/null 2>&1; do
		[ $((SECONDS - start)) -lt 600 ] || die "$1 was not ready after ten minutes: see $dir/log"
		sleep "$([ $((SECONDS - start)) -lt 15 ] && echo 0.05 || echo 1)" # an emulated machine is busy with the checks otherwise
	done
}

# install_programs links the programs of the cluster in DIR/bin. Its commands need no PATH later.
install_programs() {
	local name required=(kube cluster-host ip runc) optional=(crun)
	case $engine in
	containerd)
		required+=(containerd ctr containerd-shim-runc-v2)
		! command -v containerd-shim-runsc-v1 >/dev/null || optional+=(runsc containerd-shim-runsc-v1)
		;;
	crio) required+=(crio pinns conmon podman) ;;
	*) die "unknown engine $engine: the engines are containerd and crio" ;;
	esac
	for name in "${required[@]}"; do
		command -v "$name" >/dev/null || die "$name is not in PATH: see the programs at the head of scripts/cluster.sh"
	done
	for name in "${required[@]}" "${optional[@]}"; do
		! command -v "$name" >/dev/null || ln -s "$(readlink -f "$(command -v "$name")")" "$dir/bin/$name"
	done
	for name in "${components[@]}"; do ln -s "$(readlink -f "$dir/bin/kube")" "$dir/bin/$name"; done
	cni_bin=${CNI_BIN:-/usr/lib/cni}
	[ -x "$cni_bin/bridge" ] || die "$cni_bin has no CNI plug-ins: install containernetworking-plugins, or set CNI_BIN"
}

# write_pause writes the archive of the image of sandboxes. Each layer is reproducible, so the image is the same in every cluster.
write_pause() {
	local arch probe at=$dir/pause sum pack=(tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner)
	case $(uname -m) in x86_64) arch=amd64 ;; aarch64) arch=arm64 ;; *) arch=$(uname -m) ;; esac
	probe=${CLUSTER_PROBE:-$(dirname "$self")/../internal/image/probe/probe-$arch}
	[ -e "$probe" ] || die "the probe $probe does not exist: set CLUSTER_PROBE"
	mkdir -p "$at/root"
	install -m 0755 "$probe" "$at/root/probe"
	"${pack[@]}" -C "$at/root" -cf "$at/layer.tar" .
	sum=$(sha256sum "$at/layer.tar" | cut -d ' ' -f 1)
	cat >"$at/config.json" <<-END
		{"architecture": "$arch", "os": "linux", "config": {"Entrypoint": ["/probe"], "Cmd": ["pause"]}, "rootfs": {"type": "layers", "diff_ids": ["sha256:$sum"]}}
	END
	echo "[{\"Config\": \"config.json\", \"RepoTags\": [\"$pause\"], \"Layers\": [\"layer.tar\"]}]" >"$at/manifest.json"
	"${pack[@]}" -C "$at" -cf "$dir/pause.tar" config.json manifest.json layer.tar
	rm -r "$at"
}

# write_certificates writes the certificates and kubeconfig files of all components. The API server verifies also the kubelets' certificates.
write_certificates() {
	local n list=()
	for ((n = 1; n <= nodes; n++)); do list+=("node$n=system:node:node$n/system:nodes@node$n,$net.$((10 + n))"); done
	"$dir/bin/cluster-host" certificates "$dir/pki" "$net.1:443" admin=admin/system:masters kubelet-client=apiserver/system:masters \
		"apiserver=kube-apiserver@kubernetes,kubernetes.default,kubernetes.default.svc,localhost,127.0.0.1,$net.1,$service.1" \
		controller-manager=system:kube-controller-manager scheduler=system:kube-scheduler "kwok=kwok@$net.1" "${list[@]}"
}

# write_node N writes the configuration of a node.
write_node() {
	local n=$1 at=$dir/node$1
	mkdir -p "$at/cni" "$at/lib" "$at/varlog" "$at/tmp"
	echo "nameserver $service.10" >"$at/resolv.conf"
	cat >"$at/cni/pods.conflist" <<-END
		{"cniVersion": "1.0.0", "name": "pods", "plugins": [
		 {"type": "bridge", "bridge": "pods0", "isGateway": true, "ipMasq": false, "hairpinMode": true,
		  "ipam": {"type": "host-local", "ranges": [[{"subnet": "$pods.$n.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
	END
	"write_$engine" "$n" "$at"
	# A kubelet of 1.35 or later refuses cgroup v1 without failCgroupV1. A negative oomScoreAdj needs CAP_SYS_RESOURCE.
	cat >"$at/kubelet.yaml" <<-END
		apiVersion: kubelet.config.k8s.io/v1beta1
		kind: KubeletConfiguration
		authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $dir/pki/ca.crt}}
		authorization: {mode: Webhook}
		tlsCertFile: $dir/pki/node$n.crt
		tlsPrivateKeyFile: $dir/pki/node$n.key
		containerRuntimeEndpoint: unix://$socket
		cgroupDriver: cgroupfs
		failCgroupV1: false
		failSwapOn: false
		makeIPTablesUtilChains: false
		oomScoreAdj: 0
		resolvConf: $at/resolv.conf
		volumePluginDir: $dir/plugins
		clusterDomain: cluster.local
		clusterDNS: [$service.10]
		maxPods: 250
		imageGCHighThresholdPercent: 100
		evictionHard: {memory.available: 100Mi, nodefs.available: 1%, nodefs.inodesFree: 1%, imagefs.available: 1%}
	END
}

# handlers N prints the name and the path of each runtime of a node.
handlers() {
	local runtime path
	for runtime in "${runtimes[@]}"; do
		path=${runtime#*=}
		case $path in
		*@"$1") echo "${runtime%%=*} ${path%@*}" ;;
		*@*) ;;
		*) echo "${runtime%%=*} $path" ;;
		esac
	done
}

# write_containerd N DIR writes the configuration of containerd. Without restrict_oom_score_adj a sandbox needs CAP_SYS_RESOURCE.
write_containerd() {
	local n=$1 at=$2 name path
	cat >"$at/containerd.toml" <<-END
		version = 3
		root = "/var/lib/containerd"
		state = "/run/containerd"
		imports = []
		[grpc]
		  address = "$socket"
		[plugins."io.containerd.internal.v1.opt"]
		  path = "/var/lib/containerd-opt"
		[plugins."io.containerd.cri.v1.images".pinned_images]
		  sandbox = "$pause"
		[plugins."io.containerd.cri.v1.runtime"]
		  disable_apparmor = true
		  restrict_oom_score_adj = true
		  [plugins."io.containerd.cri.v1.runtime".cni]
		    bin_dirs = ["$cni_bin"]
		    conf_dir = "$at/cni"
		  [plugins."io.containerd.cri.v1.runtime".containerd]
		    default_runtime_name = "runc"
	END
	while read -r name path; do
		echo "  [plugins.\"io.containerd.cri.v1.runtime\".containerd.runtimes.\"$name\"]"
		if [ "$(basename "$path")" = runsc ]; then
			printf 'binary_name = "%s"\n[runsc_config]\n' "$path" >"$at/$name.toml"
			echo '    runtime_type = "io.containerd.runsc.v1"'
			echo "    options = { TypeUrl = \"io.containerd.runsc.v1.options\", ConfigPath = \"$at/$name.toml\" }"
		else
			echo '    runtime_type = "io.containerd.runc.v2"'
			echo "    options = { BinaryName = \"$path\" }"
		fi
	done < <(handlers "$n") >>"$at/containerd.toml"
}

# write_crio N DIR writes the configuration of CRI-O. It has no container for the sandbox, whose negative OOM score needs CAP_SYS_RESOURCE.
write_crio() {
	local n=$1 at=$2 name path
	mkdir "$at/crio.d" "$at/hooks"
	echo '{"default": [{"type": "insecureAcceptAnything"}]}' >"$at/policy.json"
	echo 'unqualified-search-registries = []' >"$at/registries.conf"
	cat >"$at/crio.conf" <<-END
		[crio]
		root = "/var/lib/containers/storage"
		runroot = "/run/containers/storage"
		storage_driver = "overlay"
		log_dir = "/var/log/crio/pods"
		version_file = "/run/crio/version"
		version_file_persist = ""
		clean_shutdown_file = "/var/lib/crio/clean.shutdown"
		[crio.api]
		listen = "$socket"
		stream_port = "0"
		[crio.runtime]
		cgroup_manager = "cgroupfs"
		conmon_cgroup = "pod"
		pinns_path = "$dir/bin/pinns"
		drop_infra_ctr = true
		apparmor_profile = "unconfined"
		hooks_dir = ["$at/hooks"]
		default_runtime = "runc"
		[crio.image]
		pause_image = "$pause"
		pause_command = "/probe"
		signature_policy = "$at/policy.json"
		[crio.network]
		network_dir = "$at/cni"
		plugin_dirs = ["$cni_bin"]
	END
	while read -r name path; do
		cat <<-END
			[crio.runtime.runtimes.$name]
			runtime_path = "$path"
			runtime_type = "oci"
			runtime_root = "/run/$name"
			monitor_path = "$dir/bin/conmon"
			monitor_cgroup = "pod"
		END
	done < <(handlers "$n") >>"$at/crio.conf"
}

# --- Inside the namespaces --------------------------------------------------------------

# keep PROGRAM ARGUMENT… starts a program of DIR/bin again whenever it ends, like the init system of a machine. Its output goes to DIR/log/LOG.
keep() {
	while :; do
		"$dir/bin/$1" "${@:2}" >>"$dir/log/$log" 2>&1 || true
		echo "$1 ended, and starts again"
		sleep 0.2
	done
}

# mount does not write to /run/mount, which is this machine's until /run is hidden.
mount() { command mount --no-mtab "$@"; }

# hide PATH [SOURCE] makes a directory empty, in memory.
hide() { mount -t tmpfs -o mode=0755,nosuid,nodev "${2:-touchstone}" "$1"; }

# inside_control is the first process of the cluster. The API is at an address of its loopback interface, which stands for the Service.
inside_control() {
	local pki=$dir/pki n
	mount --make-rprivate /
	hide /run
	ip link set lo up
	ip address add "$service.1/32" dev lo
	ip link add backbone type bridge
	ip address add "$net.1/24" dev backbone
	ip link set backbone up
	echo 1 >/proc/sys/net/ipv4/ip_forward
	log=forward keep cluster-host forward 3 "$net.1:443" &
	exec 3<&-
	for ((n = 1; n <= nodes; n++)); do start_node "$n"; done
	log=etcd keep etcd --data-dir "$dir/etcd" --unsafe-no-fsync --listen-client-urls http://127.0.0.1:2379 \
		--advertise-client-urls http://127.0.0.1:2379 --listen-peer-urls http://127.0.0.1:2380 --log-level warn &
	# Without --allow-privileged the refusal of a privileged pod hides the message of Pod Security.
	log=kube-apiserver keep kube-apiserver --etcd-servers http://127.0.0.1:2379 --bind-address 0.0.0.0 --secure-port 443 \
		--advertise-address "$net.1" --service-cluster-ip-range "$service.0/24" --authorization-mode Node,RBAC \
		--enable-admission-plugins NodeRestriction --allow-privileged --client-ca-file "$pki/ca.crt" --cert-dir "$pki" \
		--tls-cert-file "$pki/apiserver.crt" --tls-private-key-file "$pki/apiserver.key" \
		--kubelet-client-certificate "$pki/kubelet-client.crt" --kubelet-client-key "$pki/kubelet-client.key" \
		--kubelet-certificate-authority "$pki/ca.crt" --kubelet-preferred-address-types InternalIP \
		--service-account-issuer https://kubernetes.default.svc --service-account-key-file "$pki/sa.pub" \
		--service-account-signing-key-file "$pki/sa.key" --profiling=false &
	# The other components retry until the API answers, but in steps of seconds.
	"$dir/bin/cluster-host" await https://127.0.0.1/readyz "$pki/ca.crt"
	touch "$dir/ready"
	log=kube-controller-manager keep kube-controller-manager --kubeconfig "$pki/controller-manager.kubeconfig" --leader-elect=false \
		--use-service-account-credentials --service-account-private-key-file "$pki/sa.key" --root-ca-file "$pki/ca.crt" \
		--kube-api-qps 500 --kube-api-burst 500 --cert-dir "$pki" --flex-volume-plugin-dir "$dir/plugins" &
	log=kube-scheduler keep kube-scheduler --kubeconfig "$pki/scheduler.kubeconfig" --leader-elect=false --cert-dir "$pki" &
	# Only a child of this process is in the namespaces of the cluster for sure, so start-node sends a request.
	while read -r n <>"$dir/requests"; do start_node "$n"; done
}

# start_node N starts the first process of a node, a child of this process, and connects it.
start_node() {
	local n=$1 parent pid='' round
	(
		enter_group "$group/node$n"
		exec unshare --fork --pid --kill-child --mount --net --uts --ipc --cgroup --mount-proc bash "$dir/cluster.sh" --dir "$dir" inside-node "$n"
	) >>"$dir/log/node$n" 2>&1 3<&- &
	parent=$!
	for ((round = 0; round < 200; round++)); do
		pid=$(first 1 "node$n")
		[ -z "$pid" ] || break
		sleep 0.02
	done
	# The root of the node's cgroup namespace may have no process, so that it can give its controllers to pods.
	! unified || {
		mkdir -p "/sys/fs/cgroup/$group/node$n/system"
		echo "$parent" >"/sys/fs/cgroup/$group/node$n/system/cgroup.procs"
	}
	ip link delete "node$n" 2>/dev/null || true # the kernel removes the link of a killed node later
	ip link add "node$n" type veth peer name eth0 netns "$pid"
	ip link set "node$n" master backbone up
	ip route replace "$pods.$n.0/24" via "$net.$((10 + n))"
}

# inside_node N is the first process of a node. Its /run, /var/lib and /var/log are the node's, because kubelet, containerd, plug-ins and
# runsc have default paths below these that no flag changes.
inside_node() {
	local n=$1 at=$dir/node$1 setting file
	echo "node$n" >/proc/sys/kernel/hostname
	mount --make-rprivate /
	mount -t sysfs sysfs /sys # with the interfaces of this network
	mount_cgroups
	hide /run
	mount --bind "$at/lib" /var/lib
	mount --bind "$at/varlog" /var/log
	# A kubelet sets sysctls of the whole machine, unless they have its values.
	mkdir /run/sysctl
	for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 kernel/keys/root_maxkeys=1000000 \
		kernel/keys/root_maxbytes=25000000; do
		file=/run/sysctl/$(basename "${setting%=*}")
		echo "${setting#*=}" >"$file"
		mount --bind "$file" "/proc/sys/${setting%=*}"
	done
	# CRI-O takes each controller in this file for one of v1, but a hybrid machine has some in v2.
	unified || {
		awk '$2 != 0' /proc/cgroups >/run/cgroups
		mount --bind /run/cgroups /proc/cgroups
	}
	ip link set lo up
	await "the network of node$n" test -d /sys/class/net/eth0
	ip address add "$net.$((10 + n))/24" dev eth0
	ip link set eth0 up
	ip route add default via "$net.1"
	echo 1 >/proc/sys/net/ipv4/ip_forward
	! unified || {
		echo $$ >/sys/fs/cgroup/system/cgroup.procs
		delegate /sys/fs/cgroup >/dev/null
	}
	export TMPDIR=$at/tmp PATH=$dir/bin:$PATH HOME=/root
	case $engine in
	containerd) log=containerd$n keep containerd --config "$at/containerd.toml" & ;;
	crio) log=crio$n CONTAINERS_REGISTRIES_CONF=$at/registries.conf keep crio --config "$at/crio.conf" --config-dir "$at/crio.d" & ;;
	esac
	await "$engine of node$n" test -S "$socket"
	await "the API" test -e "$dir/ready"
	log=kubelet$n keep kubelet --config "$at/kubelet.yaml" --kubeconfig "$dir/pki/node$n.kubeconfig" --hostname-override "node$n" \
		--node-ip "$net.$((10 + n))" --cert-dir "$at/tmp" &
	wait
}

# mount_cgroups mounts each hierarchy anew: it begins at the cgroup of the node. crun refuses a cgroup2 beside hierarchies of v1.
mount_cgroups() {
	local list name link
	if unified; then
		mount -t cgroup2 cgroup2 /sys/fs/cgroup
		return
	fi
	hide /sys/fs/cgroup cgroup
	while IFS=: read -r _ list _; do
		[ -n "$list" ] || continue
		name=${list#name=}
		mkdir "/sys/fs/cgroup/$name"
		mount -t cgroup -o "${list/name=/none,name=}" cgroup "/sys/fs/cgroup/$name"
		for link in ${name//,/ }; do [ -e "/sys/fs/cgroup/$link" ] || ln -s "$name" "/sys/fs/cgroup/$link"; done
	done </proc/self/cgroup
}

# --- Commands ---------------------------------------------------------------------------

# up runs in a subshell, in a cgroup of the cluster: so down finds the processes of a killed up.
up() (
	local images=() n runtime began=$EPOCHREALTIME
	nodes=2 engine=containerd runtimes=()
	while [ $# -gt 1 ]; do
		case $1 in
		--nodes) nodes=$2 ;;
		--engine) engine=$2 ;;
		--image) images+=("$(readlink -e "$2")") || die "the image $2 does not exist" ;;
		--runtime) runtimes+=("$2") ;;
		*) die "unknown option $1" ;;
		esac
		shift 2
	done
	[ $# -eq 0 ] || die "unknown option $1, or one without a value"
	[ "$(id -u)" = 0 ] || die "namespaces, mounts and cgroups need root"
	[ -n "$(hierarchies)" ] || die "no cgroup hierarchy with controllers is mounted"
	[ -z "$(processes "")" ] || die "a cluster already runs in $dir: end it by $self --dir $dir down"
	down
	mkdir -p -m 0700 "$dir"
	: >"$dir/is-touchstone-k8s"
	enter_group "$group/up"
	mkdir "$dir/log" "$dir/bin" "$dir/cache"
	mkfifo "$dir/requests"
	cp "$self" "$dir/cluster.sh" # a shell reads its script while it runs, and this one may be edited
	install_programs
	for runtime in runsc crun runc; do [ ! -e "$dir/bin/$runtime" ] || runtimes=("$runtime=$(readlink -f "$dir/bin/$runtime")" "${runtimes[@]}"); done
	write_pause
	write_certificates
	echo "nodes=$nodes engine=$engine" >"$dir/settings"
	read_settings
	for ((n = 1; n <= nodes; n++)); do write_node "$n"; done
	(
		enter_group "$group/control"
		exec setsid "$dir/bin/cluster-host" listen "$dir/port" unshare --fork --pid --kill-child --mount --net --uts --ipc --mount-proc \
			bash "$dir/cluster.sh" --dir "$dir" inside-control
	) >>"$dir/log/control" 2>&1 </dev/null &
	disown
	await "the port" test -s "$dir/port"
	sed "s|https://$net.1:443|https://127.0.0.1:$(cat "$dir/port")|" "$dir/pki/admin.kubeconfig" >"$dir/kubeconfig"
	chmod 0600 "$dir/kubeconfig"
	# Images need only the engine, which is ready long before the API.
	for ((n = 1; n <= nodes; n++)); do await "$engine of node$n" in_node "$n" test -S "$socket"; done
	load "$dir/pause.tar" "${images[@]}"
	await "the API" test -e "$dir/ready"
	for runtime in "${runtimes[@]}"; do
		printf '{"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "%s"}, "handler": "%s"}\n' "${runtime%%=*}" "${runtime%%=*}"
	done | kubectl apply -f - >/dev/null
	for ((n = 1; n <= nodes; n++)); do await "node$n" kubectl get node "node$n"; done
	await_nodes
	await "the default service account" kubectl get serviceaccount default
	echo "cluster: $nodes nodes are ready after $(awk "BEGIN { printf \"%.1f\", $EPOCHREALTIME - $began }") s; KUBECONFIG=$dir/kubeconfig"
)

# hold runs a cluster for the time that standard input is open, so that it ends with the process at the other end of the pipe, however that ends.
hold() {
	trap 'tail -n 5 "$dir"/log/* >&2 || true; down' EXIT
	up "$@"
	cat >/dev/null
	trap - EXIT
	down
}

down() {
	local controller
	[ ! -e "$dir" ] || [ -e "$dir/is-touchstone-k8s" ] || [ -z "$(ls -A "$dir")" ] || die "$dir is not the directory of a cluster: choose another one"
	stop 1 control
	clear_group ""
	[ ! -e "$dir/delegated-sys-fs-cgroup" ] || while read -r controller; do
		echo "-$controller" >/sys/fs/cgroup/cgroup.subtree_control || true # another program uses it by now
	done <"$dir/delegated-sys-fs-cgroup"
	rm -rf --one-file-system "$dir"
}

# await_nodes waits until the API answers and all nodes are ready.
await_nodes() {
	await "the API" kubectl get --raw /readyz
	kubectl wait --for=condition=Ready nodes --all --timeout 300s >/dev/null
	await "the removal of the taints of new nodes" are_admitted
}

# are_admitted reports whether no node has a taint of the cluster itself: it stays for a moment after the node is ready.
are_admitted() {
	local keys
	keys=$(kubectl get nodes -o jsonpath='{.items[*].spec.taints[*].key}') && [[ $keys != *node.kubernetes.io* ]]
}

status() {
	[ -n "$(first 1 control)" ] || die "none runs in $dir"
	kubectl get nodes -o wide
	kubectl get runtimeclasses
	echo "processes: $(processes "" | wc -l), running nodes: $(running | tr '\n' ' ')"
}

# running prints the numbers of the running nodes.
running() {
	local n
	for ((n = 1; n <= nodes; n++)); do [ -z "$(first 2 "node$n")" ] || echo "$n"; done
}

# load TAR… loads images into all nodes at once.
load() {
	local n tar pid pids
	for tar; do
		pids=()
		for n in $(running); do
			case $engine in
			containerd) in_node "$n" ctr -n k8s.io images import "$tar" ;;
			crio) in_node "$n" podman --root /var/lib/containers/storage --runroot /run/containers/storage --storage-driver overlay load --quiet --input "$tar" ;;
			esac >>"$dir/log/load" 2>&1 &
			pids+=($!)
		done
		for pid in "${pids[@]}"; do wait "$pid" || die "cannot load the image $tar: $(tail -n 1 "$dir/log/load")"; done
	done
}

kubectl() { KUBECACHEDIR=$dir/cache "$dir/bin/kubectl" --kubeconfig "$dir/kubeconfig" "$@"; }

# within DEPTH PATH COMMAND… runs a command in the namespaces of the first process in a cgroup of the cluster.
within() {
	local pid
	pid=$(first "$1" "$2")
	[ -n "$pid" ] || die "$2 does not run in $dir"
	nsenter --target "$pid" --mount --uts --ipc --net --pid -- env PATH="$dir/bin:$PATH" "${@:3}"
}

in_node() { within 2 "node$1" "${@:2}"; }

stop_node() {
	stop 2 "node$1"
	clear_group "node$1"
}

start_node_again() {
	[ -z "$(first 2 "node$1")" ] || die "node $1 runs"
	echo "$1" >"$dir/requests"
	await "the kubelet of node$1" in_node "$1" kubectl --server http://127.0.0.1:10248 get --raw /healthz
}

# find_program PROGRAM PATH prints the processes of a program in a cgroup of the cluster, by the name of its file.
find_program() {
	local pid argument missing=1
	for pid in $(processes "$2"); do
		{ IFS= read -r -d '' argument <"/proc/$pid/cmdline"; } 2>/dev/null || continue # it has exited
		[ "$argument" != "$dir/bin/$1" ] || {
			echo "$pid"
			missing=0
		}
	done
	return $missing
}

# signal_program SIGNAL PROGRAM [N] sends a signal to a program, if necessary after its next start.
signal_program() {
	local at=control
	[ -z "${3:-}" ] || at=node$3
	await "$2" send_signal "$1" "$2" "$at"
}

# send_signal SIGNAL PROGRAM PATH
send_signal() {
	local pids
	pids=$(find_program "$2" "$3")
	# shellcheck disable=SC2086
	kill -s "$1" $pids
}

# add_fake_nodes N [FILE] starts kwok, a kubelet without containers, and adds its nodes.
add_fake_nodes() {
	local n=$1 at=$dir/kwok stages file
	command -v kwok >/dev/null || die "kwok is not in PATH: see scripts/tools.sh"
	stages=$(dirname "$(readlink -f "$(command -v kwok)")")/stages
	mkdir "$at"
	for file in "$stages"/*.yaml; do
		cat "$file"
		echo ---
	done >"$at/config.yaml"
	[ -z "${2:-}" ] || {
		cp "$2" "$at/log"
		printf '{"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "ClusterLogs", "metadata": {"name": "log"}, "spec": {"logs": [{"logsFile": "%s"}]}}\n' "$at/log"
	} >>"$at/config.yaml"
	(
		enter_group "$group/control"
		exec setsid nsenter --target "$(first 1 control)" --mount --uts --ipc --net --pid -- "$(command -v kwok)" --kubeconfig "$dir/pki/admin.kubeconfig" --config "$at/config.yaml" \
			--manage-all-nodes=false --manage-nodes-with-label-selector type=kwok --node-ip "$net.1" --node-port 10247 --server-address "$net.1:10247" \
			--node-lease-duration-seconds 40 --tls-cert-file "$dir/pki/kwok.crt" --tls-private-key-file "$dir/pki/kwok.key"
	) >>"$dir/log/kwok" 2>&1 </dev/null &
	disown
	seq -f 'fake-%04.0f' 1 "$n" | sed 's|.*|{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "&", "labels": {"type": "kwok", "kubernetes.io/hostname": "&", "kubernetes.io/os": "linux"}, "annotations": {"node.alpha.kubernetes.io/ttl": "0"}}, "spec": {"taints": [{"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}]}, "status": {"allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110"}, "capacity": {"cpu": "4", "memory": "16Gi", "pods": "110"}}}|' >"$at/nodes.json"
	kubectl create -f "$at/nodes.json" >/dev/null
	kubectl wait --for=condition=Ready nodes -l type=kwok --timeout 600s >/dev/null
	echo "cluster: $n fake nodes are ready, with the label type=kwok and the taint kwok.x-k8s.io/node=fake:NoSchedule"
}

# read_settings reads the settings of the cluster that up has written.
read_settings() {
	# shellcheck source=/dev/null
	. "$dir/settings"
	case $engine in
	containerd) socket=/run/containerd/containerd.sock ;;
	crio) socket=/run/crio/crio.sock ;;
	esac
}

usage() {
	sed -n '2,/^set/s/^# \{0,1\}//p' "$self" | sed '$d' >&2
	exit 2
}

command=${1:-}
[ $# -eq 0 ] || shift
case $command in up | hold | down | '') ;; *) [ ! -e "$dir/settings" ] || read_settings ;; esac
case $command in
up) up "$@" ;;
hold) hold "$@" ;;
down) down ;;
status) status ;;
load) load "$@" ;;
kubectl) kubectl "$@" ;;
node) in_node "${@:?a number of a node is missing}" ;;
control) within 1 control "$@" ;;
stop-node) stop_node "${1:?a number of a node is missing}" ;;
start-node) start_node_again "${1:?a number of a node is missing}" ;;
wait) await_nodes ;;
signal) signal_program "$@" ;;
kwok) add_fake_nodes "${1:?a number of nodes is missing}" "${@:2}" ;;
inside-control) inside_control ;;
inside-node) inside_node "$1" ;;
*) usage ;;
esac
