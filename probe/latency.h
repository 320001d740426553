/* The interface between the measured system calls (latency_calls.c) and the measurement (latency.c). */
#pragma once

#include "probe.h"

/* The objects of the calls, opened once. */
struct subject {
	const char *path; /* a readable regular file: the probe itself */
	int file;	  /* path, open */
	int zero, null;	  /* /dev/zero and /dev/null, open */
	int pipe[2];
	uint32_t futex; /* no thread waits for it */
};

/* run makes the call once, and returns a negative error if it fails. */
struct call {
	const char *name;
	long (*run)(struct subject *);
};

extern const struct call calls[];
extern const unsigned call_count;
