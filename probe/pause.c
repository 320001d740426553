/* pause: waits for SIGTERM and does nothing else, like the "pause" program of Kubernetes: it
 * holds a pod's sandbox. It writes nothing, since a sandbox's process may have no output at all.
 * It calls itself pause, so that it can be told from what runs in the pod. */
#include "probe.h"

void command_pause(char **argv)
{
	parse_all("pause", argv, NULL, 0);
	exit_on_sigterm();
	sys_prctl(PR_SET_NAME, (unsigned long)"pause"); /* last, so that who sees it can send SIGTERM */
	for (;;)
		sys_poll(NULL, 0, NULL);
}
