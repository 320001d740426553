/* The monotonic clock. It measures only the probe's own durations, and is never compared with another clock. */
#include "probe.h"

uint64_t now_ns(void)
{
	struct __kernel_timespec ts;
	long e = sys_clock_gettime(CLOCK_MONOTONIC, &ts);
	if (e < 0)
		die(EXIT_FAILED, "probe", "read CLOCK_MONOTONIC", NULL, e);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}
