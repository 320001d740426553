/* pause: waits for SIGTERM and does nothing else, like the "pause" program of Kubernetes: it keeps a pod's sandbox alive. It
 * writes nothing, because a sandbox's process may have no output at all. It sets its name to pause, to distinguish it from
 * the pod's containers. */
#include "probe.h"

void command_pause(char **argv)
{
	parse_all("pause", argv, NULL, 0);
	exit_on_sigterm(false);
	sys_prctl(PR_SET_NAME, (unsigned long)"pause"); /* last, so that a process that sees the name can send SIGTERM */
	for (;;)
		sys_poll(NULL, 0, NULL);
}
