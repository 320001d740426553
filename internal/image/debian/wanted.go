package debian

// wantedPackages are those whose dependencies, too, make a list of packages.
var wantedPackages = []string{
	"7zip", "apache2-utils", "base-files", "busybox", "dav1d", "fio", "iperf3", "libopenblas0-pthread", "netbase", "netperf", "nginx-light",
	"redis-server", "redis-tools", "sqlite3", "sysbench",
}

// wantedFiles are the programs of the image, and what they need and do not say: what they load while they run, and data.
var wantedFiles = []string{
	"/usr/bin/7z", "/usr/lib/7zip/7z", "/usr/lib/7zip/7z.so",
	"/usr/bin/ab",
	"/usr/bin/busybox",
	"/usr/bin/dav1d",
	"/usr/bin/fio",
	"/usr/bin/iperf3",
	"/usr/bin/netperf", "/usr/bin/netserver",
	"/usr/bin/redis-server", "/usr/bin/redis-benchmark", "/usr/bin/redis-cli",
	"/usr/bin/sqlite3",
	"/usr/bin/sysbench",
	"/usr/sbin/nginx", "/etc/nginx/mime.types",
	"/etc/protocols", "/etc/services",
	"/usr/lib/os-release", "/etc/debian_version",
}

// wantedLibraries are loaded by name while programs run: OpenBLAS by linpack, and that of GCC by glibc when a thread is cancelled.
var wantedLibraries = []string{"libgcc_s.so.1", "openblas-pthread/libopenblas.so.0"}
