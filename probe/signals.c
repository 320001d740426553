/* Signal handlers. */
#include "probe.h"

volatile bool alarm_rang;

static void on_alarm(int signal)
{
	(void)signal;
	alarm_rang = true;
}

static void on_sigterm(int signal)
{
	(void)signal;
	sys_exit(EXIT_OK);
}

static void on_sigterm_write(int signal)
{
	(void)signal;
	sys_exit(sys_write(1, "signal\n", 7) < 0 ? EXIT_FAILED : EXIT_OK);
}

/* SA_RESTART, because the alarm must not interrupt measured calls. */
static long handle(int signal, void (*handler)(int))
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
#ifdef SA_RESTORER
	action.sa_flags |= SA_RESTORER;
	action.sa_restorer = signal_return;
#endif
	return sys_sigaction(signal, &action, NULL);
}

/* The kernel does not deliver unhandled signals, such as SIGTERM, to the first process of a container. */
void exit_on_sigterm(bool writes)
{
	long e = handle(SIGTERM, writes ? on_sigterm_write : on_sigterm);
	if (e < 0)
		die(EXIT_FAILED, "probe", "handle SIGTERM", NULL, e);
}

long alarm_after_ms(uint64_t ms)
{
	struct __kernel_old_itimerval timer = {
		.it_value = {.tv_sec = (long)(ms / 1000), .tv_usec = (long)(ms % 1000) * 1000},
	};
	long e = handle(SIGALRM, on_alarm);
	return e < 0 ? e : sys_setitimer(&timer);
}
