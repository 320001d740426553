/* The probe: the program that Touchstone runs in containers and on the host. The name of the file selects the adapter. The
 * probe's commands and the arguments of a runtime cannot be confused: runtimes have other commands, and options first. */
#include "probe.h"

static const char help[] =
	"usage: probe COMMAND [OPTION]...\n"
	"\n"
	"  ready [--signal]                 write \"ready\" and wait for SIGTERM; write \"signal\" then\n"
	"  pause                            wait for SIGTERM, without a word\n"
	"  exit [CODE]                      end at once\n"
	"  syscall --copies N --ms MS [--stdin]\n"
	"                                   rate of the UnixBench mix of system calls\n"
	"  latency --ms MS                  distribution of the time of single system calls\n"
	"  latency --call NAME --samples N  the times of one system call, one by one, with the largest ones\n"
	"  stream --mib N --ms MS [--copies N] [--lines]\n"
	"                                   memory bandwidth as STREAM defines it\n"
	"  files --dir DIR --ms MS          many small files: writers, rewriters, commenters, readers\n"
	"        [--writers N] [--rewriters N] [--commenters N] [--readers N] [--seed N] [--blogbench MIB]\n"
	"  serve [--any] [--port N]         answer HTTP requests on 127.0.0.1, or on all addresses\n"
	"  reach --address IPV4 --port N [--ms MS]\n"
	"                                   connect until that is accepted\n"
	"  write FILE                       make a file\n"
	"  tick --ms MS                     write a line again and again\n"
	"  rights                           write the rights of the program and its view of the machine\n"
	"  drills                           try calls that a container should not be able to make, without an effect\n"
	"  confinement PID...               write the rights of other processes, and their filters\n"
	"  cpus                             write the CPUs on which it may run\n"
	"  grow --mib N                     touch memory, MiB by MiB\n"
	"  forks --most N --ms MS [--once]  fork up to a limit of processes, and on and on\n"
	"  sequence [--dir DIR] -- PROGRAM [ARG]... [--then PROGRAM [ARG]...]...\n"
	"                                   run programs one after the other\n"
	"  enter --root DIR [--gate] [--cpus LIST] [--netns FILE] [--userns] [--system] [--read-only] [--confine]\n"
	"        [--devices] [--unprivileged] [--files N] [--processes N] [--memory BYTES]\n"
	"        [--tmpfs DST]... [--bind SRC:DST[:ro]]... [--cgroup FILE]... -- PROGRAM [ARG]...\n"
	"                                   run a program in another root directory\n"
	"  daemon [--network FD] [--mounts FD] [--private DIR]... [--keep PATH]... [--memory DIR]... [--size BYTES]\n"
	"        [--share] [--dir DIR] -- PROGRAM [ARG]...\n"
	"                                   run a program with mounts and a network of its own\n"
	"  kvm [--device FILE] [--ms MS]    run a small guest in a virtual machine\n"
	"  version                          say what this is\n"
	"\n"
	"Every command is described in its source file and in probe/README.md.\n";

#if defined(__x86_64__)
#define ARCH "amd64"
#elif defined(__aarch64__)
#define ARCH "arm64"
#elif defined(__riscv)
#define ARCH "riscv64"
#endif

_Noreturn static void command_version(char **argv)
{
	parse_all("version", argv, NULL, 0);
	put(&out, "touchstone-probe " PROBE_VERSION " " ARCH "\n");
	flush(&out);
	sys_exit(EXIT_OK);
}

_Noreturn static void run(char **argv, char **envp)
{
	const char *self = argv[0];
	const char *command = argv[1];
	argv += 2;
	/* "ready" comes first, so that as few instructions as possible precede its first byte. */
	if (same(command, "ready"))
		command_ready(argv);
	if (same(command, "pause"))
		command_pause(argv);
	if (same(command, "exit"))
		command_exit(argv);
	if (same(command, "syscall"))
		command_syscall(argv);
	if (same(command, "latency"))
		command_latency(argv, self);
	if (same(command, "stream"))
		command_stream(argv);
	if (same(command, "files"))
		command_files(argv);
	if (same(command, "serve"))
		command_serve(argv);
	if (same(command, "reach"))
		command_reach(argv);
	if (same(command, "write"))
		command_write(argv);
	if (same(command, "tick"))
		command_tick(argv);
	if (same(command, "confinement"))
		command_confinement(argv);
	if (same(command, "cpus"))
		command_cpus(argv);
	if (same(command, "rights"))
		command_rights(argv);
	if (same(command, "drills"))
		command_drills(argv);
	if (same(command, "grow"))
		command_grow(argv);
	if (same(command, "forks"))
		command_forks(argv);
	if (same(command, "sequence"))
		command_sequence(argv, envp);
	if (same(command, "enter"))
		command_enter(argv, envp);
	if (same(command, "daemon"))
		command_daemon(argv, envp);
	if (same(command, "kvm"))
		command_kvm(argv);
	if (same(command, "version"))
		command_version(argv);
	if (is_adapter())
		run_adapter(argv - 2, envp);
	usage("probe", "unknown command", command);
}

/* _start calls it with the initial stack: the number of arguments, the arguments, NULL, the environment, NULL. */
_Noreturn void probe_start(char **stack);

void probe_start(char **stack)
{
	uintptr_t argc = (uintptr_t)stack[0];
	char **argv = stack + 1;
	if (argc >= 2)
		run(argv, argv + argc + 1);
	put(&err, help);
	flush(&err);
	sys_exit(EXIT_USAGE);
}
